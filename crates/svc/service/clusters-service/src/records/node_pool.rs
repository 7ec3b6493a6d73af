//! The record of a node pool.

use aro_ocm::{
    ClusterId, Condition, NodePool, NodePoolId, NodePoolState, NodePoolStateValue, NodePoolStatus, Time,
};
use aro_store::{Kind, Names};
use serde::{Deserialize, Serialize};

use super::keys::{names_in, node_pool_id};
use super::{DeletionRequest, NodePoolProvisioned, Record, TraceContext};

/// A node pool as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodePoolRecord {
    /// Its cluster.
    pub cluster_id: ClusterId,
    /// Its id.
    pub id: NodePoolId,
    /// The object of the API, with its status.
    pub pool: NodePool,
    /// When it was accepted.
    pub created: Time,
    /// Counts changes of the desired state, from 1.
    pub generation: u64,
    /// The request that last changed the desired state.
    #[serde(default)]
    pub trace: TraceContext,
    /// Set once its deletion was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionRequest>,
    /// What came back from the management cluster.
    #[serde(default)]
    pub observed: NodePoolObserved,
    /// What the pipelines made.
    #[serde(default)]
    pub provisioning: NodePoolProvisioned,
}

/// What is known of a node pool from its management cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodePoolObserved {
    /// The generation of the desired state that the NodePool has.
    pub generation: u64,
    /// The conditions of the NodePool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When a status was received last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Time>,
}

impl Record for NodePoolRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/nodePools");

    fn names(&self) -> Names {
        names_in(&self.cluster_id, "node_pools", self.id.as_str(), node_pool_id(&self.id))
    }
}

impl NodePoolRecord {
    /// Its state.
    pub fn state(&self) -> NodePoolStateValue {
        let state = self.pool.status.as_ref().and_then(|status| status.state.as_ref());
        state.and_then(|state| state.value).unwrap_or(NodePoolStateValue::Validating)
    }

    /// Sets its state and the message that callers show; the time is kept if the state stays.
    pub fn set_state(&mut self, state: NodePoolStateValue, message: impl Into<String>, now: Time) {
        let message = message.into();
        let since = (self.pool.status.is_some() && self.state() == state)
            .then(|| self.pool.status.as_ref()?.state.as_ref()?.last_updated_timestamp)
            .flatten();
        let status = self.pool.status.get_or_insert_with(NodePoolStatus::default);
        status.state = Some(NodePoolState {
            value: Some(state),
            last_updated_timestamp: Some(since.unwrap_or(now)),
            ..NodePoolState::default()
        });
        status.current_replicas = Some(status.current_replicas.unwrap_or(0));
        status.message = (!message.is_empty()).then_some(message);
    }
}
