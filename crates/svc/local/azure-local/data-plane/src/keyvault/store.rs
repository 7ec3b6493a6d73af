//! Access to the documents of vaults.

use aro_base::Timestamp;
use aro_store::{
    Batch, Collection, CollectionError, Filter, Listed, Op, Page, PageToken, Query, SharedStore, StoreError,
    Typed, UnreadableDocuments,
};

use super::documents::{
    KEY_VAULT, Kind, OBJECT, ObjectRecord, State, VERSION, VersionRecord, object_place, object_prefix,
    partition, version_place, version_prefix,
};
use super::error::VaultError;

/// The documents of all vaults.
#[derive(Clone)]
pub struct KeyVaultStore {
    pub(super) objects: Collection<ObjectRecord>,
    pub(super) versions: Collection<VersionRecord>,
}

impl KeyVaultStore {
    /// The vaults in a store.
    pub fn new(store: &SharedStore, unreadable: &UnreadableDocuments) -> Self {
        Self {
            objects: Collection::new(store.clone(), KEY_VAULT, OBJECT, unreadable.clone()),
            versions: Collection::new(store.clone(), KEY_VAULT, VERSION, unreadable.clone()),
        }
    }

    /// Removes everything of a vault, when its resource is purged.
    pub async fn remove_vault(&self, resource_id: &str) -> Result<(), CollectionError> {
        self.remove_all(resource_id, Query::partition(KEY_VAULT, partition(resource_id))).await
    }

    async fn remove_all(&self, vault: &str, query: Query) -> Result<(), CollectionError> {
        let store = self.objects.store();
        loop {
            let found = store.query(&query, Page::first(aro_store::MAX_BATCH)).await?;
            if found.items.is_empty() {
                return Ok(());
            }
            let ops = found.items.into_iter().map(|document| Op::Delete(document.key.id, document.etag));
            let batch = ops.fold(Batch::new(KEY_VAULT, partition(vault)), Batch::with);
            match store.write(batch).await {
                // A document that changed is found again.
                Ok(_) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An object in whatever state. One whose time is over is removed and not found.
    pub(super) async fn find_object(
        &self,
        vault: &str,
        kind: Kind,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Typed<ObjectRecord>>, VaultError> {
        if !is_name(name) {
            return Ok(None);
        }
        let found = self.objects.find(&object_place(vault, kind, name).key).await?;
        match found {
            Some(found) if found.value.purge.is_some_and(|purge| purge <= now) => {
                self.purge_object(vault, &found).await?;
                Ok(None)
            }
            found => Ok(found),
        }
    }

    /// An object that is not deleted.
    pub(super) async fn get_object(
        &self,
        vault: &str,
        kind: Kind,
        name: &str,
        now: Timestamp,
    ) -> Result<Typed<ObjectRecord>, VaultError> {
        let found = self.find_object(vault, kind, name, now).await?;
        found
            .filter(|found| found.value.state == State::Live)
            .ok_or_else(|| VaultError::not_found(kind, name))
    }

    /// A deleted object.
    pub(super) async fn get_deleted(
        &self,
        vault: &str,
        kind: Kind,
        name: &str,
        now: Timestamp,
    ) -> Result<Typed<ObjectRecord>, VaultError> {
        let found = self.find_object(vault, kind, name, now).await?;
        found
            .filter(|found| found.value.state == State::Deleted)
            .ok_or_else(|| VaultError::not_found(kind, name))
    }

    /// A version of an object; without a name of one, the newest.
    pub(super) async fn get_version(
        &self,
        vault: &str,
        object: &ObjectRecord,
        version: &str,
    ) -> Result<Typed<VersionRecord>, VaultError> {
        let missing = || VaultError::not_found(object.kind, &object.name);
        let version = if version.is_empty() { &object.current } else { version };
        if !is_name(version) {
            return Err(missing());
        }
        let place = version_place(vault, object.kind, &object.name, version);
        self.versions.find(&place.key).await?.ok_or_else(missing)
    }

    /// One page of objects in a state.
    pub(super) async fn list_objects(
        &self,
        vault: &str,
        kind: Kind,
        state: State,
        size: usize,
        after: Option<PageToken>,
    ) -> Result<Listed<ObjectRecord>, VaultError> {
        let query = self
            .objects
            .in_partition(&partition(vault))
            .under(object_prefix(kind))
            .filter(Filter::Eq("state", state.text().to_owned()));
        paged(self.objects.page(&query, Page { size, after }).await)
    }

    /// One page of versions.
    pub(super) async fn list_versions(
        &self,
        vault: &str,
        kind: Kind,
        name: &str,
        size: usize,
        after: Option<PageToken>,
    ) -> Result<Listed<VersionRecord>, VaultError> {
        let query = self.versions.in_partition(&partition(vault)).under(version_prefix(kind, name));
        paged(self.versions.page(&query, Page { size, after }).await)
    }

    /// Writes one batch.
    pub(super) async fn write(&self, vault: &str, ops: Vec<Op>) -> Result<(), VaultError> {
        let batch = ops.into_iter().fold(Batch::new(KEY_VAULT, partition(vault)), Batch::with);
        match self.objects.store().write(batch).await {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict { .. }) => Err(VaultError::contended()),
            Err(StoreError::Batch(_)) => Err(VaultError::bad("The object is too large.")),
            Err(error) => Err(CollectionError::from(error).into()),
        }
    }

    /// Removes an object with its versions. The object goes last: what is interrupted can be repeated.
    pub(super) async fn purge_object(
        &self,
        vault: &str,
        object: &Typed<ObjectRecord>,
    ) -> Result<(), VaultError> {
        let prefix = version_prefix(object.value.kind, &object.value.name);
        self.remove_all(vault, self.versions.in_partition(&partition(vault)).under(prefix)).await?;
        match self.write(vault, vec![self.objects.delete(object)]).await {
            Err(error) if error == VaultError::contended() => Ok(()),
            written => written,
        }
    }
}

fn paged<T>(listed: Result<Listed<T>, CollectionError>) -> Result<Listed<T>, VaultError> {
    listed.map_err(|error| match error {
        CollectionError::Store(StoreError::BadToken) => {
            VaultError::bad("The continuation token is not valid.")
        }
        error => error.into(),
    })
}

/// The names of objects and versions.
pub(super) fn is_name(name: &str) -> bool {
    (1..=127).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
}
