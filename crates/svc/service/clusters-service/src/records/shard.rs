//! The records of provision shards and of the slots on them.

use std::collections::BTreeMap;

use aro_ocm::{ClusterId, ProvisionShard, ShardId, ShardStatus, Time};
use aro_store::{Kind, Names};
use serde::{Deserialize, Serialize};

use super::keys::{names_of_shard, names_of_slots};
use super::{Record, TraceContext};

/// A provision shard as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Its id.
    pub id: ShardId,
    /// The object of the API.
    pub shard: ProvisionShard,
    /// How many clusters it takes; the configured number if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<usize>,
    /// The request that created it.
    #[serde(default)]
    pub trace: TraceContext,
}

impl Record for ShardRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/provisionShards");

    fn names(&self) -> Names {
        names_of_shard(self.id)
    }
}

impl ShardRecord {
    /// Whether it receives clusters.
    pub fn is_active(&self) -> bool {
        self.shard.status == Some(ShardStatus::Active)
    }

    /// The zone that its clusters' domains are in.
    pub fn public_zone(&self) -> Option<&str> {
        let id = self.shard.azure_shard.as_ref()?.public_dns_zone_resource_id.as_deref()?;
        id.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

/// A part of a shard's slots: which clusters are placed there, and since when. A shard with many slots has several parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotsRecord {
    /// The shard.
    pub shard: ShardId,
    /// Which part.
    pub part: usize,
    /// The clusters, each with the time of its placement.
    pub clusters: BTreeMap<ClusterId, Time>,
}

impl Record for SlotsRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/slots");

    fn names(&self) -> Names {
        names_of_slots(self.shard, self.part)
    }
}
