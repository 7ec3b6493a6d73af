//! Measures the store as the frontend uses it: a PUT is a batch of seven documents of 0.3 to 4 KB, a GET is two point
//! reads. Run with `cargo run --release -p aro-store-sqlite --example throughput [seconds] [tasks] [cache MiB]`.
#![allow(clippy::print_stdout, reason = "it prints its results")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aro_base::{Clock, Timestamp};
use aro_store::{
    Batch, Container, DocId, DocKey, DocumentStore as _, NewDocument, Op, PartitionKey, Raw, Written,
};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use tokio::task::JoinSet;
use tokio::time::Instant;

const RESOURCES: Container = Container::new("resources");
const SIZES: [usize; 7] = [4000, 1500, 800, 600, 400, 300, 300];
const SUBSCRIPTIONS: u64 = 500;

/// Wall time derived from the runtime's clock: good enough to measure with.
struct BenchClock(Instant);

impl Clock for BenchClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap_or(Timestamp::UNIX_EPOCH) + self.0.elapsed()
    }
}

/// A spread of numbers that looks like hashed ids.
fn scramble(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 32;
    x.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn subscription(n: u64) -> PartitionKey {
    PartitionKey::new(&format!("{:016x}-0000-0000-0000-000000000000", scramble(n % SUBSCRIPTIONS)))
}

fn id(cluster: u64, part: usize) -> DocId {
    DocId::new(&format!("{:016x}-{:04x}-5000-8000-{:012x}", scramble(cluster), part, cluster))
}

fn document(cluster: u64, part: usize, filler: &str) -> NewDocument {
    let subscription = subscription(cluster);
    NewDocument {
        id: id(cluster, part),
        resource_type: format!("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/part{part}"),
        resource_id: format!(
            "/subscriptions/{}/resourceGroups/group-{}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/c{cluster}/part{part}/x",
            subscription.as_str(),
            cluster % 10
        ),
        ttl: None,
        body: Raw::stored(format!("{{\"cluster\":{cluster},\"text\":\"{}\"}}", &filler[..SIZES[part]])),
    }
}

async fn create(store: &SqliteStore, cluster: u64, filler: &str) -> Vec<Written> {
    let mut batch = Batch::new(RESOURCES, subscription(cluster));
    for part in 0..SIZES.len() {
        batch.push(Op::Create(document(cluster, part, filler)));
    }
    store.write(batch).await.expect("created")
}

async fn replace(store: &SqliteStore, cluster: u64, etags: &[Written], filler: &str) -> Vec<Written> {
    let mut batch = Batch::new(RESOURCES, subscription(cluster));
    for (part, written) in etags.iter().enumerate() {
        batch.push(Op::Replace(document(cluster, part, filler), written.etag.clone()));
    }
    store.write(batch).await.expect("replaced")
}

async fn read(store: &SqliteStore, cluster: u64) {
    for part in [0, 2] {
        let key = DocKey { container: RESOURCES, partition: subscription(cluster), id: id(cluster, part) };
        assert!(store.get(&key).await.expect("answers").is_some());
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Load {
    Create,
    Replace,
    Read,
    Mixed,
}

async fn phase(
    name: &str,
    store: &Arc<SqliteStore>,
    load: Load,
    tasks: u64,
    seconds: u64,
    next: &Arc<AtomicU64>,
) {
    let filler: Arc<str> = "x".repeat(5000).into();
    let before = store.stats();
    let end = Instant::now() + Duration::from_secs(seconds);
    let known = next.load(Ordering::Relaxed);
    let mut set = JoinSet::new();
    for task in 0..tasks {
        let (store, next, filler) = (Arc::clone(store), Arc::clone(next), Arc::clone(&filler));
        set.spawn(async move {
            let mut latencies = Vec::new();
            let mut n = scramble(task);
            let mut mine = None;
            while Instant::now() < end {
                n = scramble(n.wrapping_add(1));
                let began = Instant::now();
                match load {
                    Load::Create => drop(create(&store, next.fetch_add(1, Ordering::Relaxed), &filler).await),
                    Load::Read => read(&store, n % known).await,
                    Load::Mixed if !n.is_multiple_of(10) => read(&store, n % known).await,
                    Load::Replace | Load::Mixed => {
                        let (cluster, etags) = if let Some(mine) = mine.take() {
                            mine
                        } else {
                            let cluster = next.fetch_add(1, Ordering::Relaxed);
                            (cluster, create(&store, cluster, &filler).await)
                        };
                        mine = Some((cluster, replace(&store, cluster, &etags, &filler).await));
                    }
                }
                latencies.push(began.elapsed());
            }
            latencies
        });
    }
    let mut all = Vec::new();
    while let Some(done) = set.join_next().await {
        all.extend(done.expect("no panic"));
    }
    all.sort_unstable();
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    let after = store.stats();
    let commits = after.commits - before.commits;
    println!(
        "{name:8} {:>8.0}/s  p50 {:>9.3?}  p99 {:>9.3?}  max {:>9.3?}  commits/s {:>5}  batches/commit {:>5.1}  cache hits {:.1} %",
        all.len() as f64 / seconds as f64,
        at(0.5),
        at(0.99),
        at(1.0),
        commits / seconds,
        (after.batches - before.batches) as f64 / commits.max(1) as f64,
        100.0 * (after.cache_hits - before.cache_hits) as f64
            / (after.cache_hits + after.cache_misses - before.cache_hits - before.cache_misses).max(1) as f64,
    );
}

#[tokio::main(flavor = "multi_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let seconds = arguments.next().unwrap_or(5);
    let tasks = arguments.next().unwrap_or(128);
    let cache = usize::try_from(arguments.next().unwrap_or(64)).expect("fits") << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(BenchClock(Instant::now()));
    let store = SqliteStore::open(
        SqliteOptions { cache_bytes: cache, ..SqliteOptions::new(directory.path()) },
        clock,
    )
    .expect("opens");
    let next = Arc::new(AtomicU64::new(0));
    println!("{tasks} tasks, {seconds} s per phase, cache {} MiB", cache >> 20);
    phase("create", &store, Load::Create, tasks, seconds, &next).await;
    phase("create 1", &store, Load::Create, 1, seconds, &next).await;
    phase("replace", &store, Load::Replace, tasks, seconds, &next).await;
    phase("read", &store, Load::Read, tasks, seconds, &next).await;
    phase("90r/10w", &store, Load::Mixed, tasks, seconds, &next).await;
    println!("{:?}", store.stats());
    let size = std::fs::metadata(directory.path().join("store.db")).map_or(0, |file| file.len());
    println!("{} clusters, database {} MiB", next.load(Ordering::Relaxed), size >> 20);
}
