//! Inflight checks as records: what the resource provider shows when a creation fails with `OCM4001`.

use std::collections::BTreeMap;

use aro_base::Timestamp;
use aro_ocm::{ClusterId, InflightCheck, InflightCheckState, Time};
use aro_store::{CollectionError, StoreError, Typed};
use serde_json::json;
use uuid::Uuid;

use super::infrastructure::Checked;
use crate::records::{CheckRecord, Record as _, Records, cluster_partition};

/// The code of a creation that a check failed.
pub(super) const CODE: &str = "OCM4001";
/// Known names, in the order in which they are shown.
const NAMES: [&str; 5] = [
    "rp-registration-inflight",
    "resource-group-inflight",
    "network-inflight",
    "cluster-managed-identities-inflight",
    "managed-identities-permissions-inflight",
];

/// The id of a check: the same for the same check.
fn check_id(cluster: &ClusterId, name: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{cluster}/{name}").as_bytes()).to_string()
}

async fn stored(
    records: &Records,
    cluster: &ClusterId,
) -> Result<BTreeMap<String, Typed<CheckRecord>>, CollectionError> {
    let query = records.checks.in_partition(&cluster_partition(cluster));
    let all = records.checks.all(&query).await?.complete()?;
    Ok(all.into_iter().map(|check| (check.value.id.clone(), check)).collect())
}

/// Writes that the checks run, if nothing is written of them yet.
pub(super) async fn begin(
    records: &Records,
    cluster: &ClusterId,
    now: Timestamp,
) -> Result<(), CollectionError> {
    if !stored(records, cluster).await?.is_empty() {
        return Ok(());
    }
    let mut batch = records.checks.batch(&cluster_partition(cluster));
    for name in NAMES {
        let id = check_id(cluster, name);
        let check = InflightCheck {
            kind: Some("InflightCheck".to_owned()),
            id: Some(id.clone()),
            name: Some(name.to_owned()),
            state: Some(InflightCheckState::Running),
            started_at: Some(Time(now)),
            restarts: Some(0),
            ..InflightCheck::default()
        };
        let record = CheckRecord { cluster_id: cluster.clone(), id, check };
        batch.push(records.checks.create(record.names(), &record)?);
    }
    match records.store().write(batch).await {
        // They were written by a pass whose reply was lost.
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes the results. A check that passed stays as it is; one that failed again counts a restart.
pub(super) async fn save(
    records: &Records,
    cluster: &ClusterId,
    results: &[Checked],
    now: Timestamp,
) -> Result<(), CollectionError> {
    let mut known = stored(records, cluster).await?;
    let mut batch = records.checks.batch(&cluster_partition(cluster));
    for result in results {
        let Some(mut found) = known.remove(&check_id(cluster, result.name)) else { continue };
        let check = &mut found.value.check;
        let before = check.clone();
        match &result.failure {
            None => {
                check.state = Some(InflightCheckState::Passed);
                check.details = None;
            }
            Some(error) => {
                check.state = Some(InflightCheckState::Failed);
                check.details = Some(json!({ "error": error.message() }));
            }
        }
        if before.state == check.state && before.details == check.details {
            continue;
        }
        if before.state != Some(InflightCheckState::Running) {
            check.restarts = Some(check.restarts.unwrap_or_default() + 1);
        }
        check.ended_at = Some(Time(now));
        batch.push(records.checks.replace(&found)?);
    }
    if batch.is_empty() {
        return Ok(());
    }
    records.store().write(batch).await.map(drop).map_err(CollectionError::from)
}
