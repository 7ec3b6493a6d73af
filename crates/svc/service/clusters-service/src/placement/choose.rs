//! The choice among shards. Pure.

use std::cmp::Ordering;

use aro_store::Typed;

use super::{PlacementError, Wanted};
use crate::records::ShardRecord;

/// A shard and how full it is.
#[derive(Debug)]
pub(super) struct Load<'s> {
    pub(super) shard: &'s Typed<ShardRecord>,
    pub(super) used: usize,
    pub(super) capacity: usize,
}

impl Load<'_> {
    fn is_for(&self, wanted: &Wanted) -> bool {
        let shard = &self.shard.value.shard;
        let id = |reference: &Option<aro_ocm::Reference>| reference.as_ref().and_then(|one| one.id.clone());
        id(&shard.region).is_some_and(|region| region.eq_ignore_ascii_case(&wanted.region))
            && id(&shard.cloud_provider).is_none_or(|cloud| cloud == wanted.cloud_provider)
    }

    /// By the share of slots in use; of equally loaded ones the one with the smaller id.
    fn compare(&self, other: &Self) -> Ordering {
        let shares = (self.used * other.capacity).cmp(&(other.used * self.capacity));
        shares.then_with(|| self.shard.value.id.cmp(&other.shard.value.id))
    }
}

/// The shard for a cluster.
pub(super) fn choose<'s>(
    loads: &[Load<'s>],
    wanted: &Wanted,
) -> Result<&'s Typed<ShardRecord>, PlacementError> {
    if let Some(pinned) = wanted.pinned {
        let found = loads.iter().find(|load| load.shard.value.id == pinned);
        return found.map(|load| load.shard).ok_or(PlacementError::Unknown(pinned));
    }
    let (region, cloud_provider) = (wanted.region.clone(), wanted.cloud_provider.clone());
    let active: Vec<&Load<'s>> =
        loads.iter().filter(|load| load.shard.value.is_active() && load.is_for(wanted)).collect();
    if active.is_empty() {
        return Err(PlacementError::NoShard { region, cloud_provider });
    }
    let free = active.iter().filter(|load| load.used < load.capacity).min_by(|one, other| one.compare(other));
    free.map(|load| load.shard).ok_or(PlacementError::Full { region, shards: active.len() })
}
