//! Passes of the reconciler of clusters over records in a store.

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::SignedDuration;
use aro_control::saga::testing::MemoryJournal;
use aro_control::saga::{Driver, Journal, StepError};
use aro_control::{Gate, Outcome, Queue, Reconcile as _};
use aro_ocm::{ClusterState, Time};
use aro_store::Fence;
use parking_lot::Mutex;

use super::scripted::{Site, World, record, shard};
use crate::placement::Placement;
use crate::provisioning::clusters::{ClusterKey, Clusters};
use crate::records::{
    CONTAINER, ClusterRecord, DeletionRequest, TraceContext, cluster_key, cluster_partition,
};

struct Bench {
    site: Site,
    clusters: Clusters,
}

async fn bench(world: Arc<World>) -> Bench {
    let site = Site::start(world).await;
    let (environment, queue) = (site.environment.clone(), Queue::new());
    let journal: Arc<dyn Journal> = MemoryJournal::new();
    let (store, clock) = (environment.records.store().clone(), environment.clock.clone());
    let clusters = Clusters {
        create: Driver::new(journal.clone(), clock.clone()),
        delete: Driver::new(journal.clone(), clock.clone()),
        journal,
        fence: Fence::new(store, CONTAINER, "test"),
        placement: Arc::new(Placement::new(environment.records.clone(), clock, 100)),
        gate: Gate::new(&queue),
        pools: Queue::new(),
        due: Mutex::new(HashMap::new()),
        environment,
    };
    Bench { site, clusters }
}

impl Bench {
    async fn pass(&self) -> Outcome {
        self.site.environment.unpark(&record().id);
        self.clusters.reconcile(&ClusterKey(record().id)).await.unwrap()
    }

    async fn record(&self) -> Option<ClusterRecord> {
        let found = self.site.environment.records.clusters.find(&cluster_key(&record().id)).await.unwrap();
        found.map(|found| found.value)
    }

    async fn change(&self, change: impl Fn(&mut ClusterRecord)) {
        let records = &self.site.environment.records.clusters;
        let key = cluster_key(&record().id);
        let changed = records.update(&key, |record| {
            change(record);
            true
        });
        changed.await.unwrap().unwrap();
    }

    async fn request_deletion(&self) {
        let requested = Time(self.site.environment.clock.now());
        self.change(|record| {
            record.deletion = Some(DeletionRequest { requested, trace: TraceContext::default() });
            record.set_state(ClusterState::Uninstalling, "");
        })
        .await;
    }
}

#[tokio::test]
async fn a_creation_makes_everything_and_publishes_all_bundles_at_once() {
    let bench = bench(World::prompt()).await;
    bench.pass().await;
    let record = bench.record().await.unwrap();
    assert_eq!(record.state(), ClusterState::Installing);
    assert!(record.provisioning.completed.is_some());
    assert_eq!(record.provisioning.egress_address.as_deref(), Some("203.0.113.9"));
    assert_eq!(record.observed.internal_allowed_cidrs, ["203.0.113.9/32"]);
    let azure = record.cluster.azure.as_ref().unwrap();
    let identities = azure.identities().unwrap().control_plane_operators_managed_identities.as_ref().unwrap();
    assert_eq!(identities["ingress"].client_id.as_deref(), Some("client-ingress"));
    let puts = bench.site.world.puts.lock();
    let objects: Vec<&str> = puts.iter().map(|bundle| bundle.object.as_str()).collect();
    let id = record.id.as_str();
    let expected = [format!("{id}-00-hcp-namespaces"), id.to_owned(), format!("{id}-00-managed-cluster")];
    assert_eq!(objects, expected.each_ref().map(String::as_str));
    drop(bench.site.directory);
}

#[tokio::test]
async fn a_customer_resource_that_is_missing_fails_the_creation_with_its_name() {
    let bench = bench(World::prompt()).await;
    *bench.site.world.checks.lock() = Some(StepError::terminal("subnet not found: /subscriptions/s/x"));
    bench.pass().await;
    let mut record = bench.record().await.unwrap();
    assert_eq!(record.state(), ClusterState::Error);
    let status = record.status_mut();
    assert_eq!(status.provision_error_code.as_deref(), Some("OCM4001"));
    assert_eq!(status.provision_error_message.as_deref(), Some("subnet not found: /subscriptions/s/x"));
    let checks = &bench.site.environment.records.checks;
    let all =
        checks.all(&checks.in_partition(&cluster_partition(&record.id))).await.unwrap().complete().unwrap();
    let failed: Vec<_> = all
        .iter()
        .filter(|check| check.value.check.state == Some(aro_ocm::InflightCheckState::Failed))
        .map(|check| (check.value.check.name.clone().unwrap(), check.value.check.details.clone().unwrap()))
        .collect();
    assert_eq!(
        failed,
        [(
            "network-inflight".to_owned(),
            serde_json::json!({"error": "subnet not found: /subscriptions/s/x"})
        )]
    );
}

#[tokio::test]
async fn a_missing_permission_is_waited_for_until_the_deadline() {
    let bench = bench(World::prompt()).await;
    let missing =
        || StepError::wait("identity of ingress lacks permissions", std::time::Duration::from_secs(1));
    *bench.site.world.checks.lock() = Some(missing());
    assert!(matches!(bench.pass().await, Outcome::RequeueAfter(_)));
    assert_eq!(bench.record().await.unwrap().state(), ClusterState::Validating);
    *bench.site.world.checks.lock() = None;
    bench.pass().await;
    assert_eq!(bench.record().await.unwrap().state(), ClusterState::Installing, "the late role counts");
}

#[tokio::test]
async fn a_step_past_its_deadline_fails_the_creation_and_everything_is_undone() {
    let bench = bench(World::prompt()).await;
    let quota = || StepError::retry("PUT /subscriptions/s/publicIPAddresses/c1: 429 TooManyRequests");
    bench.site.world.errors.lock().extend([("egress", quota()), ("egress", quota())]);
    assert!(matches!(bench.pass().await, Outcome::RequeueAfter(_)));
    let description = bench.record().await.unwrap().status_mut().description.clone().unwrap();
    assert!(description.starts_with("egress: PUT"), "{description}");
    bench.site.clock.advance(SignedDuration::from_secs(5));
    bench.pass().await;
    let mut record = bench.record().await.unwrap();
    assert_eq!(record.state(), ClusterState::Error);
    let message = record.status_mut().provision_error_message.clone().unwrap();
    assert_eq!(
        message,
        "egress: not done within 5s: PUT /subscriptions/s/publicIPAddresses/c1: 429 TooManyRequests"
    );
    bench.pass().await;
    assert!(bench.site.world.exist.lock().is_empty(), "{:?}", bench.site.world.exist.lock());
    let record = bench.record().await.unwrap();
    assert_eq!(record.state(), ClusterState::Error, "the error stays after the undo");
}

#[tokio::test]
async fn a_deletion_removes_everything_and_then_the_records() {
    let bench = bench(Arc::new(World::default())).await;
    bench.pass().await;
    bench.request_deletion().await;
    assert!(matches!(bench.pass().await, Outcome::RequeueAfter(_)));
    let description = bench.record().await.unwrap().status_mut().description.clone().unwrap();
    assert!(description.starts_with("manifests: management cluster mgmt-1 still has"), "{description}");
    assert!(bench.site.world.exist.lock().contains("group"), "nodes need their credentials to go");
    bench.site.world.settle();
    bench.pass().await;
    bench.site.world.settle();
    bench.pass().await;
    assert!(bench.site.world.exist.lock().is_empty(), "{:?}", bench.site.world.exist.lock());
    assert!(bench.record().await.is_none());
    let store = bench.site.environment.records.store();
    let query = aro_store::Query::partition(CONTAINER, cluster_partition(&record().id));
    assert!(store.query(&query, aro_store::Page::first(10)).await.unwrap().items.is_empty());
    assert_eq!(bench.pass().await, Outcome::Settled);
}

#[tokio::test]
async fn a_deletion_in_the_middle_of_a_creation_wins() {
    let bench = bench(World::prompt()).await;
    bench.site.world.errors.lock().push(("egress", StepError::retry("429")));
    bench.pass().await;
    bench.request_deletion().await;
    bench.pass().await;
    assert!(bench.record().await.is_none());
    assert!(bench.site.world.exist.lock().is_empty(), "{:?}", bench.site.world.exist.lock());
}

#[tokio::test]
async fn a_blocked_deletion_shows_its_blocker_and_goes_on() {
    let bench = bench(World::prompt()).await;
    bench.pass().await;
    bench.request_deletion().await;
    let refused = StepError::terminal("DELETE /subscriptions/s/resourceGroups/g: 403 AuthorizationFailed");
    bench.site.world.errors.lock().push(("group", refused));
    assert!(matches!(bench.pass().await, Outcome::RequeueAfter(_)));
    let description = bench.record().await.unwrap().status_mut().description.clone().unwrap();
    assert!(description.contains("403 AuthorizationFailed"), "{description}");
    let left: Vec<String> = bench.site.world.exist.lock().iter().cloned().collect();
    assert_eq!(left, ["group"], "the other steps do not wait for the blocked one");
    bench.pass().await;
    assert!(bench.record().await.is_none());
}

#[tokio::test]
async fn a_change_is_published_once() {
    let bench = bench(World::prompt()).await;
    bench.pass().await;
    bench.pass().await;
    let before = bench.site.world.puts.lock().len();
    bench.pass().await;
    assert_eq!(bench.site.world.puts.lock().len(), before);
    bench
        .change(|record| {
            record.generation += 1;
            record.set_state(ClusterState::Updating, "");
            record.cluster.properties.get_or_insert_default().clear();
        })
        .await;
    bench.pass().await;
    assert_eq!(bench.site.world.puts.lock().len(), before + 3);
    assert_eq!(bench.record().await.unwrap().state(), ClusterState::Updating, "until it is observed");
}

#[tokio::test]
async fn a_wait_is_not_ended_by_what_is_written_of_it() {
    let bench = bench(World::prompt()).await;
    let missing = || StepError::wait("late role", std::time::Duration::from_secs(1));
    *bench.site.world.checks.lock() = Some(missing());
    bench.pass().await;
    *bench.site.world.checks.lock() = None;
    let key = ClusterKey(record().id);
    let again = bench.clusters.reconcile(&key).await.unwrap();
    assert!(matches!(again, Outcome::RequeueAfter(left) if left.as_millis() > 500), "{again:?}");
    assert_eq!(bench.record().await.unwrap().state(), ClusterState::Validating);
    bench.request_deletion().await;
    bench.clusters.reconcile(&key).await.unwrap();
    assert!(bench.record().await.is_none(), "a deletion ends it");
}

#[tokio::test]
async fn a_resource_that_cannot_be_repaired_does_not_hold_back_a_change() {
    let bench = bench(World::prompt()).await;
    bench.pass().await;
    bench.pass().await;
    bench.clusters.due.lock().insert(record().id, tokio::time::Instant::now());
    bench.site.world.errors.lock().push(("group", StepError::terminal("403 AuthorizationFailed")));
    let before = bench.site.world.puts.lock().len();
    bench.change(|record| record.generation += 1).await;
    assert!(matches!(bench.pass().await, Outcome::RequeueAfter(left) if left.as_secs() <= 30));
    assert_eq!(bench.site.world.puts.lock().len(), before + 3);
}

#[tokio::test]
async fn what_was_removed_behind_our_back_is_made_again() {
    let bench = bench(World::prompt()).await;
    bench.pass().await;
    bench.pass().await;
    let everything = bench.site.world.exist.lock().clone();
    bench.site.world.exist.lock().clear();
    bench.clusters.due.lock().insert(record().id, tokio::time::Instant::now());
    bench.pass().await;
    assert_eq!(*bench.site.world.exist.lock(), everything);
}

#[tokio::test]
async fn a_noop_cluster_is_ready_and_gone_without_cloud_and_maestro() {
    let bench = bench(World::prompt()).await;
    let noop = |record: &mut ClusterRecord| {
        let properties = record.cluster.properties.get_or_insert_default();
        properties.insert("provisioner_noop_provision".to_owned(), "true".to_owned());
        properties.insert("provisioner_noop_deprovision".to_owned(), "true".to_owned());
    };
    bench.change(noop).await;
    bench.pass().await;
    assert_eq!(bench.record().await.unwrap().state(), ClusterState::Ready);
    bench.request_deletion().await;
    bench.pass().await;
    assert!(bench.record().await.is_none());
    assert!(bench.site.world.exist.lock().is_empty() && bench.site.world.puts.lock().is_empty());
    let _ = shard();
}
