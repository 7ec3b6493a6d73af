//! Owner references of the claims of a set: none, so that data outlives the pods, unless the set's policy differs.
//!
//! `whenDeleted: Delete` makes the set the owner; `whenScaled: Delete` makes a pod that is about to go the owner. The
//! collector of orphans does the rest.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt as _};

use crate::pods::controller_reference;

/// What becomes of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Policy {
    delete_with_set: bool,
    delete_with_pod: bool,
}

fn policy(set: &StatefulSet) -> Policy {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let deletes = |word: Option<&String>| word.is_some_and(|word| word == "Delete");
    Policy {
        delete_with_set: deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
        delete_with_pod: deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
    }
}

fn names<K: Resource<DynamicType = ()>>(reference: &OwnerReference, object: &K) -> bool {
    reference.api_version == K::api_version(&())
        && reference.kind == K::kind(&())
        && reference.name == object.name_any()
}

fn is<K: Resource<DynamicType = ()>>(reference: &OwnerReference, object: &K) -> bool {
    names(reference, object) && object.meta().uid.as_ref() == Some(&reference.uid)
}

/// The owners a claim should have; `None` if it has them. `staying`: the set wants the pod's ordinal.
///
/// Claims that name an earlier set or pod of the same name are left alone: they are about to be collected.
pub fn owners(
    claim: &PersistentVolumeClaim,
    set: &StatefulSet,
    pod: &Pod,
    staying: bool,
) -> Option<Vec<OwnerReference>> {
    let known = claim.metadata.owner_references.clone().unwrap_or_default();
    let stale = |reference: &&OwnerReference| {
        (names(reference, set) && !is(reference, set)) || (names(reference, pod) && !is(reference, pod))
    };
    if known.iter().any(|reference| stale(&reference)) {
        return None;
    }
    let ours = |reference: &OwnerReference| is(reference, set) || is(reference, pod);
    let mut wanted: Vec<OwnerReference> =
        known.iter().filter(|reference| !ours(reference)).cloned().collect();
    let foreign = wanted.iter().any(|reference| reference.controller == Some(true));
    let policy = policy(set);
    if !foreign {
        if policy.delete_with_pod && !staying {
            wanted.push(controller_reference(pod));
        } else if policy.delete_with_set {
            wanted.push(controller_reference(set));
        }
    }
    (wanted != known).then_some(wanted)
}

/// Whether a claim still belongs to an earlier pod of this name and goes with it: a new pod has to wait.
pub fn is_stale(claim: &PersistentVolumeClaim, set: &StatefulSet, pod_name: &str) -> bool {
    let owners = claim.metadata.owner_references.iter().flatten();
    policy(set).delete_with_pod
        && owners.into_iter().any(|owner| owner.kind == "Pod" && owner.name == pod_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(deleted: &str, scaled: &str) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "set"},
            "spec": {"selector": {}, "template": {},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}},
        }))
        .unwrap()
    }

    fn pod() -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "web-1", "namespace": "n", "uid": "pod"}}))
            .unwrap()
    }

    fn claim(owners: &[OwnerReference]) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.owner_references = Some(owners.to_vec());
        claim
    }

    #[test]
    fn the_policy_decides_who_owns_a_claim() {
        let (by_set, by_pod) = (controller_reference(&set("", "")), controller_reference(&pod()));
        for (deleted, scaled, staying, owner) in [
            ("Retain", "Retain", true, None),
            ("Retain", "Retain", false, None),
            ("Delete", "Retain", true, Some(&by_set)),
            ("Delete", "Retain", false, Some(&by_set)),
            ("Retain", "Delete", true, None),
            ("Retain", "Delete", false, Some(&by_pod)),
            ("Delete", "Delete", true, Some(&by_set)),
            ("Delete", "Delete", false, Some(&by_pod)),
        ] {
            let wanted: Vec<_> = owner.into_iter().cloned().collect();
            for before in [vec![], vec![by_set.clone()], vec![by_pod.clone()]] {
                let new = owners(&claim(&before), &set(deleted, scaled), &pod(), staying);
                let expected = (wanted != before).then(|| wanted.clone());
                assert_eq!(new, expected, "{deleted} {scaled} {staying} from {before:?}");
            }
        }
    }

    #[test]
    fn claims_of_others_and_of_earlier_pods_are_left_alone() {
        let stranger = OwnerReference {
            controller: Some(true),
            kind: "X".into(),
            uid: "x".into(),
            ..OwnerReference::default()
        };
        assert_eq!(owners(&claim(&[stranger]), &set("Delete", "Delete"), &pod(), true), None);
        let earlier = OwnerReference { uid: "earlier".into(), ..controller_reference(&pod()) };
        assert_eq!(
            owners(&claim(std::slice::from_ref(&earlier)), &set("Delete", "Delete"), &pod(), true),
            None
        );
        assert!(is_stale(&claim(std::slice::from_ref(&earlier)), &set("Retain", "Delete"), "web-1"));
        assert!(!is_stale(&claim(std::slice::from_ref(&earlier)), &set("Retain", "Retain"), "web-1"));
        assert!(!is_stale(&claim(&[earlier]), &set("Retain", "Delete"), "web-2"));
    }
}
