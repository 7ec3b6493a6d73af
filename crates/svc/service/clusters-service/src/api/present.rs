//! Records as the API shows them: kinds, addresses and links are filled in, and what is computed for an answer.

use aro_ocm::names::Environment;
use aro_ocm::{
    BreakGlassCredential, Cluster, ClusterAutoscaler, ClusterId, ClusterStatus, DeleteProtection,
    ExternalAuth, ExternalAuthConfig, Href, InflightCheck, Items, NodePool, NodePoolAutoscaling,
    NodePoolStatus, ProvisionShard, Root, Switch, UpgradePolicy, Version,
};

use crate::records::{
    BreakGlassRecord, CheckRecord, ClusterRecord, ExternalAuthRecord, NodePoolRecord, ShardRecord,
    UpgradePolicyRecord,
};

/// How records are shown: below a root, in an environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'v> {
    pub(crate) root: Root,
    pub(crate) environment: &'v Environment,
}

impl View<'_> {
    pub(crate) fn cluster(&self, record: &ClusterRecord) -> Cluster {
        let mut cluster = record.cluster.clone();
        let id = &record.id;
        let href = Href::Cluster(id.clone()).under(self.root);
        cluster.kind = Some("Cluster".to_owned());
        cluster.id = Some(id.to_string());
        let generic = Root::ClustersMgmt.path();
        if let Some(cloud) = &mut cluster.cloud_provider {
            cloud.kind = Some("CloudProvider".to_owned());
            cloud.href = cloud.id.as_ref().map(|id| format!("{generic}/cloud_providers/{id}"));
        }
        if let Some(region) = &mut cluster.region {
            region.kind = Some("CloudRegion".to_owned());
            region.href =
                region.id.as_ref().map(|id| format!("{generic}/cloud_providers/azure/regions/{id}"));
        }
        if let Some(product) = &mut cluster.product {
            product.kind = Some("Product".to_owned());
            product.href = product.id.as_ref().map(|id| format!("{generic}/products/{id}"));
        }
        if let Some(version) = &mut cluster.version {
            self.version(version);
        }
        // Embedded, not linked: the client would read every link with a request of its own.
        cluster.autoscaler = Some(autoscaler(cluster.autoscaler.take(), &href));
        cluster.status = Some(self.status(record));
        cluster.delete_protection.get_or_insert(DeleteProtection { enabled: Some(false) });
        cluster.node_pools = Some(Items::link("NodePool", format!("{href}/node_pools")));
        cluster.inflight_checks = Some(Items::link("InflightCheck", format!("{href}/inflight_checks")));
        cluster.external_auth_config = Some(self.external_auth_config(id));
        cluster.aro = Some(record.aro(self.environment));
        cluster.href = Some(href);
        cluster
    }

    pub(crate) fn status(&self, record: &ClusterRecord) -> ClusterStatus {
        let mut copy = record.clone();
        let state = copy.state();
        let status = copy.status_mut();
        status.kind = Some("ClusterStatus".to_owned());
        status.id = Some(record.id.to_string());
        status.href = Some(format!("{}/status", Href::Cluster(record.id.clone()).under(self.root)));
        status.state = Some(state);
        std::mem::take(status)
    }

    pub(crate) fn external_auth_config(&self, id: &ClusterId) -> ExternalAuthConfig {
        let href = format!("{}/external_auth_config", Href::Cluster(id.clone()).under(self.root));
        ExternalAuthConfig {
            kind: Some("ExternalAuthConfig".to_owned()),
            id: Some(id.to_string()),
            enabled: Some(true),
            state: Some(Switch::Enabled),
            external_auths: Some(Items::link("ExternalAuth", format!("{href}/external_auths"))),
            href: Some(href),
        }
    }

    fn version(&self, version: &mut Version) {
        version.kind = Some("Version".to_owned());
        version.href = version.id.as_ref().map(|id| Href::Version(id.clone()).under(self.root));
    }

    pub(crate) fn node_pool(&self, record: &NodePoolRecord) -> NodePool {
        let mut pool = record.pool.clone();
        pool.kind = Some("NodePool".to_owned());
        pool.id = Some(record.id.to_string());
        pool.href = Some(Href::NodePool(record.cluster_id.clone(), record.id.clone()).under(self.root));
        if let Some(version) = &mut pool.version {
            self.version(version);
        }
        if let Some(autoscaling) = &mut pool.autoscaling {
            *autoscaling =
                NodePoolAutoscaling { kind: Some("NodePoolAutoscaling".to_owned()), ..autoscaling.clone() };
        }
        pool.status = Some(self.node_pool_status(record));
        pool
    }

    pub(crate) fn node_pool_status(&self, record: &NodePoolRecord) -> NodePoolStatus {
        let href = Href::NodePool(record.cluster_id.clone(), record.id.clone()).under(self.root);
        let mut status = record.pool.status.clone().unwrap_or_default();
        status.kind = Some("NodePoolStatus".to_owned());
        status.id = Some(record.id.to_string());
        status.href = Some(format!("{href}/status"));
        let state = status.state.get_or_insert_default();
        state.kind = Some("NodePoolState".to_owned());
        state.value.get_or_insert(record.state());
        status
    }

    pub(crate) fn external_auth(&self, record: &ExternalAuthRecord) -> ExternalAuth {
        let mut auth = record.auth.clone();
        auth.kind = Some("ExternalAuth".to_owned());
        auth.id = Some(record.id.to_string());
        auth.href = Some(Href::ExternalAuth(record.cluster_id.clone(), record.id.clone()).under(self.root));
        let status = auth.status.get_or_insert_default();
        status.state.get_or_insert_default().value.get_or_insert(record.state());
        auth
    }

    pub(crate) fn policy(&self, record: &UpgradePolicyRecord) -> UpgradePolicy {
        let mut policy = record.policy.clone();
        let cluster = record.cluster_id.clone();
        let (kind, href) = match (&record.pool, self.root) {
            (Some(pool), _) => (
                "NodePoolUpgradePolicy",
                Href::NodePoolUpgradePolicy(cluster, pool.clone(), record.id.clone()).under(self.root),
            ),
            (None, Root::AroHcp) => (
                "ControlPlaneUpgradePolicy",
                Href::ControlPlaneUpgradePolicy(cluster, record.id.clone()).under(self.root),
            ),
            (None, Root::ClustersMgmt) => (
                "ControlPlaneUpgradePolicy",
                format!(
                    "{}/control_plane/upgrade_policies/{}",
                    Href::Cluster(cluster).under(self.root),
                    record.id
                ),
            ),
        };
        policy.kind = Some(kind.to_owned());
        policy.id = Some(record.id.clone());
        policy.cluster_id = Some(record.cluster_id.to_string());
        policy.node_pool_id = record.pool.as_ref().map(ToString::to_string);
        policy.href = Some(href);
        if let Some(state) = &mut policy.state {
            state.kind = Some("UpgradePolicyState".to_owned());
        }
        policy
    }

    pub(crate) fn check(&self, record: &CheckRecord) -> InflightCheck {
        InflightCheck {
            kind: Some("InflightCheck".to_owned()),
            id: Some(record.id.clone()),
            href: Some(Href::InflightCheck(record.cluster_id.clone(), record.id.clone()).under(self.root)),
            ..record.check.clone()
        }
    }

    pub(crate) fn credential(&self, record: &BreakGlassRecord) -> BreakGlassCredential {
        BreakGlassCredential {
            kind: Some("BreakGlassCredential".to_owned()),
            id: Some(record.id.to_string()),
            href: Some(Href::Credential(record.cluster_id.clone(), record.id.clone()).under(self.root)),
            ..record.credential.clone()
        }
    }
}

/// The address of a shard is below the root of ARO HCP everywhere: clients compare it.
pub(crate) fn shard(record: &ShardRecord) -> ProvisionShard {
    let mut shard = record.shard.clone();
    let generic = Root::ClustersMgmt.path();
    shard.kind = Some("ProvisionShard".to_owned());
    shard.id = Some(record.id.to_string());
    shard.href = Some(Href::Shard(record.id).under(Root::AroHcp));
    let cloud = shard.cloud_provider.get_or_insert_default();
    cloud.kind = Some("CloudProvider".to_owned());
    let cloud_id = cloud.id.get_or_insert_with(|| "azure".to_owned()).clone();
    cloud.href = Some(format!("{generic}/cloud_providers/{cloud_id}"));
    if let Some(region) = &mut shard.region {
        region.kind = Some("CloudRegion".to_owned());
        region.href =
            region.id.as_ref().map(|id| format!("{generic}/cloud_providers/{cloud_id}/regions/{id}"));
    }
    shard.management_cluster = shard.management_cluster_name().map(str::to_owned);
    shard
}

/// The autoscaler of a cluster with this address.
pub(super) fn autoscaler(stored: Option<ClusterAutoscaler>, cluster: &str) -> ClusterAutoscaler {
    ClusterAutoscaler {
        kind: Some("ClusterAutoscaler".to_owned()),
        href: Some(format!("{cluster}/autoscaler")),
        ..stored.unwrap_or_default()
    }
}
