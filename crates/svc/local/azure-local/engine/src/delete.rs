//! Deletions: of one resource, and of a group with everything in it.
//!
//! A deletion is accepted by marking the document; the reconciler of this module does the rest, also after a restart. A group
//! goes bottom up: in each round what no other resource refers to and has no children left, then the next layer. A round that
//! removes nothing waits and tries again: what blocks it is named in the log and in the group's operation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm_server::{Answer, Failure, retry_conflicts};
use aro_base::{Class, Classify};
use aro_cloud_store::{CLOUD, partition_of};
use aro_control::{Outcome, Reconcile, ReconcileMetrics, Runner};
use aro_runtime::Scope;
use aro_store::{Page, Query};
use http::StatusCode;

use crate::cloud::{Cloud, GROUP, Stored};
use crate::deleted_vaults::VAULT;
use crate::graph::Held;
use crate::mutations::{Cause, Change};
use crate::provider::CloudRequest;
use crate::refusal::Refusal;
use crate::spec::{Effect, TypeSpec};
use crate::write::{cause_of, refusal_of};
use crate::{operations, references, types};

impl Cloud {
    /// DELETE of a resource with a document of its own.
    pub(crate) async fn delete(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        id: &ResourceId,
    ) -> Result<Answer, Failure> {
        retry_conflicts(|_| async move {
            let Some(mut stored) = self.find(spec.full, id).await? else {
                self.record(request, Change::Noop, id);
                return Ok(Answer::empty(StatusCode::NO_CONTENT));
            };
            request.caller.preconditions.check_write(Some(&stored.etag)).map_err(Refusal::precondition)?;
            if !stored.value.deleting {
                self.check_deletable(spec, id, &stored)?;
                stored.value.operation = spec.long_running.then(|| self.start_operation(request, id, false));
                let ends =
                    stored.value.operation.as_ref().is_none_or(|operation| operation.settles.is_some());
                if ends && (!spec.long_running || self.0.options.operation_time.is_zero()) {
                    self.remove(spec, id, &stored, cause_of(request)).await?;
                } else {
                    stored.value.deleting = true;
                    let op = self.collection(spec.full).replace(&stored)?;
                    self.commit(id, vec![op]).await?;
                    self.0.deletions.add_after(stored.value.id.clone(), self.0.options.operation_time);
                }
                self.record(request, Change::Deleted, id);
            }
            Ok(operations::deleted(request, spec, &stored.value, self.now()))
        })
        .await
    }

    /// Whether nothing refers to the resource or its children, and no role is in use.
    fn check_deletable(&self, spec: &TypeSpec, id: &ResourceId, stored: &Stored) -> Result<(), Failure> {
        let ids = owned_ids(spec, id, stored);
        let from = id.to_lower();
        for target in &ids {
            if let Some(by) = self.0.graph.referrers(target).into_iter().find(|by| *by != from) {
                return Err(refusal_of(Held::Referred { target: target.clone(), by }, id, spec).into());
            }
        }
        if spec.full == "Microsoft.Authorization/roleDefinitions" && self.0.grants.is_assigned(id.name()) {
            let message = format!(
                "There are existing role assignments referencing role (code: RoleDefinitionHasAssignments) '{}'.",
                id.name()
            );
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "RoleDefinitionHasAssignments", message).into());
        }
        Ok(())
    }

    /// Removes a resource with its children's documents.
    async fn remove(
        &self,
        spec: &'static TypeSpec,
        id: &ResourceId,
        stored: &Stored,
        cause: Cause<'_>,
    ) -> Result<(), Failure> {
        for (child_spec, child_id, child) in self.children(id).await? {
            self.remove_one(child_spec, &child_id, &child).await?;
            self.record_deleted(&child_id, &child, cause);
        }
        self.remove_one(spec, id, stored).await
    }

    async fn remove_one(
        &self,
        spec: &'static TypeSpec,
        id: &ResourceId,
        stored: &Stored,
    ) -> Result<(), Failure> {
        let from = id.to_lower();
        let ids = owned_ids(spec, id, stored);
        let none = BTreeSet::new();
        let mut ops = vec![self.collection(spec.full).delete(stored)];
        let kept = match spec.full == VAULT {
            true => Some(self.keep_deleted_vault(id, &stored.value)?),
            false => None,
        };
        let kept = kept.map(|(deleted, op)| {
            ops.push(op);
            deleted
        });
        self.0.graph.reserve(&from, &none, &ids).map_err(|held| refusal_of(held, id, spec))?;
        if spec.effect == Effect::Identity
            && let Ok(subscription) = self.subscription(id.subscription().unwrap_or_default())
        {
            self.0.directory.remove_identity(&subscription.tenant, &from).await?;
        }
        let committed = self.commit(id, ops).await;
        match &committed {
            Ok(()) => self.0.graph.commit(&from, &stored.value.references, &ids),
            Err(_) => self.0.graph.release(&from, &none, &ids),
        }
        committed?;
        if let Some(deleted) = &kept {
            self.index_deleted_vault(deleted.as_str(), &stored.value.id);
        }
        self.unindex(spec, id, &stored.value);
        // The content of a vault stays until it is purged.
        if spec.naming.unique_everywhere.is_some() && kept.is_none() {
            self.0.directory.remove_content(&stored.value.id, spec.full).await?;
        }
        if spec.effect == Effect::FederatedCredential {
            self.sync_credentials(id).await?;
        }
        Ok(())
    }

    /// A deletion that was accepted before is in the log already.
    fn record_deleted(&self, id: &ResourceId, stored: &Stored, cause: Cause<'_>) {
        if !stored.value.deleting {
            self.0.mutations.record(self.now(), Change::Deleted, id.as_str(), cause);
        }
    }

    /// The documents below a resource, deepest first.
    async fn children(
        &self,
        id: &ResourceId,
    ) -> Result<Vec<(&'static TypeSpec, ResourceId, Stored)>, Failure> {
        let mut found = self.below(id.subscription(), &format!("{id}/")).await?;
        found.reverse();
        Ok(found)
    }

    /// The documents whose ids begin so, in the order of their ids.
    pub(crate) async fn below(
        &self,
        subscription: Option<&str>,
        prefix: &str,
    ) -> Result<Vec<(&'static TypeSpec, ResourceId, Stored)>, Failure> {
        const PAGE: usize = 200;
        let query = Query::partition(CLOUD, partition_of(subscription)).under(prefix);
        let (mut page, mut found) = (Page::first(PAGE), Vec::new());
        loop {
            let paged = self.0.store.query(&query, page).await?;
            for document in paged.items {
                let Some(spec) = types::find(&document.resource_type) else { continue };
                let stored = self.collection(spec.full).decode(document)?;
                if let Ok(id) = ResourceId::parse(&stored.value.id) {
                    found.push((spec, id, stored));
                }
            }
            match paged.next {
                Some(next) => page = Page { size: PAGE, after: Some(next) },
                None => return Ok(found),
            }
        }
    }

    /// One round over a group that is being deleted; returns what is left and why.
    async fn sweep_group(&self, group: &ResourceId) -> Result<Option<String>, Failure> {
        // What other providers serve uses what is in the group, and goes first.
        if let Some(waits) = self.sweep_tracked(group).await? {
            return Ok(Some(waits));
        }
        let content = self.below(group.subscription(), &format!("{group}/")).await?;
        let mut blocked = None;
        let mut left = content.len();
        // Children first: ids of children sort behind their parent's.
        for (spec, id, stored) in content.iter().rev() {
            match self.remove_one(spec, id, stored).await {
                Ok(()) => {
                    left -= 1;
                    self.record_deleted(id, stored, Cause::DELETION);
                }
                Err(Failure::Coded(refusal)) => blocked = Some(refusal.message),
                Err(error) => return Err(error),
            }
        }
        match left {
            0 => Ok(None),
            left => Ok(Some(blocked.unwrap_or_else(|| format!("{left} resources are left")))),
        }
    }

    /// Starts what completes deletions.
    pub fn start(&self, metrics: &ReconcileMetrics, scope: &Scope) {
        let deletions = Arc::new(Deletions(self.clone()));
        Runner::new(deletions, &self.0.deletions).with_metrics(metrics).start(scope);
    }
}

/// The ids that go with a document: its own and those of the children inside of it.
fn owned_ids(spec: &TypeSpec, id: &ResourceId, stored: &Stored) -> BTreeSet<String> {
    let inline = references::inline_ids(id, &stored.value.body, spec).into_iter().map(|(id, ..)| id);
    inline.chain([id.to_lower()]).collect()
}

/// Completes the deletions that were accepted.
struct Deletions(Cloud);

/// Why a deletion is not done yet.
#[derive(Debug, thiserror::Error)]
enum DeletionError {
    #[error("deletion of {id} failed")]
    Failed { id: String, cause: String },
}

impl Classify for DeletionError {
    fn class(&self) -> Class {
        Class::Retry
    }
}

impl Reconcile for Deletions {
    type Key = String;
    type Error = DeletionError;
    const NAME: &'static str = "azure-local-deletions";

    async fn reconcile(&self, key: &String) -> Result<Outcome, DeletionError> {
        let failed = |error: Failure| {
            let cause = error.cause().map_or_else(|| format!("{error:?}"), ToString::to_string);
            DeletionError::Failed { id: key.clone(), cause }
        };
        let Ok(id) = ResourceId::parse(key) else { return Ok(Outcome::Settled) };
        self.0.complete(&id).await.map_err(failed)
    }
}

/// How long a blocked group waits before the next round.
const BLOCKED: Duration = Duration::from_secs(1);

impl Cloud {
    async fn complete(&self, id: &ResourceId) -> Result<Outcome, Failure> {
        if id.namespace().is_none() {
            let Some(group) = self.find(GROUP, id).await?.filter(|group| group.value.deleting) else {
                return Ok(Outcome::Settled);
            };
            // It is enqueued again when the fault lets go.
            if self.0.stuck.holds(group.value.operation.as_ref()) {
                return Ok(Outcome::Settled);
            }
            if let Some(blocked) = self.sweep_group(id).await? {
                tracing::info!(group = %id, reason = blocked, "deletion of a resource group waits");
                return Ok(Outcome::RequeueAfter(BLOCKED));
            }
            self.commit(id, vec![self.collection(GROUP).delete(&group)]).await?;
            self.0.mutations.record(self.now(), Change::Deleted, id.as_str(), Cause::DELETION);
            return Ok(Outcome::Settled);
        }
        if let Some(kind) = self.forwarded_type(&id.resource_type()) {
            return self.complete_tracked(kind, id).await;
        }
        let Some(spec) = types::find(&id.resource_type()) else { return Ok(Outcome::Settled) };
        let Some(stored) = self.find(spec.full, id).await?.filter(|stored| stored.value.deleting) else {
            return Ok(Outcome::Settled);
        };
        if self.0.stuck.holds(stored.value.operation.as_ref()) {
            return Ok(Outcome::Settled);
        }
        let settles = stored.value.operation.as_ref().and_then(|operation| operation.settles);
        match settles.map(|settles| settles.duration_since(self.now())) {
            Some(left) if left.is_positive() => Ok(Outcome::RequeueAfter(left.unsigned_abs())),
            _ => self.remove(spec, id, &stored, Cause::DELETION).await.map(|()| Outcome::Settled),
        }
    }
}
