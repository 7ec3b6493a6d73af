//! What a claim needs next. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeClaimStatus, PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use super::directory::{PROVISIONED_BY, PROVISIONER};
use super::matching::{asked, best, capacity, class_of, is_for, mismatch};

pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub const BOUND_BY_US: &str = "pv.kubernetes.io/bound-by-controller";
pub const PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The provisioner of classes whose volumes are created by hand.
const BY_HAND: &str = "kubernetes.io/no-provisioner";

/// Everything a decision depends on.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    pub claim: &'a PersistentVolumeClaim,
    /// The class it asks for, if that is there.
    pub class: Option<Arc<StorageClass>>,
    /// The name of the default class.
    pub default_class: Option<String>,
    /// The volume it names.
    pub named: Option<Arc<PersistentVolume>>,
    /// Volumes that are free or say that they are for this claim.
    pub volumes: Vec<Arc<PersistentVolume>>,
    /// Whether a pod wants it.
    pub wanted: bool,
    /// Whether a pod that was given to a node uses it.
    pub used: bool,
    /// Whether there is a place for new volumes.
    pub provisions: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Nothing to do.
    Rest,
    /// Not ours to touch.
    LeaveAlone,
    Protect,
    Unprotect,
    /// Bind it to this volume; those that are bound already get a new look at their status.
    Bind(Arc<PersistentVolume>),
    /// The volume grows to what is asked for.
    Grow(Arc<PersistentVolume>),
    Status(Box<PersistentVolumeClaimStatus>),
    /// It lost its volume.
    Lost {
        reason: &'static str,
        message: &'static str,
    },
    /// Ask for this class.
    UseClass(String),
    Provision(Arc<StorageClass>),
    /// Nothing can be done now; say why.
    Wait {
        warning: bool,
        reason: &'static str,
        message: String,
    },
}

fn wait(reason: &'static str, message: impl Into<String>) -> Act {
    Act::Wait { warning: false, reason, message: message.into() }
}

fn warn(reason: &'static str, message: impl Into<String>) -> Act {
    Act::Wait { warning: true, reason, message: message.into() }
}

pub fn plan(seen: &Seen<'_>) -> Act {
    let meta = &seen.claim.metadata;
    let protected = meta.finalizers.iter().flatten().any(|finalizer| finalizer == PROTECTION);
    if meta.deletion_timestamp.is_some() {
        return if protected && !seen.used { Act::Unprotect } else { Act::Rest };
    }
    if !protected {
        return Act::Protect;
    }
    if is_foreign(seen.class.as_deref()) {
        return Act::LeaveAlone;
    }
    let named = seen.claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    let completed = meta.annotations.as_ref().is_some_and(|all| all.contains_key(BIND_COMPLETED));
    match (named, completed) {
        ("", false) => unbound(seen),
        ("", true) => lost(
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
            seen,
        ),
        (name, false) => asks_for(seen, name),
        (_, true) => bound(seen),
    }
}

/// Whether another provisioner creates the volumes of a class.
fn is_foreign(class: Option<&StorageClass>) -> bool {
    class.is_some_and(|class| class.provisioner != PROVISIONER && class.provisioner != BY_HAND)
}

fn lost(reason: &'static str, message: &'static str, seen: &Seen<'_>) -> Act {
    let phase = seen.claim.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase == Some("Lost") { Act::Rest } else { Act::Lost { reason, message } }
}

fn bound(seen: &Seen<'_>) -> Act {
    let Some(volume) = &seen.named else {
        return lost(
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
            seen,
        );
    };
    match volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) {
        // Another client removed the other half of the binding: restore it.
        None => return Act::Bind(volume.clone()),
        Some(reference)
            if reference.uid.as_deref().unwrap_or_default().is_empty() && is_for(volume, seen.claim) =>
        {
            return Act::Bind(volume.clone());
        }
        Some(_) if is_for(volume, seen.claim) => {}
        Some(_) => {
            let message = "Two claims are bound to the same volume, this one is bound incorrectly";
            return lost("ClaimMisbound", message, seen);
        }
    }
    if asked(seen.claim) > capacity(volume) && is_local(volume) {
        return Act::Grow(volume.clone());
    }
    let status = status_of(seen.claim, volume);
    if seen.claim.status.as_ref() == Some(&status) { Act::Rest } else { Act::Status(Box::new(status)) }
}

fn is_local(volume: &PersistentVolume) -> bool {
    volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == PROVISIONER)
}

/// What a bound claim says about itself.
fn status_of(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> PersistentVolumeClaimStatus {
    let spec = volume.spec.as_ref();
    PersistentVolumeClaimStatus {
        phase: Some("Bound".to_owned()),
        access_modes: spec.and_then(|spec| spec.access_modes.clone()),
        capacity: spec.and_then(|spec| spec.capacity.clone()),
        ..claim.status.clone().unwrap_or_default()
    }
}

/// The claim names a volume.
fn asks_for(seen: &Seen<'_>, name: &str) -> Act {
    let Some(volume) = &seen.named else {
        return wait("FailedBinding", format!("the volume {name:?} is not there yet"));
    };
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    if reference.is_some() && !is_for(volume, seen.claim) {
        return warn("FailedBinding", format!("volume {name:?} already bound to a different claim."));
    }
    match mismatch(volume, seen.claim) {
        Some(why) => warn("VolumeMismatch", format!("Cannot bind to requested volume {name:?}: {why}")),
        None => Act::Bind(volume.clone()),
    }
}

fn unbound(seen: &Seen<'_>) -> Act {
    let late = seen.class.as_ref().and_then(|class| class.volume_binding_mode.as_deref())
        == Some("WaitForFirstConsumer");
    let made_for_it = seen.volumes.iter().any(|volume| is_for(volume, seen.claim));
    if late && !seen.wanted && !made_for_it {
        return wait("WaitForFirstConsumer", "waiting for first consumer to be created before binding");
    }
    if let Some(volume) = best(seen.claim, seen.volumes.iter()) {
        return Act::Bind(volume);
    }
    match (class_of(seen.claim), &seen.class, &seen.default_class) {
        (None, _, Some(default)) => Act::UseClass(default.clone()),
        (None | Some(""), ..) => wait(
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        ),
        (Some(name), None, _) => {
            warn("ProvisioningFailed", format!("storageclass.storage.k8s.io {name:?} not found"))
        }
        (Some(_), Some(class), _) if class.provisioner == PROVISIONER => {
            let block =
                seen.claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()) == Some("Block");
            if !seen.provisions {
                wait(
                    "FailedBinding",
                    "no persistent volumes available for this claim, and none are made here",
                )
            } else if block {
                warn("ProvisioningFailed", "local volumes are directories: volumeMode Block is not possible")
            } else {
                Act::Provision(class.clone())
            }
        }
        (Some(_), Some(_), _) => wait(
            "FailedBinding",
            "no persistent volumes available for this claim; those of its class are made by hand",
        ),
    }
}

/// Refers to a claim.
pub fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        field_path: None,
    }
}

/// The volume that is made for a claim.
pub fn new_volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    name: &str,
    path: String,
) -> PersistentVolume {
    let spec = claim.spec.as_ref();
    let resources = spec.and_then(|spec| spec.resources.as_ref());
    let annotations = [(BOUND_BY_US, "yes"), (PROVISIONED_BY, PROVISIONER)];
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            annotations: Some(annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.and_then(|spec| spec.access_modes.clone()),
            capacity: resources.and_then(|resources| resources.requests.clone()),
            claim_ref: Some(reference(claim)),
            host_path: Some(HostPathVolumeSource { path, type_: Some("DirectoryOrCreate".to_owned()) }),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: Some(class.name_any()),
            volume_mode: spec.and_then(|spec| spec.volume_mode.clone()),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests;
