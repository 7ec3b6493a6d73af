//! Which node needs which objects: an index of pods by the node they are bound to, brought up to date when a node asks.

use std::collections::HashMap;
use std::sync::Arc;

use aro_kube_apimachinery::meta;
use parking_lot::Mutex;
use serde_json::Value;

use super::references::{self, Kind, Reference};
use crate::cache_cursor::{CacheCursor, IndexChange};
use crate::cluster::Cluster;
use crate::storage::Stored;

/// The pods of all nodes, and what they need.
#[derive(Debug, Default)]
pub struct BoundPods {
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    follow: CacheCursor,
    pods: HashMap<Arc<str>, Bound>,
    /// By node: what is needed there, and by how many pods.
    needed: HashMap<Box<str>, HashMap<Reference, usize>>,
}

#[derive(Debug)]
struct Bound {
    node: Box<str>,
    references: Vec<Reference>,
}

impl Index {
    fn forget(&mut self, key: &str) {
        let Some(Bound { node, references }) = self.pods.remove(key) else { return };
        let Some(needed) = self.needed.get_mut(&node) else { return };
        for reference in references {
            if let Some(count) = needed.get_mut(&reference) {
                *count -= 1;
                if *count == 0 {
                    needed.remove(&reference);
                }
            }
        }
        if needed.is_empty() {
            self.needed.remove(&node);
        }
    }

    fn put(&mut self, stored: &Arc<Stored>) {
        self.forget(&stored.key);
        let pod = stored.value();
        let node = meta::get(&pod, &["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
        if node.is_empty() {
            return;
        }
        let references = references::of_pod(&pod);
        let needed = self.needed.entry(node.into()).or_default();
        for reference in &references {
            *needed.entry(reference.clone()).or_default() += 1;
        }
        self.pods.insert(stored.key.clone(), Bound { node: node.into(), references });
    }

    fn needs(&self, node: &str, reference: &Reference) -> bool {
        self.needed.get(node).is_some_and(|needed| needed.contains_key(reference))
    }

    fn claims(&self, node: &str) -> Vec<Box<str>> {
        let needed = self.needed.get(node).into_iter().flatten();
        needed.filter(|(known, _)| known.kind == Kind::Claim).map(|(known, _)| known.key.clone()).collect()
    }
}

impl BoundPods {
    /// Whether something on a node needs an object.
    pub(super) fn refers(&self, cluster: &Cluster, node: &str, wanted: &Reference) -> bool {
        let object =
            |watch_cache: &str, key: &str| Some(cluster.store.watch_cache(watch_cache).get(key)?.value());
        let on_node =
            |object: &Value| meta::get(object, &["spec", "nodeName"]).and_then(Value::as_str) == Some(node);
        match wanted.kind {
            Kind::Attachment => {
                return object("volumeattachments.storage.k8s.io", &wanted.key)
                    .is_some_and(|found| on_node(&found));
            }
            Kind::Slice => {
                return object("resourceslices.resource.k8s.io", &wanted.key)
                    .is_some_and(|found| on_node(&found));
            }
            _ => {}
        }
        let mut index = self.index.lock();
        let mut follow = std::mem::take(&mut index.follow);
        follow.catch_up(&cluster.store.watch_cache("pods"), |news| match news {
            IndexChange::Reset => *index = Index::default(),
            IndexChange::Put(pod) => index.put(pod),
            IndexChange::Gone(key) => index.forget(key),
        });
        index.follow = follow;
        match wanted.kind {
            Kind::Volume => object("persistentvolumes", &wanted.key)
                .and_then(|volume| references::claim_of(&volume))
                .is_some_and(|claim| index.needs(node, &claim)),
            Kind::Secret if !index.needs(node, wanted) => {
                let claims = index.claims(node);
                drop(index);
                // Volumes name secrets, too; few nodes have many.
                claims.iter().any(|claim| {
                    let volume = object("persistentvolumeclaims", claim).and_then(|claim| {
                        let name = meta::get(&claim, &["spec", "volumeName"]).and_then(Value::as_str)?;
                        object("persistentvolumes", name)
                    });
                    volume.is_some_and(|volume| {
                        references::claim_of(&volume).is_some_and(|owner| owner.key == *claim)
                            && references::secrets_of_volume(&volume).contains(wanted)
                    })
                })
            }
            _ => index.needs(node, wanted),
        }
    }
}
