//! What a resource shows of the cluster in Clusters Service.

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::resource::{ActiveVersion, AssignedIdentity, Condition, ConditionStatus};
use aro_arm::hcp::service_provider::{
    ObservedVersion, ResolvedIdentity, RolloutState, ServiceProviderCluster,
};
use aro_base::Timestamp;
use aro_ocm::{Cluster as OcmCluster, ClusterAro, ClusterState, InflightCheck, InflightCheckState};

use super::state::state_of;
use crate::change::Draft;

/// The one condition that callers see.
const REQUIREMENTS: &str = "RequirementsValid";

/// Copies what is observed into the resource and the document beside it. What is not reported (yet) stays.
pub(super) fn apply(
    draft: &mut Draft<'_, Cluster>,
    found: &OcmCluster,
    checks: &[InflightCheck],
    now: Timestamp,
) {
    let azure = found.azure.as_ref();
    let aro = found.aro.as_ref();
    let cluster = &mut draft.value;
    if cluster.properties.dns.base_domain_prefix.is_none() {
        adopt(&mut cluster.properties.dns.base_domain_prefix, found.domain_prefix.as_ref());
    }
    let hosting = &mut cluster.hosting;
    adopt(&mut hosting.base_domain, found.dns.as_ref().and_then(|dns| dns.base_domain.as_ref()));
    adopt(&mut hosting.api_url, found.api.as_ref().and_then(|api| api.url.as_ref()));
    adopt(&mut hosting.console_url, found.console.as_ref().and_then(|console| console.url.as_ref()));
    let issuer = aro.and_then(|aro| aro.issuer_url.as_ref());
    adopt(&mut hosting.issuer_url, issuer.or(azure.and_then(|azure| azure.oidc_issuer_url.as_ref())));
    let identities = resolved_identities(found);
    assign(cluster, &identities);
    requirements(cluster, found, checks, now);
    let beside = &mut draft.beside;
    if !identities.is_empty() {
        beside.status.msi_managed_identities = identities;
    }
    if let Some(aro) = aro {
        mirror_control_plane(beside, aro, now);
    }
    let running = &draft.beside.status.control_plane_version;
    let lines: Vec<ActiveVersion> = lines(&running.versions());
    if !lines.is_empty() {
        draft.value.status.active_versions = lines;
    }
}

fn adopt(shown: &mut Option<String>, reported: Option<&String>) {
    if let Some(reported) = reported.filter(|reported| !reported.is_empty()) {
        *shown = Some(reported.clone());
    }
}

/// The identities whose client and principal are known.
fn resolved_identities(found: &OcmCluster) -> Vec<ResolvedIdentity> {
    let Some(identities) = found.azure.as_ref().and_then(aro_ocm::Azure::identities) else {
        return Vec::new();
    };
    let operators = identities.control_plane_operators_managed_identities.iter().flatten();
    let operators = operators.map(|(_, id)| (&id.resource_id, &id.client_id, &id.principal_id));
    let service = identities.service_managed_identity.iter();
    let service = service.map(|id| (&id.resource_id, &id.client_id, &id.principal_id));
    operators
        .chain(service)
        .filter(|(_, client, principal)| client.is_some() || principal.is_some())
        .filter_map(|(id, client, principal)| {
            let resource_id = ResourceId::parse(id.as_deref()?).ok()?;
            Some(ResolvedIdentity { resource_id, client_id: client.clone(), principal_id: principal.clone() })
        })
        .collect()
}

/// Describes the identities that are assigned to the resource.
fn assign(cluster: &mut Cluster, resolved: &[ResolvedIdentity]) {
    let Some(identity) = &mut cluster.identity else { return };
    for identified in resolved {
        if let Some(assigned) = identity.user_assigned_identities.get_mut(&identified.resource_id) {
            *assigned = AssignedIdentity {
                client_id: identified.client_id.clone(),
                principal_id: identified.principal_id.clone(),
            };
        }
    }
}

/// Whether what the customer has to provide is valid: known once the checks are over.
fn requirements(cluster: &mut Cluster, found: &OcmCluster, checks: &[InflightCheck], now: Timestamp) {
    let failed: Vec<String> = checks
        .iter()
        .filter(|check| check.state == Some(InflightCheckState::Failed))
        .map(|check| {
            let cause = check.details.as_ref().and_then(|details| details.get("error")?.as_str());
            format!("{}: {}", check.name.as_deref().unwrap_or_default(), cause.unwrap_or("the check failed"))
        })
        .collect();
    let passed = matches!(
        state_of(found),
        Some(ClusterState::Pending | ClusterState::Installing | ClusterState::Ready | ClusterState::Updating)
    );
    let (status, reason) = match (failed.is_empty(), passed) {
        (false, _) => (ConditionStatus::False, "Degraded"),
        (true, true) => (ConditionStatus::True, "Valid"),
        (true, false) => return,
    };
    let conditions = &mut cluster.status.conditions;
    let condition = Condition {
        last_transition_time: now,
        message: failed.join("\n"),
        reason: reason.to_owned(),
        status,
        kind: REQUIREMENTS.to_owned(),
    };
    match conditions.iter_mut().find(|known| known.kind == REQUIREMENTS) {
        Some(known) if known.status == status => known.message = condition.message,
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

fn mirror_control_plane(beside: &mut ServiceProviderCluster, aro: &ClusterAro, now: Timestamp) {
    let status = &mut beside.status;
    adopt(&mut status.hosted_cluster_namespace, aro.hosted_cluster_namespace.as_ref());
    adopt(&mut status.control_plane_namespace, aro.hcp_namespace.as_ref());
    adopt(&mut status.serving_ca_bundle, aro.serving_ca.as_ref());
    if let Some(history) = &aro.version_history {
        let active = history.iter().filter_map(|entry| {
            let state = match entry.state.as_deref() {
                Some("Completed") => RolloutState::Completed,
                _ => RolloutState::Partial,
            };
            Some(ObservedVersion { version: Release::parse(entry.version.as_deref()?)?, state: Some(state) })
        });
        status.control_plane_version.active_versions = up_to_completed(active.collect());
    }
    if let Some(conditions) = &aro.conditions {
        let read = |condition: &aro_ocm::Condition| {
            let status = match condition.status.as_deref() {
                Some("True") => ConditionStatus::True,
                Some("False") => ConditionStatus::False,
                _ => ConditionStatus::Unknown,
            };
            Some(Condition {
                last_transition_time: condition.last_transition_time.map_or(now, |time| time.0),
                message: condition.message.clone().unwrap_or_default(),
                reason: condition.reason.clone().unwrap_or_default(),
                status,
                kind: condition.r#type.clone()?,
            })
        };
        let mut mirrored: Vec<Condition> = conditions.iter().filter_map(read).collect();
        for condition in &mut mirrored {
            let known = status.conditions.iter().find(|known| known.kind == condition.kind);
            if let Some(known) = known.filter(|known| known.status == condition.status) {
                // A condition that is reported without a time must not look new with every pass.
                condition.last_transition_time = known.last_transition_time;
            }
        }
        status.conditions = mirrored;
    }
}

/// What runs: everything down to the newest release that has completed. Older entries of the history are past.
fn up_to_completed(mut history: Vec<ObservedVersion>) -> Vec<ObservedVersion> {
    if let Some(last) = history.iter().position(|entry| entry.state == Some(RolloutState::Completed)) {
        history.truncate(last + 1);
    }
    history
}

/// Release lines, as callers see them: `x.y`, each once.
fn lines(releases: &[Release]) -> Vec<ActiveVersion> {
    let mut lines: Vec<ActiveVersion> = Vec::new();
    for release in releases {
        let version = release.line().to_string();
        if !lines.iter().any(|line| line.version == version) {
            lines.push(ActiveVersion { version });
        }
    }
    lines
}
