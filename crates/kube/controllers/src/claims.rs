//! Claims for storage: bound to volumes that are there, or to local directories made for them.
//!
//! What it is not: it mounts nothing, enforces no sizes, and leaves claims of classes with other provisioners alone.
//! Without a place for volumes it makes none, and leaves those it made earlier as they are; it still binds and protects.
//!
//! Invariants:
//! * A volume is for one claim: writing the claim into the volume is guarded by the volume's version and comes first.
//! * Data is removed only when the API server itself says that the claim is gone, the policy says Delete, and the
//!   directory is exactly the one this controller makes for a volume of that name.

mod class;
mod directory;
mod matching;
mod plan;
mod volume;

use std::path::PathBuf;
use std::sync::Arc;

use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{Change, ObjectKey, key_of};
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::caches::{BY_CLAIM, Caches};
use crate::context::{Context, is_conflict, is_missing, refused};
use crate::pods;
use plan::{Act, BIND_COMPLETED, BOUND_BY_US, PROTECTION, Seen};

struct Claims {
    context: Context,
    root: Option<PathBuf>,
}

pub fn start(context: &Context, scope: &Scope) {
    let root = context.volumes.clone();
    let (claims, volumes) = (Queue::new(), Queue::new());
    let caches = &context.caches;
    if root.is_some() {
        let classes = Queue::new();
        classes.add(ObjectKey::new("", class::LOCAL));
        context.runner(class::Classes { context: context.clone() }, &classes).start(scope);
    }
    // A changed claim concerns the volumes that name it, and a changed volume the claim that it names.
    let known = caches.volumes.cache().clone();
    let of_claims = caches.claims.mapped(move |change, queue: &Queue<ObjectKey>| {
        for volume in known.by(BY_CLAIM, &key_of(&**change.object()).to_string()) {
            queue.add(key_of(&*volume));
        }
    });
    context
        .runner(volume::Volumes { context: context.clone(), root: root.clone() }, &volumes)
        .with_source(caches.volumes.objects())
        .with_source(of_claims)
        .start(scope);
    let (of_volumes, of_classes) = (caches.clone(), caches.clone());
    context
        .runner(Claims { context: context.clone(), root }, &claims)
        .with_source(caches.claims.objects())
        .with_source(
            caches.volumes.mapped(move |change, queue| enqueue_for_volume(change, &of_volumes, queue)),
        )
        .with_source(caches.storage_classes.mapped(move |_, queue| enqueue_unbound(&of_classes, queue)))
        .with_source(
            caches.pods.mapped(|change, queue| claims_of(change).into_iter().for_each(|key| queue.add(key))),
        )
        .start(scope);
}

/// The claim that a volume names; for a free volume all claims without one.
fn enqueue_for_volume(change: &Change<PersistentVolume>, caches: &Caches, claims: &Queue<ObjectKey>) {
    let reference = change.object().spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    match reference {
        Some(reference) => claims.add(ObjectKey::new(
            reference.namespace.clone().unwrap_or_default(),
            reference.name.clone().unwrap_or_default(),
        )),
        None => enqueue_unbound(caches, claims),
    }
}

fn enqueue_unbound(caches: &Caches, claims: &Queue<ObjectKey>) {
    for claim in caches.claims.cache().all() {
        if !claim.annotations().contains_key(BIND_COMPLETED) {
            claims.add(key_of(&*claim));
        }
    }
}

/// The claims a pod uses, if whether it uses them may have changed.
fn claims_of(change: &Change<Pod>) -> Vec<ObjectKey> {
    let uses = |pod: &Pod| (pods::is_finished(pod), pods::node_name(pod).is_empty());
    if let (Some(before), Some(now)) = (change.before(), change.now())
        && before.metadata.resource_version != now.metadata.resource_version
        && uses(before) == uses(now)
    {
        return Vec::new();
    }
    let pod = change.object();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let names = volumes.filter_map(|volume| Some(&volume.persistent_volume_claim.as_ref()?.claim_name));
    names.map(|name| ObjectKey::new(pod.namespace().unwrap_or_default(), name)).collect()
}

impl Reconcile for Claims {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "claims";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        let Some(claim) = self.context.caches.claims.cache().get(key) else { return Ok(Outcome::Settled) };
        match plan::plan(&self.observe(key, &claim)) {
            Act::Rest | Act::LeaveAlone => {}
            Act::Protect => {
                let finalizers = [claim.finalizers(), &[PROTECTION.to_owned()]].concat();
                self.patch(&claim, json!({"metadata": {"finalizers": finalizers}})).await?;
            }
            Act::Unprotect => {
                let left: Vec<_> = claim.finalizers().iter().filter(|name| *name != PROTECTION).collect();
                self.patch(&claim, json!({"metadata": {"finalizers": left}})).await?;
            }
            Act::Bind(volume) => self.bind(&claim, volume).await?,
            Act::Grow(volume) => {
                let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
                let storage = resources.and_then(|resources| resources.requests.as_ref()?.get("storage"));
                self.patch_volume(&volume, json!({"spec": {"capacity": {"storage": storage}}})).await?;
                // The next look writes the status.
                return Ok(Outcome::RequeueAfter(std::time::Duration::from_millis(1)));
            }
            Act::Status(status) => self.write_status(&claim, json!(status)).await?,
            Act::Lost { reason, message } => {
                self.write_status(&claim, json!({"phase": "Lost", "capacity": null, "accessModes": null}))
                    .await?;
                self.context.events.warning(&*claim, reason, message);
            }
            Act::UseClass(class) => {
                self.patch(&claim, json!({"spec": {"storageClassName": class}})).await?;
                return Ok(Outcome::RequeueAfter(std::time::Duration::from_millis(1)));
            }
            Act::Provision(class) => self.provision(&claim, &class).await?,
            Act::Wait { warning: true, reason, message } => {
                self.context.events.warning(&*claim, reason, message);
            }
            Act::Wait { warning: false, reason, message } => {
                self.context.events.normal(&*claim, reason, message);
            }
        }
        Ok(Outcome::Settled)
    }
}

impl Claims {
    fn observe<'a>(&self, key: &ObjectKey, claim: &'a PersistentVolumeClaim) -> Seen<'a> {
        let caches = &self.context.caches;
        let classes = caches.storage_classes.cache();
        let class = matching::class_of(claim).and_then(|name| classes.get(&ObjectKey::new("", name)));
        let default = || {
            let mut all: Vec<Arc<StorageClass>> = classes.all();
            all.retain(|class| class::is_default(class));
            // Of several, the newest.
            let newest = all.iter().max_by_key(|class| {
                (class.creation_timestamp().map(|time| time.0), std::cmp::Reverse(class.name_any()))
            });
            newest.map(|class| class.name_any())
        };
        let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
        let volumes = caches.volumes.cache();
        let mut candidates = volumes.by(BY_CLAIM, &key.to_string());
        if named.is_empty() {
            candidates.extend(volumes.by(BY_CLAIM, ""));
        }
        let pods = caches.pods.cache().by(BY_CLAIM, &key.to_string());
        Seen {
            claim,
            default_class: if matching::class_of(claim).is_none() { default() } else { None },
            class,
            named: volumes.get(&ObjectKey::new("", named)),
            volumes: candidates,
            wanted: pods.iter().any(|pod| pods::is_active(pod)),
            provisions: self.root.is_some(),
            used: pods.iter().any(|pod| !pods::is_finished(pod) && !pods::node_name(pod).is_empty()),
        }
    }

    /// Makes a directory, then the volume that names it. Both are found again if we stop in between.
    async fn provision(&self, claim: &PersistentVolumeClaim, class: &StorageClass) -> Result<(), Fault> {
        let uid = claim.uid().unwrap_or_default();
        let name = directory::volume_name(&uid);
        let path = name.as_deref().and_then(|name| directory::path_of(self.root.as_deref()?, name));
        let (Some(name), Some(path)) = (name, path) else {
            return Err(Fault::new(format!("the claim {} has an uid that makes no name", key_of(claim))));
        };
        let text = path.to_str().map(str::to_owned);
        let text = text.ok_or_else(|| Fault::new("the place for volumes has a name that is no text"))?;
        let made = tokio::task::spawn_blocking(move || directory::make(&path)).await;
        let made = made.map_err(|error| Fault::caused("make a directory", error))?;
        if let Err(error) = made {
            let message =
                format!("failed to provision volume with StorageClass {:?}: {error}", class.name_any());
            self.context.events.warning(claim, "ProvisioningFailed", message);
            return Err(Fault::caused(format!("make the directory of the volume {name}"), error));
        }
        let volume = plan::new_volume(claim, class, &name, text);
        let api: Api<PersistentVolume> = Api::all(self.context.client.clone());
        let cache = self.context.caches.volumes.cache();
        let volume = match api.create(&PostParams::default(), &volume).await {
            Ok(made) => {
                let message = format!("Successfully provisioned volume {name}");
                self.context.events.normal(claim, "ProvisioningSucceeded", message);
                cache.wrote(made)
            }
            Err(error) if is_conflict(&error) => {
                let found = api.get(&name).await.map_err(refused(format!("read the volume {name}")))?;
                cache.wrote(found)
            }
            Err(error) => return Err(refused(format!("create the volume {name}"))(error)),
        };
        if !matching::is_for(&volume, claim) {
            return Err(Fault::new(format!("the volume {name} belongs to another claim")));
        }
        self.bind(claim, volume).await
    }

    /// Ties both halves: the volume first, guarded, so that it cannot be tied twice.
    async fn bind(&self, claim: &PersistentVolumeClaim, volume: Arc<PersistentVolume>) -> Result<(), Fault> {
        let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        let volume = if reference.is_some_and(|reference| reference.uid == claim.metadata.uid) {
            volume
        } else {
            let mut patch = json!({"spec": {"claimRef": plan::reference(claim)}});
            if reference.is_none() {
                patch["metadata"] = json!({"annotations": {BOUND_BY_US: "yes"}});
            }
            self.patch_volume(&volume, patch).await?
        };
        let mut claim = Arc::new(claim.clone());
        let spec = claim.spec.as_ref();
        let named =
            spec.and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default() == volume.name_any();
        if !named || !claim.annotations().contains_key(BIND_COMPLETED) {
            let mut annotations = json!({BIND_COMPLETED: "yes"});
            if !named {
                annotations[BOUND_BY_US] = json!("yes");
            }
            let patch =
                json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.name_any()}});
            claim = match self.patch(&claim, patch).await? {
                Some(claim) => claim,
                None => return Ok(()),
            };
        }
        // The other half of the news: what the claim says about itself.
        match plan::plan(&Seen { named: Some(volume), ..self.observe(&key_of(&*claim), &claim) }) {
            Act::Status(status) => self.write_status(&claim, json!(status)).await,
            _ => Ok(()),
        }
    }

    async fn patch(
        &self,
        claim: &PersistentVolumeClaim,
        mut patch: Value,
    ) -> Result<Option<Arc<PersistentVolumeClaim>>, Fault> {
        let key = key_of(claim);
        patch["metadata"]["resourceVersion"] = json!(claim.resource_version());
        let api = self.context.api::<PersistentVolumeClaim>(&key.namespace);
        let cache = self.context.caches.claims.cache();
        match api.patch(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(patched)
                if patched.metadata.deletion_timestamp.is_some() && patched.finalizers().is_empty() =>
            {
                cache.removed(&key, &patched.uid().unwrap_or_default());
                Ok(None)
            }
            Ok(patched) => Ok(Some(cache.wrote(patched))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(refused(format!("change the claim {key}"))(error)),
        }
    }

    async fn write_status(&self, claim: &PersistentVolumeClaim, status: Value) -> Result<(), Fault> {
        let key = key_of(claim);
        let api = self.context.api::<PersistentVolumeClaim>(&key.namespace);
        let patch = json!({"metadata": {"uid": claim.uid()}, "status": status});
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(patched) => {
                self.context.caches.claims.cache().wrote(patched);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("write the status of the claim {key}"))(error)),
        }
    }

    async fn patch_volume(
        &self,
        volume: &PersistentVolume,
        mut patch: Value,
    ) -> Result<Arc<PersistentVolume>, Fault> {
        let name = volume.name_any();
        patch["metadata"]["resourceVersion"] = json!(volume.resource_version());
        let api: Api<PersistentVolume> = Api::all(self.context.client.clone());
        let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        let patched = patched.map_err(refused(format!("change the volume {name}")))?;
        Ok(self.context.caches.volumes.cache().wrote(patched))
    }
}
