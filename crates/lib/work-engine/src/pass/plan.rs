//! Which objects go, which stay, and in which order they come.

use aro_crds::work::v1::{AppliedManifestResourceMeta, AppliedManifestWork};

use crate::decide::Known;
use crate::intent;
use crate::manifest::{Prepared, Target, same_object};
use crate::memory::{Memory, Object};
use crate::status::Seen;

/// Where the manifests end that can be brought side by side, from `at` on.
pub(super) fn batch_end(prepared: &[Prepared], at: usize) -> usize {
    let carries = |prepared: &Prepared| prepared.target.as_ref().is_ok_and(Target::carries_others);
    if carries(&prepared[at]) {
        return at + 1;
    }
    prepared[at..].iter().position(carries).map_or(prepared.len(), |offset| at + offset)
}

/// Whether a manifest is about an entry of the record.
pub(super) fn names(prepared: &[Prepared], entry: &AppliedManifestResourceMeta) -> bool {
    let mut targets = prepared.iter().filter_map(|prepared| prepared.target.as_ref().ok());
    targets.any(|target| same_object(&target.applied(""), entry))
}

fn recorded(record: &AppliedManifestWork) -> &[AppliedManifestResourceMeta] {
    record.status.as_ref().map_or(&[], |status| &status.applied_resources)
}

/// Everything the work has or may have: what the record says is applied, what a process before was about to apply, and
/// what this one did since the record was written.
pub(super) fn entries(memory: &Memory, record: &AppliedManifestWork) -> Vec<AppliedManifestResourceMeta> {
    let mut all = recorded(record).to_vec();
    for entry in intent::read(record).into_iter().chain(memory.objects.values().map(Object::entry)) {
        if all.iter().all(|known| !same_object(known, &entry)) {
            all.push(entry);
        }
    }
    all
}

/// What the work has and does not name any more.
pub(super) fn leftovers(
    memory: &Memory,
    record: &AppliedManifestWork,
    prepared: &[Prepared],
) -> Vec<AppliedManifestResourceMeta> {
    let mut all = entries(memory, record);
    all.retain(|entry| !names(prepared, entry));
    all
}

/// What the record is to say: what is there, what was there and is wanted, and what still has to go.
pub(super) fn applied_list(
    record: &AppliedManifestWork,
    prepared: &[Prepared],
    seen: &[Seen],
    left: Vec<AppliedManifestResourceMeta>,
) -> Vec<AppliedManifestResourceMeta> {
    let mut list = left;
    for (prepared, seen) in prepared.iter().zip(seen) {
        let Ok(target) = &prepared.target else { continue };
        let before = || recorded(record).iter().find(|entry| same_object(entry, &target.applied("")));
        let entry = match &seen.known {
            Known::There(live) => Some(target.applied(live.uid())),
            _ => before().cloned(),
        };
        if let Some(entry) = entry
            && list.iter().all(|known| !same_object(known, &entry))
        {
            list.push(entry);
        }
    }
    list.sort_by(|a, b| order(a).cmp(&order(b)));
    list
}

fn order(entry: &AppliedManifestResourceMeta) -> [&str; 5] {
    [&entry.group, &entry.version, &entry.resource, &entry.namespace, &entry.name]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aro_crds::work::v1::{AppliedManifestWorkSpec, AppliedManifestWorkStatus, ManifestResourceMeta};
    use aro_kube::informer::ObjectKey;
    use kube::core::ApiResource;
    use serde_json::json;

    use super::*;
    use crate::choice::Choice;
    use crate::decide::Repairs;
    use crate::failure::Failure;
    use crate::kinds::Kind;
    use crate::live::Live;
    use crate::memory::place;

    fn kind(name: &str) -> Arc<Kind> {
        let api = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: name.to_owned(),
            plural: format!("{}s", name.to_lowercase()),
        };
        Arc::new(Kind { api, namespaced: true })
    }

    /// A manifest: `kind/name`; one of no known kind if it begins with `?`.
    fn prepared(what: &str) -> Prepared {
        let (kind_name, name) = what.split_once('/').unwrap();
        let target = Target {
            kind: kind(kind_name),
            key: ObjectKey::new("n", name),
            choice: Choice::default(),
            owned: true,
        };
        let unknown = || Arc::new(Failure::UnknownKind(what.to_owned()));
        let target = if what.starts_with('?') { Err(unknown()) } else { Ok(target) };
        Prepared { meta: ManifestResourceMeta::default(), target }
    }

    fn all(what: &[&str]) -> Vec<Prepared> {
        what.iter().map(|what| prepared(what)).collect()
    }

    fn record(names: &[(&str, &str)]) -> AppliedManifestWork {
        let entry = |(name, uid): &(&str, &str)| AppliedManifestResourceMeta {
            version: "v1".to_owned(),
            resource: "configmaps".to_owned(),
            name: (*name).to_owned(),
            namespace: "n".to_owned(),
            uid: (*uid).to_owned(),
            ..AppliedManifestResourceMeta::default()
        };
        let mut record = AppliedManifestWork::new("r", AppliedManifestWorkSpec::default());
        let applied_resources = names.iter().map(entry).collect();
        record.status = Some(AppliedManifestWorkStatus { applied_resources, eviction_start_time: None });
        record
    }

    fn memory(names: &[&str]) -> Memory {
        let mut memory = Memory::default();
        for name in names {
            let (kind, key) = (kind("ConfigMap"), ObjectKey::new("n", *name));
            let object = Object {
                kind: kind.clone(),
                key: key.clone(),
                uid: String::new(),
                written: None,
                repairs: Repairs::default(),
            };
            memory.objects.insert(place(&kind, &key), object);
        }
        memory
    }

    fn shown(list: &[AppliedManifestResourceMeta]) -> Vec<(&str, &str)> {
        list.iter().map(|entry| (entry.name.as_str(), entry.uid.as_str())).collect()
    }

    #[test]
    fn those_that_carry_others_come_alone_and_in_their_place() {
        let list = all(&["ConfigMap/a", "Secret/b", "Namespace/c", "Namespace/d", "ConfigMap/e"]);
        let mut ends = Vec::new();
        let mut at = 0;
        while at < list.len() {
            at = batch_end(&list, at);
            ends.push(at);
        }
        assert_eq!(ends, [2, 3, 4, 5]);
        assert_eq!(batch_end(&all(&["?Thing/a", "ConfigMap/b"]), 0), 2);
    }

    #[test]
    fn an_object_that_is_no_longer_named_is_left_over_whichever_record_names_it() {
        let (record, memory) = (record(&[("a", "1"), ("b", "2")]), memory(&["b", "c", "d"]));
        let wanted = all(&["ConfigMap/a", "ConfigMap/d", "Secret/c"]);
        let mut found = leftovers(&memory, &record, &wanted);
        found.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(shown(&found), [("b", "2"), ("c", "")]);
        assert_eq!(entries(&memory, &record).len(), 4);
    }

    #[test]
    fn the_record_keeps_what_is_wanted_though_it_is_not_there_and_what_has_to_go() {
        let record = record(&[("gone", "1"), ("there", "old"), ("left", "3")]);
        let wanted = all(&["ConfigMap/there", "ConfigMap/gone", "ConfigMap/never", "?Thing/x"]);
        let live = Arc::new(Live::new(json!({"metadata": {"uid": "new"}})));
        let seen = [Known::There(live), Known::Absent, Known::Absent, Known::Unknown].map(|known| Seen {
            meta: ManifestResourceMeta::default(),
            choice: Choice::default(),
            failure: None,
            known,
        });
        let left = recorded(&record).iter().filter(|entry| entry.name == "left").cloned().collect();
        let list = applied_list(&record, &wanted, &seen, left);
        assert_eq!(shown(&list), [("gone", "1"), ("left", "3"), ("there", "new")]);
    }
}
