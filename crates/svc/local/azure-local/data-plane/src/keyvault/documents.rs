//! The documents of a vault: one for each object, one for each version of it.

use std::collections::BTreeMap;

use aro_base::Timestamp;
use aro_store::{Container, DocId, DocKey, Names, PartitionKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) const KEY_VAULT: Container = Container::new("KeyVault");
pub(super) const OBJECT: aro_store::Kind<ObjectRecord> = aro_store::Kind::new("KeyVault/objects");
pub(super) const VERSION: aro_store::Kind<VersionRecord> = aro_store::Kind::new("KeyVault/versions");

/// The kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Secret,
    Key,
    Certificate,
}

impl Kind {
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Key => "key",
            Self::Certificate => "certificate",
        }
    }

    /// The segment in ids.
    pub(super) fn collection(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::Key => "keys",
            Self::Certificate => "certificates",
        }
    }
}

/// Queries look for it by its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Live,
    Deleted,
}

impl State {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Deleted => "deleted",
        }
    }
}

/// An object.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectRecord {
    pub kind: Kind,
    pub name: String,
    pub state: State,
    /// The newest version.
    pub current: String,
    /// How many versions there are.
    pub versions: u32,
    /// It is the key or the secret of a certificate.
    pub managed: bool,
    pub deleted: Option<Timestamp>,
    /// When it is purged by itself.
    pub purge: Option<Timestamp>,
    /// The policy of a certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// The last certificate operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<CertificateOperation>,
}

/// A certificate operation that has completed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CertificateOperation {
    pub request_id: String,
    /// Base64.
    pub csr: String,
}

/// One version of an object. It holds secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionRecord {
    pub kind: Kind,
    pub name: String,
    pub version: String,
    pub created: i64,
    pub updated: i64,
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<i64>,
    pub tags: BTreeMap<String, String>,
    pub managed: bool,
    pub content: Content,
}

/// What a version holds.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub(super) enum Content {
    #[serde(rename_all = "camelCase")]
    Secret { value: String, content_type: Option<String> },
    #[serde(rename_all = "camelCase")]
    Key {
        /// PEM, PKCS #8.
        pem: String,
        operations: Vec<String>,
    },
    #[serde(rename_all = "camelCase")]
    Certificate {
        /// DER, base64.
        certificate: String,
    },
}

/// Where a document is.
pub(super) struct Place {
    pub key: DocKey,
    pub names: Names,
}

/// The partition of a vault.
pub(super) fn partition(vault: &str) -> PartitionKey {
    PartitionKey::new(vault)
}

fn place(vault: &str, id: &str, resource_id: String) -> Place {
    let id = DocId::new(id);
    let key = DocKey { container: KEY_VAULT, partition: partition(vault), id: id.clone() };
    Place { key, names: Names { id, resource_id } }
}

pub(super) fn object_place(vault: &str, kind: Kind, name: &str) -> Place {
    let name = name.to_ascii_lowercase();
    place(vault, &format!("{}-{name}", kind.noun()), format!("/{}/{name}", kind.collection()))
}

/// Versions sort by age.
pub(super) fn version_place(vault: &str, kind: Kind, name: &str, version: &str) -> Place {
    let (name, version) = (name.to_ascii_lowercase(), version.to_ascii_lowercase());
    let path = format!("{}{version}", version_prefix(kind, &name));
    place(vault, &format!("{}-{name}-{version}", kind.noun()), path)
}

pub(super) fn object_prefix(kind: Kind) -> String {
    format!("/{}/", kind.collection())
}

pub(super) fn version_prefix(kind: Kind, name: &str) -> String {
    format!("/{}-versions/{}/", kind.collection(), name.to_ascii_lowercase())
}
