//! A node pool.

mod model;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use model::*;

use super::resource::{Context, Identity, Resource, ServiceProperties, Status, Tags};
use super::version::ApiVersion;
use crate::{FieldError, FieldPath, ResourceId, SystemData};

/// As stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    pub id: ResourceId,
    pub location: String,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    pub system_data: SystemData,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    #[serde(rename = "customerProperties")]
    pub properties: NodePoolProperties,
    #[serde(rename = "serviceProviderProperties")]
    pub service: ServiceProperties,
    #[serde(default, skip_serializing_if = "Status::is_empty")]
    pub status: Status,
}

impl Resource for NodePool {
    const TYPE: &'static str = super::NODE_POOL_TYPE;

    fn create(_: ApiVersion, _: &Value, _: &Context<'_>) -> Result<Self, Vec<FieldError>> {
        Err(vec![FieldError::undecodable(&FieldPath::root(), "not served yet")])
    }

    fn replace(&self, _: ApiVersion, _: &Value, _: &Context<'_>) -> Result<Self, Vec<FieldError>> {
        Ok(self.clone())
    }

    fn patch(&self, _: ApiVersion, _: &Value, _: &Context<'_>) -> Result<Self, Vec<FieldError>> {
        Ok(self.clone())
    }

    fn render(&self, _: ApiVersion) -> Value {
        Value::Null
    }

    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }

    fn system_data(&self) -> &SystemData {
        &self.system_data
    }

    fn service(&self) -> &ServiceProperties {
        &self.service
    }

    fn service_mut(&mut self) -> &mut ServiceProperties {
        &mut self.service
    }
}
