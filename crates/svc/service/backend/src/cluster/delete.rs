//! Deleting: dispatched at once, whatever state the cluster is in; complete when Clusters Service has nothing left and every
//! child's document is gone.
//!
//! A create that was sent and not recorded may still arrive. So the absence of a cluster counts only after the grace period
//! for creates, unless the cluster was recorded before; what arrives later is found by the event feed or by the sweep.

use std::time::Duration;

use aro_arm::error::Code;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::operation::Request;
use aro_arm::operation::{OperationError, ProvisioningState};
use aro_base::{SignedDuration, Timestamp};
use aro_control::{Outcome, Step};
use aro_decisions::Outcome as Decided;
use aro_ocm::ClusterState;

use super::Seen;
use super::observe::Service;
use super::state::{state_of, waiting};
use crate::act::{Act, again, record, until};
use crate::change::Draft;
use crate::progress::{Progress, error};

/// Children report their end through the change feed; this covers a lost one.
const CHILDREN_RECHECK: Duration = Duration::from_secs(30);

/// Everything about a cluster whose deletion was asked for.
pub(super) fn plan(seen: &Seen, now: Timestamp) -> Step<Act<Cluster>> {
    let Some(stored) = &seen.cluster else { return Step::pass() };
    let Some(asked) = stored.value.service.deletion_timestamp else { return Step::pass() };
    match &seen.service {
        Service::Present(found, _) => {
            let uninstalling = state_of(found) == Some(ClusterState::Uninstalling);
            let status = found.status.as_ref();
            let reason = status.and_then(|status| status.description.clone()).unwrap_or_default();
            present(seen, uninstalling, &reason, now)
        }
        Service::Unknown(reason) => {
            Step::Stop(late(seen, reason, now), Outcome::RequeueAfter(CHILDREN_RECHECK))
        }
        Service::Unnamed => absent(seen, now),
        Service::Absent => {
            let service = &stored.value.service;
            let recorded =
                service.cluster_service_id.is_some() || service.cluster_service_deletion_timestamp.is_some();
            let grace = SignedDuration::try_from(seen.timing.create_grace).unwrap_or_default();
            let sure = asked.checked_add(grace).unwrap_or(asked);
            if recorded || now >= sure {
                return absent(seen, now);
            }
            let mut acts = late(seen, "a create may still be under way", now);
            acts.extend(note(seen, "a create may still be under way"));
            Step::Stop(acts, waiting("a create that may be under way", Some(until(sure, now))))
        }
    }
}

/// Clusters Service has the cluster: it is asked to delete it, once, and again if it is not deleting.
fn present(seen: &Seen, uninstalling: bool, reason: &str, now: Timestamp) -> Step<Act<Cluster>> {
    let Some(stored) = &seen.cluster else { return Step::pass() };
    let remains = format!("Clusters Service is still deleting the cluster: {reason}");
    if limit(seen).is_some_and(|limit| now >= limit) {
        // First of all: the request to Clusters Service may be what fails.
        let noted = seen.noted.as_deref().unwrap_or(&remains);
        return again(late(seen, if reason.is_empty() { noted } else { &remains }, now));
    }
    let dispatched = stored.value.service.cluster_service_deletion_timestamp.is_some();
    let mut acts = Vec::new();
    if !(dispatched && uninstalling) {
        acts.push(Act::Delete);
    }
    let mut draft = draft(seen);
    if let Some(draft) = &mut draft {
        if !dispatched {
            draft.value.service.cluster_service_deletion_timestamp = Some(now);
            draft.note("delete", Decided::Started, "deletion asked for in Clusters Service");
        }
        draft.dispatched();
        judge_deadline(seen, draft, &remains, now);
    }
    acts.extend(record(draft.and_then(|draft| draft.finish("deletion dispatched"))));
    let blocker =
        format!("[Clusters Service] uninstalling{}{reason}", if reason.is_empty() { "" } else { ": " });
    acts.extend(note(seen, &blocker));
    Step::Stop(acts, waiting("the deletion", deadline_recheck(seen, now)))
}

/// Clusters Service has nothing: the children go, then the resource.
fn absent(seen: &Seen, now: Timestamp) -> Step<Act<Cluster>> {
    if seen.has_children {
        let mut acts = late(seen, "node pools or external auths are left", now);
        acts.push(Act::WakeChildren);
        acts.extend(note(seen, "node pools or external auths are left"));
        return Step::Stop(acts, waiting("the deletion of children", Some(CHILDREN_RECHECK)));
    }
    let Some(mut draft) = draft(seen) else { return Step::pass() };
    draft.remove_resource();
    draft.dispatched();
    for claim in &seen.claims {
        draft.release(claim);
    }
    draft.note("delete", Decided::Done, "nothing is left in Clusters Service; the resource is removed");
    if seen.operation.as_ref().is_some_and(|operation| operation.request() == Request::Delete) {
        draft.advance(&Progress::done(), now);
    }
    Step::Stop(record(draft.finish("cluster removed")), Outcome::Settled)
}

fn draft(seen: &Seen) -> Option<Draft<'_, Cluster>> {
    Some(Draft::new(seen.cluster.as_ref()?, seen.provider.as_ref(), seen.operation.as_ref()))
}

/// The acts that fail a deletion whose time is over. The work goes on: the deletion was promised.
fn late(seen: &Seen, remains: &str, now: Timestamp) -> Vec<Act<Cluster>> {
    let Some(mut draft) = draft(seen) else { return Vec::new() };
    judge_deadline(seen, &mut draft, remains, now);
    record(draft.finish("deadline"))
}

fn judge_deadline(seen: &Seen, draft: &mut Draft<'_, Cluster>, remains: &str, now: Timestamp) {
    if limit(seen).is_some_and(|limit| now >= limit) {
        draft.fail(too_late(remains), now);
    } else {
        draft.advance(&Progress::waits(ProvisioningState::Deleting, ""), now);
    }
}

fn too_late(remains: &str) -> OperationError {
    let message = format!("cluster deletion did not complete before the deadline; {remains}");
    error(Code::InternalServerError, message)
}

fn limit(seen: &Seen) -> Option<Timestamp> {
    seen.operation.as_ref()?;
    seen.cluster.as_ref()?.value.service.delete_operation_completion_deadline
}

fn deadline_recheck(seen: &Seen, now: Timestamp) -> Option<Duration> {
    limit(seen).map(|limit| until(limit, now).max(Duration::from_millis(100)))
}

fn note(seen: &Seen, blocker: &str) -> Option<Act<Cluster>> {
    (seen.operation.is_some() && seen.noted.as_deref() != Some(blocker))
        .then(|| Act::Note(blocker.to_owned()))
}
