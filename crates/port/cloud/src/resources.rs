//! Typed operations on resources, one file for each subject.
//!
//! `ensure_…` reads first and writes only a difference in the members that the caller sets; `find_…` returns `None` for what
//! does not exist; `delete_…` succeeds when the resource is gone. All are idempotent.

mod dns;
mod groups;
mod identities;
mod load_balancers;
mod networks;
mod registries;
mod roles;
mod storage;
mod vaults;

use std::collections::BTreeMap;

use aro_arm::ResourceId;
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use dns::{CaaRecord, RecordData, RecordSet, Zone, ZoneProperties};
pub use groups::{GroupProperties, GroupSpec, ListedResource, ResourceGroup};
pub use identities::{
    FederatedCredential, FederatedCredentialProperties, FederatedCredentialSpec, Identity,
    IdentityProperties, TOKEN_EXCHANGE,
};
pub use load_balancers::{
    Frontend, FrontendAddress, LoadBalancer, LoadBalancerProperties, LoadBalancerSpec, OutboundRule, Part,
    PublicIp, PublicIpProperties, PublicIpSpec,
};
pub use networks::{
    Nsg, NsgProperties, NsgSpec, Reference, SecurityRule, Subnet, SubnetProperties, SubnetSpec, Vnet,
    VnetProperties, VnetSpec,
};
pub use registries::{
    Registry, RegistryProperties, RegistryToken, RegistryTokenProperties, ScopeMap, ScopeMapProperties,
    TokenPassword,
};
pub use roles::{
    Permission, PrincipalType, RoleAssignment, RoleAssignmentProperties, RoleDefinition,
    RoleDefinitionProperties, role_assignment_name,
};
pub use storage::{StorageAccount, StorageAccountProperties, StorageAccountSpec, StorageEndpoints};
pub use vaults::{KeyVault, KeyVaultProperties, KeyVaultSpec};

use crate::arm::{ArmClient, Update};
use crate::error::{CloudError, Failure};

/// Tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// A resource, with the members of its type that are used here.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Resource<P> {
    /// Its id.
    pub id: ResourceId,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its region; empty for a part of another resource.
    #[serde(default)]
    pub location: String,
    /// Its tags.
    #[serde(default)]
    pub tags: Option<Tags>,
    /// Its version, where the type has one.
    #[serde(default)]
    pub etag: Option<String>,
    /// The members of its type.
    pub properties: P,
}

impl ArmClient {
    async fn ensure_typed<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: &str,
        wanted: &Value,
        update: Update,
    ) -> Result<T, CloudError> {
        let resource = self.ensure(id, api_version, wanted, update).await?;
        self.typed(id, resource)
    }

    fn typed<T: DeserializeOwned>(&self, id: &ResourceId, resource: Value) -> Result<T, CloudError> {
        serde_json::from_value(resource)
            .map_err(|_| self.problem(id, Failure::Protocol("the resource lacks a member of its type")))
    }

    fn problem(&self, id: &ResourceId, failure: Failure) -> CloudError {
        CloudError::new(&Method::GET, id.as_str(), self.correlation_id().unwrap_or_default(), failure)
    }

    /// The id of an extension resource, e.g. a role assignment, on any scope.
    fn extension(
        &self,
        scope: &ResourceId,
        namespace: &str,
        kind: &str,
        name: &str,
    ) -> Result<ResourceId, CloudError> {
        ResourceId::parse(&format!("{scope}/providers/{namespace}/{kind}/{name}"))
            .map_err(|_| self.problem(scope, Failure::Protocol("the scope cannot be part of an id")))
    }
}

/// `{"id": …}`, as one resource refers to another.
fn reference(id: &ResourceId) -> Value {
    json!({ "id": id })
}
