//! `Contoso.Farm`: farms in a resource group, fields below them. Deleting a farm is a long-running operation. State is a map.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm::operation::{OperationError, ProvisioningState, StatusView};
use aro_arm::subscription::{State, Subscription};
use aro_arm_server::operations::{self, Followed};
use aro_arm_server::{
    Answer, ArmServer, Failure, Options, Provider, Request, ResourceType, Route, Versions, paging,
};
use aro_base::{ETag, Timestamp};
use aro_runtime::Metrics;
use aro_store::PageToken;
use aro_web::{BodyBudget, BodyLimits};
use axum::Router;
use axum::body::Body;
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub const NAMESPACE: &str = "Contoso.Farm";
pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
pub const SUSPENDED: &str = "00000000-0000-0000-0000-000000000002";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Farm,
    Farms,
    Field,
    Collapse,
    Status,
    Result,
}

/// Whether `harvests` is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Old,
    New,
}

#[derive(Debug, Clone)]
pub struct Deletion {
    pub status_id: ResourceId,
    pub result_id: ResourceId,
    pub state: ProvisioningState,
    pub error: Option<OperationError>,
}

#[derive(Default)]
pub struct Farm {
    /// By the id in lower case: the body and its version.
    resources: Mutex<BTreeMap<String, (Value, u64)>>,
    /// By name.
    pub deletions: Mutex<BTreeMap<String, Deletion>>,
}

impl Farm {
    pub fn routes() -> Vec<Route<Endpoint, Version>> {
        let farms = [("2024-01-01-preview", Version::Old), ("2025-01-01", Version::New)];
        let farms = Arc::new(Versions::new(NAMESPACE, "farms", farms));
        let fields = Arc::new(Versions::new(NAMESPACE, "farms/fields", [("2025-01-01", Version::New)]));
        let locations = &[("locations", "location")];
        let types = [
            ResourceType::in_group(&farms, &[], ("farms", "farm"))
                .item(Endpoint::Farm, &["GET", "PUT", "DELETE"])
                .list(Endpoint::Farms)
                .action("collapse", Endpoint::Collapse),
            ResourceType::in_group(&fields, &[("farms", "farm")], ("fields", "field"))
                .in_any_subscription()
                .item(Endpoint::Field, &["GET", "PUT"]),
            ResourceType::in_subscription(&farms, locations, ("operationStatuses", "operation"))
                .item(Endpoint::Status, &["GET"]),
            ResourceType::in_subscription(&farms, locations, ("operationResults", "operation"))
                .item(Endpoint::Result, &["GET"]),
        ];
        types.into_iter().flat_map(ResourceType::routes).collect()
    }

    fn get(&self, request: &Request<Endpoint, Version>) -> Result<Answer, Failure> {
        let id = request.matched.resource_id();
        let resources = self.resources.lock().unwrap();
        let (body, version) = resources.get(&id.to_lower()).ok_or(Failure::NotFound(id))?;
        let etag = ETag::new(version.to_string());
        if request.caller.preconditions.is_unmodified(&etag) {
            return Ok(Answer::empty(StatusCode::NOT_MODIFIED).etag(Some(&etag)));
        }
        let mut shown = body.clone();
        if let (Version::Old, Some(members)) = (request.version, shown.as_object_mut()) {
            members.remove("harvests");
        }
        Ok(Answer::json(StatusCode::OK, &shown).etag(Some(&etag)))
    }

    fn put(&self, request: &Request<Endpoint, Version>) -> Result<Answer, Failure> {
        let id = request.matched.resource_id();
        let mut body = request.json()?;
        let mut resources = self.resources.lock().unwrap();
        let version = resources.get(&id.to_lower()).map(|(_, version)| *version);
        let etag = version.map(|version| ETag::new(version.to_string()));
        request.caller.preconditions.check_write(etag.as_ref()).map_err(Failure::Precondition)?;
        body["id"] = json!(id);
        let next = version.unwrap_or_default() + 1;
        resources.insert(id.to_lower(), (body.clone(), next));
        let status = if version.is_none() { StatusCode::CREATED } else { StatusCode::OK };
        Ok(Answer::json(status, &body).etag(Some(&ETag::new(next.to_string()))))
    }

    fn list(&self, request: &Request<Endpoint, Version>) -> Result<Answer, Failure> {
        let page = request.query.page().map_err(Failure::BadParameter)?;
        let prefix = format!("{}/farms/", request.matched.resource_id().to_lower());
        let resources = self.resources.lock().unwrap();
        let after = page.after.as_ref().map_or("", PageToken::as_str);
        let mut found = resources
            .iter()
            .filter(|(id, _)| id.starts_with(&prefix) && id.as_str() > after)
            .map(|(id, (body, _))| (id, body));
        let items: Vec<(&String, &Value)> = found.by_ref().take(page.size).collect();
        let more = found.next().is_some();
        let next = items.last().filter(|_| more).map(|(id, _)| PageToken::new(id.as_str()));
        let bodies: Vec<&Value> = items.into_iter().map(|(_, body)| body).collect();
        Ok(paging::page(&request.caller, &bodies, next.as_ref()))
    }

    fn delete(&self, request: &Request<Endpoint, Version>) -> Answer {
        let id = request.matched.resource_id();
        if self.resources.lock().unwrap().remove(&id.to_lower()).is_none() {
            return Answer::empty(StatusCode::NO_CONTENT);
        }
        let operation = |kind| {
            let pairs = [("locations", "earth"), (kind, "op1")];
            ResourceId::in_subscription(request.matched.subscription(), NAMESPACE, &pairs)
        };
        let deletion = Deletion {
            status_id: operation("operationStatuses"),
            result_id: operation("operationResults"),
            state: ProvisioningState::Deleting,
            error: None,
        };
        self.deletions.lock().unwrap().insert("op1".to_owned(), deletion.clone());
        let answer = Answer::empty(StatusCode::ACCEPTED);
        operations::follow(answer, &request.caller, request.api_version, &deletion.followed(), true)
    }

    fn deletion(&self, request: &Request<Endpoint, Version>) -> Result<Deletion, Failure> {
        let deletions = self.deletions.lock().unwrap();
        deletions.get(request.matched.name("operation")).cloned().ok_or(Failure::OperationHidden)
    }

    fn result(&self, request: &Request<Endpoint, Version>) -> Result<Answer, Failure> {
        let deletion = self.deletion(request)?;
        match deletion.state {
            ProvisioningState::Succeeded => Ok(Answer::empty(StatusCode::NO_CONTENT)),
            ProvisioningState::Failed => Err(operations::result_failed(deletion.error)),
            _ => Ok(operations::result_pending(
                &request.caller,
                request.api_version,
                &deletion.followed(),
                Timestamp::UNIX_EPOCH,
            )),
        }
    }
}

impl Deletion {
    fn followed(&self) -> Followed<'_> {
        Followed {
            status_id: &self.status_id,
            result_id: &self.result_id,
            started: Timestamp::UNIX_EPOCH,
            notifies: false,
        }
    }
}

impl Provider for Farm {
    type Endpoint = Endpoint;
    type Version = Version;

    const UNVERSIONED: Version = Version::New;

    fn probe(&self, _: &Method, path: &str) -> Option<Answer> {
        (path == "/healthz").then(|| Answer::empty(StatusCode::OK))
    }

    async fn subscription(&self, id: &str) -> Result<Option<Subscription>, Failure> {
        let state = match id {
            SUBSCRIPTION => State::Registered,
            SUSPENDED => State::Suspended,
            _ => return Ok(None),
        };
        Ok(Some(Subscription { state, registration_date: String::new(), properties: None }))
    }

    async fn answer(&self, request: &Request<Endpoint, Version>) -> Result<Answer, Failure> {
        match (request.matched.endpoint, request.method.as_str()) {
            (Endpoint::Farm | Endpoint::Field, "GET") => self.get(request),
            (Endpoint::Farm | Endpoint::Field, "PUT") => self.put(request),
            (Endpoint::Farm, _) => Ok(self.delete(request)),
            (Endpoint::Farms, _) => self.list(request),
            (Endpoint::Status, _) => {
                let deletion = self.deletion(request)?;
                let now = Timestamp::UNIX_EPOCH;
                let error = deletion.error.as_ref();
                Ok(operations::status(
                    &StatusView::new(&deletion.status_id, deletion.state, now, now, error),
                    now,
                ))
            }
            (Endpoint::Result, _) => self.result(request),
            (Endpoint::Collapse | Endpoint::Field, _) => panic!("the barn falls down"),
        }
    }
}

/// A server of the provider, and its metrics.
pub struct Server {
    pub farm: Arc<Farm>,
    pub metrics: Metrics,
    router: Router,
}

impl Server {
    pub fn start() -> Self {
        let (farm, metrics) = (Arc::new(Farm::default()), Metrics::new());
        let body = BodyLimits {
            max: 1000,
            discard: 0,
            timeout: Duration::from_secs(20),
            budget: BodyBudget::of_bytes(1 << 20),
        };
        let options = Options { name: "farm", body };
        let server = ArmServer::new(farm.clone(), Farm::routes(), &metrics, &options).unwrap();
        Self { farm, metrics, router: server.into_router() }
    }

    pub async fn send(&self, request: http::request::Builder, body: impl Into<Body>) -> Reply {
        let response = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        Reply::read(response).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(request("GET", path), Body::empty()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(request("PUT", path).header("content-type", "application/json"), body.to_string()).await
    }
}

pub fn request(method: &str, path: &str) -> http::request::Builder {
    http::Request::builder().method(method).uri(path).header("host", "farm.test")
}

/// An answer that was read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
}

impl Reply {
    async fn read(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Self { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }
}

pub fn farm_path(name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/{NAMESPACE}/farms/{name}")
}

/// The path with the newest api-version.
pub fn at(path: &str) -> String {
    format!("{path}?api-version=2025-01-01")
}
