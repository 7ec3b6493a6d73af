use std::sync::Arc;

use aro_base::{ManualClock, Timestamp};
use aro_ocm::{ProvisionShard, Reference, ShardStatus};
use aro_runtime::Metrics;

use super::*;
use crate::testing::store;

struct Fixture {
    records: Records,
    clock: Arc<ManualClock>,
    placement: Arc<Placement>,
    _dir: tempfile::TempDir,
}

async fn fixture(capacity: usize) -> Fixture {
    let (store, dir) = store().await;
    let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
    let records = Records::new(store, &Metrics::new());
    let placement = Arc::new(Placement::new(records.clone(), clock.clone(), capacity));
    Fixture { records, clock, placement, _dir: dir }
}

impl Fixture {
    async fn shard(&self, number: u128, status: ShardStatus) -> ShardId {
        let id = ShardId::new(uuid::Uuid::from_u128(number));
        let shard = ProvisionShard {
            region: Some(Reference::new("CloudRegion", "uksouth")),
            cloud_provider: Some(Reference::new("CloudProvider", "azure")),
            status: Some(status),
            ..ProvisionShard::default()
        };
        let record =
            ShardRecord { id, shard, capacity: None, trace: crate::records::TraceContext::default() };
        let shards = &self.records.shards;
        let op = shards.create(record.names(), &record).unwrap();
        self.records.store().write(shards.batch(&PartitionKey::new(SHARDS)).with(op)).await.unwrap();
        id
    }

    async fn take(&self, id: &str) -> Result<ShardId, PlacementError> {
        self.placement.take(&cluster(id), &wanted(None)).await.map(|shard| shard.id)
    }
}

fn cluster(id: &str) -> ClusterId {
    ClusterId::parse(id).unwrap()
}

fn wanted(pinned: Option<ShardId>) -> Wanted {
    Wanted { region: "uksouth".to_owned(), cloud_provider: "azure".to_owned(), pinned }
}

#[tokio::test]
async fn clusters_go_to_the_least_loaded_active_shard_of_their_region() {
    let fixture = fixture(10).await;
    assert!(matches!(fixture.take("c0").await, Err(PlacementError::NoShard { .. })));
    let (one, two) =
        (fixture.shard(1, ShardStatus::Active).await, fixture.shard(2, ShardStatus::Active).await);
    let offline = fixture.shard(3, ShardStatus::Offline).await;
    assert_eq!(fixture.take("c1").await.unwrap(), one);
    assert_eq!(fixture.take("c2").await.unwrap(), two);
    assert_eq!(fixture.take("c1").await.unwrap(), one, "a cluster has one slot");
    assert_eq!(fixture.take("c3").await.unwrap(), one);
    fixture.placement.release(&cluster("c1"), one).await.unwrap();
    fixture.placement.release(&cluster("c3"), one).await.unwrap();
    assert_eq!(fixture.take("c4").await.unwrap(), one);
    let elsewhere = Wanted { region: "westus3".to_owned(), ..wanted(None) };
    let refused = fixture.placement.take(&cluster("c5"), &elsewhere).await;
    assert!(matches!(refused, Err(PlacementError::NoShard { .. })));
    assert_eq!(fixture.placement.load_of(offline).await.unwrap(), 0);
}

#[tokio::test]
async fn a_full_region_is_an_error_of_its_own_and_a_pinned_cluster_is_placed_anyway() {
    let fixture = fixture(2).await;
    let full = fixture.shard(1, ShardStatus::Active).await;
    let offline = fixture.shard(2, ShardStatus::Offline).await;
    for id in ["c1", "c2"] {
        fixture.take(id).await.unwrap();
    }
    let refused = fixture.take("c3").await.unwrap_err();
    assert!(matches!(refused, PlacementError::Full { shards: 1, .. }));
    assert!(refused.to_string().contains("Unable to find shard"));
    for (id, shard) in [("c4", full), ("c5", offline)] {
        let placed = fixture.placement.take(&cluster(id), &wanted(Some(shard))).await.unwrap();
        assert_eq!(placed.id, shard);
    }
    let unknown = ShardId::new(uuid::Uuid::from_u128(9));
    let refused = fixture.placement.take(&cluster("c6"), &wanted(Some(unknown))).await;
    assert!(matches!(refused, Err(PlacementError::Unknown(_))));
}

#[tokio::test]
async fn concurrent_placements_of_two_processes_never_exceed_the_capacity() {
    let fixture = fixture(20).await;
    let shard = fixture.shard(1, ShardStatus::Active).await;
    let other = Arc::new(Placement::new(fixture.records.clone(), fixture.clock.clone(), 20));
    let takes = (0..40).map(|n| {
        let placement = if n % 2 == 0 { fixture.placement.clone() } else { other.clone() };
        async move { placement.take(&cluster(&format!("c{n}")), &wanted(None)).await.is_ok() }
    });
    let placed = futures::future::join_all(takes).await.into_iter().filter(|placed| *placed).count();
    assert_eq!(placed, 20);
    assert_eq!(fixture.placement.load_of(shard).await.unwrap(), 20);
}

#[tokio::test]
async fn slots_beyond_one_document_count_and_a_used_shard_is_not_removed() {
    let fixture = fixture(PART + 2).await;
    let shard = fixture.shard(1, ShardStatus::Active).await;
    for n in 0..PART + 2 {
        fixture.take(&format!("c{n}")).await.unwrap();
    }
    assert!(matches!(fixture.take("more").await, Err(PlacementError::Full { .. })));
    let record = fixture.placement.find(shard).await.unwrap().unwrap();
    assert!(!fixture.placement.remove(&record, Vec::new()).await.unwrap());
    assert_eq!(fixture.placement.sweep().await.unwrap(), 0, "requests may be under way");
    fixture.clock.advance(SignedDuration::from_mins(11));
    assert_eq!(fixture.placement.sweep().await.unwrap(), PART + 2, "no cluster was stored");
    assert!(fixture.placement.remove(&record, Vec::new()).await.unwrap());
    assert!(fixture.placement.find(shard).await.unwrap().is_none());
}
