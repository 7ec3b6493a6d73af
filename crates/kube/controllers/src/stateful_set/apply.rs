//! Does what was planned, and writes the status.

use std::fmt::Display;
use std::sync::Arc;

use aro_kube::informer::{ObjectKey, key_of};
use aro_runtime::Fault;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{Selector, SelectorExt as _};
use serde_json::{Value, json};

use super::plan::{Act, Which};
use super::{Controller, History, identity, retention, revisions};
use crate::caches::BY_PARENT;
use crate::context::{is_conflict, is_missing, refused};
use crate::pods::{self, controller_reference};

/// Writes at once, at most.
const AT_ONCE: usize = 32;

impl Controller {
    /// Takes in orphans that are members by name and labels, and lets go of those whose labels do not match any more.
    pub(super) async fn take_in(&self, set: &StatefulSet) -> Result<(), Fault> {
        let selector = set.spec.as_ref().and_then(|spec| Selector::try_from(spec.selector.clone()).ok());
        let Some(selector) = selector.filter(|_| set.metadata.deletion_timestamp.is_none()) else {
            return Ok(());
        };
        let (name, uid) = (set.name_any(), set.uid().unwrap_or_default());
        let key = key_of(set);
        let cache = self.context.caches.pods.cache();
        for pod in cache.controlled_by(&uid) {
            let member = identity::ordinal_in(&name, &pod.name_any()).is_some();
            if pods::is_terminating(&pod) || member && selector.matches(pod.labels()) {
                continue;
            }
            let left: Vec<_> = pod.owner_references().iter().filter(|owner| owner.uid != uid).collect();
            self.patch_pod(&pod, &json!({"metadata": {"uid": pod.uid(), "ownerReferences": left}})).await?;
        }
        let orphans = cache.by(BY_PARENT, &key.to_string());
        let wanted = orphans.into_iter().filter(|pod| {
            pods::is_active(pod)
                && identity::ordinal_in(&name, &pod.name_any()).is_some()
                && selector.matches(pod.labels())
        });
        let wanted: Vec<Arc<Pod>> = wanted.collect();
        if wanted.is_empty() {
            return Ok(());
        }
        // Only a set that is really there may take in anything: ours may be an old picture.
        let api = self.context.api::<StatefulSet>(&key.namespace);
        let live = api.get_opt(&key.name).await.map_err(refused(format!("read the StatefulSet {key}")))?;
        let live = live.filter(|live| live.metadata.uid == set.metadata.uid);
        if live.is_none_or(|live| live.metadata.deletion_timestamp.is_some()) {
            return Err(Fault::new(format!("the StatefulSet {key} is not what it was")));
        }
        for pod in wanted {
            let owners = [pod.owner_references(), &[controller_reference(set)]].concat();
            self.patch_pod(&pod, &json!({"metadata": {"uid": pod.uid(), "ownerReferences": owners}})).await?;
        }
        Ok(())
    }

    async fn patch_pod(&self, pod: &Pod, patch: &Value) -> Result<(), Fault> {
        let key = key_of(pod);
        let api = self.context.api::<Pod>(&key.namespace);
        match api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(patched) => {
                self.context.caches.pods.cache().wrote(patched);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("change the pod {key}"))(error)),
        }
    }

    /// Does it, doubling what goes out at once with each success. Returns whether something has to go away first.
    pub(super) async fn apply(
        &self,
        set: &StatefulSet,
        history: &History,
        acts: Vec<Act>,
    ) -> Result<bool, Fault> {
        let mut acts = acts.into_iter();
        let (mut batch, mut waits) = (1, false);
        loop {
            let now: Vec<Act> = acts.by_ref().take(batch).collect();
            if now.is_empty() {
                return Ok(waits);
            }
            let mut failed = None;
            let mut running =
                stream::iter(now).map(|act| self.act(set, history, act)).buffer_unordered(AT_ONCE);
            while let Some(done) = running.next().await {
                match done {
                    Ok(wait) => waits |= wait,
                    Err(fault) => failed = Some(fault),
                }
            }
            if let Some(fault) = failed {
                return Err(fault);
            }
            batch = (batch * 2).min(AT_ONCE * 2);
        }
    }

    async fn act(&self, set: &StatefulSet, history: &History, act: Act) -> Result<bool, Fault> {
        match act {
            Act::Create { ordinal, revision } => self.create(set, history, ordinal, revision).await,
            Act::Tend { pod, ordinal } => self.tend(set, &pod, ordinal).await.map(|()| false),
            Act::Delete { pod, ordinal } => {
                let deleted = self.context.delete_pod(&pod).await;
                let name = identity::pod_name(set, ordinal);
                let error = deleted.as_ref().err().map(|fault| fault as &dyn Display);
                self.tell_of_pod(set, Verb::Delete, &name, error);
                deleted.map(|()| false)
            }
        }
    }

    async fn create(
        &self,
        set: &StatefulSet,
        history: &History,
        ordinal: i32,
        revision: Which,
    ) -> Result<bool, Fault> {
        let revision = match revision {
            Which::Current => &history.current,
            Which::Update => &history.update,
        };
        let template = revisions::template_of(revision)
            .ok_or_else(|| Fault::new(format!("the revision {} has no template", revision.name_any())))?;
        let pod = identity::pod(set, &template, &revision.name_any(), ordinal);
        let name = pod.name_any();
        let claims = self.known_claims(set, ordinal);
        if claims.iter().flatten().any(|claim| retention::is_stale(claim, set, &name)) {
            return Ok(true);
        }
        self.make_claims(set, ordinal).await?;
        match self.context.create_pod(&pod).await {
            Ok(made) => {
                self.tell_of_pod(set, Verb::Create, &name, None);
                self.own_claims(set, &made, ordinal).await?;
                Ok(false)
            }
            Err(error) => {
                if !is_conflict(&error) && !is_ending(&error) {
                    self.tell_of_pod(set, Verb::Create, &name, Some(&error));
                }
                Err(refused(format!("create the pod {name}"))(error))
            }
        }
    }

    /// Its labels and claims are as they should be.
    async fn tend(&self, set: &StatefulSet, pod: &Pod, ordinal: i32) -> Result<(), Fault> {
        let wanted = identity::is_wanted(set, ordinal);
        if wanted && pods::phase(pod) == "Pending" {
            self.make_claims(set, ordinal).await?;
        }
        self.own_claims(set, pod, ordinal).await?;
        match identity::missing_labels(pod, ordinal).filter(|_| wanted) {
            Some(labels) => {
                self.patch_pod(pod, &json!({"metadata": {"uid": pod.uid(), "labels": labels}})).await
            }
            None => Ok(()),
        }
    }

    fn known_claims(&self, set: &StatefulSet, ordinal: i32) -> Vec<Option<Arc<PersistentVolumeClaim>>> {
        let namespace = set.namespace().unwrap_or_default();
        let cache = self.context.caches.claims.cache();
        let claims = identity::claims(set, ordinal);
        claims.iter().map(|(_, claim)| cache.get(&ObjectKey::new(&*namespace, claim.name_any()))).collect()
    }

    async fn make_claims(&self, set: &StatefulSet, ordinal: i32) -> Result<(), Fault> {
        let namespace = set.namespace().unwrap_or_default();
        let api = self.context.api::<PersistentVolumeClaim>(&namespace);
        let known = self.known_claims(set, ordinal);
        for ((_, claim), known) in identity::claims(set, ordinal).into_iter().zip(known) {
            let name = claim.name_any();
            match known {
                Some(known) if known.metadata.deletion_timestamp.is_some() => {
                    return Err(Fault::new(format!("the claim {namespace}/{name} is being deleted")));
                }
                Some(_) => {}
                None => {
                    let pod = identity::pod_name(set, ordinal);
                    match api.create(&PostParams::default(), &claim).await {
                        Ok(made) => {
                            self.context.caches.claims.cache().wrote(made);
                            self.tell_of_claim(set, &name, &pod, None);
                        }
                        Err(error) if is_conflict(&error) => {}
                        Err(error) => {
                            self.tell_of_claim(set, &name, &pod, Some(&error));
                            return Err(refused(format!("create the claim {namespace}/{name}"))(error));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    async fn own_claims(&self, set: &StatefulSet, pod: &Pod, ordinal: i32) -> Result<(), Fault> {
        let staying = identity::is_wanted(set, ordinal);
        for claim in self.known_claims(set, ordinal).into_iter().flatten() {
            let Some(owners) = retention::owners(&claim, set, pod, staying) else { continue };
            let key = key_of(&*claim);
            let patch = json!({"metadata": {"uid": claim.uid(), "resourceVersion": claim.resource_version(),
                "ownerReferences": owners}});
            let api = self.context.api::<PersistentVolumeClaim>(&key.namespace);
            match api.patch(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(patched) => {
                    self.context.caches.claims.cache().wrote(patched);
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(refused(format!("change the owners of the claim {key}"))(error)),
            }
        }
        Ok(())
    }

    fn tell_of_pod(&self, set: &StatefulSet, verb: Verb, pod: &str, error: Option<&dyn Display>) {
        let name = set.name_any();
        match error {
            None => self.context.events.normal(
                set,
                verb.successful(),
                format!("{verb:?} Pod {pod} in StatefulSet {name} successful"),
            ),
            Some(error) => self.context.events.warning(
                set,
                verb.failed(),
                format!("{verb:?} Pod {pod} in StatefulSet {name} failed error: {error}"),
            ),
        }
    }

    fn tell_of_claim(&self, set: &StatefulSet, claim: &str, pod: &str, error: Option<&dyn Display>) {
        let name = set.name_any();
        match error {
            None => self.context.events.normal(
                set,
                Verb::Create.successful(),
                format!("Create Claim {claim} Pod {pod} in StatefulSet {name} success"),
            ),
            Some(error) => self.context.events.warning(
                set,
                Verb::Create.failed(),
                format!("Create Claim {claim} for Pod {pod} in StatefulSet {name} failed error: {error}"),
            ),
        }
    }

    pub(super) async fn write_status(
        &self,
        set: &StatefulSet,
        status: StatefulSetStatus,
    ) -> Result<(), Fault> {
        if set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let key = key_of(set);
        let api = self.context.api::<StatefulSet>(&key.namespace);
        let patch = json!({"metadata": {"uid": set.uid()}, "status": status});
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(patched) => {
                self.context.caches.stateful_sets.cache().wrote(patched);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("write the status of the StatefulSet {key}"))(error)),
        }
    }
}

/// What was done to a pod, as events say it.
#[derive(Debug, Clone, Copy)]
enum Verb {
    Create,
    Delete,
}

impl Verb {
    fn successful(self) -> &'static str {
        match self {
            Self::Create => "SuccessfulCreate",
            Self::Delete => "SuccessfulDelete",
        }
    }

    fn failed(self) -> &'static str {
        match self {
            Self::Create => "FailedCreate",
            Self::Delete => "FailedDelete",
        }
    }
}

/// Whether the namespace is going away: nothing can be created there, and no event is needed.
fn is_ending(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403 && status.message.contains("being terminated"))
}
