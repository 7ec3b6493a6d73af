//! Resource groups.

use aro_arm::ResourceId;
use serde::Deserialize;
use serde_json::json;

use super::{Resource, Tags};
use crate::api_version::RESOURCES;
use crate::arm::{ArmClient, Update};
use crate::compare::covers;
use crate::error::{CloudError, Failure};

/// A resource group.
pub type ResourceGroup = Resource<GroupProperties>;

/// The members of a resource group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupProperties {
    /// Its state.
    pub provisioning_state: Option<String>,
}

/// A resource group as wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its region.
    pub location: String,
    /// The resource that manages it: makes it a managed resource group.
    pub managed_by: Option<ResourceId>,
    /// Its tags.
    pub tags: Tags,
}

/// A resource in a list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListedResource {
    /// Its id.
    pub id: ResourceId,
    /// Its type.
    #[serde(rename = "type")]
    pub resource_type: String,
}

impl ArmClient {
    /// Makes a resource group. Region and manager of an existing one cannot be changed: another value is an error.
    pub async fn ensure_resource_group(
        &self,
        subscription: &str,
        name: &str,
        spec: &GroupSpec,
    ) -> Result<ResourceGroup, CloudError> {
        let id = group_id(subscription, name);
        if let Some(current) = self.find(&id, RESOURCES).await? {
            if !covers(&current, &json!({ "location": spec.location })) {
                return Err(self.problem(&id, Failure::Mismatch("location")));
            }
            if spec.managed_by.is_some() && !covers(&current, &json!({ "managedBy": spec.managed_by })) {
                return Err(self.problem(&id, Failure::Mismatch("manager")));
            }
        }
        let wanted = json!({ "location": spec.location, "managedBy": spec.managed_by, "tags": spec.tags });
        self.ensure_typed(&id, RESOURCES, &wanted, Update::Overlay).await
    }

    /// Finds a resource group.
    pub async fn find_resource_group(
        &self,
        subscription: &str,
        name: &str,
    ) -> Result<Option<ResourceGroup>, CloudError> {
        self.find(&group_id(subscription, name), RESOURCES).await
    }

    /// Deletes a resource group with everything in it.
    pub async fn delete_resource_group(&self, subscription: &str, name: &str) -> Result<(), CloudError> {
        self.delete(&group_id(subscription, name), RESOURCES).await
    }

    /// Lists the resources of a group.
    pub async fn list_resources(
        &self,
        subscription: &str,
        name: &str,
    ) -> Result<Vec<ListedResource>, CloudError> {
        let path = format!("{}/resources", group_id(subscription, name));
        self.list(&path, RESOURCES, &[]).await
    }
}

fn group_id(subscription: &str, name: &str) -> ResourceId {
    ResourceId::from_parts(Some(subscription), Some(name), None, [])
}
