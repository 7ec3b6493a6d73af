//! Writes down revisions and drops old ones.

use std::collections::HashSet;
use std::sync::Arc;

use aro_kube::informer::key_of;
use aro_runtime::Fault;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{Selector, SelectorExt as _};
use serde_json::json;

use super::identity::revision_of;
use super::revisions::{self, Wanted};
use super::{Controller, History};
use crate::context::{is_conflict, is_missing, refused};
use crate::pods::{controller_of, controller_reference};

/// Names that may be taken before a pass gives up until the next.
const TRIES: i32 = 8;

impl Controller {
    /// The revisions of a set; that of its template is written down if it is new.
    pub(super) async fn history(&self, set: &StatefulSet) -> Result<History, Fault> {
        let mut all = self.revisions(set).await?;
        revisions::sort(&mut all);
        let template = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
        let status = set.status.as_ref();
        let mut collisions = status.and_then(|status| status.collision_count).unwrap_or(0);
        let update = match revisions::wanted(&template, &all) {
            Wanted::Newest(revision) => revision,
            Wanted::Again(revision, number) => self.renumber(&revision, number).await?,
            Wanted::New(number) => {
                let made = self.write_down(set, number, &mut collisions).await?;
                all.push(made.clone());
                made
            }
        };
        let named = status.and_then(|status| status.current_revision.as_ref());
        let current = all.iter().find(|revision| revision.metadata.name.as_ref() == named).cloned();
        Ok(History { current: current.unwrap_or_else(|| update.clone()), update, all, collisions })
    }

    async fn revisions(&self, set: &StatefulSet) -> Result<Vec<Arc<ControllerRevision>>, Fault> {
        let cache = self.context.caches.revisions.cache();
        let own = cache.controlled_by(&set.uid().unwrap_or_default());
        let selector = set.spec.as_ref().and_then(|spec| Selector::try_from(spec.selector.clone()).ok());
        let (true, true, Some(selector)) =
            (own.is_empty(), set.metadata.deletion_timestamp.is_none(), selector)
        else {
            return Ok(own);
        };
        // A set that was made anew around its old pods has its old history, too.
        let mut taken_in = Vec::new();
        for orphan in cache.in_namespace(&set.namespace().unwrap_or_default()) {
            if controller_of(&*orphan).is_none() && selector.matches(orphan.labels()) {
                let owners = [orphan.owner_references(), &[controller_reference(set)]].concat();
                let patch = json!({"metadata": {"ownerReferences": owners, "uid": orphan.uid()}});
                taken_in.push(self.patch_revision(&orphan, &patch).await?);
            }
        }
        Ok(taken_in)
    }

    async fn patch_revision(
        &self,
        revision: &ControllerRevision,
        patch: &serde_json::Value,
    ) -> Result<Arc<ControllerRevision>, Fault> {
        let key = key_of(revision);
        let api = self.context.api::<ControllerRevision>(&key.namespace);
        let patched = api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        let patched = patched.map_err(refused(format!("change the revision {key}")))?;
        Ok(self.context.caches.revisions.cache().wrote(patched))
    }

    async fn renumber(
        &self,
        revision: &ControllerRevision,
        number: i64,
    ) -> Result<Arc<ControllerRevision>, Fault> {
        self.patch_revision(revision, &json!({"revision": number})).await
    }

    async fn write_down(
        &self,
        set: &StatefulSet,
        number: i64,
        collisions: &mut i32,
    ) -> Result<Arc<ControllerRevision>, Fault> {
        let api = self.context.api::<ControllerRevision>(&set.namespace().unwrap_or_default());
        let cache = self.context.caches.revisions.cache();
        for _ in 0..TRIES {
            let revision = revisions::make(set, number, *collisions);
            match api.create(&PostParams::default(), &revision).await {
                Ok(made) => return Ok(cache.wrote(made)),
                Err(error) if is_conflict(&error) => {
                    let name = revision.name_any();
                    let found =
                        api.get_opt(&name).await.map_err(refused(format!("read the revision {name}")))?;
                    match found {
                        Some(found) if found.data == revision.data => return Ok(Arc::new(found)),
                        Some(_) => *collisions = collisions.saturating_add(1),
                        None => {}
                    }
                }
                Err(error) => return Err(refused(format!("create a revision of {}", key_of(set)))(error)),
            }
        }
        Err(Fault::new(format!("find a free name for a revision of {}", key_of(set))))
    }

    /// Drops revisions beyond the set's limit that no pod was made of.
    pub(super) async fn forget_old(
        &self,
        set: &StatefulSet,
        history: &History,
        pods: &[Arc<Pod>],
    ) -> Result<(), Fault> {
        let mut live: HashSet<String> = pods.iter().map(|pod| revision_of(pod).to_owned()).collect();
        live.extend([history.current.name_any(), history.update.name_any()]);
        for revision in revisions::surplus(set, &history.all, &live) {
            let key = key_of(&*revision);
            let api = self.context.api::<ControllerRevision>(&key.namespace);
            match api.delete(&key.name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(refused(format!("delete the revision {key}"))(error)),
            }
            self.context.caches.revisions.cache().removed(&key, &revision.uid().unwrap_or_default());
        }
        Ok(())
    }
}
