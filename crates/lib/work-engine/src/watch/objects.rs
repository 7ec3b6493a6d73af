//! The known state of the objects of one resource.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aro_kube::informer::ObjectKey;

use crate::decide::Known;
use crate::live::Live;

/// The known state of the objects that works want.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// The works that want an object.
    wanted: HashMap<ObjectKey, Vec<String>>,
    /// What is there; `None` for what is known to be absent.
    known: HashMap<ObjectKey, Option<Arc<Live>>>,
    /// Written by us since the last list began: a list that began before may lack them.
    fresh: HashSet<ObjectKey>,
    /// What the list under way has named.
    listed: HashSet<ObjectKey>,
    /// The newest version that the watch has delivered. What is older and not here is gone.
    delivered: u64,
}

impl Objects {
    pub(super) fn want(&mut self, key: &ObjectKey, work: &str) {
        let works = self.wanted.entry(key.clone()).or_default();
        if works.iter().all(|known| known != work) {
            works.push(work.to_owned());
        }
    }

    /// Whether no work wants any object of the resource now.
    pub(super) fn release(&mut self, key: &ObjectKey, work: &str) -> bool {
        if let Some(works) = self.wanted.get_mut(key) {
            works.retain(|known| known != work);
            if works.is_empty() {
                self.wanted.remove(key);
                self.known.remove(key);
                self.fresh.remove(key);
            }
        }
        self.wanted.is_empty()
    }

    /// Every work that wants an object.
    pub(super) fn works(&self) -> Vec<String> {
        self.wanted.values().flatten().cloned().collect()
    }

    pub(super) fn look(&self, key: &ObjectKey) -> Known<Arc<Live>> {
        match self.known.get(key) {
            None => Known::Unknown,
            Some(None) => Known::Absent,
            Some(Some(live)) => Known::There(live.clone()),
        }
    }

    /// Records an answer of the server, unless the watch has delivered a newer state. Returns the answer all the same: a writer
    /// decides by the result of its own write, not of a later one. Also returns the works to enqueue: if several want the
    /// object, one does not know what another wrote.
    pub(super) fn wrote(&mut self, live: Arc<Live>) -> (Arc<Live>, Vec<String>) {
        let key = live.key();
        match self.known.get(&key) {
            Some(None) if live.version().is_some_and(|version| version <= self.delivered) => {
                return (live, Vec::new());
            }
            Some(Some(known)) if is_newer_or_same(known, &live) => return (live, Vec::new()),
            _ => {}
        }
        let several = self.wanted.get(&key).filter(|works| works.len() > 1).cloned().unwrap_or_default();
        self.known.insert(key.clone(), Some(live.clone()));
        self.fresh.insert(key);
        (live, several)
    }

    pub(super) fn absent(&mut self, key: &ObjectKey, uid: Option<&str>) {
        if !self.wanted.contains_key(key) {
            return;
        }
        let newer = match (self.known.get(key), uid) {
            (Some(Some(known)), Some(uid)) => known.uid() != uid,
            _ => false,
        };
        if !newer {
            self.known.insert(key.clone(), None);
        }
    }

    /// Records what the watch or a list delivered. Returns the works to enqueue.
    pub(super) fn applied(&mut self, live: Live) -> Vec<String> {
        let key = live.key();
        self.delivered = self.delivered.max(live.version().unwrap_or_default());
        let works = self.wanted.get(&key);
        if works.is_none() && !is_of_a_record(&live) {
            self.known.remove(&key);
            return Vec::new();
        }
        self.fresh.remove(&key);
        if let Some(Some(known)) = self.known.get(&key)
            && is_newer_or_same(known, &live)
        {
            return Vec::new();
        }
        let works = works.cloned().unwrap_or_default();
        self.known.insert(key, Some(Arc::new(live)));
        works
    }

    /// Records a deletion. A newer object of that name stays.
    pub(super) fn deleted(&mut self, last: &Live) -> Vec<String> {
        let key = last.key();
        self.delivered = self.delivered.max(last.version().unwrap_or_default());
        if let Some(Some(known)) = self.known.get(&key)
            && known.uid() != last.uid()
        {
            return Vec::new();
        }
        self.dropped(&key)
    }

    pub(super) fn list_begins(&mut self) {
        self.fresh.clear();
        self.listed.clear();
    }

    pub(super) fn listed(&mut self, live: Live) -> Vec<String> {
        self.listed.insert(live.key());
        self.applied(live)
    }

    /// What the list lacks is gone, unless it was written after the list began: then either the list is older, and the watch
    /// will deliver it, or it was deleted since, and no event follows. Its state is unknown and has to be read. Wanted objects
    /// that the list lacks and that were unknown are absent.
    pub(super) fn list_ends(&mut self) -> Vec<String> {
        let listed = std::mem::take(&mut self.listed);
        let doubtful: HashSet<ObjectKey> = self.fresh.drain().filter(|key| !listed.contains(key)).collect();
        let keys = self.known.iter().filter(|(_, live)| live.is_some()).map(|(key, _)| key);
        let unknown = self.wanted.keys().filter(|key| !self.known.contains_key(*key));
        let gone: Vec<ObjectKey> = keys
            .chain(unknown)
            .filter(|key| !listed.contains(*key) && !doubtful.contains(*key))
            .cloned()
            .collect();
        let mut works: Vec<String> = gone.iter().flat_map(|key| self.dropped(key)).collect();
        for key in doubtful {
            self.known.remove(&key);
            works.extend(self.wanted.get(&key).into_iter().flatten().cloned());
        }
        works
    }

    fn dropped(&mut self, key: &ObjectKey) -> Vec<String> {
        let works = self.wanted.get(key).cloned().unwrap_or_default();
        if works.is_empty() {
            self.known.remove(key);
        } else {
            self.known.insert(key.clone(), None);
        }
        self.fresh.remove(key);
        works
    }
}

/// Whether the known state is as new as the delivered one. Without numeric versions every different state is newer.
fn is_newer_or_same(known: &Live, new: &Live) -> bool {
    match (known.version(), new.version()) {
        (Some(known), Some(new)) => known >= new,
        _ => known == new,
    }
}

/// Whether a record owns the object; after a restart its work follows later.
fn is_of_a_record(live: &Live) -> bool {
    live.owners().iter().any(|owner| owner["kind"] == "AppliedManifestWork")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(name: &str, uid: &str, version: u64) -> Live {
        Live::new(
            json!({"metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": version.to_string()}}),
        )
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("n", name)
    }

    fn version(objects: &Objects, name: &str) -> Option<u64> {
        match objects.look(&key(name)) {
            Known::There(live) => live.version(),
            _ => None,
        }
    }

    #[test]
    fn only_objects_that_a_work_wants_or_a_record_owns_are_kept() {
        let mut objects = Objects::default();
        objects.want(&key("a"), "w1");
        objects.want(&key("a"), "w2");
        assert_eq!(objects.applied(live("a", "u", 1)), ["w1", "w2"]);
        assert!(objects.applied(live("b", "u", 2)).is_empty());
        assert!(matches!(objects.look(&key("b")), Known::Unknown));
        let owned = json!({"metadata": {"name": "c", "namespace": "n", "ownerReferences": [{"kind": "AppliedManifestWork"}]}});
        assert!(objects.applied(Live::new(owned)).is_empty());
        assert!(matches!(objects.look(&key("c")), Known::There(_)), "its work follows later");
        assert!(!objects.release(&key("a"), "w1"));
        assert!(objects.release(&key("a"), "w2"));
    }

    #[test]
    fn the_watch_event_of_an_own_write_enqueues_nothing() {
        let mut objects = Objects::default();
        objects.want(&key("a"), "w");
        objects.wrote(Arc::new(live("a", "u", 5)));
        assert!(objects.applied(live("a", "u", 4)).is_empty(), "the watch is late");
        assert!(objects.applied(live("a", "u", 5)).is_empty(), "the same version");
        assert_eq!(objects.applied(live("a", "u", 6)), ["w"]);
        let (answer, _) = objects.wrote(Arc::new(live("a", "u", 5)));
        assert_eq!(
            (answer.version(), version(&objects, "a")),
            (Some(5), Some(6)),
            "the answer is what we wrote"
        );
    }

    #[test]
    fn a_write_of_one_work_enqueues_the_others_that_want_the_object() {
        let mut objects = Objects::default();
        objects.want(&key("a"), "w1");
        assert!(objects.wrote(Arc::new(live("a", "u", 1))).1.is_empty());
        objects.want(&key("a"), "w2");
        assert_eq!(objects.wrote(Arc::new(live("a", "u", 2))).1, ["w1", "w2"]);
        assert!(objects.wrote(Arc::new(live("a", "u", 2))).1.is_empty(), "the same version");
    }

    #[test]
    fn an_answer_after_the_deletion_of_its_object_does_not_bring_it_back() {
        let mut objects = Objects::default();
        objects.want(&key("a"), "w");
        objects.applied(live("a", "u1", 1));
        assert_eq!(objects.deleted(&live("a", "u1", 5)), ["w"]);
        objects.wrote(Arc::new(live("a", "u1", 4)));
        assert!(matches!(objects.look(&key("a")), Known::Absent));
        objects.wrote(Arc::new(live("a", "u2", 6)));
        assert_eq!(version(&objects, "a"), Some(6));
        assert!(objects.deleted(&live("a", "u1", 7)).is_empty(), "that is the deletion of another object");
        objects.absent(&key("a"), Some("u1"));
        assert_eq!(version(&objects, "a"), Some(6));
    }

    #[test]
    fn a_list_shows_what_is_absent_and_objects_written_meanwhile_are_read_again() {
        let mut objects = Objects::default();
        for name in ["gone", "stays", "never", "written"] {
            objects.want(&key(name), name);
        }
        objects.applied(live("gone", "u", 1));
        objects.list_begins();
        objects.wrote(Arc::new(live("written", "u", 9)));
        assert_eq!(objects.listed(live("stays", "u", 2)), ["stays"]);
        let mut works = objects.list_ends();
        works.sort();
        assert_eq!(works, ["gone", "never", "written"]);
        assert!(matches!(objects.look(&key("never")), Known::Absent));
        let doubtful = objects.look(&key("written"));
        assert!(matches!(doubtful, Known::Unknown), "if it was deleted since, no event follows");
    }

    #[test]
    fn the_answer_for_a_newly_wanted_object_counts_however_old_it_is() {
        let mut objects = Objects::default();
        objects.applied(live("other", "u", 100));
        objects.want(&key("a"), "w");
        objects.wrote(Arc::new(live("a", "u", 3)));
        assert_eq!(version(&objects, "a"), Some(3));
    }
}
