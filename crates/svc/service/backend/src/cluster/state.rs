//! What the state of a cluster in Clusters Service means. Pure.

use std::time::Duration;

use aro_arm::error::Code;
use aro_arm::operation::{OperationError, ProvisioningState};
use aro_control::Outcome;
use aro_ocm::{Cluster as OcmCluster, ClusterState, InflightCheck, InflightCheckState};

use super::observe::CHECKS_FAILED;
use crate::progress::{Progress, error, named_error};

/// The state, as the status has it.
pub(super) fn state_of(found: &OcmCluster) -> Option<ClusterState> {
    found.status.as_ref().and_then(|status| status.state).or(found.state)
}

/// How far Clusters Service is with an operation whose state under way is `busy`.
pub(super) fn judge(found: &OcmCluster, checks: &[InflightCheck], busy: ProvisioningState) -> Progress {
    let description =
        found.status.as_ref().and_then(|status| status.description.as_deref()).unwrap_or_default();
    match state_of(found) {
        Some(ClusterState::Ready) => Progress::done(),
        Some(ClusterState::Error) => Progress::failed(failure(found, checks)),
        Some(state) => {
            let more = if description.is_empty() { String::new() } else { format!(": {description}") };
            Progress::waits(busy, format!("[Clusters Service] {state}{more}"))
        }
        None => Progress::waits(busy, "[Clusters Service] no state"),
    }
}

/// Why Clusters Service failed, with its own code and the checks that failed.
fn failure(found: &OcmCluster, checks: &[InflightCheck]) -> OperationError {
    let status = found.status.as_ref();
    let text = |text: Option<&String>| text.filter(|text| !text.is_empty()).cloned();
    let code = text(status.and_then(|status| status.provision_error_code.as_ref()));
    let message = text(status.and_then(|status| status.provision_error_message.as_ref()))
        .or_else(|| text(status.and_then(|status| status.description.as_ref())))
        .unwrap_or_else(|| "Clusters Service could not provision the cluster".to_owned());
    match code.as_deref() {
        Some(CHECKS_FAILED) => failed_checks(checks, &message),
        Some(code) => named_error(code, message),
        None => error(Code::InternalServerError, message),
    }
}

/// One error that names every failed check and its cause.
fn failed_checks(checks: &[InflightCheck], message: &str) -> OperationError {
    let failed = checks.iter().filter(|check| check.state == Some(InflightCheckState::Failed));
    let details: Vec<OperationError> = failed
        .map(|check| {
            let name = check.name.clone().unwrap_or_default();
            let cause = check.details.as_ref().and_then(|details| details.get("error")?.as_str());
            OperationError {
                target: Some(name),
                ..named_error(CHECKS_FAILED, cause.unwrap_or("the check failed"))
            }
        })
        .collect();
    if details.is_empty() {
        return named_error(CHECKS_FAILED, message);
    }
    let causes: Vec<String> = details
        .iter()
        .map(|detail| format!("{}: {}", detail.target.as_deref().unwrap_or_default(), detail.message))
        .collect();
    OperationError { details, ..named_error(CHECKS_FAILED, causes.join("; ")) }
}

/// What the hosted control plane still lacks. `Ready` in Clusters Service alone is not enough: clients need the endpoint and
/// the authority of its certificate, and an upgrade must not start before the first release has completed.
pub(super) fn judge_control_plane(found: &OcmCluster) -> Progress {
    let missing =
        |what: &str| Progress::waits(ProvisioningState::Provisioning, format!("[HostedCluster] {what}"));
    let Some(aro) = &found.aro else { return missing("not reported yet") };
    let conditions = aro.conditions.as_deref().unwrap_or_default();
    let available = conditions.iter().find(|condition| condition.r#type.as_deref() == Some("Available"));
    match available {
        Some(condition) if condition.status.as_deref() == Some("True") => {}
        Some(condition) => {
            let reason = condition.message.as_deref().or(condition.reason.as_deref()).unwrap_or_default();
            return missing(&format!("not available: {reason}"));
        }
        None => return missing("not available yet"),
    }
    let history = aro.version_history.as_deref().unwrap_or_default();
    if !history.iter().any(|entry| entry.state.as_deref() == Some("Completed")) {
        return missing("its first release has not completed");
    }
    let endpoint = aro.control_plane_endpoint.as_ref();
    let present = |text: Option<&String>| text.is_some_and(|text| !text.is_empty());
    if !endpoint
        .is_some_and(|endpoint| present(endpoint.host.as_ref()) && endpoint.port.unwrap_or_default() > 0)
    {
        return missing("no control-plane endpoint");
    }
    if !present(found.api.as_ref().and_then(|api| api.url.as_ref())) {
        return missing("no API URL");
    }
    if !present(aro.serving_ca.as_ref()) {
        return missing("no certificate authority of the API server");
    }
    Progress::done()
}

/// The pass ends; the event feed enqueues the next one.
pub(super) fn waiting(on: &'static str, recheck: Option<Duration>) -> Outcome {
    Outcome::Waiting { on, recheck }
}
