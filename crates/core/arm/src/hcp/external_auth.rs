//! An external auth of a cluster: `Microsoft.RedHatOpenShift/hcpOpenShiftClusters/externalAuths`.

mod model;
pub mod schema;
mod validate;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use model::*;

use super::members::{Body, Projection};
use super::resource::{CREATE_TIMEOUT_SECONDS, Condition, Context, Resource, ServiceProperties, Status};
use super::resource::{render, write};
use super::version::ApiVersion;
use crate::schema::read;
use crate::{FieldError, ResourceId, SystemData};

/// An external auth as stored.
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

static PROJECTION: LazyLock<Projection> = LazyLock::new(|| Projection::new(&schema::BODY));

impl ExternalAuth {
    fn new(properties: ExternalAuthProperties, cx: &Context<'_>) -> Self {
        let deadline = cx.now.saturating_add(jiff::SignedDuration::from_secs(CREATE_TIMEOUT_SECONDS));
        Self {
            id: cx.id.clone(),
            system_data: cx.system_data.clone().for_create(cx.now),
            properties,
            service: ServiceProperties::accepted(deadline.unwrap_or(cx.now)),
            status: Status::default(),
        }
    }

    /// What callers can write, in the newest shape.
    fn canonical(&self) -> Map<String, Value> {
        let mut canonical = Map::new();
        write::insert(&mut canonical, "properties", &self.properties);
        canonical
    }
}

/// The one condition that older versions show: whether it is available, else what happened last.
fn single_condition(status: &Status) -> Option<&Condition> {
    let available = status.conditions.iter().find(|condition| condition.kind == "Available");
    available.or_else(|| status.conditions.iter().max_by_key(|condition| condition.last_transition_time))
}

impl Resource for ExternalAuth {
    const TYPE: &'static str = super::EXTERNAL_AUTH_TYPE;
    const BODY: &'static Body = &schema::BODY;

    fn from_body(
        old: Option<&Self>,
        version: ApiVersion,
        body: &Value,
        cx: &Context<'_>,
    ) -> Result<Self, Vec<FieldError>> {
        let before = old.map(Self::canonical);
        let (mut canonical, mut problems) = read::read(Self::BODY, version, body, before.as_ref())?;
        let new_name = old.is_none().then_some(&write::CHILD_NAME);
        write::check_name(&canonical, cx, new_name, &mut problems);

        let properties = write::typed(&mut canonical, "properties")?;
        let external_auth = match old {
            Some(old) => Self {
                properties,
                system_data: old.system_data.for_update(cx.system_data.clone(), cx.now),
                ..old.clone()
            },
            None => Self::new(properties, cx),
        };
        validate::check(&external_auth.properties, &mut problems);
        if let Some(before) = &before {
            write::check_immutable(Self::BODY, version, before, &external_auth.canonical(), &mut problems);
        }
        problems.finish(Self::BODY, version)?;
        Ok(external_auth)
    }

    fn render(&self, version: ApiVersion) -> Value {
        let mut answer = render::proxy(&self.id, Self::TYPE, &self.system_data);
        let mut properties = render::properties(&self.properties, &self.service, &self.status);
        if let Some(condition) = single_condition(&self.status)
            && let Ok(condition) = serde_json::to_value(condition)
        {
            properties.insert("condition".to_owned(), condition);
        }
        answer.insert("properties".to_owned(), Value::Object(properties));
        render::finish(&PROJECTION, version, answer)
    }

    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn service(&self) -> &ServiceProperties {
        &self.service
    }

    fn service_mut(&mut self) -> &mut ServiceProperties {
        &mut self.service
    }
}
