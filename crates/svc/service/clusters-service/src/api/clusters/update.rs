//! Changes of clusters.

use aro_decisions::Outcome;
use aro_ocm::{Cluster, ClusterState, patch};
use aro_store::{Attempts, StoreError, Typed};
use http::StatusCode;
use serde_json::{Value, json};

use super::Api;
use crate::api::call::{Call, typed};
use crate::api::reply::{Failure, Reply};
use crate::api::validate::{self, ClusterRules};
use crate::records::ClusterRecord;

pub(in crate::api) async fn update(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = apply(api, call, call.raw_body()).await?;
    let reply = Reply::json(StatusCode::ACCEPTED, &api.view(call).cluster(&record.value))?;
    Ok(reply.with_etag(&record.etag))
}

/// Changes the autoscaler only.
pub(super) async fn autoscaler(api: &Api, call: &Call<'_>) -> Result<Typed<ClusterRecord>, Failure> {
    apply(api, call, &json!({"autoscaler": call.raw_body()})).await
}

/// Merges a patch into the cluster. On a conflict with another writer it is decided again.
async fn apply(api: &Api, call: &Call<'_>, patch: &Value) -> Result<Typed<ClusterRecord>, Failure> {
    let mut attempts = Attempts::default();
    loop {
        let mut record = api.cluster(call).await?;
        call.check_etag(&record.etag)?;
        let state = record.value.state();
        if !state.is_updatable() || record.value.deletion.is_some() {
            let id = &record.value.id;
            return Err(Failure::wrong_state(format!("Cluster '{id}' is in state '{state}', can't update")));
        }
        let changed = merged(api, &record.value.cluster, patch)?;
        if changed == record.value.cluster {
            return Ok(record);
        }
        record.value.cluster = changed;
        record.value.generation += 1;
        record.value.trace = call.trace.clone();
        record.value.set_state(ClusterState::Updating, "");
        let clusters = &api.shared.records.clusters;
        let batch = clusters.batch(&record.key.partition).with(clusters.replace(&record)?);
        match api.shared.records.store().write(batch).await {
            Ok(written) => {
                if let Some(written) = written.into_iter().next() {
                    record.etag = written.etag;
                }
                let detail = format!("desired state has generation {}", record.value.generation);
                api.record(&record.value, "update", Outcome::Done, detail);
                return Ok(record);
            }
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if !attempts.wait_for_next().await {
            return Err(Failure::internal("other writers keep changing the cluster"));
        }
    }
}

fn merged(api: &Api, cluster: &Cluster, sent: &Value) -> Result<Cluster, Failure> {
    let stored = serde_json::to_value(cluster)
        .map_err(|error| Failure::caused("the cluster cannot be read", error))?;
    let merged = patch::merge(patch::CLUSTER, &stored, sent).map_err(Failure::bad_request)?;
    let mut merged: Cluster = typed(&merged)?;
    if let Some(autoscaler) = &mut merged.autoscaler {
        (autoscaler.kind, autoscaler.id, autoscaler.href) = (None, None, None);
    }
    let catalogue = api.shared.versions.catalogue();
    let rules = ClusterRules { catalogue: &catalogue, region: None, noop: true };
    let problems = validate::cluster(&merged, &rules, false).into_problems();
    if problems.is_empty() { Ok(merged) } else { Err(Failure::bad_request(problems)) }
}
