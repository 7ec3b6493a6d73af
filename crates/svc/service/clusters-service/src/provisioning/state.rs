//! Which state follows from what was observed. Pure.

use aro_ocm::{ClusterState, Condition, Endpoint, NodePoolStateValue, Time, VersionHistoryEntry};
use serde_json::Value;

use crate::maestro::Received;
use crate::maestro::status::Values;
use crate::manifests::feedback;
use crate::records::{ClusterObserved, ClusterRecord, NodePoolObserved, NodePoolRecord};

/// Takes over what a status says about a cluster. Returns whether anything changed.
pub(super) fn observe_cluster(record: &mut ClusterRecord, received: &Received, now: Time) -> bool {
    let Some(object) = received.object_of("HostedCluster") else { return false };
    let values = &object.values;
    let mut observed = ClusterObserved {
        generation: values.record_generation().unwrap_or(record.observed.generation),
        conditions: conditions(values, &feedback::HOSTED_CLUSTER_CONDITIONS),
        version_history: history(values),
        endpoint: endpoint(values),
        received: record.observed.received,
        ..record.observed.clone()
    };
    let serving = received.inner.iter().find_map(|object| object.values.text(feedback::SERVING_CERTIFICATE));
    if let Some(certificate) = serving {
        observed.serving_ca = decoded(certificate).or(observed.serving_ca);
    }
    let changed = observed != record.observed;
    if changed {
        observed.received = Some(now);
        record.observed = observed;
    }
    settle_cluster(record) || changed
}

/// Moves a cluster to the state that follows from what was observed. Returns whether it moved.
pub(super) fn settle_cluster(record: &mut ClusterRecord) -> bool {
    if record.deletion.is_some() {
        return false;
    }
    let current = record.observed.generation >= record.generation;
    let is_up =
        is_true(&record.observed.conditions, "Available") && has_completed(&record.observed.version_history);
    match record.state() {
        ClusterState::Installing if is_up => {
            record.set_state(ClusterState::Ready, "");
            true
        }
        ClusterState::Updating if current => {
            record.set_state(ClusterState::Ready, "");
            true
        }
        ClusterState::Installing => describe(record),
        _ => false,
    }
}

/// Says what an installation waits for.
fn describe(record: &mut ClusterRecord) -> bool {
    let conditions = &record.observed.conditions;
    let available = conditions.iter().find(|one| one.r#type.as_deref() == Some("Available"));
    let description = match available {
        Some(available) if available.status.as_deref() != Some("True") => {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            format!(
                "HostedCluster is not available: {} {}",
                text(&available.reason),
                text(&available.message)
            )
        }
        Some(_) => "no version is completed yet".to_owned(),
        None => return false,
    };
    let description = Some(description.trim_end().to_owned());
    let status = record.status_mut();
    if status.description == description {
        return false;
    }
    status.description = description;
    true
}

fn is_true(conditions: &[Condition], kind: &str) -> bool {
    conditions.iter().any(|one| one.r#type.as_deref() == Some(kind) && one.status.as_deref() == Some("True"))
}

/// Whether a version is installed completely: `Available` alone comes earlier, and upgrades must not begin before.
fn has_completed(history: &[VersionHistoryEntry]) -> bool {
    history.iter().any(|entry| entry.state.as_deref() == Some("Completed"))
}

fn decoded(base64: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64).ok()?;
    String::from_utf8(bytes).ok()
}

fn time(text: &str) -> Option<Time> {
    text.parse().ok().map(Time)
}

fn conditions(values: &Values, kinds: &[&str]) -> Vec<Condition> {
    let condition = |kind: &&str| {
        let text = |part: &str| values.text(&format!("{kind}-{part}")).map(str::to_owned);
        Some(Condition {
            r#type: Some((*kind).to_owned()),
            status: Some(text("Status")?),
            reason: text("Reason"),
            message: text("Message"),
            last_transition_time: text("LastTransitionTime").and_then(|text| time(&text)),
            observed_generation: values.integer(&format!("{kind}-ObservedGeneration")),
        })
    };
    kinds.iter().filter_map(condition).collect()
}

fn history(values: &Values) -> Vec<VersionHistoryEntry> {
    let entry = |index: usize| {
        let text = |part: &str| values.text(&format!("VersionHistory{index}-{part}")).map(str::to_owned);
        let (version, state) = (text("Version"), text("State")?);
        Some(VersionHistoryEntry {
            version,
            state: Some(state),
            image: text("Image"),
            started: text("StartedTime").and_then(|text| time(&text)),
            completed: text("CompletionTime").and_then(|text| time(&text)),
        })
    };
    (0..feedback::HISTORY).map_while(entry).collect()
}

fn endpoint(values: &Values) -> Option<Endpoint> {
    let host = values.text(feedback::ENDPOINT_HOST).filter(|host| !host.is_empty())?;
    Some(Endpoint { host: Some(host.to_owned()), port: values.integer(feedback::ENDPOINT_PORT) })
}

/// Takes over what a status says about a node pool. Returns whether anything changed.
pub(super) fn observe_pool(record: &mut NodePoolRecord, received: &Received, now: Time) -> bool {
    let Some(object) = received.object_of("NodePool") else { return false };
    let values = &object.values;
    let version = values.get(feedback::POOL_VERSION).and_then(Value::as_str).map(str::to_owned);
    let mut observed = NodePoolObserved {
        generation: values.record_generation().unwrap_or(record.observed.generation),
        conditions: conditions(values, &feedback::NODE_POOL_CONDITIONS),
        replicas: values.integer(feedback::REPLICAS),
        version,
        received: record.observed.received,
    };
    let changed = observed != record.observed;
    if changed {
        observed.received = Some(now);
        record.observed = observed;
    }
    let replicas = record.observed.replicas.unwrap_or_default();
    let status = record.pool.status.get_or_insert_with(Default::default);
    let counted = status.current_replicas != Some(replicas);
    status.current_replicas = Some(replicas);
    settle_pool(record, now) || changed || counted
}

/// Moves a node pool to the state that follows from what was observed. Returns whether it moved.
pub(super) fn settle_pool(record: &mut NodePoolRecord, now: Time) -> bool {
    use NodePoolStateValue as State;
    if record.deletion.is_some() {
        return false;
    }
    let observed = &record.observed;
    let current = observed.generation >= record.generation;
    // A number that is not reported is none.
    let replicas = observed.replicas.unwrap_or_default();
    let enough = match &record.pool.autoscaling {
        Some(bounds) => (bounds.min_replica.unwrap_or_default()..=bounds.max_replica.unwrap_or(i64::MAX))
            .contains(&replicas),
        None => record.pool.replicas.unwrap_or_default() == replicas,
    };
    let is_ready = is_true(&observed.conditions, "Ready");
    match record.state() {
        State::Installing | State::Updating if current && enough && is_ready => {
            record.set_state(State::Ready, "", now);
            true
        }
        State::Installing | State::Updating => {
            let ready = observed.conditions.iter().find(|one| one.r#type.as_deref() == Some("Ready"));
            let reason = ready.filter(|one| one.status.as_deref() != Some("True"));
            let message = match reason {
                Some(reason) => {
                    let text = |text: &Option<String>| text.clone().unwrap_or_default();
                    format!("NodePool is not ready: {} {}", text(&reason.reason), text(&reason.message))
                }
                None if !enough => format!("NodePool has {replicas} nodes"),
                None => return false,
            };
            let message = message.trim_end().to_owned();
            let known = record.pool.status.as_ref().and_then(|status| status.message.as_deref());
            if known == Some(message.as_str()) {
                return false;
            }
            let state = record.state();
            record.set_state(state, message, now);
            true
        }
        _ => false,
    }
}
