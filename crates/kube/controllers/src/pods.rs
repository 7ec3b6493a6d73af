//! Words about pods that every controller uses.

pub mod adoption;
pub mod batch;
pub mod select;
pub mod share;

use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use aro_kube::informer::key_of;
use aro_runtime::Fault;
use either::Either;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Resource, ResourceExt as _};

use crate::context::{Context, is_missing, refused};

/// A pod's phase; empty before anybody has said anything.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether it is marked for deletion.
pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether it has run to its end.
pub fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether it counts as a replica: neither finished nor terminating.
pub fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

/// One of its conditions.
pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

/// Whether its containers say that they are ready.
pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// The node it is bound to; empty if none.
pub fn node_name(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Whether it has been ready for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Available {
    Yes,
    /// It is ready, and will be available after this time.
    After(Duration),
    No,
}

/// Whether a pod has been ready for at least `min_ready` seconds.
pub fn availability(pod: &Pod, min_ready: i32, now: Timestamp) -> Available {
    let Some(ready) = condition(pod, "Ready").filter(|ready| ready.status == "True") else {
        return Available::No;
    };
    if min_ready <= 0 {
        return Available::Yes;
    }
    let Some(since) = &ready.last_transition_time else { return Available::No };
    let at = since.0.saturating_add(SignedDuration::from_secs(min_ready.into())).unwrap_or(Timestamp::MAX);
    match Duration::try_from(at.duration_since(now)) {
        Ok(left) if !left.is_zero() => Available::After(left),
        _ => Available::Yes,
    }
}

/// The owner reference by which an object controls another.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The reference to the object's controller, if it has one.
pub fn controller_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    object.meta().owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// A pod as a template describes it; its name is still missing.
pub fn of_template<K: Resource<DynamicType = ()>>(template: &PodTemplateSpec, owner: &K) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            namespace: owner.namespace(),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

impl Context {
    /// Creates a pod and remembers it.
    pub async fn create_pod(&self, pod: &Pod) -> Result<std::sync::Arc<Pod>, kube::Error> {
        let namespace = pod.namespace().unwrap_or_default();
        let made = self.api::<Pod>(&namespace).create(&PostParams::default(), pod).await?;
        Ok(self.caches.pods.cache().wrote(made))
    }

    /// Deletes this very pod, with the grace it asks for itself, and remembers it. Gone already is as good.
    pub async fn delete_pod(&self, pod: &Pod) -> Result<(), Fault> {
        let key = key_of(pod);
        let uid = pod.uid().unwrap_or_default();
        let this = Preconditions { uid: Some(uid.clone()), resource_version: None };
        let parameters = DeleteParams { preconditions: Some(this), ..DeleteParams::default() };
        let cache = self.caches.pods.cache();
        match self.api::<Pod>(&key.namespace).delete(&key.name, &parameters).await {
            Ok(Either::Left(left)) if left.metadata.deletion_grace_period_seconds.unwrap_or(0) > 0 => {
                cache.wrote(left);
            }
            Ok(_) => cache.removed(&key, &uid),
            Err(error) if is_missing(&error) => cache.removed(&key, &uid),
            Err(error) => return Err(refused(format!("delete the pod {key}"))(error)),
        }
        Ok(())
    }
}
