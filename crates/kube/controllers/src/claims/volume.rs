//! Volumes: whose they are, and what becomes of them when their claim is gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aro_control::{Outcome, Reconcile};
use aro_kube::informer::{ObjectKey, key_of};
use aro_runtime::Fault;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::directory::{self, PROVISIONED_BY, PROVISIONER};
use super::plan::BOUND_BY_US;
use crate::context::{Context, is_missing, refused};

const PROTECTION: &str = "kubernetes.io/pv-protection";

pub struct Volumes {
    pub context: Context,
    /// Where directories are made, if they are made here.
    pub root: Option<PathBuf>,
}

/// What became of the claim a volume is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// It names no claim, or a claim that does not exist yet.
    None,
    /// Both halves are tied.
    Bound,
    /// The claim is about to be tied.
    Coming,
    /// The claim took another volume.
    Elsewhere,
    /// The claim is gone.
    Gone,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    Rest,
    Phase(&'static str),
    Unprotect,
    /// Remove the directory and the volume.
    Reclaim(PathBuf),
    /// It says it should be deleted, but was not made here.
    Refuse,
    /// Free it for others.
    Untie,
}

/// How a volume and the claim it names hang together. `claim` is the one of that name that is there.
pub fn tie(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Tie {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let Some(uid) = reference.and_then(|reference| reference.uid.as_deref()).filter(|uid| !uid.is_empty())
    else {
        return Tie::None;
    };
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_deref() == Some(uid)) else {
        return Tie::Gone;
    };
    match claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default() {
        "" => Tie::Coming,
        name if Some(name) == volume.metadata.name.as_deref() => Tie::Bound,
        _ => Tie::Elsewhere,
    }
}

/// What a volume needs next. Pure.
pub fn plan(volume: &PersistentVolume, tie: Tie, root: Option<&Path>) -> Act {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let deletes = policy == Some("Delete");
    let becomes = |wanted: &'static str| if phase == wanted { Act::Rest } else { Act::Phase(wanted) };
    let by = volume.metadata.annotations.as_ref().and_then(|all| all.get(PROVISIONED_BY));
    let ours = root.and_then(|root| directory::of_volume(root, volume));
    // Its directory is where we cannot reach it, and it must not be forgotten.
    let beyond = root.is_none() && deletes && by.is_some_and(|by| by == PROVISIONER);
    if volume.metadata.deletion_timestamp.is_some() && tie != Tie::Bound && tie != Tie::Coming {
        let protected = volume.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == PROTECTION);
        return match ours.filter(|_| deletes && tie == Tie::Gone) {
            Some(path) if protected => Act::Reclaim(path),
            None if beyond && tie == Tie::Gone => Act::Rest,
            _ if protected => Act::Unprotect,
            _ => Act::Rest,
        };
    }
    match tie {
        Tie::None => becomes("Available"),
        Tie::Bound => becomes("Bound"),
        Tie::Coming if phase.is_empty() || phase == "Pending" => becomes("Available"),
        Tie::Coming => Act::Rest,
        Tie::Elsewhere if by.is_none_or(|by| by != PROVISIONER) || !deletes => {
            let by_us = volume.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(BOUND_BY_US));
            if by_us { Act::Untie } else { becomes("Available") }
        }
        Tie::Gone | Tie::Elsewhere => match (ours, by) {
            _ if phase != "Released" && phase != "Failed" => Act::Phase("Released"),
            _ if !deletes || beyond => Act::Rest,
            (Some(path), _) => Act::Reclaim(path),
            // Its provisioner deletes it.
            (None, Some(by)) if by != PROVISIONER => Act::Rest,
            (None, _) if phase == "Failed" => Act::Rest,
            (None, _) => Act::Refuse,
        },
    }
}

impl Reconcile for Volumes {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "volumes";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        self.context.caches.synced().await;
        let cache = self.context.caches.volumes.cache();
        let Some(volume) = cache.get(key) else { return Ok(Outcome::Settled) };
        let claim = self.claim_of(&volume).await?;
        match plan(&volume, tie(&volume, claim.as_deref()), self.root.as_deref()) {
            Act::Rest => {}
            Act::Phase(phase) => self.write_status(&volume, json!({"phase": phase})).await?,
            Act::Unprotect => self.unprotect(&volume).await?,
            Act::Untie => {
                let patch = json!({"metadata": {"resourceVersion": volume.resource_version(),
                    "annotations": {BOUND_BY_US: null}}, "spec": {"claimRef": null}});
                self.patch(&volume, &patch).await?;
            }
            Act::Refuse => {
                let why = "this volume was not made here, so it is not deleted here";
                self.context.events.warning(&*volume, "VolumeFailedDelete", why);
                self.write_status(&volume, json!({"phase": "Failed", "message": why})).await?;
            }
            Act::Reclaim(path) => self.reclaim(&volume, path).await?,
        }
        Ok(Outcome::Settled)
    }
}

impl Volumes {
    /// The claim a volume names. Before it counts as gone, the API server is asked: our picture may be old, and data
    /// hangs on it.
    async fn claim_of(&self, volume: &PersistentVolume) -> Result<Option<Arc<PersistentVolumeClaim>>, Fault> {
        let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else {
            return Ok(None);
        };
        let key = ObjectKey::new(
            reference.namespace.clone().unwrap_or_default(),
            reference.name.clone().unwrap_or_default(),
        );
        let known = self.context.caches.claims.cache().get(&key);
        if known.as_ref().is_some_and(|known| known.uid() == reference.uid) {
            return Ok(known);
        }
        let api = self.context.api::<PersistentVolumeClaim>(&key.namespace);
        let live = api.get_opt(&key.name).await.map_err(refused(format!("read the claim {key}")))?;
        Ok(live.map(Arc::new))
    }

    async fn reclaim(&self, volume: &PersistentVolume, path: PathBuf) -> Result<(), Fault> {
        let name = volume.name_any();
        let removed = tokio::task::spawn_blocking(move || directory::remove(&path)).await;
        let removed = removed.map_err(|error| Fault::caused("remove a directory", error))?;
        if let Err(error) = removed {
            let message = format!("the directory could not be removed: {error}");
            self.context.events.warning(volume, "VolumeFailedDelete", message.clone());
            self.write_status(volume, json!({"phase": "Failed", "message": message})).await?;
            return Err(Fault::caused(format!("remove the directory of the volume {name}"), error));
        }
        let api: Api<PersistentVolume> = Api::all(self.context.client.clone());
        let this = Preconditions { uid: volume.uid(), resource_version: None };
        let parameters = DeleteParams { preconditions: Some(this), ..DeleteParams::default() };
        match api.delete(&name, &parameters).await {
            Ok(either::Either::Left(left)) => {
                let left = self.context.caches.volumes.cache().wrote(left);
                self.unprotect(&left).await
            }
            Ok(either::Either::Right(_)) => Ok(()),
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("delete the volume {name}"))(error)),
        }
    }

    async fn unprotect(&self, volume: &PersistentVolume) -> Result<(), Fault> {
        let finalizers: Vec<&String> =
            volume.finalizers().iter().filter(|finalizer| *finalizer != PROTECTION).collect();
        let patch =
            json!({"metadata": {"resourceVersion": volume.resource_version(), "finalizers": finalizers}});
        self.patch(volume, &patch).await
    }

    async fn patch(&self, volume: &PersistentVolume, patch: &Value) -> Result<(), Fault> {
        let key = key_of(volume);
        let api: Api<PersistentVolume> = Api::all(self.context.client.clone());
        match api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(patched)
                if patched.metadata.deletion_timestamp.is_some() && patched.finalizers().is_empty() =>
            {
                self.context.caches.volumes.cache().removed(&key, &patched.uid().unwrap_or_default());
                Ok(())
            }
            Ok(patched) => {
                self.context.caches.volumes.cache().wrote(patched);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("change the volume {key}"))(error)),
        }
    }

    async fn write_status(&self, volume: &PersistentVolume, status: Value) -> Result<(), Fault> {
        let key = key_of(volume);
        let api: Api<PersistentVolume> = Api::all(self.context.client.clone());
        let patch = json!({"metadata": {"resourceVersion": volume.resource_version()}, "status": status});
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(patched) => {
                self.context.caches.volumes.cache().wrote(patched);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("write the status of the volume {key}"))(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(policy: &str, phase: &str, path: &str, by: &str, going: bool) -> PersistentVolume {
        let mut value = json!({
            "metadata": {"name": "pvc-1", "finalizers": [PROTECTION], "annotations": {}},
            "spec": {"persistentVolumeReclaimPolicy": policy, "hostPath": {"path": path},
                "claimRef": {"namespace": "n", "name": "c", "uid": "u"}},
            "status": {"phase": phase},
        });
        if !by.is_empty() {
            value["metadata"]["annotations"][PROVISIONED_BY] = json!(by);
        }
        if going {
            value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(value).unwrap()
    }

    const OURS: &str = "/data/pvc-1";

    #[test]
    fn a_volume_whose_claim_is_gone_is_released_first_and_then_treated_by_its_policy() {
        let root = Some(Path::new("/data"));
        let reclaim = Act::Reclaim(PathBuf::from(OURS));
        for (policy, phase, path, by, expected) in [
            ("Delete", "Bound", OURS, PROVISIONER, Act::Phase("Released")),
            ("Delete", "Released", OURS, PROVISIONER, reclaim.clone()),
            ("Delete", "Failed", OURS, PROVISIONER, reclaim.clone()),
            ("Retain", "Released", OURS, PROVISIONER, Act::Rest),
            ("Delete", "Released", "/", PROVISIONER, Act::Refuse),
            ("Delete", "Failed", "/", PROVISIONER, Act::Rest),
            ("Delete", "Released", "/etc", "", Act::Refuse),
            ("Delete", "Released", "/etc", "disk.csi.example", Act::Rest),
        ] {
            let volume = volume(policy, phase, path, by, false);
            assert_eq!(plan(&volume, Tie::Gone, root), expected, "{policy} {phase} {path} {by}");
        }
    }

    #[test]
    fn a_deleted_volume_stays_while_it_is_bound_and_only_ours_takes_its_directory_along() {
        let root = Some(Path::new("/data"));
        let of = |policy, path, tie| plan(&volume(policy, "Bound", path, PROVISIONER, true), tie, root);
        assert_eq!(of("Delete", OURS, Tie::Bound), Act::Rest);
        assert_eq!(of("Delete", OURS, Tie::Gone), Act::Reclaim(PathBuf::from(OURS)));
        assert_eq!(of("Retain", OURS, Tie::Gone), Act::Unprotect);
        assert_eq!(of("Delete", "/", Tie::Gone), Act::Unprotect);
        assert_eq!(of("Delete", OURS, Tie::None), Act::Unprotect);
    }

    #[test]
    fn without_a_place_for_volumes_nothing_of_ours_is_forgotten() {
        let of = |policy, phase, by, going| plan(&volume(policy, phase, OURS, by, going), Tie::Gone, None);
        assert_eq!(of("Delete", "Bound", PROVISIONER, false), Act::Phase("Released"));
        assert_eq!(of("Delete", "Released", PROVISIONER, false), Act::Rest);
        assert_eq!(of("Delete", "Released", PROVISIONER, true), Act::Rest);
        assert_eq!(of("Retain", "Released", PROVISIONER, true), Act::Unprotect);
        assert_eq!(of("Delete", "Released", "", true), Act::Unprotect);
    }

    #[test]
    fn the_claim_of_the_same_uid_counts() {
        let volume = volume("Delete", "Bound", OURS, PROVISIONER, false);
        let claim = |uid: &str, volume: &str| -> PersistentVolumeClaim {
            serde_json::from_value(json!({"metadata": {"uid": uid}, "spec": {"volumeName": volume}})).unwrap()
        };
        assert_eq!(tie(&volume, None), Tie::Gone);
        assert_eq!(tie(&volume, Some(&claim("other", "pvc-1"))), Tie::Gone);
        assert_eq!(tie(&volume, Some(&claim("u", ""))), Tie::Coming);
        assert_eq!(tie(&volume, Some(&claim("u", "pvc-1"))), Tie::Bound);
        assert_eq!(tie(&volume, Some(&claim("u", "pvc-2"))), Tie::Elsewhere);
    }
}
