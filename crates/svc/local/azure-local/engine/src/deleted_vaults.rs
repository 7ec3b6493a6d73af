//! Key vaults after their deletion: they can be recovered with everything in them until they are purged, by a client or by time.
//!
//! A deleted vault is a document of its own, in the batch that deletes the vault's. It keeps the vault's name taken. The content
//! of the vault stays until the purge.

use std::collections::BTreeSet;

use aro_arm::ResourceId;
use aro_arm_server::{Answer, Failure, paging, retry_conflicts};
use aro_base::SignedDuration;
use aro_cloud_store::{CLOUD, Resource, partition_of};
use aro_store::{Op, Query};
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::cloud::{Cloud, GROUP, Stored, property};
use crate::mutations::Change;
use crate::provider::CloudRequest;
use crate::refusal::Refusal;
use crate::spec::TypeSpec;
use crate::{operations, render};

/// The type of the documents.
pub(crate) const DELETED_VAULT: &str = "Microsoft.KeyVault/locations/deletedVaults";
pub(crate) const VAULT: &str = "Microsoft.KeyVault/vaults";

/// Whether a write of a vault asks to recover a deleted one.
pub(crate) fn recovers(spec: &TypeSpec, body: &Map<String, Value>) -> bool {
    let mode = body.get("properties").and_then(|properties| properties.get("createMode"));
    spec.full == VAULT
        && mode.and_then(Value::as_str).is_some_and(|mode| mode.eq_ignore_ascii_case("recover"))
}

/// Whether an id is one of a deleted vault.
pub(crate) fn is_deleted_vault(id: &str) -> bool {
    ResourceId::parse(id).is_ok_and(|id| id.is_type(DELETED_VAULT))
}

/// The id of a deleted vault.
fn deleted_id(subscription: &str, location: &str, name: &str) -> ResourceId {
    ResourceId::in_subscription(
        subscription,
        "Microsoft.KeyVault",
        &[("locations", location), ("deletedVaults", name)],
    )
}

impl Cloud {
    /// The operation that keeps a vault beyond its deletion, and the id under which it does.
    pub(crate) fn keep_deleted_vault(
        &self,
        id: &ResourceId,
        vault: &Resource,
    ) -> Result<(ResourceId, Op), Failure> {
        let location = vault.body.get("location").and_then(Value::as_str).unwrap_or_default();
        let deleted = deleted_id(id.subscription().unwrap_or_default(), location, id.name());
        let now = self.now();
        let days = vault.properties().and_then(|properties| properties.get("softDeleteRetentionInDays"));
        let days = days.and_then(Value::as_i64).unwrap_or(90).clamp(7, 90);
        let purge = now.checked_add(SignedDuration::from_hours(24 * days)).unwrap_or(now);
        let protected = vault.properties().and_then(|properties| properties.get("enablePurgeProtection"));
        let properties = json!({
            "vaultId": vault.id, "location": location, "tags": vault.body.get("tags").cloned().unwrap_or(json!({})),
            "deletionDate": now.to_string(), "scheduledPurgeDate": purge.to_string(),
            "purgeProtectionEnabled": protected.and_then(Value::as_bool).unwrap_or_default(),
        });
        let mut body = Map::new();
        body.insert("properties".to_owned(), properties);
        body.insert("vault".to_owned(), Value::Object(vault.body.clone()));
        let resource = Resource {
            id: deleted.to_string(),
            body,
            created: vault.created,
            changed: now,
            created_by: vault.created_by.clone(),
            references: BTreeSet::new(),
            secrets: Vec::new(),
            operation: None,
            deleting: false,
        };
        let op = self.write_op(DELETED_VAULT, &deleted, None, &resource)?;
        Ok((deleted, op))
    }

    /// Keeps the name of a deleted vault taken.
    pub(crate) fn index_deleted_vault(&self, id: &str, vault: &str) {
        let name = vault.rsplit('/').next().unwrap_or_default().to_lowercase();
        self.0.names.lock().insert((VAULT, name), id.to_owned());
    }

    /// The document of a deleted vault; one whose time is over is purged and not found.
    async fn find_deleted_vault(&self, id: &ResourceId) -> Result<Option<Stored>, Failure> {
        let Some(stored) = self.find(DELETED_VAULT, id).await? else { return Ok(None) };
        let purge = property(&stored.value, "scheduledPurgeDate").parse().unwrap_or(aro_base::Timestamp::MAX);
        if purge > self.now() {
            return Ok(Some(stored));
        }
        self.purge(id, &stored).await?;
        Ok(None)
    }

    /// Frees the name of a deleted vault whose time is over.
    pub(crate) async fn expire_deleted_vault(&self, name: &str) -> Result<(), Failure> {
        let known = self.0.names.lock().get(&(VAULT, name.to_lowercase())).cloned();
        let deleted = known.and_then(|known| ResourceId::parse(&known).ok());
        if let Some(deleted) = deleted.filter(|deleted| deleted.is_type(DELETED_VAULT)) {
            self.find_deleted_vault(&deleted).await?;
        }
        Ok(())
    }

    async fn purge(&self, id: &ResourceId, stored: &Stored) -> Result<(), Failure> {
        let vault = property(&stored.value, "vaultId").to_owned();
        // The content goes first: what is interrupted can be repeated.
        self.0.directory.remove_content(&vault, VAULT).await?;
        self.commit(id, vec![self.collection(DELETED_VAULT).delete(stored)]).await?;
        self.0.names.lock().remove(&(VAULT, id.name().to_lowercase()));
        Ok(())
    }

    /// The deleted vaults of a subscription.
    pub(crate) async fn deleted_vaults(&self, request: &CloudRequest) -> Result<Answer, Failure> {
        let subscription = request.matched.subscription();
        let query = Query::partition(CLOUD, partition_of(Some(subscription))).of_type(DELETED_VAULT);
        let mut shown = Vec::new();
        for stored in self.collection(DELETED_VAULT).all(&query).await?.items {
            let Ok(id) = ResourceId::parse(&stored.value.id) else { continue };
            if self.find_deleted_vault(&id).await?.is_some() {
                shown.push(shown_vault(&id, &stored.value));
            }
        }
        Ok(paging::whole(&shown))
    }

    async fn get_deleted_vault(&self, request: &CloudRequest) -> Result<(ResourceId, Stored), Failure> {
        let (subscription, name) = (request.matched.subscription(), request.matched.name("vault"));
        let location = crate::locations::normalise(request.matched.name("location"));
        let id = deleted_id(subscription, &location, name);
        let found = self.find_deleted_vault(&id).await?;
        let stored = found.ok_or_else(|| {
            let message = format!("The specified deleted vault '{name}' does not exist.");
            Refusal::new(StatusCode::NOT_FOUND, "DeletedVaultNotFound", message)
        })?;
        Ok((id, stored))
    }

    pub(crate) async fn deleted_vault(&self, request: &CloudRequest) -> Result<Answer, Failure> {
        let (id, stored) = self.get_deleted_vault(request).await?;
        Ok(Answer::json(StatusCode::OK, &shown_vault(&id, &stored.value)))
    }

    /// Removes a deleted vault with everything in it.
    pub(crate) async fn purge_vault(&self, request: &CloudRequest) -> Result<Answer, Failure> {
        let (id, stored) = self.get_deleted_vault(request).await?;
        let protected = stored.value.properties().and_then(|all| all.get("purgeProtectionEnabled"));
        if protected.and_then(Value::as_bool) == Some(true) {
            let message = format!("The vault '{}' has purge protection and cannot be purged.", id.name());
            return Err(Refusal::new(StatusCode::CONFLICT, "MethodNotAllowed", message).into());
        }
        self.purge(&id, &stored).await?;
        self.record(request, Change::Deleted, &id);
        Ok(Answer::empty(StatusCode::OK))
    }

    /// PUT of a vault with `createMode: recover`: the vault as it was, with everything in it.
    pub(crate) async fn recover_vault(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        id: &ResourceId,
    ) -> Result<Answer, Failure> {
        retry_conflicts(|_| async move {
            if self.find(VAULT, id).await?.is_some() {
                return Err(Refusal::name_taken("VaultAlreadyExists", id.name()).into());
            }
            let known = self.0.names.lock().get(&(VAULT, id.name().to_lowercase())).cloned();
            let deleted = known.and_then(|known| ResourceId::parse(&known).ok());
            let deleted = deleted.filter(|deleted| deleted.is_type(DELETED_VAULT));
            let found = match &deleted {
                Some(deleted) => self.find_deleted_vault(deleted).await?,
                None => None,
            };
            let stored =
                found.filter(|stored| property(&stored.value, "vaultId").eq_ignore_ascii_case(id.as_str()));
            let stored = stored.ok_or_else(|| {
                let message = format!("There is no deleted vault '{}' to recover here.", id.name());
                Refusal::new(StatusCode::NOT_FOUND, "DeletedVaultNotFound", message)
            })?;
            let group = self
                .live_group(id.subscription().unwrap_or_default(), id.resource_group().unwrap_or_default());
            let group = group.await?;
            let now = self.now();
            let body = stored.value.body.get("vault").and_then(Value::as_object).cloned().unwrap_or_default();
            let resource = Resource {
                id: property(&stored.value, "vaultId").to_owned(),
                body,
                created: stored.value.created,
                changed: now,
                created_by: stored.value.created_by.clone(),
                references: BTreeSet::new(),
                secrets: Vec::new(),
                operation: None,
                deleting: false,
            };
            let ops = vec![
                self.collection(GROUP).check(&group),
                self.collection(DELETED_VAULT).delete(&stored),
                self.write_op(VAULT, id, None, &resource)?,
            ];
            self.commit(id, ops).await?;
            self.index(VAULT, &resource);
            self.record(request, Change::Created, id);
            let shown = render::resource(spec, &resource, None, now);
            Ok(operations::accepted(request, spec, &resource, shown, true))
        })
        .await
    }
}

fn shown_vault(id: &ResourceId, deleted: &Resource) -> Value {
    json!({
        "id": id.as_str(), "name": id.name(), "type": "Microsoft.KeyVault/deletedVaults",
        "properties": deleted.body.get("properties"),
    })
}
