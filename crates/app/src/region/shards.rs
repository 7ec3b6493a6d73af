//! One provision shard for each management cluster, so that Clusters Service places hosted clusters there.
//!
//! A shard is registered once, as the fleet does it: created in maintenance, then activated. A shard that exists is left as it
//! is: whether it takes clusters belongs to the operator. One that was created and never activated, because the process
//! stopped in between, is activated by the next start.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_net::{Backoff, Resolve};
use aro_peers::{CallError, ClustersService, ClustersServiceOptions};
use aro_region_layout::{ManagementLayout, RegionLayout};
use aro_runtime::{Component, Fault, Phase, Scope, TaskKind};
use serde_json::{Value, json};

/// Where Clusters Service is.
const ADDRESS: &str = "clusters-service.cluster-service.svc:8000";
/// The consumer of a management cluster is its name.
const MANAGEMENT: &str = "mgmt-";
/// One call.
const DEADLINE: Duration = Duration::from_secs(10);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(5));
/// Attempts that fail because the role is still starting, before one is logged.
const QUIET_ATTEMPTS: u32 = 10;
/// The directory with a mark for each shard that was activated.
const ACTIVATED: &str = "shards";

/// Registers the shards of a region, repeated until it is done.
pub(crate) fn register(
    layout: Arc<RegionLayout>,
    resolve: Arc<dyn Resolve>,
    dir: PathBuf,
    ready: Component,
    scope: &Scope,
) {
    let own = scope.child(Phase::Reconcilers, "shards");
    own.spawn(TaskKind::Helper, "register", async move {
        let options = ClustersServiceOptions { address: ADDRESS.to_owned(), deadline: DEADLINE };
        let clusters_service = ClustersService::new(&options, resolve);
        let mut attempts = BACKOFF.attempts();
        loop {
            match ensure_all(&clusters_service, &layout, &dir).await {
                Ok(()) => break ready.ready(),
                Err(error) => {
                    ready.not_ready(chain(&error).to_string());
                    if attempts.failures() >= QUIET_ATTEMPTS {
                        tracing::warn!(error = %chain(&error), "provision shards not registered; retrying");
                    }
                    attempts.wait().await;
                }
            }
        }
        Ok::<_, Fault>(())
    });
}

#[derive(Debug, thiserror::Error)]
enum ShardError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("keep the marks of activated shards")]
    Mark(#[from] std::io::Error),
}

async fn ensure_all(
    clusters_service: &ClustersService,
    layout: &RegionLayout,
    dir: &Path,
) -> Result<(), ShardError> {
    let known = clusters_service.shards().await?;
    for management in &layout.management {
        let wanted = body(layout, management);
        let aks = wanted["azure_shard"]["aks_management_cluster_resource_id"].as_str().unwrap_or_default();
        let same = known.iter().find(|shard| {
            let known = serde_json::to_value(shard).unwrap_or_default();
            let id = known.pointer("/azure_shard/aks_management_cluster_resource_id");
            id.and_then(Value::as_str).is_some_and(|id| id.eq_ignore_ascii_case(aks))
        });
        let shard = match same {
            Some(shard) => shard.clone(),
            None => clusters_service.create_shard(&wanted).await?,
        };
        let shard = serde_json::to_value(&shard).unwrap_or_default();
        let Some(id) = shard["id"].as_str() else { continue };
        let mark = dir.join(ACTIVATED).join(id);
        if tokio::fs::try_exists(&mark).await? {
            continue;
        }
        clusters_service.set_shard_status(id, "active").await?;
        tokio::task::spawn_blocking(move || {
            let parent = mark.parent().unwrap_or(&mark);
            aro_files::create_dir(parent)?;
            aro_files::replace(&mark, b"")
        })
        .await
        .map_err(std::io::Error::other)??;
        tracing::info!(stamp = management.stamp, shard = id, "provision shard registered");
    }
    Ok(())
}

/// What the fleet sends.
fn body(layout: &RegionLayout, management: &ManagementLayout) -> Value {
    let vault = |id: &aro_arm::ResourceId| format!("https://{}.vault.azure.net/", id.name());
    json!({
        "kind": "ProvisionShard",
        "cloud_provider": {"kind": "CloudProvider", "id": "azure"},
        "region": {"kind": "CloudRegion", "id": layout.params.location},
        "topology": "shared",
        "azure_shard": {
            "aks_management_cluster_resource_id": management.cluster,
            "public_dns_zone_resource_id": layout.regional.cluster_zone,
            "cx_secrets_key_vault_url": vault(&management.vaults.clusters),
            "cx_managed_identities_key_vault_url": vault(&management.vaults.identities),
            "cx_secrets_key_vault_managed_identity_client_id":
                uuid::Uuid::new_v5(&layout.params.tenant, management.cluster.to_lower().as_bytes()),
        },
        "maestro_config": {
            "consumer_name": format!("{MANAGEMENT}{}", management.stamp),
            "rest_api_config": {"url": "http://maestro.maestro.svc.cluster.local:8000"},
            "grpc_api_config": {"url": "maestro.maestro.svc.cluster.local:8090"},
        },
    })
}

#[cfg(test)]
mod tests {
    use aro_region_layout::RegionConfig;

    use super::*;

    #[test]
    fn a_shard_names_its_management_cluster_and_the_stamp_ends_its_vaults() {
        let params = RegionConfig::default().params(uuid::Uuid::nil(), vec!["2".to_owned()]);
        let layout = RegionLayout::new(params);
        let body = body(&layout, &layout.management[0]);
        assert_eq!(body["maestro_config"]["consumer_name"], "mgmt-2");
        let shard = &body["azure_shard"];
        assert!(shard["aks_management_cluster_resource_id"].as_str().unwrap().ends_with("-mgmt-2"));
        for vault in ["cx_secrets_key_vault_url", "cx_managed_identities_key_vault_url"] {
            assert!(shard[vault].as_str().unwrap().ends_with("-2.vault.azure.net/"));
        }
    }
}
