//! Cached objects by name, namespace, owner and declared indexes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kube::{Resource, ResourceExt as _};
use parking_lot::RwLock;

use super::{Change, Kept, key_of};

/// An object's namespace (empty for cluster-wide ones) and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its namespace; empty if its kind has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// A key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// An index: finds objects by the values that a function computes of each.
pub struct Index<K> {
    /// Its name.
    pub name: &'static str,
    /// The values that an object is found by.
    pub of: fn(&K) -> Vec<String>,
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { name: self.name, of: self.of }
    }
}

/// Objects of one resource. Cloning gives another handle to the same ones.
pub struct Cache<K: Kept> {
    inner: Arc<RwLock<Inner<K>>>,
}

impl<K: Kept> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<K> {
    objects: HashMap<ObjectKey, Arc<K>>,
    indexes: Vec<Index<K>>,
    /// One map for each index: value to keys.
    found: Vec<HashMap<String, HashSet<ObjectKey>>>,
    spaces: BTreeMap<String, HashSet<ObjectKey>>,
    /// Written by us since the last list began: a list that began before may lack them.
    fresh: HashSet<ObjectKey>,
    /// The newest version that the watch has delivered. What is older and not cached is gone.
    delivered: u64,
}

/// The index of objects by the uid of their controller.
const BY_CONTROLLER: &str = "controller";

fn controller_uid<K: Resource>(object: &K) -> Vec<String> {
    let owners = object.meta().owner_references.iter().flatten();
    owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone()).collect()
}

/// How new an object is. Versions that are no numbers are taken as they come.
fn version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

impl<K: Kept> Cache<K> {
    pub(super) fn with(indexes: &[Index<K>]) -> Self {
        let mut indexes = indexes.to_vec();
        indexes.insert(0, Index { name: BY_CONTROLLER, of: controller_uid });
        let found = indexes.iter().map(|_| HashMap::new()).collect();
        let inner = Inner {
            objects: HashMap::new(),
            indexes,
            found,
            spaces: BTreeMap::new(),
            fresh: HashSet::new(),
            delivered: 0,
        };
        Self { inner: Arc::new(RwLock::new(inner)) }
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.inner.read().objects.get(key).cloned()
    }

    /// All of them, in no order.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.inner.read().objects.values().cloned().collect()
    }

    /// Those of a namespace, in no order.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let inner = self.inner.read();
        inner.of_keys(inner.spaces.get(namespace))
    }

    /// Those whose controller has this uid, in no order.
    pub fn controlled_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.by(BY_CONTROLLER, uid)
    }

    /// Those an index finds by a value, in no order. An undeclared index finds nothing.
    pub fn by(&self, index: &str, value: &str) -> Vec<Arc<K>> {
        let inner = self.inner.read();
        let Some(position) = inner.indexes.iter().position(|known| known.name == index) else {
            return Vec::new();
        };
        inner.of_keys(inner.found[position].get(value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.inner.read().objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Caches the API server's answer to a write, so that the next read finds it. Subscribers are called by the watch,
    /// later. A deletion that the API server confirmed goes to [`Cache::removed`].
    pub fn wrote(&self, object: K) -> Arc<K> {
        let key = key_of(&object);
        let object = Arc::new(lean(object));
        let mut inner = self.inner.write();
        // The watch may be faster than the answer, and have delivered the deletion already.
        let over = version(&*object).is_some_and(|version| version <= inner.delivered);
        if over && !inner.objects.contains_key(&key) {
            return object;
        }
        // Or have delivered the same version: that is the object as it is, whatever the writer made of the answer.
        if let Some(known) = inner.objects.get(&key)
            && let (Some(known_version), Some(new)) = (version(&**known), version(&*object))
            && known_version >= new
        {
            return known.clone();
        }
        inner.put(&key, &object);
        inner.fresh.insert(key);
        object
    }

    /// Removes an object whose deletion the API server confirmed. `uid` keeps a newer one of the same name.
    pub fn removed(&self, key: &ObjectKey, uid: &str) {
        let mut inner = self.inner.write();
        if inner.objects.get(key).is_some_and(|known| known.uid().as_deref() == Some(uid)) {
            inner.remove(key);
        }
    }

    /// Caches what a watch or a list delivered. `None` if the cached object is newer.
    pub(super) fn apply(&self, object: K) -> Option<Change<K>> {
        let key = key_of(&object);
        let new = Arc::new(lean(object));
        let mut inner = self.inner.write();
        // An object that was written through is new to subscribers, though it is cached.
        let old = inner.objects.get(&key).cloned();
        inner.delivered = inner.delivered.max(version(&*new).unwrap_or_default());
        if let Some(old) = &old
            && let (Some(known), Some(seen)) = (version(&**old), version(&*new))
            && seen < known
        {
            return None;
        }
        inner.put(&key, &new);
        inner.fresh.remove(&key);
        Some(Change::Applied { old, new })
    }

    /// Removes an object that was deleted. A newer one of that name stays.
    pub(super) fn delete(&self, last: K) -> Change<K> {
        let key = key_of(&last);
        let mut inner = self.inner.write();
        inner.delivered = inner.delivered.max(version(&last).unwrap_or_default());
        let same = inner.objects.get(&key).is_some_and(|known| known.uid() == last.uid());
        if same {
            inner.remove(&key);
        }
        drop(inner);
        Change::Deleted(Arc::new(lean(last)))
    }

    /// A list begins: what was written before is on it.
    pub(super) fn list_begins(&self) {
        self.inner.write().fresh.clear();
    }

    /// After a whole list: what is not on it is gone, unless it was written after the list began. Such an object is in
    /// doubt: it may have been deleted before the list was served.
    pub(super) fn retain_listed(&self, listed: &HashSet<ObjectKey>) -> Unlisted<K> {
        let mut inner = self.inner.write();
        let unlisted = inner.objects.iter().filter(|(key, _)| !listed.contains(key));
        let (doubtful, gone): (Vec<_>, Vec<_>) = unlisted
            .map(|(key, object)| (key.clone(), object.clone()))
            .partition(|(key, _)| inner.fresh.contains(key));
        let gone = gone.into_iter().map(|(key, object)| {
            inner.remove(&key);
            Change::Deleted(object)
        });
        Unlisted { gone: gone.collect(), doubtful }
    }

    /// Removes an object in doubt that is found to be gone. `None`: the watch has delivered it since, and will deliver its
    /// deletion.
    pub(super) fn confirm_gone(&self, key: &ObjectKey, doubtful: &Arc<K>) -> Option<Change<K>> {
        let mut inner = self.inner.write();
        let same = inner.objects.get(key).is_some_and(|known| known.uid() == doubtful.uid());
        if !same || !inner.fresh.contains(key) {
            return None;
        }
        inner.remove(key);
        Some(Change::Deleted(doubtful.clone()))
    }
}

/// What is cached and not on a list.
pub(super) struct Unlisted<K> {
    /// Deleted, and removed from the cache.
    pub(super) gone: Vec<Change<K>>,
    /// Written while the list was under way.
    pub(super) doubtful: Vec<(ObjectKey, Arc<K>)>,
}

/// Without managed fields.
fn lean<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

impl<K: Kept> Inner<K> {
    fn of_keys(&self, keys: Option<&HashSet<ObjectKey>>) -> Vec<Arc<K>> {
        keys.into_iter().flatten().filter_map(|key| self.objects.get(key).cloned()).collect()
    }

    /// Puts an object in unless what is there is newer.
    fn put(&mut self, key: &ObjectKey, object: &Arc<K>) {
        if let Some(known) = self.objects.get(key)
            && let (Some(known), Some(new)) = (version(&**known), version(&**object))
            && new < known
        {
            return;
        }
        let old = self.objects.insert(key.clone(), object.clone());
        for (index, found) in self.indexes.iter().zip(&mut self.found) {
            let new = (index.of)(object);
            if let Some(old) = &old {
                let before = (index.of)(old);
                if before == new {
                    continue;
                }
                take_out(found, &before, key);
            }
            for value in new {
                found.entry(value).or_default().insert(key.clone());
            }
        }
        if old.is_none() && !key.namespace.is_empty() {
            self.spaces.entry(key.namespace.clone()).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        let Some(old) = self.objects.remove(key) else { return };
        self.fresh.remove(key);
        for (index, found) in self.indexes.iter().zip(&mut self.found) {
            take_out(found, &(index.of)(&old), key);
        }
        if let Some(keys) = self.spaces.get_mut(&key.namespace) {
            keys.remove(key);
            if keys.is_empty() {
                self.spaces.remove(&key.namespace);
            }
        }
    }
}

fn take_out(found: &mut HashMap<String, HashSet<ObjectKey>>, values: &[String], key: &ObjectKey) {
    for value in values {
        if let Some(keys) = found.get_mut(value) {
            keys.remove(key);
            if keys.is_empty() {
                found.remove(value);
            }
        }
    }
}
