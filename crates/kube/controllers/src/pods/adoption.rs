//! Whose children are whose: by owner reference first, by labels for those without one.
//!
//! A child with a controller belongs to it as long as its labels match; if they do not, it is released. A matching one
//! without a controller is adopted, unless it or its owner is on its way out. Before adopting, the owner is read from the
//! server once: a cache may still show one that is gone, and its children must not be tied to it.

use std::sync::Arc;

use aro_kube::informer::{Cache, Kept, key_of};
use aro_kube_apimachinery::selector::LabelSelector;
use aro_runtime::Fault;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::json;

use super::controller_reference;
use super::select::selects;
use crate::context::{Context, is_missing, refused};

/// Children, by what has to be done about whose they are.
#[derive(Debug)]
pub struct Sorted<K> {
    /// Controlled and matching.
    pub mine: Vec<Arc<K>>,
    /// Matching and without a controller.
    pub adopt: Vec<Arc<K>>,
    /// Controlled and no longer matching.
    pub release: Vec<Arc<K>>,
}

/// Sorts what an owner controls, and orphans it may want.
pub fn sort_out<K: Resource>(
    deleting: bool,
    selector: &LabelSelector,
    controlled: Vec<Arc<K>>,
    orphans: Vec<Arc<K>>,
) -> Sorted<K> {
    let matches = |child: &Arc<K>| selects(selector, child.meta().labels.as_ref());
    let (mine, others): (Vec<_>, Vec<_>) = controlled.into_iter().partition(matches);
    let wanted = |child: &Arc<K>| child.meta().deletion_timestamp.is_none() && matches(child);
    let release = others.into_iter().filter(|child| child.meta().deletion_timestamp.is_none());
    if deleting {
        return Sorted { mine, adopt: Vec::new(), release: Vec::new() };
    }
    Sorted { mine, adopt: orphans.into_iter().filter(wanted).collect(), release: release.collect() }
}

impl Context {
    /// Adopts and releases children, and returns all that are the owner's now.
    pub async fn settle_ownership<O, K>(
        &self,
        owner: &O,
        cache: &Cache<K>,
        sorted: Sorted<K>,
    ) -> Result<Vec<Arc<K>>, Fault>
    where
        O: Kept + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Kept + Serialize + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let Sorted { mut mine, adopt, release } = sorted;
        for child in release {
            self.release(owner, cache, &child).await?;
        }
        if adopt.is_empty() || !self.still_wants_children(owner).await? {
            return Ok(mine);
        }
        for child in adopt {
            mine.extend(self.adopt(owner, cache, &child).await?);
        }
        Ok(mine)
    }

    /// Whether an owner is on the server as we know it.
    async fn still_wants_children<O>(&self, owner: &O) -> Result<bool, Fault>
    where
        O: Kept + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let key = key_of(owner);
        let live = self.api::<O>(&key.namespace).get_opt(&key.name).await;
        let live = live.map_err(refused(format!("read {key}, which wants to adopt")))?;
        Ok(live.is_some_and(|live| live.uid() == owner.uid() && live.meta().deletion_timestamp.is_none()))
    }

    async fn adopt<O, K>(&self, owner: &O, cache: &Cache<K>, child: &K) -> Result<Option<Arc<K>>, Fault>
    where
        O: Kept + Resource<DynamicType = ()>,
        K: Kept + Serialize + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let patch =
            json!({"metadata": {"uid": child.uid(), "ownerReferences": [controller_reference(owner)]}});
        self.patch_child(cache, child, &patch, "adopt").await
    }

    async fn release<O, K>(&self, owner: &O, cache: &Cache<K>, child: &K) -> Result<(), Fault>
    where
        O: Kept + Resource<DynamicType = ()>,
        K: Kept + Serialize + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let mine = json!([{"$patch": "delete", "uid": owner.uid()}]);
        let patch = json!({"metadata": {"uid": child.uid(), "ownerReferences": mine}});
        self.patch_child(cache, child, &patch, "release").await.map(drop)
    }

    /// `None`: it is gone.
    async fn patch_child<K>(
        &self,
        cache: &Cache<K>,
        child: &K,
        patch: &serde_json::Value,
        verb: &str,
    ) -> Result<Option<Arc<K>>, Fault>
    where
        K: Kept + Serialize + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let key = key_of(child);
        let patched = self
            .api::<K>(&key.namespace)
            .patch(&key.name, &PatchParams::default(), &Patch::Strategic(patch))
            .await;
        match patched {
            Ok(patched) => Ok(Some(cache.wrote(patched))),
            Err(error) if is_missing(&error) => {
                cache.removed(&key, &child.uid().unwrap_or_default());
                Ok(None)
            }
            Err(error) => Err(refused(format!("{verb} {key}"))(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::pods::select::selector;

    fn pod(name: &str, app: &str, going: bool) -> Arc<Pod> {
        let going = going.then_some("2026-01-01T00:00:00Z");
        let pod = json!({"metadata": {"name": name, "labels": {"app": app}, "deletionTimestamp": going}});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn names(pods: &[Arc<Pod>]) -> Vec<String> {
        pods.iter().map(|pod| pod.name_any()).collect()
    }

    #[test]
    fn matching_orphans_are_adopted_and_children_that_match_no_more_are_released() {
        let web = json!({"matchLabels": {"app": "web"}});
        let web = selector(&serde_json::from_value(web).unwrap()).unwrap();
        let controlled =
            || vec![pod("kept", "web", false), pod("left", "db", false), pod("leaving", "db", true)];
        let orphans =
            || vec![pod("found", "web", false), pod("other", "db", false), pod("dying", "web", true)];
        let sorted = sort_out(false, &web, controlled(), orphans());
        assert_eq!(names(&sorted.mine), ["kept"]);
        assert_eq!(names(&sorted.adopt), ["found"]);
        assert_eq!(names(&sorted.release), ["left"]);
        let sorted = sort_out(true, &web, controlled(), orphans());
        assert_eq!(names(&sorted.mine), ["kept"]);
        assert!(sorted.adopt.is_empty() && sorted.release.is_empty(), "a terminating owner adopts nothing");
    }
}
