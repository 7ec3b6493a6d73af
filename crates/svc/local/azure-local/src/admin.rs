//! The administration of the cloud itself: faults, the log of mutations, everything there is.
//!
//! Served on the cloud's listener below `/_aro/cloud`, to this machine only: loopback peers, loopback host names, and the key
//! of this start ([`AdminAccess`]). Every other host gets 421, so that no name of Azure leads here.

mod access;
mod client;

use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm_server::{Failure, QueryParameters};
use aro_azure_local_engine::{Cloud, Inventory};
use aro_web::{BodyBudget, BodyError, BodyLimits, Peer};
use axum::body::Body;
use axum::response::Response;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use access::AdminAccess;
pub use client::{AdminClient, AdminError, FaultList, MutationEntry, MutationPage, ResourcePage};

use crate::faults::{MAX_RULES, NotAdded, Rule, Switchboard};

/// Where all of it is.
pub(crate) const PREFIX: &str = "/_aro/";
const ROOT: &str = "/_aro/cloud";
/// The largest body.
const MAX_BODY: usize = 64 << 10;
const BODY_BUDGET: u64 = 1 << 20;
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Entries and resources of one page.
const PAGE: usize = 1000;

/// Answers operators of the cloud.
#[derive(Clone)]
pub(crate) struct Admin(Arc<Inner>);

struct Inner {
    access: AdminAccess,
    faults: Arc<Switchboard>,
    cloud: Cloud,
    bodies: BodyLimits,
}

/// A refusal: status, code, message.
type Refused = (StatusCode, &'static str, String);
type Answered = Result<(StatusCode, Value), Refused>;

impl Admin {
    pub(crate) fn new(access: AdminAccess, faults: Arc<Switchboard>, cloud: Cloud) -> Self {
        let budget = BodyBudget::of_bytes(BODY_BUDGET);
        let bodies = BodyLimits { max: MAX_BODY, discard: MAX_BODY, timeout: BODY_TIMEOUT, budget };
        Self(Arc::new(Inner { access, faults, cloud, bodies }))
    }

    /// Answers a request for `host`.
    pub(crate) async fn answer(&self, host: &str, request: Request<Body>) -> Response {
        match self.check(host, &request) {
            Ok(()) => {}
            Err(refused) => return refusal(refused),
        }
        let (parts, body) = request.into_parts();
        let query = QueryParameters::parse(parts.uri.query().unwrap_or_default());
        let path = parts.uri.path().trim_end_matches('/');
        let rest = path.strip_prefix(ROOT).unwrap_or(path).trim_start_matches('/');
        let segments: Vec<&str> = rest.split('/').collect();
        let answered = match (&parts.method, segments.as_slice()) {
            (&Method::GET, ["faults"]) => Ok((StatusCode::OK, self.faults())),
            (&Method::POST, ["faults"]) => self.add_fault(body).await,
            (&Method::DELETE, ["faults"]) => self.clear_faults(None).await,
            (&Method::DELETE, ["faults", id]) => match id.parse() {
                Ok(id) => self.clear_faults(Some(id)).await,
                Err(_) => Err(not_found("There is no such rule.")),
            },
            (&Method::GET, ["mutations"]) => self.mutations(&query),
            (&Method::GET, ["resources"]) => self.resources(&query).await,
            (_, ["faults" | "mutations" | "resources"] | ["faults", _]) => Err((
                StatusCode::METHOD_NOT_ALLOWED,
                "MethodNotAllowed",
                "The method is not allowed.".to_owned(),
            )),
            _ => Err(not_found("The path was not found.")),
        };
        answered.map_or_else(refusal, |(status, body)| respond(status, &body))
    }

    /// Whether the request comes from this machine's operator.
    fn check(&self, host: &str, request: &Request<Body>) -> Result<(), Refused> {
        let local_peer = request.extensions().get::<Peer>().is_none_or(|peer| peer.0.ip().is_loopback());
        if !local_peer || !matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
            let message = "The administration of the local cloud is served to this machine only.";
            return Err((StatusCode::MISDIRECTED_REQUEST, "MisdirectedRequest", message.to_owned()));
        }
        if bearer(request.headers()).is_some_and(|given| self.0.access.admits(given)) {
            return Ok(());
        }
        let message = "The key of the local cloud's administration is missing or wrong.";
        Err((StatusCode::UNAUTHORIZED, "Unauthorized", message.to_owned()))
    }

    fn faults(&self) -> Value {
        json!({"seed": self.0.faults.seed(), "rules": self.0.faults.list()})
    }

    async fn add_fault(&self, body: Body) -> Answered {
        let held = self.0.bodies.read(body).await.map_err(|error| match error {
            BodyError::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "BodyTooLarge",
                format!("A rule has at most {MAX_BODY} bytes."),
            ),
            error => bad_request(error.to_string()),
        })?;
        let rule: Rule =
            serde_json::from_slice(&held.bytes()).map_err(|error| bad_request(error.to_string()))?;
        match self.0.faults.add(rule) {
            Ok(added) => {
                tracing::info!(rule = added.id, fault = ?added.rule.fault, "fault rule added");
                Ok((StatusCode::CREATED, json!(added)))
            }
            Err(NotAdded::Invalid(reason)) => Err(bad_request(reason)),
            Err(NotAdded::TooMany) => {
                let message = format!("There are {MAX_RULES} rules already; clear some first.");
                Err((StatusCode::CONFLICT, "TooManyRules", message))
            }
        }
    }

    async fn clear_faults(&self, id: Option<u64>) -> Answered {
        let cleared = self.0.faults.clear(id);
        // Also those that a rule held which was cleared while this failed.
        self.0.cloud.release_operations(id).await.map_err(internal)?;
        if id.is_some() && cleared.is_empty() {
            return Err(not_found("There is no such rule."));
        }
        tracing::info!(rules = cleared.len(), "fault rules cleared");
        Ok((StatusCode::OK, json!({"rules": cleared})))
    }

    fn mutations(&self, query: &QueryParameters) -> Answered {
        let log = self.0.cloud.mutations();
        let gone = |instance: uuid::Uuid, oldest: u64| {
            let message = format!(
                "Entries after the cursor are gone, or the cloud has restarted. Go on with after={oldest}&instance={instance}."
            );
            (StatusCode::GONE, "MutationLogGap", message)
        };
        let after = parameter(query, "after")?;
        let limit = parameter(query, "limit")?.unwrap_or(PAGE).clamp(1, PAGE);
        let asked: Option<uuid::Uuid> = parameter(query, "instance")?;
        let slice = log.after(after, limit).map_err(|gap| gone(gap.instance, gap.oldest))?;
        match asked.is_some_and(|asked| asked != slice.instance) {
            true => Err(gone(slice.instance, log.after(None, 0).map_or(0, |slice| slice.cursor))),
            false => Ok((StatusCode::OK, json!(slice))),
        }
    }

    async fn resources(&self, query: &QueryParameters) -> Answered {
        if let Some(id) = query.get("id") {
            let id = ResourceId::parse(id).map_err(|error| bad_request(error.to_string()))?;
            let found = self.0.cloud.find_anywhere(&id).await.map_err(internal)?;
            return found
                .map(|found| (StatusCode::OK, found))
                .ok_or_else(|| not_found("There is no such resource."));
        }
        let text = |name: &str| query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let asked = Inventory {
            subscription: text("subscription"),
            group: text("group"),
            after: text("after"),
            limit: parameter(query, "limit")?.unwrap_or(PAGE).clamp(1, PAGE),
        };
        if asked.group.is_some() && asked.subscription.is_none() {
            return Err(bad_request("A group is one of a subscription: name it, too."));
        }
        let page = self.0.cloud.inventory(&asked).await.map_err(|failure| match failure {
            Failure::BadParameter(message) => bad_request(message),
            failure => internal(failure),
        })?;
        Ok((StatusCode::OK, json!({"resources": page.resources, "next": page.next})))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = given.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

fn parameter<T: std::str::FromStr>(query: &QueryParameters, name: &str) -> Result<Option<T>, Refused> {
    let Some(text) = query.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| bad_request(format!("The parameter '{name}' is not valid.")))
}

fn bad_request(message: impl Into<String>) -> Refused {
    (StatusCode::BAD_REQUEST, "BadRequest", message.into())
}

fn not_found(message: &str) -> Refused {
    (StatusCode::NOT_FOUND, "NotFound", message.to_owned())
}

fn internal(failure: Failure) -> Refused {
    let cause = failure.cause().map_or_else(|| format!("{failure:?}"), ToString::to_string);
    tracing::warn!(error = cause, "administration of the local cloud failed");
    (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "The store does not answer.".to_owned())
}

fn refusal((status, code, message): Refused) -> Response {
    let mut response = respond(status, &json!({"error": {"code": code, "message": message}}));
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn respond(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Reads the body of an answer.
fn parse<T: DeserializeOwned>(value: Value) -> Result<T, AdminError> {
    serde_json::from_value(value).map_err(|_| AdminError::Protocol("its body is not the expected JSON"))
}
