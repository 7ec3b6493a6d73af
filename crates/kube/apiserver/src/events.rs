//! Events are kept for an hour after they were last written.
//!
//! There is no timer for it: a read or write of events first removes those that are too old. Watchers see that as
//! deletions, as they do upstream.

use std::collections::BTreeMap;
use std::sync::Arc;

use aro_base::Timestamp;
use aro_kube_apimachinery::meta;
use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;

use crate::cache_cursor::{CacheCursor, IndexChange};
use crate::cluster::Cluster;
use crate::storage::{Change, Expect, Stored};

/// The watch cache of events, of both groups.
pub const EVENTS: &str = "events";
/// How long they are kept, in seconds.
const KEPT: i64 = 3600;
/// Most that one request removes.
const AT_ONCE: usize = 1000;

/// When each event is too old.
#[derive(Debug, Default)]
pub struct Expiry {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    follow: CacheCursor,
    /// By the second they were written in, and their version. What was changed since is in here twice.
    due: BTreeMap<(i64, u64), Arc<str>>,
}

/// When an event was last written, as the server noted it down.
fn written(event: &Value) -> i64 {
    let second = |time: &str| time.parse::<Timestamp>().map(Timestamp::as_second).ok();
    let created = meta::get(event, &["metadata", "creationTimestamp"]).and_then(Value::as_str);
    let managers = meta::get(event, &["metadata", "managedFields"]).and_then(Value::as_array);
    let managed = managers.into_iter().flatten().filter_map(|manager| manager.get("time")?.as_str());
    created.into_iter().chain(managed).filter_map(second).max().unwrap_or_default()
}

impl Expiry {
    /// Removes what is too old by now.
    pub async fn prune(&self, cluster: &Arc<Cluster>) {
        let watch_cache = cluster.store.watch_cache(EVENTS);
        let old = self.take_old(cluster, cluster.now().as_second());
        let removals = old.iter().map(|stored| {
            // A concurrent change keeps it; a storage that refuses writes reports that to the writers.
            cluster.store.commit(&watch_cache, &stored.key, Expect::Version(stored.version), Change::Delete)
        });
        join_all(removals).await;
    }

    fn take_old(&self, cluster: &Cluster, now: i64) -> Vec<Arc<Stored>> {
        let watch_cache = cluster.store.watch_cache(EVENTS);
        let mut state = self.state.lock();
        let State { follow, due } = &mut *state;
        follow.catch_up(&watch_cache, |news| match news {
            IndexChange::Reset => due.clear(),
            IndexChange::Put(event) => {
                due.insert((written(&event.value()), event.version), event.key.clone());
            }
            // Found out when it is due.
            IndexChange::Gone(_) => {}
        });
        let mut old = Vec::new();
        while let Some(first) = due.first_entry()
            && first.key().0 + KEPT <= now
            && old.len() < AT_ONCE
        {
            let ((_, version), key) = first.remove_entry();
            old.extend(watch_cache.get(&key).filter(|stored| stored.version == version));
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_write_counts() {
        let event = |managed: &[&str]| {
            let managed: Vec<Value> =
                managed.iter().map(|time| json!({"manager": "m", "time": time})).collect();
            json!({"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z", "managedFields": managed}})
        };
        assert_eq!(written(&event(&[])), 60);
        assert_eq!(written(&event(&["1970-01-01T00:03:00Z", "1970-01-01T00:02:00Z"])), 180);
        assert_eq!(written(&json!({})), 0);
    }
}
