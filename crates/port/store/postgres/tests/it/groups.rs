//! Batches that share a transaction. A lock of the test's own on partition `p` makes them gather.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{ManualClock, Timestamp};
use aro_store::{
    Batch, Container, DocId, DocKey, DocumentStore as _, Follower, NewDocument, Op, PartitionKey, Raw,
    SharedStore, StoreError, Written,
};
use aro_store_postgres::{PostgresOptions, PostgresStore};
use futures::future::join_all;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::server::shared;

const THINGS: Container = Container::new("things");
type Write<'s> = Pin<Box<dyn Future<Output = Result<Vec<Written>, StoreError>> + Send + 's>>;

fn doc(id: &str) -> NewDocument {
    NewDocument {
        id: DocId::new(id),
        resource_type: "t".to_owned(),
        resource_id: format!("/{id}"),
        ttl: None,
        body: Raw::of(&id).expect("a string is JSON"),
    }
}

fn create(partition: &str, id: &str) -> Batch {
    Batch::new(THINGS, PartitionKey::new(partition)).with(Op::Create(doc(id)))
}

/// A store in a schema of its own, and a session beside it. The server knows the store's sessions by `name`.
struct Scene {
    store: Arc<PostgresStore>,
    name: &'static str,
    beside: Client,
    _driver: JoinSet<()>,
}

impl Scene {
    async fn open(name: &'static str) -> Self {
        let connection = shared().fresh_schema().expect("a schema");
        let (beside, driver) = tokio_postgres::connect(&connection, NoTls).await.expect("connects");
        let mut drivers = JoinSet::new();
        drivers.spawn(async move { drop(driver.await) });
        let options = PostgresOptions::new(format!("{connection} application_name={name}"));
        PostgresStore::migrate(&options).await.expect("the migration works");
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).expect("a time"));
        let store = PostgresStore::connect(options, clock).await.expect("the store opens");
        Self { store, name, beside, _driver: drivers }
    }

    async fn sql(&self, statement: &str) {
        self.beside.batch_execute(statement).await.expect(statement);
    }

    async fn number(&self, query: &str) -> i64 {
        self.beside.query_one(query, &[]).await.expect(query).get(0)
    }

    /// Waits until a session of the store waits for this.
    async fn until_waiting(&self, event: &str) {
        let name = self.name;
        let query = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND wait_event = '{event}'"
        );
        let seen = async { while self.number(&query).await != 1 {} };
        tokio::time::timeout(Duration::from_secs(20), seen).await.expect("it waits");
    }

    async fn lock(&self) {
        self.sql("SELECT pg_advisory_lock(store_partition_lock('things', 'p'))").await;
    }

    async fn unlock(&self) {
        self.sql("SELECT pg_advisory_unlock(store_partition_lock('things', 'p'))").await;
    }

    /// Has the write of `first` wait for the partition's lock, so that the others gather behind it, in this order.
    async fn gather(&self, batches: Vec<Batch>) -> Vec<Write<'_>> {
        self.lock().await;
        let mut writes = vec![begun(self.store.write(create("p", "first"))).await];
        self.until_waiting("advisory").await;
        for batch in batches {
            writes.push(begun(self.store.write(batch)).await);
        }
        writes
    }

    async fn has(&self, id: &str) -> bool {
        let key = DocKey { container: THINGS, partition: PartitionKey::new("p"), id: DocId::new(id) };
        self.store.get(&key).await.expect("answers").is_some()
    }

    /// How many transactions wrote what is in partition `p`.
    async fn transactions(&self) -> i64 {
        self.number("SELECT count(DISTINCT pos / 128) FROM store_document WHERE partition = 'p'").await
    }
}

/// A write that is on its way.
async fn begun(mut write: Write<'_>) -> Write<'_> {
    assert!(futures::poll!(&mut write).is_pending());
    write
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_fails_its_own_batch_only_and_the_feed_keeps_the_order_of_the_writes() {
    let scene = Scene::open("conflict").await;
    scene.store.write(create("p", "there")).await.expect("written");
    let ids: Vec<String> = (0..40).map(|n| format!("{:02}", (n * 7) % 40)).collect();
    let mut batches: Vec<Batch> = ids.iter().map(|id| create("p", id)).collect();
    batches.insert(20, create("p", "other").with(Op::Create(doc("there"))).with(Op::Create(doc("third"))));
    batches.push(create("q", "elsewhere"));
    let writes = scene.gather(batches).await;
    scene.unlock().await;
    let mut outcomes = join_all(writes).await;
    let refused = outcomes.remove(21);
    let Err(StoreError::Conflict { index: 1, key, now: Some(_) }) = &refused else {
        unreachable!("refused: {refused:?}")
    };
    assert_eq!(key.id.as_str(), "there");
    for outcome in outcomes {
        assert_eq!(outcome.expect("written")[0].version, 1);
    }
    assert!(!scene.has("other").await && !scene.has("third").await, "all of the batch or nothing");
    assert_eq!(scene.transactions().await, 3, "`there`, `first`, and all that gathered");
    let mut follower = Follower::new(Arc::clone(&scene.store) as SharedStore, THINGS, None);
    let mut order = Vec::new();
    let seen = async {
        // Transactions of other tests on the server may delay the feed.
        while order.len() < ids.len() {
            let page = follower.next().await.expect("answers");
            let delivered = page.changes.iter().map(|change| change.key().id.to_string());
            order.extend(delivered.filter(|id| id.len() == 2));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), seen).await.expect("all are delivered");
    assert_eq!(order, ids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_one_document_follow_each_other() {
    let scene = Scene::open("follow").await;
    let etag = scene.store.write(create("p", "d")).await.expect("written").remove(0).etag;
    let replace = || Batch::new(THINGS, PartitionKey::new("p")).with(Op::Replace(doc("d"), etag.clone()));
    let delete = Batch::new(THINGS, PartitionKey::new("p")).with(Op::Delete(DocId::new("d"), etag.clone()));
    let check = Batch::new(THINGS, PartitionKey::new("p")).with(Op::Check(DocId::new("d"), etag.clone()));
    let writes = scene.gather(vec![check, replace(), replace(), delete, create("p", "e")]).await;
    scene.unlock().await;
    let outcomes = join_all(writes).await;
    let [first, check, replace, again, delete, other] = outcomes.as_slice() else {
        unreachable!("six: {outcomes:?}")
    };
    assert!(first.is_ok() && other.is_ok());
    assert_eq!(check.as_ref().expect("holds")[0], Written { etag: etag.clone(), version: 1 });
    let now = replace.as_ref().expect("the first one wins")[0].etag.clone();
    for late in [again, delete] {
        assert!(matches!(late, Err(StoreError::Conflict { now: Some(at), .. }) if *at == now), "{late:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_in_the_middle_of_a_group_leaves_nothing_of_it() {
    let scene = Scene::open("cut").await;
    let etag = scene.store.write(create("p", "d")).await.expect("written").remove(0).etag;
    let replace = Batch::new(THINGS, PartitionKey::new("p")).with(Op::Replace(doc("d"), etag));
    let writes = scene.gather(vec![create("p", "x"), replace.clone(), create("p", "y")]).await;
    // The group gets the partition, has written `x`, and stops at the row of `d`.
    scene.sql("BEGIN; SELECT FROM store_document WHERE id = 'd' FOR UPDATE").await;
    scene.unlock().await;
    let cut = async {
        scene.until_waiting("transactionid").await;
        let name = scene.name;
        scene
            .sql(&format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
            ))
            .await;
    };
    let (outcomes, ()) = tokio::join!(join_all(writes), cut);
    assert!(outcomes[0].is_ok(), "it was alone: {outcomes:?}");
    for outcome in &outcomes[1..] {
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    }
    scene.sql("ROLLBACK").await;
    assert!(!scene.has("x").await && !scene.has("y").await);
    scene.store.write(replace).await.expect("`d` is as it was, and its partition is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_the_server_cannot_take_fails_alone() {
    let scene = Scene::open("alone").await;
    scene
        .sql(
            "CREATE FUNCTION boom() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN IF new.id = 'bad' THEN RAISE 'boom'; END IF; RETURN new; END $$;
             CREATE TRIGGER boom BEFORE INSERT ON store_document FOR EACH ROW EXECUTE FUNCTION boom()",
        )
        .await;
    let writes = scene.gather(["a", "bad", "b"].map(|id| create("p", id)).into()).await;
    scene.unlock().await;
    let outcomes = join_all(writes).await;
    assert!(matches!(outcomes[2], Err(StoreError::Unavailable(_))), "{:?}", outcomes[2]);
    assert!(outcomes[1].is_ok() && outcomes[3].is_ok(), "{outcomes:?}");
    assert!(scene.has("a").await && scene.has("b").await && !scene.has("bad").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_another_session_holds_delays_no_other() {
    let scene = Scene::open("held").await;
    // Three of `p` gather behind one that waits; then more partitions are held than transactions run at once.
    let mut stuck = scene.gather(["a", "b", "c"].map(|id| create("p", id)).into()).await;
    for name in ["h1", "h2", "h3", "h4"] {
        scene.sql(&format!("SELECT pg_advisory_lock(store_partition_lock('things', '{name}'))")).await;
        stuck.push(begun(scene.store.write(create(name, "a"))).await);
    }
    let free = (0..20).map(|n| scene.store.write(create(&format!("free-{n}"), "a")));
    let free = tokio::time::timeout(Duration::from_secs(8), join_all(free)).await.expect("they do not wait");
    assert!(free.iter().all(Result::is_ok), "{free:?}");
    scene.sql("SELECT pg_advisory_unlock_all()").await;
    let outcomes = join_all(stuck).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_fails_what_waits() {
    let scene = Scene::open("closed").await;
    let mut writes = scene.gather(vec![create("p", "late")]).await;
    let late = writes.pop().expect("two");
    let close = async {
        let outcome = late.await;
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
        scene.unlock().await;
    };
    let (first, ..) = tokio::join!(join_all(writes), scene.store.close(), close);
    assert!(first[0].is_ok(), "what runs comes to its end: {first:?}");
    assert!(matches!(scene.store.write(create("p", "z")).await, Err(StoreError::Unavailable(_))));
}
