//! Everything that a hosted cluster consists of, in every store, cluster and cloud. Two inventories of a region are equal when
//! what came between them left nothing behind.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use aro_crds::cluster::v1::ManagedCluster;
use aro_crds::hypershift::v1beta1::{HostedCluster, NodePool};
use aro_crds::work::v1::ManifestWork;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::Value;

use crate::region::HcpRegion;

/// Names of things, by where they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory(BTreeSet<String>);

impl Inventory {
    /// What is there now.
    pub async fn of(region: &HcpRegion) -> Result<Self> {
        let mut all = BTreeSet::new();
        let mgmt_kube = region.kube("mgmt-1").await?;
        names::<Namespace>(&mgmt_kube, &mut all).await?;
        names::<HostedCluster>(&mgmt_kube, &mut all).await?;
        names::<NodePool>(&mgmt_kube, &mut all).await?;
        names::<ManifestWork>(&mgmt_kube, &mut all).await?;
        names::<ManagedCluster>(&mgmt_kube, &mut all).await?;
        names::<Secret>(&mgmt_kube, &mut all).await?;
        for id in listed(region, "maestro", "/api/maestro/v1/resource-bundles").await? {
            all.insert(format!("bundle {id}"));
        }
        for id in listed(region, "clusters-service", "/api/aro_hcp/v1alpha1/clusters").await? {
            all.insert(format!("clusters service {id}"));
        }
        all.extend(cloud(region)?);
        Ok(Self(all))
    }

    /// What is here and not in `before`.
    pub fn beyond(&self, before: &Self) -> Vec<String> {
        self.0.difference(&before.0).cloned().collect()
    }

    /// What was in `before` and is not here.
    pub fn lacks(&self, before: &Self) -> Vec<String> {
        before.0.difference(&self.0).cloned().collect()
    }
}

async fn names<K>(client: &Client, all: &mut BTreeSet<String>) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    for object in api.list(&ListParams::default()).await? {
        let kind = K::kind(&());
        all.insert(format!("{kind} {}/{}", object.namespace().unwrap_or_default(), object.name_any()));
    }
    Ok(())
}

/// The ids of a list of Maestro or Clusters Service.
async fn listed(region: &HcpRegion, endpoint: &str, path: &str) -> Result<Vec<String>> {
    let client = region.http(endpoint)?;
    let mut ids = Vec::new();
    for page in 1.. {
        let answer = client.get(&format!("{path}?page={page}&size=500")).await?.expect(200)?.json();
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        let done = items.is_empty();
        ids.extend(items.iter().filter_map(|item| item["id"].as_str().map(str::to_owned)));
        if done || ids.len() as u64 >= answer["total"].as_u64().unwrap_or_default() {
            break;
        }
    }
    Ok(ids)
}

/// Resources of all tenants and subscriptions.
fn cloud(region: &HcpRegion) -> Result<Vec<String>> {
    let output = region.process().second("cloud ls --output json")?;
    ensure!(output.status.success(), "aro cloud ls: {}", String::from_utf8_lossy(&output.stderr));
    let listed: Value = serde_json::from_slice(&output.stdout).context("aro cloud ls prints JSON")?;
    let items = listed.as_array().cloned().unwrap_or_default();
    ensure!(!items.is_empty(), "the region has resources");
    let ids = items.iter().filter_map(|item| item["id"].as_str());
    // The cluster itself is the resource provider's; ARM lists it as well.
    Ok(ids.map(|id| format!("resource {}", id.to_lowercase())).collect())
}
