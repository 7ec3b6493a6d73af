//! The directory's documents.

use aro_base::Timestamp;
use aro_store::{
    Collection, Container, DocId, DocKey, Kind, Names, PartitionKey, SharedStore, UnreadableDocuments,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::model::{Application, Tenant};

const DIRECTORY: Container = Container::new("Directory");
const TENANT: Kind<Tenant> = Kind::new("Directory/tenants");
const APPLICATION: Kind<Application> = Kind::new("Directory/applications");
const SIGNING_KEY: Kind<SigningKeyRecord> = Kind::new("Directory/signingKeys");
const ROOT: Kind<RootRecord> = Kind::new("Directory/roots");

/// A key that signs or signed tokens.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SigningKeyRecord {
    pub key_id: String,
    /// PEM.
    pub key: String,
    pub created: Timestamp,
    /// When a newer one took over.
    pub retired: Option<Timestamp>,
}

/// What the directory made for itself once.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RootRecord {
    pub authority: String,
    pub authority_key: String,
    /// Signs capability URLs; base64.
    pub capability_key: String,
}

/// The collections of the container.
pub(crate) struct Documents {
    pub tenants: Collection<Tenant>,
    pub applications: Collection<Application>,
    pub keys: Collection<SigningKeyRecord>,
    pub roots: Collection<RootRecord>,
}

impl Documents {
    pub(crate) fn new(store: &SharedStore, unreadable: &UnreadableDocuments) -> Self {
        Self {
            tenants: Collection::new(store.clone(), DIRECTORY, TENANT, unreadable.clone()),
            applications: Collection::new(store.clone(), DIRECTORY, APPLICATION, unreadable.clone()),
            keys: Collection::new(store.clone(), DIRECTORY, SIGNING_KEY, unreadable.clone()),
            roots: Collection::new(store.clone(), DIRECTORY, ROOT, unreadable.clone()),
        }
    }
}

/// Where a document is.
pub(crate) struct Place {
    pub key: DocKey,
    pub names: Names,
}

fn place(partition: &str, kind: &str, name: &str) -> Place {
    let id = DocId::new(&format!("{kind}-{name}"));
    let key = DocKey { container: DIRECTORY, partition: PartitionKey::new(partition), id: id.clone() };
    Place { key, names: Names { id, resource_id: format!("/{kind}s/{name}") } }
}

pub(crate) fn tenant_place(tenant: Uuid) -> Place {
    place(&tenant.to_string(), "tenant", &tenant.to_string())
}

pub(crate) fn application_place(tenant: Uuid, app_id: Uuid) -> Place {
    place(&tenant.to_string(), "application", &app_id.to_string())
}

/// What belongs to no tenant.
const SHARED: &str = "keys";

pub(crate) fn key_place(key_id: &str) -> Place {
    place(SHARED, "key", key_id)
}

pub(crate) fn root_place() -> Place {
    place(SHARED, "root", "root")
}
