//! What a pass over a node pool or external auth does. Pure.

use std::time::Duration;

use aro_arm::error::Code;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::operation::Request;
use aro_arm::operation::ProvisioningState;
use aro_base::{SignedDuration, Timestamp};
use aro_control::{Outcome, Plan, Step};
use aro_decisions::Outcome as Decided;
use aro_peers::translate::differences;

use super::observe::Service;
use super::{Child, Seen};
use crate::act::{Act, again, deadline, record, until};
use crate::change::{Draft, OperationSeen};
use crate::metrics::request_name;
use crate::progress::{Progress, error};
use crate::shared::service_id;

/// The cluster enqueues its children when it changes; this covers a crash in between.
const CLUSTER_RECHECK: Duration = Duration::from_secs(30);

/// What a pass does.
pub fn plan<T: Child>(seen: &Seen<T>, now: Timestamp) -> Plan<Act<T>> {
    if seen.child.is_none() {
        return Plan::settled();
    }
    Plan::chain(seen, now, &[plan_orphan, plan_delete, plan_create, plan_update, plan_complete])
}

fn draft<T: Child>(seen: &Seen<T>) -> Option<Draft<'_, T>> {
    Some(Draft::new(seen.child.as_ref()?, seen.provider.as_ref(), seen.operation.as_ref()))
}

fn request<T: Child>(seen: &Seen<T>) -> Option<Request> {
    seen.operation.as_ref().map(OperationSeen::request)
}

/// The cluster's document is gone: so is everything that it had.
fn plan_orphan<T: Child>(seen: &Seen<T>, now: Timestamp) -> Step<Act<T>> {
    match seen.cluster {
        Some(_) => Step::pass(),
        None => removed(seen, now),
    }
}

fn plan_delete<T: Child>(seen: &Seen<T>, now: Timestamp) -> Step<Act<T>> {
    let (Some(child), Some(cluster)) = (&seen.child, &seen.cluster) else { return Step::pass() };
    let Some(asked) = child.value.service().deletion_timestamp else { return Step::pass() };
    match &seen.service {
        Service::NoCluster => removed(seen, now),
        Service::Unknown(reason) => {
            Step::Stop(late(seen, reason, now), Outcome::RequeueAfter(CLUSTER_RECHECK))
        }
        Service::Present(observed) => present(seen, T::is_uninstalling(observed), now),
        Service::Absent => {
            // A create that was sent and not recorded may still arrive, but not in a cluster that is being deleted.
            let service = child.value.service();
            let recorded =
                service.cluster_service_id.is_some() || service.cluster_service_deletion_timestamp.is_some();
            let cluster_goes = cluster.value.service.cluster_service_deletion_timestamp.is_some();
            let grace = SignedDuration::try_from(seen.timing.create_grace).unwrap_or_default();
            let sure = asked.checked_add(grace).unwrap_or(asked);
            if recorded || cluster_goes || now >= sure {
                return removed(seen, now);
            }
            let acts = late(seen, "a create may still be under way", now);
            let on = "a create that may be under way";
            Step::Stop(acts, Outcome::Waiting { on, recheck: Some(until(sure, now)) })
        }
    }
}

/// Clusters Service has it: it is asked to delete it, once, and again if it is not deleting.
fn present<T: Child>(seen: &Seen<T>, uninstalling: bool, now: Timestamp) -> Step<Act<T>> {
    let blocker = format!("[Clusters Service] the {} is uninstalling", T::NOUN);
    if limit(seen).is_some_and(|limit| now >= limit) {
        // First of all: the request to Clusters Service may be what fails.
        return again(late(seen, &blocker, now));
    }
    let Some(mut draft) = draft(seen) else { return Step::pass() };
    let dispatched = draft.value.service().cluster_service_deletion_timestamp.is_some();
    let mut acts = Vec::new();
    if !(dispatched && uninstalling) {
        acts.push(Act::Delete);
    }
    if !dispatched {
        draft.value.service_mut().cluster_service_deletion_timestamp = Some(now);
        draft.note("delete", Decided::Started, "deletion asked for in Clusters Service");
    }
    draft.dispatched();
    acts.extend(record(draft.finish("deletion dispatched")));
    acts.extend(note(seen, &blocker));
    // A deletion that is refused because the cluster goes is not repeated by events of this object.
    let recheck = limit(seen).map_or(CLUSTER_RECHECK, |limit| until(limit, now).min(CLUSTER_RECHECK));
    let recheck = Some(recheck.max(Duration::from_secs(1)));
    Step::Stop(acts, Outcome::Waiting { on: "the deletion", recheck })
}

/// Nothing is left in Clusters Service: the resource goes.
fn removed<T: Child>(seen: &Seen<T>, now: Timestamp) -> Step<Act<T>> {
    let Some(mut draft) = draft(seen) else { return Step::pass() };
    draft.remove_resource();
    draft.dispatched();
    for claim in &seen.claims {
        draft.release(claim);
    }
    draft.note("delete", Decided::Done, "nothing is left in Clusters Service; the resource is removed");
    match request(seen) {
        Some(Request::Delete) => draft.advance(&Progress::done(), now),
        _ => draft.fail(error(Code::InternalServerError, "The cluster no longer exists"), now),
    }
    Step::Stop(record(draft.finish(format!("{} removed", T::NOUN))), Outcome::Settled)
}

fn judge_deletion<T: Child>(seen: &Seen<T>, draft: &mut Draft<'_, T>, remains: &str, now: Timestamp) {
    if limit(seen).is_some_and(|limit| now >= limit) {
        let message = format!("{} deletion did not complete before the deadline; {remains}", T::NOUN);
        draft.fail(error(Code::InternalServerError, message), now);
    }
}

fn late<T: Child>(seen: &Seen<T>, remains: &str, now: Timestamp) -> Vec<Act<T>> {
    let Some(mut draft) = draft(seen) else { return Vec::new() };
    judge_deletion(seen, &mut draft, remains, now);
    record(draft.finish("deadline"))
}

/// Waits for the cluster, then asks for the child until it is there.
fn plan_create<T: Child>(seen: &Seen<T>, now: Timestamp) -> Step<Act<T>> {
    let (Some(child), Some(cluster)) = (&seen.child, &seen.cluster) else { return Step::pass() };
    match &seen.service {
        Service::NoCluster | Service::Absent => {}
        Service::Present(_) | Service::Unknown(_) => return Step::pass(),
    }
    if !matches!(request(seen), Some(Request::Create | Request::Update)) {
        return Step::Stop(Vec::new(), Outcome::Settled);
    }
    if child.value.service().cluster_service_id.is_some() {
        return failed(seen, &format!("The {} no longer exists in Clusters Service", T::NOUN), now);
    }
    if let Some(acts) = overdue(seen, "Clusters Service has not taken the request", now) {
        return Step::Stop(acts, Outcome::Settled);
    }
    if matches!(seen.service, Service::NoCluster) {
        let state = cluster.value.service.provisioning_state;
        if state == ProvisioningState::Failed {
            return failed(seen, "The cluster could not be created", now);
        }
        let blocker = "the cluster does not exist in Clusters Service yet";
        let recheck =
            Some(limit(seen).map_or(CLUSTER_RECHECK, |limit| until(limit, now).min(CLUSTER_RECHECK)));
        let acts = note(seen, blocker).into_iter().collect();
        return Step::Stop(acts, Outcome::Waiting { on: "the cluster", recheck });
    }
    let Some(release) = &seen.release else {
        return Step::Stop(
            Vec::new(),
            Outcome::Waiting { on: "the cluster's release", recheck: Some(CLUSTER_RECHECK) },
        );
    };
    again(vec![Act::Create(child.value.create_body(&cluster.value, release))])
}

fn failed<T: Child>(seen: &Seen<T>, message: &str, now: Timestamp) -> Step<Act<T>> {
    let Some(mut draft) = draft(seen) else { return Step::pass() };
    draft.fail(error(Code::InternalServerError, message), now);
    Step::Stop(record(draft.finish("operation failed")), Outcome::Settled)
}

/// Brings Clusters Service to the desired state.
fn plan_update<T: Child>(seen: &Seen<T>, now: Timestamp) -> Step<Act<T>> {
    let (Some(child), Some(cluster), Service::Present(observed)) =
        (&seen.child, &seen.cluster, &seen.service)
    else {
        return Step::pass();
    };
    let idle = seen.operation.is_none()
        && child.value.service().provisioning_state == ProvisioningState::Succeeded
        && cluster.value.service.deletion_timestamp.is_none();
    let asked = matches!(request(seen), Some(Request::Create | Request::Update));
    if !T::is_updatable(observed) || !(idle || asked) {
        return Step::pass();
    }
    let names = drift(&child.value, &cluster.value, observed);
    if !names.is_empty() {
        let changed = names.join(", ");
        let mut acts = vec![Act::Update(child.value.update_body(&cluster.value), names)];
        if let Some(mut draft) = draft(seen) {
            draft.dispatched();
            draft.note("update", Decided::Started, format!("asked Clusters Service to change {changed}"));
            if request(seen) == Some(Request::Update) {
                draft.advance(&Progress::waits(ProvisioningState::Updating, ""), now);
            }
            acts.extend(record(draft.finish("update dispatched")));
        }
        return Step::Stop(acts, Outcome::Waiting { on: "the update", recheck: recheck(seen, now) });
    }
    let due = child.value.upgrade(observed).map(|release| release.to_string());
    match due.filter(|release| seen.latest_upgrade.as_ref() != Some(release)) {
        Some(release) => Step::Continue(vec![Act::Upgrade(release)]),
        None => Step::pass(),
    }
}

fn drift<T: Child>(child: &T, cluster: &Cluster, observed: &T::Observed) -> Vec<&'static str> {
    differences(&T::canonical(&child.update_body(cluster)), &T::canonical(&T::value(observed)))
}

/// Mirrors, judges, completes.
fn plan_complete<T: Child>(seen: &Seen<T>, now: Timestamp) -> Step<Act<T>> {
    let (Some(child), Some(cluster)) = (&seen.child, &seen.cluster) else { return Step::pass() };
    let observed = match &seen.service {
        Service::Present(observed) => observed,
        Service::Unknown(reason) => {
            return Step::Stop(overdue(seen, reason, now).unwrap_or_default(), Outcome::Settled);
        }
        Service::NoCluster | Service::Absent => return Step::Stop(Vec::new(), Outcome::Settled),
    };
    let Some(mut draft) = draft(seen) else { return Step::pass() };
    if draft.value.service().cluster_service_id.is_none()
        && let Some(href) = service_id(&cluster.value).and_then(|id| child.value.href(&id))
    {
        draft.value.service_mut().cluster_service_id = Some(href);
        draft.dispatched();
        draft.note("create", Decided::Done, format!("{} created in Clusters Service", T::NOUN));
    }
    T::mirror(&mut draft, observed, now);
    let progress = judge(seen, &child.value, &cluster.value, observed, now);
    draft.advance(&progress, now);
    if seen.operation.is_none()
        && draft.value.provisioning_state() == ProvisioningState::Failed
        && judged(&child.value, &cluster.value, observed, Request::Update).state
            == ProvisioningState::Succeeded
    {
        draft.value.set_provisioning_state(ProvisioningState::Succeeded);
        draft.note("heal", Decided::Done, format!("the {} works after all", T::NOUN));
    }
    let mut acts = record(draft.finish("observed state"));
    if seen.operation.is_none() || progress.state.is_terminal() {
        return Step::Stop(acts, Outcome::Settled);
    }
    acts.extend(note(seen, &progress.message));
    Step::Stop(acts, Outcome::Waiting { on: "Clusters Service", recheck: recheck(seen, now) })
}

fn judge<T: Child>(
    seen: &Seen<T>,
    child: &T,
    cluster: &Cluster,
    observed: &T::Observed,
    now: Timestamp,
) -> Progress {
    let Some(request) = request(seen) else { return Progress::waits(ProvisioningState::Accepted, "") };
    let progress = judged(child, cluster, observed, request);
    if progress.state.is_terminal() || limit(seen).is_none_or(|limit| now < limit) {
        return progress;
    }
    Progress::failed(too_late::<T>(request, &progress.message))
}

fn judged<T: Child>(child: &T, cluster: &Cluster, observed: &T::Observed, request: Request) -> Progress {
    let names = drift(child, cluster, observed);
    let applied = match (request, names.is_empty()) {
        (Request::Update, false) => {
            let message = format!("[Clusters Service] not applied yet: {}", names.join(", "));
            Progress::waits(ProvisioningState::Updating, message)
        }
        _ => Progress::done(),
    };
    Progress::worst([child.judge(observed, request), applied])
}

fn too_late<T: Child>(request: Request, message: &str) -> aro_arm::operation::OperationError {
    let verb = request_name(request);
    let message = format!("The {} {verb} did not complete before the deadline; {message}", T::NOUN);
    error(Code::InternalServerError, message)
}

fn overdue<T: Child>(seen: &Seen<T>, message: &str, now: Timestamp) -> Option<Vec<Act<T>>> {
    if now < limit(seen)? {
        return None;
    }
    let mut draft = draft(seen)?;
    draft.fail(too_late::<T>(request(seen)?, message), now);
    Some(record(draft.finish("deadline")))
}

fn limit<T: Child>(seen: &Seen<T>) -> Option<Timestamp> {
    let operation = &seen.operation.as_ref()?.stored.value;
    deadline(operation, seen.child.as_ref()?.value.service(), seen.timing.update_deadline)
}

fn recheck<T: Child>(seen: &Seen<T>, now: Timestamp) -> Option<Duration> {
    limit(seen).map(|limit| until(limit, now).max(Duration::from_millis(100)))
}

fn note<T: Child>(seen: &Seen<T>, blocker: &str) -> Option<Act<T>> {
    (seen.operation.is_some() && seen.noted.as_deref() != Some(blocker))
        .then(|| Act::Note(blocker.to_owned()))
}
