//! Records: one `AppliedManifestWork` for each work, in the cluster, for as long as anything of the work is there.

mod lean;

use std::sync::Arc;

use aro_crds::work::v1::{
    AppliedManifestResourceMeta, AppliedManifestWork, AppliedManifestWorkSpec, AppliedManifestWorkStatus,
};
use aro_kube::informer::{Informer, ObjectKey};
use aro_runtime::Scope;
use either::Either;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::failure::code;
use crate::intent::{self, INTENDED};
use crate::manifest::same_object;
use crate::work::Work;

pub(crate) use lean::Record;

/// Keeps a record until everything of it is gone.
pub(crate) const FINALIZER: &str = "cluster.open-cluster-management.io/applied-manifest-work-cleanup";

/// The records of one agent.
#[derive(Clone)]
pub(crate) struct Records {
    api: Api<Record>,
    informer: Informer<Record>,
    hub_hash: String,
    agent_id: String,
}

impl Records {
    /// Watches records; `changed` is called with the names of works whose records change.
    pub(crate) fn start(
        client: Client,
        hub_hash: &str,
        agent_id: &str,
        scope: &Scope,
        changed: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let records = Self {
            api: Api::all(client),
            informer: Informer::default(),
            hub_hash: hub_hash.to_owned(),
            agent_id: agent_id.to_owned(),
        };
        let inside = records.clone();
        records.informer.subscribe(move |change| {
            // What we write ourselves is no news: it neither goes nor comes by others.
            let leaves = change.now().is_none_or(|record| record.metadata.deletion_timestamp.is_some());
            if leaves && let Some(work) = inside.work_of(change.object()) {
                changed(&work);
            }
        });
        records.informer.run(records.api.clone(), watcher::Config::default(), scope);
        records
    }

    pub(crate) async fn synced(&self) {
        self.informer.synced().await;
    }

    fn name(&self, work: &str) -> String {
        format!("{}-{work}", self.hub_hash)
    }

    /// The work a record belongs to, if that is one of ours.
    fn work_of(&self, record: &AppliedManifestWork) -> Option<String> {
        let ours = record.spec.agent_id == self.agent_id && record.spec.hub_hash == self.hub_hash;
        ours.then(|| record.spec.manifest_work_name.clone())
            .filter(|work| record.name_any() == self.name(work))
    }

    /// All of ours, with the names of their works.
    pub(crate) fn all(&self) -> Vec<(String, Arc<Record>)> {
        let records = self.informer.cache().all();
        records.into_iter().filter_map(|record| Some((self.work_of(&record)?, record))).collect()
    }

    pub(crate) fn get(&self, work: &str) -> Option<Arc<Record>> {
        let record = self.informer.cache().get(&ObjectKey::new("", self.name(work)));
        record.filter(|record| self.is_of(record, work))
    }

    /// Whether a record of the right name is of this hub and this work. Hubs may have names with dashes in them: `a-b` and
    /// `a` share the name of a record for works `c` and `b-c`, and what belongs to the other must not be touched.
    fn is_of(&self, record: &AppliedManifestWork, work: &str) -> bool {
        record.spec.hub_hash == self.hub_hash && record.spec.manifest_work_name == work
    }

    /// The record of a work, made if there is none. It names what is about to be brought.
    pub(crate) async fn ensure(
        &self,
        work: &Work,
        wanted: &[AppliedManifestResourceMeta],
    ) -> Result<Arc<Record>, kube::Error> {
        if let Some(record) = self.get(&work.name) {
            if record.metadata.deletion_timestamp.is_some() || intent::covers(&record, wanted) {
                return Ok(record);
            }
            let mut named = wanted.to_vec();
            named.extend(intent::read(&record).into_iter().filter(|old| {
                // What a process before may have brought is not forgotten over what is new.
                wanted.iter().all(|new| !same_object(new, old))
            }));
            return self.intend(&record, &named).await;
        }
        let name = self.name(&work.name);
        let spec = AppliedManifestWorkSpec {
            hub_hash: self.hub_hash.clone(),
            agent_id: self.agent_id.clone(),
            manifest_work_name: work.name.clone(),
        };
        let mut record = AppliedManifestWork::new(&name, spec);
        record.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        if !work.labels.is_empty() {
            record.metadata.labels = Some(work.labels.clone());
        }
        if !wanted.is_empty() {
            record.metadata.annotations = Some([(INTENDED.to_owned(), intent::write(wanted))].into());
        }
        let made = match self.api.create(&PostParams::default(), &Record(record)).await {
            Err(error) if code(&error) == 409 => {
                let there = self.api.get(&name).await?;
                if !self.is_of(&there, &work.name) {
                    return Err(error);
                }
                there
            }
            made => made?,
        };
        Ok(self.informer.cache().wrote(made))
    }

    /// Notes what may be brought from now on.
    pub(crate) async fn intend(
        &self,
        record: &AppliedManifestWork,
        entries: &[AppliedManifestResourceMeta],
    ) -> Result<Arc<Record>, kube::Error> {
        let patch = json!({"metadata": {
            "uid": record.uid(), "annotations": {INTENDED: intent::write(entries)},
        }});
        let patched =
            self.api.patch(&record.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(self.informer.cache().wrote(patched))
    }

    /// Notes what is applied. The work is wanted, so that it is no longer to be evicted.
    pub(crate) async fn note(
        &self,
        record: &AppliedManifestWork,
        applied: Vec<AppliedManifestResourceMeta>,
    ) -> Result<(), kube::Error> {
        let status = AppliedManifestWorkStatus { applied_resources: applied, eviction_start_time: None };
        if record
            .status
            .as_ref()
            .map_or_else(|| status.applied_resources.is_empty(), |known| *known == status)
        {
            return Ok(());
        }
        // What is not set has to be said, or it stays.
        let patch = json!({
            "metadata": {"uid": record.uid()},
            "status": {"appliedResources": status.applied_resources, "evictionStartTime": null},
        });
        self.patch_status(record, &patch).await
    }

    /// Records since when the work is not requested.
    pub(crate) async fn note_eviction(
        &self,
        record: &AppliedManifestWork,
        since: aro_base::Timestamp,
    ) -> Result<(), kube::Error> {
        let since = aro_base::Timestamp::from_second(since.as_second()).unwrap_or(since);
        let patch =
            json!({"metadata": {"uid": record.uid()}, "status": {"evictionStartTime": since.to_string()}});
        self.patch_status(record, &patch).await
    }

    async fn patch_status(
        &self,
        record: &AppliedManifestWork,
        patch: &serde_json::Value,
    ) -> Result<(), kube::Error> {
        let patched =
            self.api.patch_status(&record.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.informer.cache().wrote(patched);
        Ok(())
    }

    /// Says that the record is to go, which lasts over a restart.
    pub(crate) async fn begin_removal(&self, record: &AppliedManifestWork) -> Result<(), kube::Error> {
        if record.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let preconditions = Preconditions { uid: record.uid(), resource_version: None };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match self.api.delete(&record.name_any(), &parameters).await {
            Ok(Either::Left(left)) => {
                self.informer.cache().wrote(left);
            }
            Ok(Either::Right(_)) => self.forget(record),
            Err(error) if code(&error) == 404 => self.forget(record),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Lets the record go: nothing of it is left.
    pub(crate) async fn finish_removal(&self, record: &AppliedManifestWork) -> Result<(), kube::Error> {
        let Some(now) = self.informer.cache().get(&ObjectKey::new("", record.name_any())) else {
            return Ok(());
        };
        let kept: Vec<&String> =
            now.metadata.finalizers.iter().flatten().filter(|finalizer| *finalizer != FINALIZER).collect();
        let patch = json!({"metadata": {
            "uid": now.uid(), "resourceVersion": now.resource_version(), "finalizers": kept,
        }});
        match self.api.patch(&now.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(left)
                if left.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty()) =>
            {
                self.informer.cache().wrote(left);
            }
            Ok(_) => self.forget(record),
            Err(error) if code(&error) == 404 => self.forget(record),
            Err(error) if code(&error) == 409 => {
                // Another writer changed it; the next attempt starts from that state.
                if let Some(newer) = self.api.get_opt(&now.name_any()).await? {
                    self.informer.cache().wrote(newer);
                } else {
                    self.forget(record);
                }
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn forget(&self, record: &AppliedManifestWork) {
        let key = ObjectKey::new("", record.name_any());
        self.informer.cache().removed(&key, &record.uid().unwrap_or_default());
    }
}
