//! Replicas of one controller over one store: they share the work, survive the loss of one, and fence it off.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aro_base::{Class, Classify};
use aro_control::{
    FencingToken, Gate, Lease, LeaseError, LeaseTable, Outcome, Queue, Reason, Reconcile, ReplicaId, Runner,
    ShardOptions, Shards,
};
use aro_runtime::Scope;
use aro_store::{
    Batch, Collection, CollectionError, Container, DocId, DocKey, DocumentLease, DocumentSource, Fence,
    FenceError, Kind, Names, PartitionKey, SharedStore, StoreError, UnreadableDocuments,
};
use aro_store_conformance::Fixture as _;
use async_trait::async_trait;
use tokio::time::Instant;

use crate::conformance::SqliteFixture;

const JOBS: Container = Container::new("jobs");
const JOB: Kind<Job> = Kind::new("test/jobs");
/// Of no concern to the controller.
const UNWATCHED: Kind<Job> = Kind::new("test/unwatched");
const DURATION: Duration = Duration::from_millis(600);

/// A job names the replicas that did it.
type Job = Vec<String>;

#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error("withheld: {0:?}")]
    Withheld(Reason),
    #[error(transparent)]
    Fence(#[from] FenceError),
    #[error(transparent)]
    Collection(#[from] CollectionError),
    #[error("write a job")]
    Store(#[from] StoreError),
}

impl Classify for JobError {
    fn class(&self) -> Class {
        Class::Retry
    }
}

/// Appends its replica's name to a job that has none.
struct Jobs {
    replica: String,
    documents: Collection<Job>,
    fence: Fence,
    gate: Gate<String>,
}

fn collection(store: &SharedStore, kind: Kind<Job>) -> Collection<Job> {
    Collection::new(store.clone(), JOBS, kind, UnreadableDocuments::default())
}

fn partition() -> PartitionKey {
    PartitionKey::new("p")
}

fn key(id: &str) -> DocKey {
    DocKey { container: JOBS, partition: partition(), id: DocId::new(id) }
}

impl Jobs {
    async fn work(&self, id: &str, token: Option<FencingToken>) -> Result<(), JobError> {
        let Some(mut job) = self.documents.find(&key(id)).await?.filter(|job| job.value.is_empty()) else {
            return Ok(());
        };
        job.value.push(self.replica.clone());
        let mut batch = self.documents.batch(&partition()).with(self.documents.replace(&job)?);
        if let Some(token) = token {
            batch.push(self.fence.raise(&partition(), token).await?.check());
        }
        self.documents.store().write(batch).await?;
        Ok(())
    }
}

impl Reconcile for Jobs {
    type Key = String;
    type Error = JobError;
    const NAME: &'static str = "jobs";

    async fn reconcile(&self, id: &String) -> Result<Outcome, JobError> {
        let permit = self.gate.permit(id).map_err(JobError::Withheld)?;
        self.work(id, permit.token).await?;
        Ok(Outcome::Settled)
    }
}

/// The lease as one replica reaches it. A dead replica never reaches it again, and so never releases it.
struct Reach {
    lease: DocumentLease,
    dead: AtomicBool,
}

#[async_trait]
impl Lease for Reach {
    async fn update(
        &self,
        change: &mut (dyn for<'a> FnMut(&'a mut LeaseTable) + Send),
    ) -> Result<LeaseTable, LeaseError> {
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.lease.update(change).await
    }
}

struct Replica {
    reach: Arc<Reach>,
    shards: Shards,
    jobs: Arc<Jobs>,
    scope: Scope,
}

fn start(store: &SharedStore, name: &str) -> Replica {
    let scope = Scope::root(name);
    let reach =
        Arc::new(Reach { lease: DocumentLease::new(store.clone(), "jobs"), dead: AtomicBool::new(false) });
    let options = ShardOptions { replica: ReplicaId::new(name), shards: 12, duration: DURATION };
    let shards = Shards::start(reach.clone(), options, &scope);
    let queue = Queue::new();
    let gate = Gate::sharded(&queue, shards.clone());
    let jobs = Arc::new(Jobs {
        replica: name.to_owned(),
        documents: collection(store, JOB),
        fence: Fence::new(store.clone(), JOBS, "jobs"),
        gate: gate.clone(),
    });
    let source = DocumentSource::new(store.clone(), JOBS, JOB.resource_type(), |document| {
        Some(document.key.id.as_str().to_owned())
    });
    Runner::new(jobs.clone(), &queue).with_gate(&gate).with_source(source).start(&scope);
    Replica { reach, shards, jobs, scope }
}

async fn create(store: &SharedStore, kind: Kind<Job>, ids: impl Iterator<Item = String>) {
    let jobs = collection(store, kind);
    for id in ids {
        let names = Names { id: DocId::new(&id), resource_id: format!("/{id}") };
        let batch = Batch::new(JOBS, partition()).with(jobs.create(names, &Vec::new()).unwrap());
        store.write(batch).await.unwrap();
    }
}

async fn until<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Jobs by the replica that did them, once all of these are done. Fails if two replicas did one.
async fn done(store: &SharedStore, prefix: &str, count: usize) -> BTreeMap<String, usize> {
    let jobs = collection(store, JOB);
    until(&format!("{count} {prefix} jobs done"), async || {
        let mut by = BTreeMap::new();
        for number in 0..count {
            let job = jobs.find(&key(&format!("{prefix}-{number}"))).await.unwrap()?.value;
            assert!(job.len() < 2, "done twice: {job:?}");
            *by.entry(job.into_iter().next()?).or_default() += 1;
        }
        Some(by)
    })
    .await
}

fn jobs_of(prefix: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{prefix}-{number}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_share_work_and_take_over_from_a_dead_one_whose_late_write_is_fenced() {
    let fixture = SqliteFixture::start().await;
    let store: SharedStore = fixture.sqlite();
    let replicas = ["a", "b", "c"].map(|name| start(&store, name));
    until("every replica holds shards", async || {
        let held: Vec<usize> = replicas.iter().map(|replica| replica.shards.held().len()).collect();
        (held.iter().sum::<usize>() == 12 && !held.contains(&0)).then_some(())
    })
    .await;

    create(&store, JOB, jobs_of("shared", 40)).await;
    let by = done(&store, "shared", 40).await;
    assert_eq!(by.len(), 3, "{by:?}");

    // A key of the first replica, and the token it had.
    let [first, rest @ ..] = &replicas;
    let mine = jobs_of("late", 100).find(|id| first.jobs.gate.permit(id).is_ok()).expect("it holds shards");
    let stale = first.jobs.gate.permit(&mine).unwrap().token;
    first.reach.dead.store(true, Ordering::SeqCst);
    until("the others hold every shard", async || {
        let held: usize = rest.iter().map(|replica| replica.shards.held().len()).sum();
        (held == 12).then_some(())
    })
    .await;
    assert_eq!(
        first.jobs.gate.permit(&mine),
        Err(Reason::Standby),
        "a holder that cannot renew stops by itself"
    );

    create(&store, JOB, jobs_of("taken", 40)).await;
    let by = done(&store, "taken", 40).await;
    assert!(!by.contains_key("a") && by.len() == 2, "{by:?}");

    // Another holder has written in the shard: the late write of the first is refused.
    let new =
        until("the new holder", async || rest.iter().find(|it| it.jobs.gate.permit(&mine).is_ok())).await;
    let token = new.jobs.gate.permit(&mine).unwrap().token.unwrap();
    new.jobs.fence.raise(&partition(), token).await.unwrap();
    create(&store, UNWATCHED, std::iter::once("unseen".to_owned())).await;
    let late = first.jobs.work("unseen", stale).await;
    assert!(matches!(late, Err(JobError::Fence(FenceError::Fenced { .. }))), "{late:?}");

    for replica in &replicas {
        // The dead one cannot release its lease; its scope does not wait for that for ever.
        let _ = replica.scope.close(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_checked_against_a_fence_fails_once_a_later_epoch_raised_it() {
    let fixture = SqliteFixture::start().await;
    let store: SharedStore = fixture.sqlite();
    let fence = Fence::new(store.clone(), JOBS, "test");
    let token = |epoch| FencingToken { shard: 3, epoch: aro_control::Epoch(epoch) };
    let old = fence.raise(&partition(), token(1)).await.unwrap();
    let again = fence.raise(&partition(), token(1)).await.unwrap();
    store.write(Batch::new(JOBS, partition()).with(again.check())).await.unwrap();
    fence.raise(&partition(), FencingToken { shard: 4, ..token(9) }).await.unwrap();
    store
        .write(Batch::new(JOBS, partition()).with(old.check()))
        .await
        .expect("shards do not fence each other");
    let new = fence.raise(&partition(), token(2)).await.unwrap();
    let refused = store.write(Batch::new(JOBS, partition()).with(old.check())).await.unwrap_err();
    assert!(old.refused(&refused) && !new.refused(&StoreError::BadToken), "{refused}");
    store.write(Batch::new(JOBS, partition()).with(new.check())).await.unwrap();
    let late = fence.raise(&partition(), token(1)).await;
    assert!(matches!(late, Err(FenceError::Fenced { .. })), "{late:?}");
}
