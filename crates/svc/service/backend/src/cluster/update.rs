//! Changing what is there: members that differ, and upgrades.

use aro_arm::error::Code;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::operation::Request;
use aro_arm::operation::ProvisioningState;
use aro_base::Timestamp;
use aro_control::{Outcome, Step};
use aro_decisions::Outcome as Decided;
use aro_ocm::{Cluster as OcmCluster, ClusterState};
use aro_peers::translate::cluster::{canonical, update_body};
use aro_peers::translate::differences;

use super::Seen;
use super::complete::recheck;
use super::observe::Service;
use super::state::{state_of, waiting};
use crate::act::{Act, record};
use crate::change::Draft;
use crate::progress::{Progress, error};

/// Members of the cluster that are not as desired.
pub(super) fn drift(seen: &Seen) -> Vec<&'static str> {
    let (Some(stored), Service::Present(_, observed)) = (&seen.cluster, &seen.service) else {
        return Vec::new();
    };
    differences(&canonical(&update_body(&stored.value, observed)), &canonical(observed))
}

/// The releases that have run completely, the newest first.
pub(super) fn running_versions(found: &OcmCluster) -> Vec<Release> {
    let history = found.aro.as_ref().and_then(|aro| aro.version_history.as_ref());
    let completed = history.into_iter().flatten().filter(|entry| entry.state.as_deref() == Some("Completed"));
    completed.filter_map(|entry| Release::parse(entry.version.as_deref()?)).collect()
}

/// A cluster that was there and is not any more: nothing makes it again.
pub(super) fn plan_missing(seen: &Seen, now: Timestamp) -> Step<Act<Cluster>> {
    let (Some(stored), Service::Absent) = (&seen.cluster, &seen.service) else { return Step::pass() };
    if seen.operation.is_none() {
        return Step::Stop(Vec::new(), Outcome::Settled);
    }
    let mut draft = Draft::new(stored, seen.provider.as_ref(), seen.operation.as_ref());
    draft.fail(error(Code::InternalServerError, "The cluster no longer exists in Clusters Service"), now);
    Step::Stop(record(draft.finish("cluster is missing")), Outcome::Settled)
}

/// Brings Clusters Service to the desired state.
pub(super) fn plan_update(seen: &Seen, now: Timestamp) -> Step<Act<Cluster>> {
    let (Some(stored), Service::Present(found, observed)) = (&seen.cluster, &seen.service) else {
        return Step::pass();
    };
    if !state_of(found).is_some_and(ClusterState::is_updatable) {
        return Step::pass();
    }
    let request = seen.operation.as_ref().map(crate::change::OperationSeen::request);
    let is_idle =
        seen.operation.is_none() && stored.value.service.provisioning_state == ProvisioningState::Succeeded;
    if !(is_idle || matches!(request, Some(Request::Create | Request::Update))) {
        return Step::pass();
    }
    let names = drift(seen);
    if !names.is_empty() {
        let mut draft = Draft::new(stored, seen.provider.as_ref(), seen.operation.as_ref());
        draft.dispatched();
        draft.note(
            "update",
            Decided::Started,
            format!("asked Clusters Service to change {}", names.join(", ")),
        );
        let mut acts = vec![Act::Update(update_body(&stored.value, observed), names)];
        if request == Some(Request::Update) {
            draft.advance(&Progress::waits(ProvisioningState::Updating, ""), now);
        }
        acts.extend(record(draft.finish("update dispatched")));
        if request == Some(Request::Update) {
            // Pools without a drain time of their own take the cluster's.
            acts.push(Act::WakeChildren);
        }
        return Step::Stop(acts, waiting("the update", recheck(seen, now)));
    }
    match upgrade(seen, found) {
        Some(version) => Step::Continue(vec![Act::Upgrade(version)]),
        None => Step::pass(),
    }
}

/// The release to upgrade to: the desired one, unless it runs or was asked for.
fn upgrade(seen: &Seen, found: &OcmCluster) -> Option<String> {
    let running = running_versions(found);
    let desired = seen.desired()?;
    if running.is_empty() || running.contains(&desired) {
        return None;
    }
    let version = desired.to_string();
    (seen.latest_upgrade.as_ref() != Some(&version)).then_some(version)
}

/// The release that the control plane should have from now on: the pinned one, else what the catalogue offers if it is newer.
pub(super) fn desired_release(seen: &Seen, cluster: &Cluster) -> Option<Release> {
    let before = seen.desired();
    if let Some(pin) = &cluster.hosting.experimental_features.control_plane_exact_version {
        return Release::parse(pin).or(before);
    }
    before.max(seen.selected.clone())
}
