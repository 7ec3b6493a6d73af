//! The directory: a handle on the documents and on the read model that answers every request.

mod read_model;
mod rotate;
mod setup;
mod write;

use std::sync::Arc;

use aro_base::{SharedClock, Timestamp};
use aro_pki::Authority;
use aro_pki::jws::Jwk;
use aro_store::{SharedStore, UnreadableDocuments};
use aws_lc_rs::hmac;
use parking_lot::RwLock;
use uuid::Uuid;

pub(crate) use read_model::ReadModel;
pub(crate) use write::certificate_record;

use crate::documents::Documents;
use crate::identity::{IssuedCredentials, PreparedKeys};
use crate::keys::KeyRing;
use crate::limiter::FailureLimiter;
use crate::model::{Application, Tenant};
use crate::replay::UsedAssertions;
use crate::{DirectoryError, DirectorySettings, Verifier, keys};

/// The directory. Cloning gives another handle to the same one.
#[derive(Clone)]
pub struct Directory(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub settings: DirectorySettings,
    pub clock: SharedClock,
    pub documents: Documents,
    pub model: RwLock<ReadModel>,
    pub keys: RwLock<Arc<KeyRing>>,
    pub authority: Authority,
    pub capability_key: hmac::Key,
    /// One writer at a time: the read model shows changes in the order of the store.
    pub writes: tokio::sync::Mutex<()>,
    pub failures: FailureLimiter,
    pub used: UsedAssertions,
    pub issued: IssuedCredentials,
    pub prepared: PreparedKeys,
}

/// The ids of a managed identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The object id of its service principal.
    pub principal_id: Uuid,
    /// The client id.
    pub client_id: Uuid,
}

impl Directory {
    /// Loads the directory; makes its keys if there are none.
    pub async fn open(
        store: SharedStore,
        settings: DirectorySettings,
        clock: SharedClock,
        unreadable: &UnreadableDocuments,
    ) -> Result<Self, DirectoryError> {
        let documents = Documents::new(&store, unreadable);
        let now = clock.now();
        let root = setup::load_or_make_root(&documents, now).await?;
        let ring = setup::load_or_make_keys(&documents, now).await?;
        let mut model = ReadModel::default();
        for tenant in documents.tenants.all(&documents.tenants.everywhere()).await?.complete()? {
            model.put_tenant(tenant.value);
        }
        for application in
            documents.applications.all(&documents.applications.everywhere()).await?.complete()?
        {
            model.put_application(application.value);
        }
        Ok(Self(Arc::new(Inner {
            failures: FailureLimiter::new(settings.failures_per_minute),
            settings,
            clock,
            documents,
            model: RwLock::new(model),
            keys: RwLock::new(Arc::new(ring)),
            authority: root.authority,
            capability_key: root.capability_key,
            writes: tokio::sync::Mutex::new(()),
            used: UsedAssertions::default(),
            issued: IssuedCredentials::default(),
            prepared: PreparedKeys::default(),
        })))
    }

    /// Its settings.
    pub fn settings(&self) -> &DirectorySettings {
        &self.0.settings
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// A verifier of its tokens.
    pub fn verifier(&self) -> Verifier {
        Verifier::new(self.clone())
    }

    /// The tenant of this id or domain name.
    pub fn find_tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        self.0.model.read().tenant(name)
    }

    /// All tenants, in the order of their ids.
    pub fn tenants(&self) -> Vec<Arc<Tenant>> {
        self.0.model.read().tenants()
    }

    /// The application of this client id.
    pub fn find_application(&self, app_id: Uuid) -> Option<Arc<Application>> {
        self.0.model.read().application(app_id)
    }

    /// The managed identity of this resource.
    pub fn find_identity(&self, tenant: Uuid, resource_id: &str) -> Option<Arc<Application>> {
        self.0.model.read().identity(tenant, resource_id)
    }

    /// The application whose service principal in a tenant has this object id.
    pub fn find_principal(&self, tenant: Uuid, object_id: Uuid) -> Option<Arc<Application>> {
        self.0.model.read().principal(tenant, object_id)
    }

    /// The public keys that tokens are verified with.
    pub fn public_keys(&self) -> Vec<Jwk> {
        self.0.keys.read().published.clone()
    }

    /// The certificate (PEM) of the authority that issues the credentials of managed identities.
    pub fn authority_certificate(&self) -> &str {
        self.0.authority.certificate()
    }

    /// Makes a new signing key and signs with it from now on. Verifiers that have fetched the keys before meet an unknown
    /// one and fetch again.
    pub async fn rotate_now(&self) -> Result<(), DirectoryError> {
        let record = keys::generate_record(self.now()).await?;
        self.replace_signing_key(record).await
    }

    /// What is due by time: a new signing key, and the end of old ones. Call it every hour.
    pub async fn maintain(&self) -> Result<(), DirectoryError> {
        let ring = self.0.keys.read().clone();
        if ring.is_due(self.now(), self.0.settings.key_rotation) {
            self.rotate_now().await?;
        }
        self.remove_expired_keys().await
    }
}
