//! An external auth.

mod model;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use model::*;

use super::resource::{Context, Resource, ServiceProperties, Status, Tags};
use super::version::ApiVersion;
use crate::{FieldError, FieldPath, ResourceId, SystemData};

/// As stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalAuth {
    pub id: ResourceId,
    pub system_data: SystemData,
    #[serde(rename = "customerProperties")]
    pub properties: ExternalAuthProperties,
    #[serde(rename = "serviceProviderProperties")]
    pub service: ServiceProperties,
    #[serde(default, skip_serializing_if = "Status::is_empty")]
    pub status: Status,
}

impl Resource for ExternalAuth {
    const TYPE: &'static str = super::EXTERNAL_AUTH_TYPE;

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
        None
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
