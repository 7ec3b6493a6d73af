use super::*;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lease::LeaseError;

const DURATION: Duration = Duration::from_secs(15);

/// A table in memory that a replica can be cut off from.
struct Link {
    table: Arc<Mutex<LeaseTable>>,
    cut: AtomicBool,
}

#[async_trait]
impl Lease for Link {
    async fn update(
        &self,
        change: &mut (dyn for<'a> FnMut(&'a mut LeaseTable) + Send),
    ) -> Result<LeaseTable, LeaseError> {
        if self.cut.load(Ordering::SeqCst) {
            return Err(LeaseError { name: "test".to_owned(), source: "cut off".into() });
        }
        let mut table = self.table.lock();
        change(&mut table);
        Ok(table.clone())
    }
}

struct Replica {
    link: Arc<Link>,
    shards: Shards,
    scope: Scope,
}

fn join(table: &Arc<Mutex<LeaseTable>>, name: &str) -> Replica {
    let link = Arc::new(Link { table: table.clone(), cut: AtomicBool::new(false) });
    let scope = Scope::root(name);
    let options = ShardOptions { replica: ReplicaId::new(name), shards: 16, duration: DURATION };
    Replica { shards: Shards::start(link.clone(), options, &scope), link, scope }
}

fn all(replicas: &[&Replica]) -> Vec<usize> {
    let mut shards: Vec<usize> = replicas.iter().flat_map(|replica| replica.shards.held()).collect();
    shards.sort_unstable();
    shards
}

#[tokio::test(start_paused = true)]
async fn replicas_share_the_shards_and_no_shard_has_two_holders() {
    let table = Arc::default();
    let a = join(&table, "a");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(a.shards.held().len(), 16);
    let (b, c) = (join(&table, "b"), join(&table, "c"));
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let held = all(&[&a, &b, &c]);
        assert!(held.windows(2).all(|pair| pair[0] != pair[1]), "{held:?}");
    }
    assert_eq!(all(&[&a, &b, &c]), (0..16).collect::<Vec<_>>());
    assert!([&a, &b, &c].iter().all(|replica| !replica.shards.held().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_replica_cut_off_stops_before_the_others_take_over() {
    let table = Arc::default();
    let (a, b) = (join(&table, "a"), join(&table, "b"));
    tokio::time::sleep(DURATION * 2).await;
    assert_eq!(all(&[&a, &b]).len(), 16);
    let lost = a.shards.held();
    a.link.cut.store(true, Ordering::SeqCst);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let held = all(&[&a, &b]);
        assert!(held.windows(2).all(|pair| pair[0] != pair[1]), "{held:?}");
    }
    assert!(a.shards.held().is_empty());
    assert_eq!(b.shards.held().len(), 16);
    let table = table.lock();
    assert!(
        lost.iter()
            .all(|shard| table.shards[*shard].epoch == Epoch(2) || table.shards[*shard].epoch == Epoch(3))
    );
}

#[tokio::test(start_paused = true)]
async fn a_closed_replica_hands_over_at_once() {
    let table = Arc::default();
    let (a, b) = (join(&table, "a"), join(&table, "b"));
    tokio::time::sleep(DURATION * 2).await;
    a.scope.close(Duration::from_secs(1)).await.unwrap();
    tokio::time::sleep(DURATION / 2).await;
    assert_eq!(b.shards.held().len(), 16);
}

#[test]
fn the_hash_of_a_key_is_the_same_in_every_version() {
    assert_eq!(stable_hash("namespace/name"), stable_hash(&format_args!("{}/{}", "namespace", "name")));
    assert_eq!(stable_hash(""), 0xf52a_15e9_a9b5_e89b);
}
