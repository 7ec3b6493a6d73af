//! Records of the resources that other providers serve behind ARM.
//!
//! ARM notes every resource that a provider accepted, so that generic lists show it and the deletion of its group reaches it. The
//! record holds what lists show; the resource itself is the provider's. A deletion that takes time is a mark on the record: it
//! goes when the provider does not know the resource any more.

use std::collections::BTreeSet;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm_server::{Failure, retry_conflicts};
use aro_cloud_store::{CLOUD, Resource, partition_of};
use aro_control::Outcome;
use aro_store::{Page, Query};
use serde_json::{Map, Value};

use crate::cloud::{Cloud, ForwardedType, Stored};

/// How long a deletion waits before the provider is asked again.
const POLL: Duration = Duration::from_secs(2);

/// What generic lists show of a resource.
const SHOWN: [&str; 8] = ["location", "tags", "kind", "sku", "identity", "zones", "plan", "managedBy"];

impl Cloud {
    /// The type of a provider that is a service of its own, by its full name in any case.
    pub(crate) fn forwarded_type(&self, full: &str) -> Option<&'static ForwardedType> {
        self.0.options.forwarded.iter().find(|kind| kind.full.eq_ignore_ascii_case(full))
    }

    /// A provider accepted a write of a resource. What has no location is no tracked resource.
    pub async fn track(&self, id: &ResourceId, shown: &Value, caller: Option<&str>) -> Result<(), Failure> {
        let Some(kind) = self.forwarded_type(&id.resource_type()) else { return Ok(()) };
        if shown.get("location").and_then(Value::as_str).is_none() {
            return Ok(());
        }
        let body: Map<String, Value> = SHOWN
            .iter()
            .filter_map(|name| {
                Some(((*name).to_owned(), shown.get(*name).filter(|value| !value.is_null())?.clone()))
            })
            .collect();
        let body = &body;
        retry_conflicts(|_| async move {
            let old = self.find(kind.full, id).await?;
            if old.as_ref().is_some_and(|old| old.value.body == *body && !old.value.deleting) {
                return Ok(());
            }
            let now = self.now();
            let resource = match &old {
                Some(old) => {
                    Resource { body: body.clone(), changed: now, deleting: false, ..old.value.clone() }
                }
                None => Resource {
                    id: id.to_string(),
                    body: body.clone(),
                    created: now,
                    changed: now,
                    created_by: caller.map(str::to_owned),
                    references: BTreeSet::new(),
                    secrets: Vec::new(),
                    operation: None,
                    deleting: false,
                },
            };
            let op = self.write_op(kind.full, id, old.as_ref(), &resource)?;
            self.commit(id, vec![op]).await
        })
        .await
    }

    /// A provider accepted the deletion of a resource and completes it later.
    pub async fn track_deletion(&self, id: &ResourceId) -> Result<(), Failure> {
        let Some(kind) = self.forwarded_type(&id.resource_type()) else { return Ok(()) };
        retry_conflicts(|_| async move {
            let Some(mut stored) = self.find(kind.full, id).await? else { return Ok(()) };
            if !stored.value.deleting {
                stored.value.deleting = true;
                self.commit(id, vec![self.collection(kind.full).replace(&stored)?]).await?;
            }
            self.0.deletions.add_after(stored.value.id.clone(), POLL);
            Ok(())
        })
        .await
    }

    /// A resource of a provider is gone, with everything below it.
    pub async fn untrack(&self, id: &ResourceId) -> Result<(), Failure> {
        let Some(kind) = self.forwarded_type(&id.resource_type()) else { return Ok(()) };
        retry_conflicts(|_| async move {
            for (kind, id, stored) in
                self.tracked_below(id.subscription(), &format!("{id}/")).await?.iter().rev()
            {
                self.commit(id, vec![self.collection(kind.full).delete(stored)]).await?;
            }
            if let Some(stored) = self.find(kind.full, id).await? {
                self.commit(id, vec![self.collection(kind.full).delete(&stored)]).await?;
            }
            Ok(())
        })
        .await
    }

    /// The records whose ids begin so.
    async fn tracked_below(
        &self,
        subscription: Option<&str>,
        prefix: &str,
    ) -> Result<Vec<(&'static ForwardedType, ResourceId, Stored)>, Failure> {
        const PAGE: usize = 200;
        let mut found = Vec::new();
        for kind in self.0.options.forwarded {
            let query = Query::partition(CLOUD, partition_of(subscription)).of_type(kind.full).under(prefix);
            let mut page = Page::first(PAGE);
            loop {
                let listed = self.collection(kind.full).page(&query, page).await?;
                for stored in listed.items {
                    if let Ok(id) = ResourceId::parse(&stored.value.id) {
                        found.push((kind, id, stored));
                    }
                }
                match listed.next {
                    Some(next) => page = Page { size: PAGE, after: Some(next) },
                    None => break,
                }
            }
        }
        Ok(found)
    }

    /// One step of the deletion of a provider's resource: whether it is gone.
    async fn delete_tracked(
        &self,
        kind: &ForwardedType,
        id: &ResourceId,
        stored: &Stored,
    ) -> Result<bool, Failure> {
        let version = kind.versions.last().copied().unwrap_or_default();
        let gone = match stored.value.deleting {
            true => self.0.directory.is_forwarded_gone(&stored.value.id, version).await?,
            false => self.0.directory.delete_forwarded(&stored.value.id, version).await?,
        };
        match gone {
            true => self.untrack(id).await?,
            false => self.track_deletion(id).await?,
        }
        Ok(gone)
    }

    /// One round over the providers' resources in a group that is being deleted; returns what it waits for.
    pub(crate) async fn sweep_tracked(&self, group: &ResourceId) -> Result<Option<String>, Failure> {
        let mut waits = None;
        for (kind, id, stored) in self.tracked_below(group.subscription(), &format!("{group}/")).await? {
            // A child goes with its parent.
            if id.parent().is_some_and(|parent| self.forwarded_type(&parent.resource_type()).is_some()) {
                continue;
            }
            if !self.delete_tracked(kind, &id, &stored).await? {
                waits = Some(format!("{id} is being deleted by its resource provider"));
            }
        }
        Ok(waits)
    }

    /// One attempt to complete the deletion of a provider's resource.
    pub(crate) async fn complete_tracked(
        &self,
        kind: &ForwardedType,
        id: &ResourceId,
    ) -> Result<Outcome, Failure> {
        let Some(stored) = self.find(kind.full, id).await?.filter(|stored| stored.value.deleting) else {
            return Ok(Outcome::Settled);
        };
        match self.delete_tracked(kind, id, &stored).await? {
            true => Ok(Outcome::Settled),
            false => Ok(Outcome::RequeueAfter(POLL)),
        }
    }
}
