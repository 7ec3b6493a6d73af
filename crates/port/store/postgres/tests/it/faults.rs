//! Real faults: the server is killed, connections are cut, the schema is not what it should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aro_base::{Class, Classify as _, ManualClock, Timestamp};
use aro_store::testing::postgres::TestPostgres;
use aro_store::{
    Batch, Container, DocId, DocKey, DocumentStore as _, NewDocument, Op, PartitionKey, Raw, StoreError,
};
use aro_store_postgres::{OpenError, PostgresOptions, PostgresStore};
use tokio::task::JoinSet;

use crate::server::shared;

const THINGS: Container = Container::new("things");

fn clock() -> Arc<ManualClock> {
    ManualClock::at(Timestamp::from_second(1_800_000_000).expect("a time"))
}

async fn store_on(server: &TestPostgres) -> Arc<PostgresStore> {
    let options = PostgresOptions::new(server.fresh_schema().expect("a schema"));
    PostgresStore::migrate(&options).await.expect("the migration works");
    PostgresStore::connect(options, clock()).await.expect("the store opens")
}

fn key(id: &str) -> DocKey {
    DocKey { container: THINGS, partition: PartitionKey::new("p"), id: DocId::new(id) }
}

fn create(partition: &str, id: &str) -> Batch {
    let new = NewDocument {
        id: DocId::new(id),
        resource_type: "t".to_owned(),
        resource_id: format!("/{id}"),
        ttl: None,
        body: Raw::of(&id).expect("a string is JSON"),
    };
    Batch::new(THINGS, PartitionKey::new(partition)).with(Op::Create(new))
}

/// Tries until the store answers again.
async fn until_answered(store: &PostgresStore) {
    let answered = async {
        while store.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), answered).await.expect("the adapter connects again");
}

/// Holds the lock of partition `p` for some seconds, so that a write to it hangs in the middle of its transaction.
async fn hold_partition(server: &Arc<TestPostgres>) -> std::thread::JoinHandle<bool> {
    let hold =
        "SET search_path = t0; SELECT pg_advisory_lock(store_partition_lock('things', 'p')), pg_sleep(300)";
    let thread = {
        let server = Arc::clone(server);
        std::thread::spawn(move || server.sql(hold).is_ok())
    };
    let locked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
    while server.sql(locked).expect("answers") != "1" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    thread
}

fn let_go(server: &TestPostgres, holder: std::thread::JoinHandle<bool>) {
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()")
        .expect("the holder ends");
    let _ = holder.join();
}

/// Returns when so many more were written.
async fn until_more(written: &AtomicUsize, more: usize) {
    let enough = written.load(Ordering::Relaxed) + more;
    let all = async {
        while written.load(Ordering::Relaxed) < enough {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("the writers go on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_no_acknowledged_write_and_the_adapter_connects_again() {
    let server = TestPostgres::launch().expect("PostgreSQL starts");
    let store = store_on(&server).await;
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut writers = JoinSet::new();
    for w in 0..6 {
        let (store, stop, written) = (Arc::clone(&store), Arc::clone(&stop), Arc::clone(&written));
        writers.spawn(async move {
            let (mut acknowledged, mut unknown) = (Vec::new(), 0);
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let id = format!("{w}-{n}");
                match store.write(create("p", &id)).await {
                    Ok(_) => {
                        acknowledged.push(id);
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => {
                        assert!(
                            matches!(error, StoreError::Unavailable(_)),
                            "never anything else: {error:?}"
                        );
                        assert_eq!(error.class(), Class::Retry);
                        unknown += 1;
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            }
            (acknowledged, unknown)
        });
    }
    let server = Arc::new(server);
    for _ in 0..2 {
        until_more(&written, 30).await;
        let server = Arc::clone(&server);
        tokio::task::spawn_blocking(move || server.crash_and_restart().expect("it comes back"))
            .await
            .expect("ran");
        until_answered(&store).await;
    }
    until_more(&written, 30).await;
    stop.store(true, Ordering::Relaxed);
    let (mut count, mut failures) = (0, 0);
    while let Some(done) = writers.join_next().await {
        let (acknowledged, unknown) = done.expect("the writer did not panic");
        for id in &acknowledged {
            assert!(
                store.get(&key(id)).await.expect("answers").is_some(),
                "{id} was acknowledged and is gone"
            );
        }
        count += acknowledged.len();
        failures += unknown;
    }
    assert!(count > 50, "the writers got something done: {count}");
    assert!(failures > 0, "the kills were noticed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_in_the_middle_is_unavailable_and_reads_go_on() {
    let server = TestPostgres::launch().expect("PostgreSQL starts");
    let store = store_on(&server).await;
    store.write(create("p", "a")).await.expect("written");
    let server = Arc::new(server);
    let holder = hold_partition(&server).await;
    let write = {
        let store = Arc::clone(&store);
        let mut set = JoinSet::new();
        set.spawn(async move { store.write(create("p", "b")).await });
        set
    };
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'";
    let cut = async {
        while server.sql(waiting).expect("answers") != "1" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'aro-store'",
        )
    };
    tokio::time::timeout(Duration::from_secs(10), cut).await.expect("the write waits").expect("cut");
    let outcome = write.join_all().await;
    assert!(matches!(outcome.as_slice(), [Err(StoreError::Unavailable(_))]), "{outcome:?}");
    assert!(store.get(&key("b")).await.expect("reads go on over a new connection").is_none());
    let_go(&server, holder);
    store.write(create("p", "b")).await.expect("and so do writes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_takes_too_long_fails_at_its_deadline() {
    let server = TestPostgres::launch().expect("PostgreSQL starts");
    let connection = server.fresh_schema().expect("a schema");
    let options = PostgresOptions::new(connection);
    PostgresStore::migrate(&options).await.expect("the migration works");
    let options = PostgresOptions { deadline: Duration::from_secs(2), ..options };
    let store = PostgresStore::connect(options, clock()).await.expect("the store opens");
    let server = Arc::new(server);
    let holder = hold_partition(&server).await;
    let refused = store.write(create("p", "a")).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let mut tries = 0;
    // Whether one that failed was written is not known: each try writes another.
    while let Err(error) = store.write(create("q", &format!("a{tries}"))).await {
        tries += 1;
        // A crowded machine may need more than the short deadline; a lock that is held for minutes never ends in time.
        assert!(tries < 20, "other partitions do not wait: {error:?}");
    }
    assert!(!holder.is_finished(), "no writer waited for it");
    let_go(&server, holder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_woken_by_the_commits_of_another() {
    let options = PostgresOptions::new(shared().fresh_schema().expect("a schema"));
    PostgresStore::migrate(&options).await.expect("the migration works");
    let one = PostgresStore::connect(options.clone(), clock()).await.expect("opens");
    let two = PostgresStore::connect(options, clock()).await.expect("opens");
    let cursor = two.latest_cursor(THINGS).await.expect("a cursor");
    let mut signal = two.subscribe(THINGS);
    one.write(create("p", "a")).await.expect("written");
    let seen = async {
        loop {
            let page = two.changes(THINGS, Some(&cursor), 10).await.expect("answers");
            if !page.changes.is_empty() {
                return page;
            }
            signal.changed().await;
        }
    };
    let page = tokio::time::timeout(Duration::from_secs(10), seen).await.expect("woken");
    assert_eq!(page.changes[0].key(), &key("a"));
    one.close().await;
    assert!(matches!(one.ping().await, Err(StoreError::Unavailable(_))), "closed is closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_may_migrate_at_once_and_the_schema_version_is_checked() {
    let options = PostgresOptions::new(shared().fresh_schema().expect("a schema"));
    let early = PostgresStore::connect(options.clone(), clock()).await;
    assert!(matches!(early.err(), Some(OpenError::TooOld { found: 0, .. })));
    let mut replicas = JoinSet::new();
    for _ in 0..4 {
        let options = options.clone();
        replicas.spawn(async move { PostgresStore::migrate(&options).await });
    }
    for migrated in replicas.join_all().await {
        migrated.expect("all of them succeed");
    }
    let schema =
        options.connection.expose().rsplit('=').next().expect("a name").trim_end_matches('\'').to_owned();
    PostgresStore::connect(options.clone(), clock()).await.expect("opens").close().await;
    shared().sql(&format!("INSERT INTO {schema}.store_migration VALUES (99)")).expect("inserted");
    assert!(matches!(
        PostgresStore::connect(options.clone(), clock()).await.err(),
        Some(OpenError::TooNew { found: 99, .. })
    ));
    assert!(matches!(
        PostgresStore::migrate(&options).await.err(),
        Some(OpenError::TooNew { found: 99, .. })
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_copy_starts_a_new_life_of_the_feed() {
    let options = PostgresOptions::new(shared().fresh_schema().expect("a schema"));
    PostgresStore::migrate(&options).await.expect("the migration works");
    let store = PostgresStore::connect(options.clone(), clock()).await.expect("opens");
    store.write(create("p", "a")).await.expect("written");
    store.write(create("p", "b")).await.expect("written");
    let old = store.latest_cursor(THINGS).await.expect("a cursor");
    store.close().await;
    let schema =
        options.connection.expose().rsplit('=').next().expect("a name").trim_end_matches('\'').to_owned();
    // As after a restore into a server whose transaction ids are far behind.
    shared()
        .sql(&format!("UPDATE {schema}.store_document SET pos = pos + (1::bigint << 50)"))
        .expect("moved");
    assert!(matches!(
        PostgresStore::connect(options.clone(), clock()).await.err(),
        Some(OpenError::Restored)
    ));
    PostgresStore::migrate(&options).await.expect("the migration works");
    let store = PostgresStore::connect(options, clock()).await.expect("opens");
    assert!(matches!(store.changes(THINGS, Some(&old), 10).await, Err(StoreError::CursorExpired)));
    let page = store.changes(THINGS, None, 10).await.expect("answers");
    let ids: Vec<_> = page.changes.iter().map(|change| change.key().id.as_str().to_owned()).collect();
    assert_eq!(ids, ["a", "b"], "in the old order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_planner_learns_about_a_young_table_soon() {
    let connection = shared().fresh_schema().expect("a schema");
    let schema = connection.rsplit('=').next().expect("a name").trim_end_matches('\'').to_owned();
    let options = PostgresOptions::new(connection);
    PostgresStore::migrate(&options).await.expect("the migration works");
    let store = PostgresStore::connect(options, clock()).await.expect("opens");
    let ids: Vec<String> = (0..120).map(|n| n.to_string()).collect();
    for written in futures::future::join_all(ids.iter().map(|id| store.write(create("p", id)))).await {
        written.expect("written");
    }
    let gathered = format!(
        "SELECT count(last_analyze) FROM pg_stat_user_tables WHERE schemaname = '{schema}' AND relname = 'store_document'"
    );
    let learnt = async {
        while shared().sql(&gathered).expect("answers") != "1" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), learnt).await.expect("long before the server's own minute");
}

#[tokio::test]
async fn tls_without_authorities_is_refused() {
    let options = PostgresOptions::new("host=localhost user=x sslmode=require");
    assert!(matches!(PostgresStore::migrate(&options).await.err(), Some(OpenError::NoAuthorities)));
    let junk = PostgresOptions::new("no such=thing password=hunter2");
    let error = PostgresStore::migrate(&junk).await.expect_err("junk");
    assert!(!format!("{error:?} {error}").contains("hunter2"));
}
