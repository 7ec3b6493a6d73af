//! Parts of clusters with an address of their own.

use std::collections::BTreeMap;

use aro_ocm::{ClusterResources, DeleteProtection, Href, HypershiftConfig};

use super::{Api, update};
use crate::api::call::Call;
use crate::api::present;
use crate::api::reply::{Failure, Reply};

pub(in crate::api) async fn status(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = api.cluster(call).await?;
    Reply::ok(&api.view(call).status(&record.value))
}

pub(in crate::api) async fn autoscaler(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = api.cluster(call).await?.value;
    let href = Href::Cluster(record.id).under(call.root);
    Reply::ok(&present::autoscaler(record.cluster.autoscaler, &href))
}

pub(in crate::api) async fn update_autoscaler(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = update::autoscaler(api, call).await?.value;
    let href = Href::Cluster(record.id).under(call.root);
    Reply::ok(&present::autoscaler(record.cluster.autoscaler, &href))
}

pub(in crate::api) async fn delete_protection(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let protection = api.cluster(call).await?.value.cluster.delete_protection;
    Reply::ok(&protection.unwrap_or(DeleteProtection { enabled: Some(false) }))
}

pub(in crate::api) async fn set_delete_protection(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let wanted: DeleteProtection = call.typed()?;
    let key = api.cluster(call).await?.key;
    let changed = api.shared.records.clusters.update(&key, |record| {
        let different =
            wanted.enabled.is_some() && record.cluster.delete_protection.as_ref() != Some(&wanted);
        if different {
            record.cluster.delete_protection = Some(wanted.clone());
        }
        different
    });
    let record = changed.await?.ok_or_else(|| Failure::not_found("Cluster", call.param(0)))?;
    let protection = record.value.cluster.delete_protection;
    Reply::ok(&protection.unwrap_or(DeleteProtection { enabled: Some(false) }))
}

pub(in crate::api) async fn hypershift(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = api.cluster(call).await?.value;
    let environment = &api.shared.environment;
    Reply::ok(&HypershiftConfig {
        enabled: Some(true),
        hcp_namespace: Some(environment.control_plane_namespace(&record.id, record.domain_prefix())),
        management_cluster: record.management_cluster,
    })
}

/// What was made and observed, for support. Nothing of it is secret.
pub(in crate::api) async fn resources(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = api.cluster(call).await?;
    let text = |value: serde_json::Result<String>| {
        value.map_err(|error| Failure::caused("the record cannot be shown", error))
    };
    let mut resources = BTreeMap::new();
    resources.insert("provisioned".to_owned(), text(serde_json::to_string(&record.value.provisioning))?);
    resources
        .insert("conditions".to_owned(), text(serde_json::to_string(&record.value.observed.conditions))?);
    Reply::ok(&ClusterResources {
        kind: Some("ClusterResources".to_owned()),
        id: Some(record.value.id.to_string()),
        href: Some(format!("{}/resources", Href::Cluster(record.value.id.clone()).under(call.root))),
        cluster_id: Some(record.value.id.to_string()),
        creation_timestamp: Some(record.modified.into()),
        resources: Some(resources),
    })
}
