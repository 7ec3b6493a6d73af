//! What the directory knows: tenants, and applications with their service principals and credentials. A managed identity is an
//! application whose credentials come from the managed identity data plane.

use aro_base::{Secret, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Names of object ids that are derived.
const NAMESPACE: Uuid = Uuid::from_u128(0x8f3c_2b61_5f0e_4d0b_9a35_6f1d_24c7_70aa);

/// An id that is the same for the same parts, every time.
pub(crate) fn derived_id(parts: &[&str]) -> Uuid {
    Uuid::new_v5(&NAMESPACE, parts.join("\n").to_ascii_lowercase().as_bytes())
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tenant {
    /// Its id.
    pub id: Uuid,
    /// Its name for people.
    pub display_name: String,
    /// Domain names that may stand for the id in URLs.
    pub domains: Vec<String>,
}

/// Where an application comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Origin {
    /// It was registered.
    Registered,
    /// It is the managed identity of this resource.
    #[serde(rename_all = "camelCase")]
    ManagedIdentity {
        /// The ARM id of the identity, or of the resource whose own identity it is.
        resource_id: String,
    },
}

/// A token of another issuer that stands for the application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FederatedCredential {
    /// Its name on the application.
    pub name: String,
    /// The issuer, an https URL.
    pub issuer: String,
    /// The subject.
    pub subject: String,
    /// Audiences, one of which the token must have.
    pub audiences: Vec<String>,
}

/// The digest of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PasswordRecord {
    pub key_id: Uuid,
    pub display_name: Option<String>,
    /// The first characters, as Graph shows them.
    pub hint: String,
    /// Base64.
    pub salt: String,
    /// Base64.
    pub digest: String,
    pub start: Timestamp,
    pub end: Timestamp,
}

/// A certificate whose key proves the application's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CertificateRecord {
    pub key_id: Uuid,
    /// Hexadecimal, lower-case.
    pub sha1: String,
    /// Hexadecimal, lower-case.
    pub sha256: String,
    /// DER, base64.
    pub certificate: String,
    pub not_after: Timestamp,
}

/// An application and its service principal in its home tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    /// The application (client) id.
    pub app_id: Uuid,
    /// The object id of the application.
    pub object_id: Uuid,
    /// The object id of the service principal in the home tenant.
    pub principal_id: Uuid,
    /// Whether that service principal exists.
    pub has_principal: bool,
    /// The home tenant.
    pub tenant: Uuid,
    /// Its name for people.
    pub display_name: String,
    /// Names by which tokens for it may be requested.
    pub identifier_uris: Vec<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// It has a service principal in every tenant.
    pub multi_tenant: bool,
    /// It may change applications through Graph.
    pub directory_writer: bool,
    /// The version of tokens for it: 1 or 2.
    pub token_version: u8,
    /// Tokens of other issuers that stand for it.
    pub federated: Vec<FederatedCredential>,
    /// When it was registered.
    pub created: Timestamp,
    pub(crate) passwords: Vec<PasswordRecord>,
    pub(crate) certificates: Vec<CertificateRecord>,
}

impl Application {
    /// The object id of its service principal in a tenant; `None` if it has none there.
    pub fn principal_in(&self, tenant: Uuid) -> Option<Uuid> {
        if tenant == self.tenant {
            return self.has_principal.then_some(self.principal_id);
        }
        self.multi_tenant.then(|| derived_id(&["principal", &tenant.to_string(), &self.app_id.to_string()]))
    }

    /// The resource whose identity it is.
    pub fn resource_id(&self) -> Option<&str> {
        match &self.origin {
            Origin::Registered => None,
            Origin::ManagedIdentity { resource_id } => Some(resource_id),
        }
    }
}

/// An application that has to exist.
#[derive(Debug, Clone)]
pub struct ApplicationSpec {
    /// The home tenant.
    pub tenant: Uuid,
    /// The client id; derived from the name if not given.
    pub app_id: Option<Uuid>,
    /// Its name.
    pub display_name: String,
    /// Names by which tokens for it may be requested.
    pub identifier_uris: Vec<String>,
    /// Secrets that must work.
    pub secrets: Vec<Secret<String>>,
    /// Certificates (DER) that must work.
    pub certificates: Vec<Vec<u8>>,
    /// All of its federated credentials.
    pub federated: Vec<FederatedCredential>,
    /// See [`Application::multi_tenant`].
    pub multi_tenant: bool,
    /// See [`Application::directory_writer`].
    pub directory_writer: bool,
    /// See [`Application::token_version`].
    pub token_version: u8,
}

impl ApplicationSpec {
    /// An application without credentials.
    pub fn new(tenant: Uuid, display_name: impl Into<String>) -> Self {
        Self {
            tenant,
            app_id: None,
            display_name: display_name.into(),
            identifier_uris: Vec::new(),
            secrets: Vec::new(),
            certificates: Vec::new(),
            federated: Vec::new(),
            multi_tenant: false,
            directory_writer: false,
            token_version: 1,
        }
    }
}
