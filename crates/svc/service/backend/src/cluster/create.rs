//! Creating: a stored id first, so that a repeated request finds the first one's cluster; then the request.

use aro_arm::error::Code;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::operation::Request;
use aro_arm::operation::OperationError;
use aro_base::Timestamp;
use aro_control::{Outcome, Step};
use aro_decisions::Outcome as Decided;
use aro_peers::translate::cluster::{Create, create_body};

use super::Seen;
use super::complete::overdue;
use super::observe::Service;
use crate::act::{Act, again, record};
use crate::change::Draft;
use crate::progress::error;

/// Whether an operation is under way that needs the cluster to exist.
fn wants_cluster(seen: &Seen) -> bool {
    seen.operation
        .as_ref()
        .is_some_and(|operation| matches!(operation.request(), Request::Create | Request::Update))
}

/// Chooses the id and the release, and stores both before anything is asked for.
pub(super) fn plan_identity(seen: &Seen, now: Timestamp) -> Step<Act<Cluster>> {
    let Some(stored) = &seen.cluster else { return Step::pass() };
    let named = !matches!(seen.service, Service::Unnamed);
    if matches!(seen.service, Service::Unknown(_)) || (named && seen.desired().is_some()) {
        return Step::pass();
    }
    if !wants_cluster(seen) {
        // Nothing was created, and nothing asks for it.
        return if named { Step::pass() } else { Step::Stop(Vec::new(), Outcome::Settled) };
    }
    let mut draft = Draft::new(stored, seen.provider.as_ref(), seen.operation.as_ref());
    match release(seen, &stored.value) {
        Ok(release) => {
            if !named {
                draft.value.hosting.pending_cluster_service_id = Some(seen.fresh_id.to_string());
                draft.note("id", Decided::Done, format!("id {} chosen", seen.fresh_id));
            }
            draft.note("version", Decided::Done, format!("release {release} selected"));
            draft.beside.spec.control_plane_version.desired_version = Some(release);
            again(record(draft.finish("id and release")))
        }
        Err(error) => {
            draft.fail(error, now);
            let mut acts = record(draft.finish("no release"));
            acts.push(Act::WakeChildren);
            Step::Stop(acts, Outcome::Settled)
        }
    }
}

/// The release of a new control plane: the pinned one, else what the catalogue offers.
fn release(seen: &Seen, cluster: &Cluster) -> Result<Release, OperationError> {
    if let Some(pin) = &cluster.hosting.experimental_features.control_plane_exact_version {
        let unreadable = || error(Code::InvalidRequestContent, format!("'{pin}' is not a release"));
        return Release::parse(pin).ok_or_else(unreadable);
    }
    seen.selected.clone().ok_or_else(|| not_offered(cluster))
}

/// The requested version is not on offer.
pub(super) fn not_offered(cluster: &Cluster) -> OperationError {
    let version = &cluster.properties.version;
    let message = format!(
        "OpenShift version '{}' is not offered in channel group '{}'",
        version.id, version.channel_group
    );
    OperationError {
        target: Some("properties.version.id".to_owned()),
        ..error(Code::InvalidRequestContent, message)
    }
}

/// Asks for the cluster until it is there.
pub(super) fn plan_create(seen: &Seen, now: Timestamp) -> Step<Act<Cluster>> {
    let (Some(stored), Service::Absent) = (&seen.cluster, &seen.service) else { return Step::pass() };
    if stored.value.service.cluster_service_id.is_some() || !wants_cluster(seen) {
        return Step::pass();
    }
    if let Some(mut acts) = overdue(seen, "Clusters Service has not taken the request", now) {
        acts.push(Act::WakeChildren);
        return Step::Stop(acts, Outcome::Settled);
    }
    let Some(release) = seen.desired() else { return Step::pass() };
    let id = stored.value.hosting.pending_cluster_service_id.as_deref();
    let body = create_body(&stored.value, &Create { id, tenant: &seen.tenant, release: &release });
    again(vec![Act::Create(body)])
}
