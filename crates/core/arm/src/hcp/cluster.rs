//! A hosted cluster: `Microsoft.RedHatOpenShift/hcpOpenShiftClusters`.

mod experimental;
mod model;
pub mod schema;
mod validate;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use model::*;
pub(super) use validate::check_channel_group;

use super::members::{Body, Projection};
use super::resource::{CREATE_TIMEOUT_SECONDS, Context, Identity, Resource, ServiceProperties, Status, Tags};
use super::resource::{render, write};
use super::version::ApiVersion;
use crate::field::Problem;
use crate::schema::read;
use crate::{FieldError, FieldPath, ResourceId, SystemData};

/// A cluster as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    pub id: ResourceId,
    pub location: String,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    pub system_data: SystemData,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    #[serde(rename = "customerProperties")]
    pub properties: ClusterProperties,
    #[serde(rename = "serviceProviderProperties")]
    pub service: ServiceProperties,
    pub hosting: Hosting,
    #[serde(default, skip_serializing_if = "Status::is_empty")]
    pub status: Status,
}

static PROJECTION: LazyLock<Projection> = LazyLock::new(|| Projection::new(&schema::BODY));

impl Cluster {
    fn new(
        tags: Tags,
        identity: Option<Identity>,
        mut properties: ClusterProperties,
        cx: &Context<'_>,
    ) -> Self {
        if properties.platform.managed_resource_group.is_empty() {
            properties.platform.managed_resource_group = managed_resource_group(cx);
        }
        let deadline = cx.now.saturating_add(jiff::SignedDuration::from_secs(CREATE_TIMEOUT_SECONDS));
        Self {
            id: cx.id.clone(),
            location: cx.location.to_owned(),
            tags,
            system_data: cx.system_data.clone().for_create(cx.now),
            identity,
            properties,
            service: ServiceProperties::accepted(deadline.unwrap_or(cx.now)),
            hosting: Hosting::new(cx.new_uid, cx.identity_url.map(ToOwned::to_owned)),
            status: Status::default(),
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

/// The name of the group that holds what the service makes for a cluster, where the caller did not choose one.
fn managed_resource_group(cx: &Context<'_>) -> String {
    let name: String = cx.id.name().chars().take(45).collect();
    format!("arohcp-{name}-{}", cx.new_uid)
}

impl Resource for Cluster {
    const TYPE: &'static str = super::CLUSTER_TYPE;
    const BODY: &'static Body = &schema::BODY;

    fn from_body(
        old: Option<&Self>,
        version: ApiVersion,
        body: &Value,
        cx: &Context<'_>,
    ) -> Result<Self, Vec<FieldError>> {
        let before = old.map(Self::canonical);
        let (mut canonical, mut problems) = read::read(Self::BODY, version, body, before.as_ref())?;
        let new_name = old.is_none().then_some(&write::CLUSTER_NAME);
        write::check_name(&canonical, cx, new_name, &mut problems);
        if old.is_none() && cx.identity_url.is_none() && !cx.preflight {
            let why = Problem::Required(Some("the X-Ms-Identity-Url header must be sent".to_owned()));
            problems.push(FieldError::new(&FieldPath::new("identity"), why));
        }

        let sent_identity = write::typed(&mut canonical, "identity")?;
        let identity = write::adopt_identity(sent_identity, old.and_then(|old| old.identity.as_ref()));
        let tags = write::typed::<Option<Tags>>(&mut canonical, "tags")?.unwrap_or_default();
        let properties = write::typed(&mut canonical, "properties")?;
        let mut cluster = match old {
            Some(old) => Self {
                tags,
                identity,
                properties,
                system_data: old.system_data.for_update(cx.system_data.clone(), cx.now),
                ..old.clone()
            },
            None => Self::new(tags, identity, properties, cx),
        };
        experimental::apply(&mut cluster, old, cx, &mut problems);
        validate::check(&cluster, old, version, cx, &mut problems);
        if let Some(before) = &before {
            write::check_immutable(Self::BODY, version, before, &cluster.canonical(), &mut problems);
        }
        problems.finish(Self::BODY, version)?;
        Ok(cluster)
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
        let mut properties = render::properties(&self.properties, &self.service, &self.status);
        for (object, name, value) in [
            ("api", "url", &self.hosting.api_url),
            ("console", "url", &self.hosting.console_url),
            ("dns", "baseDomain", &self.hosting.base_domain),
            ("platform", "issuerUrl", &self.hosting.issuer_url),
        ] {
            if let Some(value) = value {
                render::show(&mut properties, object, name, value);
            }
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
