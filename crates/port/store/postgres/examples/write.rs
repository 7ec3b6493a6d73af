//! Measures writes: into partitions of their own, into one partition, of one replica and of two, and with a follower of
//! the feed. Starts servers of its own.
//! Run with `cargo run --release -p aro-store-postgres --example write [writers] [documents per writer]`.
//!
//! Each document is created with a body of 4 kB and replaced by one of 8 kB, as a bundle of Maestro is. The CPU columns
//! are milliseconds per write, of all processes of the server and of this one.
#![allow(clippy::print_stdout, reason = "it prints its results")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{ManualClock, SharedClock, Timestamp};
use aro_store::testing::postgres::TestPostgres;
use aro_store::{
    Batch, Container, DocId, DocumentStore, Follower, NewDocument, Op, PartitionKey, Raw, SharedStore,
};
use aro_store_postgres::{PostgresOptions, PostgresStore};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

const BUNDLES: Container = Container::new("bundles");
type Failure = Box<dyn Error + Send + Sync>;

fn document(id: &str, bytes: usize) -> Result<NewDocument, serde_json::Error> {
    let rows: Vec<_> = (0..bytes / 100)
        .map(|row| json!({"name": format!("member-{row}-{id}"), "value": format!("{row:x}").repeat(30)}))
        .collect();
    Ok(NewDocument {
        id: DocId::new(id),
        resource_type: "bundle".to_owned(),
        resource_id: format!("/bundles/{id}"),
        ttl: None,
        body: Raw::of(&json!({"metadata": {"labels": {"id": id}}, "rows": rows}))?,
    })
}

/// One document's life; returns how long each write took.
async fn live(
    store: &dyn DocumentStore,
    partition: &PartitionKey,
    id: &str,
) -> Result<[Duration; 2], Failure> {
    let batch = Batch::new(BUNDLES, partition.clone()).with(Op::Create(document(id, 4000)?));
    let began = Instant::now();
    let written = store.write(batch).await?;
    let created = began.elapsed();
    let etag = written.into_iter().next().ok_or("no etag")?.etag;
    let batch = Batch::new(BUNDLES, partition.clone()).with(Op::Replace(document(id, 8000)?, etag));
    let began = Instant::now();
    store.write(batch).await?;
    Ok([created, began.elapsed()])
}

/// Clock ticks (hundredths of a second) of a process and of its children that are gone.
fn ticks(pid: &str) -> Option<(String, u64, u64)> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let sum = |from: usize| {
        Some(fields.get(from)?.parse::<u64>().ok()? + fields.get(from + 1)?.parse::<u64>().ok()?)
    };
    Some(((*fields.get(1)?).to_owned(), sum(11)?, sum(13)?))
}

/// Milliseconds of CPU of the server with all its processes, and of ourselves.
fn cpu(server: &TestPostgres) -> Result<(u64, u64), Failure> {
    let file = std::fs::read_to_string(server.socket().join("data/postmaster.pid"))?;
    let parent = file.lines().next().ok_or("no pid")?.trim();
    let mut total = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let pid = name.to_string_lossy();
        let Some((above, own, gone)) = ticks(&pid) else { continue };
        if pid == parent {
            total += own + gone;
        } else if above == parent {
            total += own;
        }
    }
    Ok((total * 10, ticks("self").map_or(0, |ours| ours.1) * 10))
}

async fn measure(
    what: &str,
    replicas: usize,
    one: bool,
    follow: bool,
    writers: usize,
    each: usize,
) -> Result<(), Failure> {
    let server = TestPostgres::launch()?;
    let options = PostgresOptions::new(server.fresh_schema()?);
    PostgresStore::migrate(&options).await?;
    let clock = ManualClock::at(Timestamp::from_second(1_800_000_000)?);
    let mut stores = Vec::new();
    for _ in 0..replicas {
        let clock: SharedClock = Arc::clone(&clock) as SharedClock;
        stores.push(PostgresStore::connect(options.clone(), clock).await?);
    }
    let mut follower = Follower::new(Arc::clone(&stores[0]) as SharedStore, BUNDLES, None);
    let mut followed = JoinSet::new();
    followed.spawn(async move {
        let (mut pages, mut changes) = (0_usize, 0_usize);
        let mut finished = 0;
        while follow && finished < writers * each {
            let Ok(page) = follower.next().await else { break };
            pages += 1;
            changes += page.changes.len();
            finished += page.changes.iter().filter(|change| change.version() == 2).count();
        }
        (pages, changes)
    });
    let before = cpu(&server)?;
    let began = Instant::now();
    let mut tasks: JoinSet<Result<Vec<Duration>, Failure>> = JoinSet::new();
    for writer in 0..writers {
        let store = Arc::clone(&stores[writer % replicas]);
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(each * 2);
            for number in 0..each {
                let id = format!("{writer}-{number}");
                let partition = PartitionKey::new(if one { "one" } else { &id });
                times.extend(live(&*store, &partition, &id).await?);
            }
            Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    let took = began.elapsed();
    let last = tokio::time::timeout(Duration::from_secs(30), followed.join_next()).await?;
    let (pages, changes) = last.ok_or("no follower")??;
    let after = cpu(&server)?;
    times.sort_unstable();
    let count = times.len();
    let at = |percent: usize| times.get(count * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let per_write = |from: u64, to: u64| (to - from) as f64 / count as f64;
    println!(
        "{what:<28} {writers:>4} writers {:>7.0} writes/s  p50 {:>6.1} ms  p99 {:>6.1} ms  cpu/write: postgres {:.2} ms, ours {:.2} ms  feed: {changes} changes in {pages} pages",
        count as f64 / took.as_secs_f64(),
        at(50),
        at(99),
        per_write(before.0, after.0),
        per_write(before.1, after.1),
    );
    for store in stores {
        store.close().await;
    }
    Ok(())
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let writers: usize = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let each: usize = arguments.next().map_or(Ok(30), |text| text.parse())?;
    measure("alone", 1, false, false, 1, each * 4).await?;
    measure("own partitions", 1, false, false, writers, each).await?;
    measure("one partition", 1, true, false, writers, each).await?;
    measure("own partitions, followed", 1, false, true, writers, each).await?;
    measure("one partition, followed", 1, true, true, writers, each).await?;
    measure("one partition, two replicas", 2, true, true, writers, each).await?;
    Ok(())
}
