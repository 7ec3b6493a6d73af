//! The records of upgrade policies, inflight checks and break-glass credentials.

use aro_ocm::{
    BreakGlassCredential, ClusterId, CredentialId, InflightCheck, NodePoolId, Time, UpgradePolicy,
};
use aro_store::{Kind, Names};
use serde::{Deserialize, Serialize};

use super::keys::{check_id, credential_id, names_in, policy_id};
use super::{Record, TraceContext};

/// An upgrade policy as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpgradePolicyRecord {
    /// Its cluster.
    pub cluster_id: ClusterId,
    /// Its node pool; absent for a control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<NodePoolId>,
    /// Its id.
    pub id: String,
    /// The object of the API.
    pub policy: UpgradePolicy,
    /// The request that created it.
    #[serde(default)]
    pub trace: TraceContext,
}

impl Record for UpgradePolicyRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/upgradePolicies");

    fn names(&self) -> Names {
        let of = self.pool.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        let path = format!("{of}/{}", self.id);
        names_in(&self.cluster_id, "upgrade_policies", &path, policy_id(&self.id))
    }
}

/// An inflight check as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// Its cluster.
    pub cluster_id: ClusterId,
    /// Its id.
    pub id: String,
    /// The object of the API.
    pub check: InflightCheck,
}

impl Record for CheckRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/inflightChecks");

    fn names(&self) -> Names {
        names_in(&self.cluster_id, "inflight_checks", &self.id, check_id(&self.id))
    }
}

/// A break-glass credential as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BreakGlassRecord {
    /// Its cluster.
    pub cluster_id: ClusterId,
    /// Its id.
    pub id: CredentialId,
    /// The object of the API.
    pub credential: BreakGlassCredential,
    /// When it was requested.
    pub created: Time,
    /// The request that created it.
    #[serde(default)]
    pub trace: TraceContext,
}

impl Record for BreakGlassRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/breakGlassCredentials");

    fn names(&self) -> Names {
        names_in(&self.cluster_id, "break_glass_credentials", self.id.as_str(), credential_id(&self.id))
    }
}
