//! What a refusal of Clusters Service means for an operation. Pure.
//!
//! Its errors are told apart by their texts (the original has no codes); every fragment of a phrase must occur.

use aro_arm::error::Code;
use aro_arm::operation::OperationError;
use aro_peers::{CallError, Refusal, translate};

use crate::error::WorkError;
use crate::progress::error;

/// The state of the object, or of its cluster, forbids the change now; it is repeated later.
const NOT_NOW: [&[&str]; 5] = [
    &["Cluster", "is in state", "can't update"],
    &["Node pools can only be", "on clusters in an updatable state", "cluster requested is in", "state."],
    &["Node pool can only be updated in", "the node pool requested is in", "state."],
    &["ExternalAuths can only be", "on clusters in an updatable state", "cluster requested is in", "state."],
    &[
        "console clients cannot be configured without a ready node pool",
        "Please ensure at least one node pool is in 'ready' state before configuring console authentication",
    ],
];

/// The cluster is being deleted and takes its children along.
const GOES_WITH_CLUSTER: [&[&str]; 2] = [
    &[
        "Cannot delete node pool: its parent cluster must be in a deletable state",
        "Parent cluster state: 'uninstalling'",
    ],
    &[
        "Cannot delete ExternalAuth: its parent cluster must be in deletable state",
        "Parent cluster state: 'uninstalling'",
    ],
];

/// No provision shard can take a cluster.
const NO_SHARD: &str = "Unable to find shard";

fn matches(phrases: &[&[&str]], reason: &str) -> bool {
    phrases.iter().any(|fragments| fragments.iter().all(|fragment| reason.contains(fragment)))
}

/// Whether the deletion of a child is refused because its cluster is being deleted.
pub fn goes_with_cluster(error: &CallError) -> bool {
    error.refusal().is_some_and(|refusal| matches(&GOES_WITH_CLUSTER, &refusal.reason))
}

/// Whether a create or an update failed because of a lack of capacity.
fn lacks_capacity(error: &CallError) -> bool {
    match error {
        CallError::Unavailable { reason, .. } => reason.contains(NO_SHARD),
        _ => error.refusal().is_some_and(|refusal| refusal.reason.contains(NO_SHARD)),
    }
}

/// What the failure of a change means for the operation it was made for.
pub fn of_change(failed: CallError, operation: Option<&str>) -> WorkError {
    let Some(operation) = operation else { return of_drift(failed) };
    let rejected = |error| WorkError::Rejected { operation: operation.to_owned(), error };
    if lacks_capacity(&failed) {
        let message = "Capacity is currently restricted, please try again later";
        return rejected(error(Code::ServiceUnavailable, message));
    }
    match &failed {
        CallError::Refused { refusal, .. } if matches(&NOT_NOW, &refusal.reason) => {
            WorkError::NotNow(refusal.reason.clone())
        }
        CallError::Refused { refusal, .. } => rejected(refused(refusal)),
        CallError::Conflict { refusal, .. } => rejected(error(Code::Conflict, refusal.reason.clone())),
        _ => WorkError::Call(failed),
    }
}

/// No operation waits for the change: it is tried again.
fn of_drift(failed: CallError) -> WorkError {
    match failed.refusal() {
        Some(refusal) if matches(&NOT_NOW, &refusal.reason) => WorkError::NotNow(refusal.reason.clone()),
        Some(refusal) => WorkError::DriftRefused(refusal.reason.clone()),
        None => WorkError::Call(failed),
    }
}

/// What the failure of a deletion means: it is asked for until it is taken.
pub fn of_deletion(failed: CallError) -> WorkError {
    match failed.refusal() {
        Some(refusal) => WorkError::NotNow(refusal.reason.clone()),
        None => WorkError::Call(failed),
    }
}

/// The error for the caller, with one detail per problem where Clusters Service names them.
fn refused(refusal: &Refusal) -> OperationError {
    let mut refused = error(Code::InvalidRequestContent, refusal.reason.clone());
    if refusal.details.len() > 1 {
        let details = refusal.details.iter().map(|detail| OperationError {
            target: translate::cluster::target_of(&detail.field).map(ToOwned::to_owned),
            ..error(Code::InvalidRequestContent, detail.reason.clone())
        });
        refused.details = details.collect();
    }
    refused
}

#[cfg(test)]
mod tests {
    use aro_base::{Class, Classify as _};
    use http::StatusCode;

    use super::*;

    fn refusal(status: u16, reason: &str) -> CallError {
        let refusal = Refusal {
            status: StatusCode::from_u16(status).unwrap(),
            reason: reason.to_owned(),
            details: Vec::new(),
        };
        match status {
            404 => CallError::NotFound { peer: "cs", refusal },
            409 => CallError::Conflict { peer: "cs", refusal },
            _ => CallError::Refused { peer: "cs", refusal },
        }
    }

    #[test]
    fn changes_that_the_state_forbids_are_repeated() {
        for reason in [
            "Cluster 'c1' is in state 'installing', can't update",
            "Node pools can only be updated on clusters in an updatable state, cluster requested is in 'pending' state.",
            "Node pool can only be updated in state ready, the node pool requested is in 'installing' state.",
            "ExternalAuths can only be updated on clusters in an updatable state, cluster requested is in 'error' state.",
        ] {
            assert!(
                matches!(of_change(refusal(400, reason), Some("op")).class(), Class::Wait(_)),
                "{reason}"
            );
        }
    }

    #[test]
    fn other_refusals_end_the_operation_with_the_reason() {
        for (status, reason, code) in [
            (400, "the subnet does not exist", "InvalidRequestContent"),
            (409, "the managed resource group is in use", "Conflict"),
            (404, "Unable to find shard for region uksouth", "ServiceUnavailable"),
        ] {
            let WorkError::Rejected { error, .. } = of_change(refusal(status, reason), Some("op")) else {
                panic!("{reason}")
            };
            assert_eq!(error.code, code);
        }
        assert!(matches!(of_change(refusal(404, "gone"), Some("op")), WorkError::Call(_)));
        assert!(
            matches!(of_change(refusal(400, "no"), None), WorkError::DriftRefused(_)),
            "drift has no operation"
        );
    }

    #[test]
    fn children_of_a_cluster_that_is_being_deleted_go_with_it() {
        let reason = "Cannot delete node pool: its parent cluster must be in a deletable state. Parent cluster state: 'uninstalling'";
        assert!(goes_with_cluster(&refusal(400, reason)));
        assert!(!goes_with_cluster(&refusal(400, "Cannot delete node pool: no")));
    }
}
