//! One request on a resource, with everything its handler needs.

use std::sync::Arc;

use aro_base::Timestamp;
use aro_kube_apimachinery::GroupResource;
use aro_kube_apimachinery::status::Status;
use bytes::Bytes;
use http::HeaderMap;

use crate::cluster::{Cluster, rfc3339};
use crate::http::answer::Answer;
use crate::http::media::{self, Accepted, Shape};
use crate::http::options::Query;
use crate::identity::user::User;
use crate::storage::{Stored, WatchCache};
use crate::types::Served;

/// One request on a stored resource.
#[derive(Clone)]
pub struct Call {
    pub cluster: Arc<Cluster>,
    pub user: Arc<User>,
    pub served: Arc<Served>,
    pub watch_cache: Arc<WatchCache>,
    pub verb: &'static str,
    /// Empty for cluster-scoped resources, and for requests over all namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    pub subresource: String,
    pub query: Query<'static>,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub accepted: Accepted,
    pub now: Timestamp,
    pub warnings: Vec<String>,
    /// Whether the answer may switch protocols.
    pub upgradable: bool,
}

impl Call {
    pub fn resource_name(&self) -> GroupResource {
        self.served.resource.group_resource()
    }

    /// The key of an object of this resource.
    pub fn key_of(&self, namespace: &str, name: &str) -> String {
        if self.served.resource.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    pub fn key(&self) -> String {
        self.key_of(&self.namespace, &self.name)
    }

    pub fn not_found(&self) -> Status {
        Status::not_found(&self.resource_name(), &self.name)
    }

    pub fn latest(&self, key: &str) -> Option<Arc<Stored>> {
        self.cluster.store.latest(&self.watch_cache, key)
    }

    pub fn time(&self) -> String {
        rfc3339(self.now)
    }

    pub fn content_type(&self) -> String {
        let header = self.headers.get(http::header::CONTENT_TYPE);
        media::content_type(header.and_then(|value| value.to_str().ok()))
    }

    /// Who owns the fields this request writes.
    pub fn manager(&self) -> String {
        if let Some(manager) = self.query.get("fieldManager") {
            return manager.to_owned();
        }
        let agent = self.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        manager_of_agent(agent.unwrap_or_default())
    }

    /// Answers with one stored object, in the shape that was asked for.
    pub fn answer(&self, code: u16, object: &Arc<Stored>) -> Result<Answer, Status> {
        super::object::answer(self, code, object)
    }

    pub fn plain(&self) -> bool {
        self.accepted.shape == Shape::Object && !self.accepted.yaml && !self.served.converts()
    }
}

/// The part of a user agent before its version, as upstream shortens it.
fn manager_of_agent(agent: &str) -> String {
    let name: String =
        agent.split('/').next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    name.chars().take(128).collect()
}
