use std::collections::HashSet;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::*;

fn pod(name: &str, uid: &str, version: u64) -> Pod {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-1", "controller": true}]);
    serde_json::from_value(json!({"metadata": {
        "name": name, "namespace": "n", "uid": uid, "resourceVersion": version.to_string(), "ownerReferences": owner,
        "managedFields": [{"manager": "m"}],
    }, "spec": {"containers": [], "nodeName": format!("node-{version}")}}))
    .unwrap()
}

fn node_of(pod: &Pod) -> Vec<String> {
    pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
}

fn cache() -> Cache<Pod> {
    Cache::with(&[Index { name: "node", of: node_of }])
}

#[test]
fn an_object_is_found_by_name_namespace_owner_and_index() {
    let cache = cache();
    cache.apply(pod("a", "u1", 1));
    assert!(cache.get(&ObjectKey::new("n", "a")).unwrap().metadata.managed_fields.is_none());
    assert_eq!(cache.in_namespace("n").len(), 1);
    assert_eq!(cache.controlled_by("rs-1").len(), 1);
    assert_eq!(cache.by("node", "node-1").len(), 1);
    cache.apply(pod("a", "u1", 2));
    assert!(cache.by("node", "node-1").is_empty(), "it moved");
    assert_eq!(cache.by("node", "node-2").len(), 1);
    assert!(cache.by("undeclared", "x").is_empty());
    cache.delete(pod("a", "u1", 3));
    assert!(cache.is_empty() && cache.in_namespace("n").is_empty() && cache.controlled_by("rs-1").is_empty());
}

#[test]
fn an_object_never_gets_older() {
    let cache = cache();
    cache.wrote(pod("a", "u1", 5));
    assert!(cache.apply(pod("a", "u1", 4)).is_none(), "the watch is late");
    assert_eq!(cache.get(&ObjectKey::new("n", "a")).unwrap().metadata.resource_version.as_deref(), Some("5"));
    let change =
        cache.apply(pod("a", "u1", 5)).expect("an object that was written through is new to subscribers");
    assert!(change.before().is_some());
    cache.wrote(pod("a", "u1", 3));
    assert_eq!(cache.get(&ObjectKey::new("n", "a")).unwrap().metadata.resource_version.as_deref(), Some("5"));
}

#[test]
fn the_deletion_of_an_old_object_does_not_remove_a_new_one_of_its_name() {
    let cache = cache();
    cache.wrote(pod("a", "u2", 9));
    cache.delete(pod("a", "u1", 8));
    cache.removed(&ObjectKey::new("n", "a"), "u1");
    assert_eq!(cache.len(), 1);
    cache.removed(&ObjectKey::new("n", "a"), "u2");
    assert!(cache.is_empty());
}

#[test]
fn a_list_removes_what_it_lacks_unless_that_was_written_meanwhile() {
    let cache = cache();
    cache.apply(pod("old", "u1", 1));
    cache.wrote(pod("written-and-deleted-by-others", "u4", 2));
    cache.apply(pod("stays", "u2", 2));
    cache.list_begins();
    cache.wrote(pod("just-written", "u3", 9));
    let listed = HashSet::from([ObjectKey::new("n", "stays")]);
    let unlisted = cache.retain_listed(&listed);
    assert_eq!(unlisted.doubtful.len(), 1, "just-written may be gone as well");
    let mut gone: Vec<String> = unlisted.gone.iter().map(|change| change.object().name_any()).collect();
    gone.sort();
    assert_eq!(gone, ["old", "written-and-deleted-by-others"]);
    assert_eq!(cache.len(), 2);
}

#[test]
fn an_answer_after_the_deletion_of_its_object_does_not_bring_it_back() {
    let cache = cache();
    cache.apply(pod("a", "u1", 1));
    cache.delete(pod("a", "u1", 5));
    cache.wrote(pod("a", "u1", 4));
    assert!(cache.is_empty(), "the watch was faster than the answer to the deletion");
    cache.wrote(pod("b", "u2", 6));
    assert_eq!(cache.len(), 1, "a version beyond the watch is new");
}

#[test]
fn a_version_that_the_watch_delivered_is_not_replaced_by_the_answer_to_a_write() {
    let cache = cache();
    let mut delivered = pod("a", "u1", 5);
    delivered.metadata.deletion_grace_period_seconds = Some(1);
    cache.apply(delivered);
    let known = cache.wrote(pod("a", "u1", 5));
    assert_eq!(known.metadata.deletion_grace_period_seconds, Some(1));
    assert_eq!(cache.all()[0].metadata.deletion_grace_period_seconds, Some(1));
}

fn child(owner_kind: &str, owner: &str, version: u64) -> Arc<Pod> {
    let owner = json!([{"apiVersion": "apps/v1", "kind": owner_kind, "name": owner, "uid": owner, "controller": true}]);
    let metadata = json!({"name": "p", "namespace": "n", "uid": "u", "resourceVersion": version.to_string(),
        "ownerReferences": owner});
    Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
}

/// Collects what a source enqueues.
#[derive(Default)]
struct Enqueued(parking_lot::Mutex<Vec<String>>);

impl aro_control::Reconcile for Enqueued {
    type Key = ObjectKey;
    type Error = aro_runtime::Fault;
    const NAME: &'static str = "enqueued";

    async fn reconcile(&self, key: &ObjectKey) -> Result<aro_control::Outcome, aro_runtime::Fault> {
        self.0.lock().push(key.to_string());
        Ok(aro_control::Outcome::Settled)
    }
}

impl Enqueued {
    async fn take(&self) -> Vec<String> {
        // Every other task runs first.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let mut keys = std::mem::take(&mut *self.0.lock());
        keys.sort();
        keys
    }
}

#[tokio::test]
async fn sources_enqueue_cached_objects_their_owners_and_mapped_keys_until_their_scope_ends() {
    use aro_control::{Queue, Runner};
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

    let informer: Informer<Pod> = Informer::default();
    informer.cache.apply(pod("cached", "u0", 1));
    informer.synced.send_replace(true);
    let (queue, scope, enqueued) = (Queue::new(), Scope::root("test"), Arc::new(Enqueued::default()));
    Runner::new(enqueued.clone(), &queue)
        .with_source(informer.objects())
        .with_source(informer.owned_by::<ReplicaSet>())
        .with_source(informer.owned_by::<Deployment>())
        .with_source(informer.mapped(|_, queue| queue.add(ObjectKey::new("", "mapped"))))
        .start(&scope);
    assert_eq!(enqueued.take().await, ["mapped", "n/cached", "n/rs"], "the initial list");

    let moved = Change::Applied { old: Some(child("ReplicaSet", "a", 2)), new: child("ReplicaSet", "b", 3) };
    informer.notify(&moved);
    assert_eq!(enqueued.take().await, ["mapped", "n/a", "n/b", "n/p"], "both owners of an object that moved");

    informer.notify(&Change::Deleted(child("Job", "j", 4)));
    assert_eq!(enqueued.take().await, ["mapped", "n/p"], "an owner of another kind is not enqueued");

    scope.close(std::time::Duration::from_secs(1)).await.unwrap();
    informer.notify(&moved);
    assert_eq!(queue.busy(), 0);
    informer.subscribe(|_| {});
    assert_eq!(informer.subscribers.read().len(), 1, "subscribers of a closed scope are removed");
}

#[test]
fn a_dynamic_informer_knows_its_kind_at_run_time() {
    use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Widget"));
    let informer: Informer<DynamicObject> = Informer::dynamic(&resource, &[]);
    informer.cache.apply(DynamicObject::new("w", &resource).within("n"));
    assert_eq!(format!("{informer:?}"), "Informer(Widget, 1 objects)");
    assert!(informer.cache().get(&ObjectKey::new("n", "w")).is_some());
}

/// An API server of two pods: `exists` is there, and `phantom` was deleted before the list was served. Both are written
/// through the cache while the list is under way.
fn server_of_a_phantom(cache: Cache<Pod>) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let cache = cache.clone();
        async move {
            let answer = |code: u16, body: serde_json::Value| {
                let body = kube::client::Body::from(body.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
            };
            match (request.uri().path(), request.uri().query().unwrap_or_default()) {
                ("/api/v1/pods", query) if query.contains("watch=true") => std::future::pending().await,
                ("/api/v1/pods", _) => {
                    cache.wrote(pod("phantom", "u1", 5));
                    cache.wrote(pod("exists", "u2", 6));
                    let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": []});
                    answer(200, list)
                }
                ("/api/v1/namespaces/n/pods/exists", _) => answer(200, json!(pod("exists", "u2", 6))),
                _ => answer(
                    404,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound", "message": "not found"}),
                ),
            }
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn an_object_written_during_a_list_and_deleted_before_it_was_served_does_not_stay_cached() {
    let informer: Informer<Pod> = Informer::default();
    let (deleted, mut deletions) = tokio::sync::mpsc::unbounded_channel();
    informer.subscribe(move |change| {
        if let Change::Deleted(pod) = change {
            let _ = deleted.send(pod.name_any());
        }
    });
    let scope = Scope::root("test");
    let client = server_of_a_phantom(informer.cache().clone());
    informer.run(kube::Api::all(client), kube::runtime::watcher::Config::default(), &scope);
    let gone = tokio::time::timeout(std::time::Duration::from_secs(30), deletions.recv()).await;
    assert_eq!(gone.expect("the deletion is noticed").as_deref(), Some("phantom"));
    let cached: Vec<String> = informer.cache().all().iter().map(|pod| pod.name_any()).collect();
    assert_eq!(cached, ["exists"]);
    scope.close(std::time::Duration::from_secs(1)).await.unwrap();
}
