//! A node pool of a cluster: `Microsoft.RedHatOpenShift/hcpOpenShiftClusters/nodePools`.

mod model;
pub mod schema;
mod validate;
pub mod vm_sizes;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use model::*;

use super::members::{Body, Projection};
use super::resource::{CREATE_TIMEOUT_SECONDS, Context, Identity, Resource, ServiceProperties, Status, Tags};
use super::resource::{experimental, render, write};
use super::version::ApiVersion;
use crate::schema::{problems::Problems, read};
use crate::{FieldError, ResourceId, SystemData};

/// A node pool as stored.
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

static PROJECTION: LazyLock<Projection> = LazyLock::new(|| Projection::new(&schema::BODY));

impl NodePool {
    fn new(tags: Tags, identity: Option<Identity>, properties: NodePoolProperties, cx: &Context<'_>) -> Self {
        let deadline = cx.now.saturating_add(jiff::SignedDuration::from_secs(CREATE_TIMEOUT_SECONDS));
        Self {
            id: cx.id.clone(),
            location: cx.location.to_owned(),
            tags,
            system_data: cx.system_data.clone().for_create(cx.now),
            identity,
            properties,
            service: ServiceProperties::accepted(deadline.unwrap_or(cx.now)),
            status: Status::default(),
        }
    }

    /// Experimental tags, of subscriptions that have the feature.
    fn apply_tags(&mut self, creating: bool, cx: &Context<'_>, problems: &mut Problems) {
        for (tag, value, at) in experimental::find(&self.tags, problems) {
            if tag == experimental::Tag::NodePoolMaxCreation
                && let Some(limit) = experimental::duration(value, &at, problems)
                && creating
            {
                self.service.create_operation_completion_deadline = cx.now.saturating_add(limit).ok();
            }
        }
    }

    /// What callers can write, in the newest shape.
    fn canonical(&self) -> Map<String, Value> {
        let mut canonical = Map::new();
        if let Some(identity) = &self.identity {
            write::insert(&mut canonical, "identity", identity);
        }
        write::insert(&mut canonical, "properties", &self.properties);
        if !self.tags.is_empty() {
            write::insert(&mut canonical, "tags", &self.tags);
        }
        canonical
    }
}

impl Resource for NodePool {
    const TYPE: &'static str = super::NODE_POOL_TYPE;
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

        let sent_identity = write::typed(&mut canonical, "identity")?;
        let identity = write::adopt_identity(sent_identity, old.and_then(|old| old.identity.as_ref()));
        let tags = write::typed::<Option<Tags>>(&mut canonical, "tags")?.unwrap_or_default();
        let properties = write::typed(&mut canonical, "properties")?;
        let mut node_pool = match old {
            Some(old) => Self {
                tags,
                identity,
                properties,
                system_data: old.system_data.for_update(cx.system_data.clone(), cx.now),
                ..old.clone()
            },
            None => Self::new(tags, identity, properties, cx),
        };
        if cx.experimental {
            node_pool.apply_tags(old.is_none(), cx, &mut problems);
        }
        validate::check(&node_pool, old, cx, &mut problems);
        if let Some(before) = &before {
            write::check_immutable(Self::BODY, version, before, &node_pool.canonical(), &mut problems);
        }
        problems.finish(Self::BODY, version)?;
        Ok(node_pool)
    }

    fn render(&self, version: ApiVersion) -> Value {
        let mut answer = render::tracked(
            &self.id,
            Self::TYPE,
            &self.location,
            &self.tags,
            &self.system_data,
            self.identity.as_ref(),
        );
        let properties = render::properties(&self.properties, &self.service, &self.status);
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
