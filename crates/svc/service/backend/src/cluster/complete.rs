//! Recording what is observed, and completing the operation by it.

use std::time::Duration;

use aro_arm::error::Code;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::openshift_version::Line;
use aro_arm::hcp::operation::Request;
use aro_arm::operation::ProvisioningState;
use aro_base::Timestamp;
use aro_control::{Outcome, Step};
use aro_decisions::Outcome as Decided;
use aro_ocm::{Cluster as OcmCluster, Href, Root};

use super::create::not_offered;
use super::observe::Service;
use super::state::{judge, judge_control_plane, waiting};
use super::update::{desired_release, drift, running_versions};
use super::{Seen, mirror};
use crate::act::{Act, deadline, record, until};
use crate::change::Draft;
use crate::metrics::request_name;
use crate::progress::{Progress, error};
use crate::shared::service_id;

/// Mirrors, judges, completes.
pub(super) fn plan(seen: &Seen, now: Timestamp) -> Step<Act<Cluster>> {
    let Some(stored) = &seen.cluster else { return Step::pass() };
    let found = match &seen.service {
        Service::Present(found, _) => found,
        Service::Unknown(reason) => {
            return Step::Stop(overdue(seen, reason, now).unwrap_or_default(), Outcome::Settled);
        }
        Service::Unnamed | Service::Absent => return Step::Stop(Vec::new(), Outcome::Settled),
    };
    let mut draft = Draft::new(stored, seen.provider.as_ref(), seen.operation.as_ref());
    let is_new = record_id(&mut draft);
    mirror::apply(&mut draft, found, &seen.checks, now);
    if let Some(release) = desired_release(seen, &stored.value)
        && seen.desired().as_ref() != Some(&release)
    {
        draft.note("version", Decided::Done, format!("release {release} selected"));
        draft.beside.spec.control_plane_version.desired_version = Some(release);
    }
    let judged = judge_operation(seen, found, &draft);
    let progress = with_deadline(seen, judged, now);
    draft.advance(&progress, now);
    heal(seen, found, &mut draft);
    let ended = progress.state.is_terminal();
    let mut acts = record(draft.finish("observed state"));
    if is_new || ended {
        acts.push(Act::WakeChildren);
    }
    if seen.operation.is_none() || ended {
        return Step::Stop(acts, Outcome::Settled);
    }
    if seen.noted.as_ref() != Some(&progress.message) {
        acts.push(Act::Note(progress.message));
    }
    Step::Stop(acts, waiting("Clusters Service", recheck(seen, now)))
}

/// The cluster exists: its reference is recorded, and what the create owed is delivered.
fn record_id(draft: &mut Draft<'_, Cluster>) -> bool {
    if draft.value.service.cluster_service_id.is_some() {
        return false;
    }
    let Some(id) = service_id(&draft.value) else { return false };
    draft.value.service.cluster_service_id = Some(Href::Cluster(id.clone()).under(Root::AroHcp));
    draft.dispatched();
    draft.note("create", Decided::Done, format!("created in Clusters Service as {id}"));
    true
}

fn judge_operation(seen: &Seen, found: &OcmCluster, draft: &Draft<'_, Cluster>) -> Progress {
    match seen.operation.as_ref().map(crate::change::OperationSeen::request) {
        Some(Request::Create) => Progress::worst([
            judge(found, &seen.checks, ProvisioningState::Provisioning),
            judge_control_plane(found),
        ]),
        Some(Request::Update) => {
            // An update of what could not be created before creates it.
            let never_ran = running_versions(found).is_empty();
            Progress::worst([
                judge(found, &seen.checks, ProvisioningState::Updating),
                judge_drift(seen),
                judge_release(seen, draft),
                if never_ran { judge_control_plane(found) } else { Progress::done() },
            ])
        }
        _ => Progress::waits(ProvisioningState::Accepted, ""),
    }
}

fn judge_drift(seen: &Seen) -> Progress {
    let names = drift(seen);
    if names.is_empty() {
        return Progress::done();
    }
    let message = format!("[Clusters Service] not applied yet: {}", names.join(", "));
    Progress::waits(ProvisioningState::Updating, message)
}

/// Whether a release of the requested version is selected.
fn judge_release(seen: &Seen, draft: &Draft<'_, Cluster>) -> Progress {
    let requested = Line::parse(&draft.value.properties.version.id);
    let desired = draft.beside.spec.control_plane_version.desired_version.as_ref();
    if requested.is_none() || desired.map(aro_arm::hcp::openshift_version::Release::line) >= requested {
        return Progress::done();
    }
    match seen.selected {
        None => Progress::failed(not_offered(&draft.value)),
        Some(_) => Progress::waits(ProvisioningState::Updating, "the release is not selected yet"),
    }
}

/// A creation or an update that failed may be completed later, when what failed works after all: the resource shows that.
fn heal(seen: &Seen, found: &OcmCluster, draft: &mut Draft<'_, Cluster>) {
    let failed = draft.value.service.provisioning_state == ProvisioningState::Failed;
    if seen.operation.is_some() || !failed || !drift(seen).is_empty() {
        return;
    }
    let judged = [judge(found, &seen.checks, ProvisioningState::Provisioning), judge_control_plane(found)];
    if Progress::worst(judged).state == ProvisioningState::Succeeded {
        draft.value.service.provisioning_state = ProvisioningState::Succeeded;
        draft.note("heal", Decided::Done, "the cluster works after all");
    }
}

/// A judgement that is not final fails once the operation's time is over.
fn with_deadline(seen: &Seen, judged: Progress, now: Timestamp) -> Progress {
    if judged.state.is_terminal() || limit(seen).is_none_or(|limit| now < limit) {
        return judged;
    }
    Progress::failed(too_late(seen, &judged.message))
}

fn too_late(seen: &Seen, message: &str) -> aro_arm::operation::OperationError {
    let request = seen.operation.as_ref().map_or("operation", |operation| request_name(operation.request()));
    let message = format!("The cluster {request} did not complete before the deadline; {message}");
    error(Code::InternalServerError, message)
}

/// The acts that fail an operation whose time is over; `None` while it has time.
pub(super) fn overdue(seen: &Seen, message: &str, now: Timestamp) -> Option<Vec<Act<Cluster>>> {
    let stored = seen.cluster.as_ref()?;
    if now < limit(seen)? {
        return None;
    }
    let mut draft = Draft::new(stored, seen.provider.as_ref(), seen.operation.as_ref());
    draft.fail(too_late(seen, message), now);
    Some(record(draft.finish("deadline")))
}

fn limit(seen: &Seen) -> Option<Timestamp> {
    let operation = &seen.operation.as_ref()?.stored.value;
    deadline(operation, &seen.cluster.as_ref()?.value.service, seen.timing.update_deadline)
}

/// When a pass is due without any event.
pub(super) fn recheck(seen: &Seen, now: Timestamp) -> Option<Duration> {
    limit(seen).map(|limit| until(limit, now).max(Duration::from_millis(100)))
}
