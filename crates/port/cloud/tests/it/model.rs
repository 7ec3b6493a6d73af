//! A cloud of a few rules: resources by path, operations, actions, tokens; it counts every effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_cloud::{Cloud, CloudConfig, Transport, TransportError};
use aro_net::Backoff;
use aro_runtime::{Section as _, SystemClock};
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// How the model answers writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Immediate,
    AsyncOperation,
    Location,
    ProvisioningState,
}

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    Throttled,
    Shed,
    ErrorBefore,
    ErrorAfter,
    Refused,
    CutBefore,
    CutAfter,
    Slow,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    pub host: String,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A reply: status, headers, body.
pub type Scripted = (u16, Vec<(&'static str, String)>, Value);

#[derive(Debug)]
struct Operation {
    path: String,
    polls: u32,
    deletes: bool,
    failure: Option<Value>,
}

#[derive(Debug)]
pub struct Model {
    pub style: Style,
    pub polls: u32,
    /// Ends the next operations.
    pub failure: Option<Value>,
    pub resources: BTreeMap<String, Value>,
    /// Changes of each resource: creation, update, deletion.
    pub changes: BTreeMap<String, u32>,
    /// PUT requests that were applied, also those that changed nothing.
    pub writes: u32,
    pub actions: u32,
    pub seen: Vec<Seen>,
    pub tokens: u32,
    /// Older tokens are refused.
    pub oldest_token: u32,
    /// Replies for exact paths, before any rule.
    pub fixed: BTreeMap<String, Vec<Scripted>>,
    operations: BTreeMap<u32, Operation>,
    revision: u32,
}

impl Model {
    pub fn new(style: Style) -> Self {
        Self {
            style,
            polls: 2,
            failure: None,
            resources: BTreeMap::new(),
            changes: BTreeMap::new(),
            writes: 0,
            actions: 0,
            seen: Vec::new(),
            tokens: 0,
            oldest_token: 0,
            fixed: BTreeMap::new(),
            operations: BTreeMap::new(),
            revision: 0,
        }
    }

    pub fn count(&self, method: Method, path_end: &str) -> usize {
        self.seen.iter().filter(|seen| seen.method == method && seen.path.ends_with(path_end)).count()
    }

    pub fn handle(&mut self, seen: Seen) -> Response<Bytes> {
        let path = seen.path.to_ascii_lowercase();
        self.seen.push(seen.clone());
        if let Some(replies) = self.fixed.get_mut(&path) {
            let (status, headers, body) = match replies.len() {
                0 | 1 => replies[0].clone(),
                _ => replies.remove(0),
            };
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.clone())).collect();
            return reply(status, &headers, &body);
        }
        if path.ends_with("/oauth2/v2.0/token") || path.ends_with("/metadata/identity/oauth2/token") {
            self.tokens += 1;
            let token = format!("tok-{}", self.tokens);
            let body = json!({"token_type": "Bearer", "expires_in": 3600, "access_token": token});
            return reply(200, &[], &body);
        }
        if !self.is_authorized(&seen.headers) {
            return reply(
                401,
                &[],
                &json!({"error": {"code": "InvalidAuthenticationToken", "message": "m"}}),
            );
        }
        if let Some(number) = path.strip_prefix("/operations/") {
            return self.poll(number.parse().unwrap());
        }
        match seen.method {
            Method::GET => match self.resources.get(&path) {
                Some(resource) => {
                    let reply = reply(200, &[], resource);
                    self.advance(&path);
                    reply
                }
                None => not_found(),
            },
            Method::PUT => self.put(&path, &seen),
            Method::DELETE => self.delete(&path),
            Method::POST => {
                self.actions += 1;
                reply(200, &[], &json!({"number": self.actions}))
            }
            _ => reply(405, &[], &Value::Null),
        }
    }

    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let token = headers.get("authorization").and_then(|value| value.to_str().ok());
        let number = token.and_then(|token| token.strip_prefix("Bearer tok-")?.parse::<u32>().ok());
        number.is_some_and(|number| number >= self.oldest_token)
    }

    fn put(&mut self, path: &str, seen: &Seen) -> Response<Bytes> {
        let existing = self.resources.get(path).cloned();
        let etag = existing.as_ref().and_then(|resource| resource["etag"].as_str());
        let wanted = seen.headers.get("if-match").and_then(|value| value.to_str().ok());
        if (seen.headers.contains_key("if-none-match") && existing.is_some())
            || wanted.is_some_and(|wanted| Some(wanted) != etag)
        {
            return reply(412, &[], &json!({"error": {"code": "PreconditionFailed", "message": "m"}}));
        }
        self.writes += 1;
        let mut resource: Value = serde_json::from_slice(&seen.body).unwrap();
        resource["id"] = seen.path.clone().into();
        resource["name"] = seen.path.rsplit('/').next().unwrap_or_default().into();
        if resource["properties"].is_null() {
            resource["properties"] = json!({});
        }
        if self.style != Style::Immediate {
            resource["properties"]["provisioningState"] = "Updating".into();
        }
        let same = existing.as_ref().is_some_and(|existing| content(existing) == content(&resource));
        if same {
            resource = existing.clone().unwrap();
            if self.style != Style::Immediate {
                resource["properties"]["provisioningState"] = "Updating".into();
            }
        } else {
            self.revision += 1;
            resource["etag"] = format!("\"{}\"", self.revision).into();
            *self.changes.entry(path.to_owned()).or_default() += 1;
        }
        self.resources.insert(path.to_owned(), resource.clone());
        let status = if existing.is_none() { 201 } else { 200 };
        self.begin(path, status, false, &resource)
    }

    fn delete(&mut self, path: &str) -> Response<Bytes> {
        let Some(resource) = self.resources.get_mut(path) else { return not_found() };
        if resource["properties"]["provisioningState"] != "Deleting" {
            *self.changes.entry(path.to_owned()).or_default() += 1;
        }
        if self.style == Style::Immediate {
            self.resources.remove(path);
            return reply(204, &[], &Value::Null);
        }
        resource["properties"]["provisioningState"] = "Deleting".into();
        self.begin(path, 202, true, &Value::Null)
    }

    /// A new operation on a resource supersedes the older ones.
    fn begin(&mut self, path: &str, status: u16, deletes: bool, body: &Value) -> Response<Bytes> {
        if self.style == Style::Immediate {
            return reply(status, &[], body);
        }
        for older in self.operations.values_mut().filter(|older| older.path == path) {
            older.path.clear();
        }
        let number = self.operations.len() as u32;
        let failure = self.failure.clone();
        let operation = Operation { path: path.to_owned(), polls: self.polls, deletes, failure };
        self.operations.insert(number, operation);
        let link = format!("https://management.azure.com/operations/{number}?t=1");
        match self.style {
            Style::AsyncOperation => reply(status, &[("azure-asyncoperation", link)], body),
            Style::Location => reply(202, &[("location", link)], &Value::Null),
            _ => reply(status, &[], body),
        }
    }

    /// A step of the operations of a resource whose own state is polled.
    fn advance(&mut self, path: &str) {
        let numbers: Vec<u32> =
            self.operations.iter().filter(|(_, of)| of.path == path).map(|(number, _)| *number).collect();
        for number in numbers {
            self.work(number);
        }
    }

    /// Whether the operation is done.
    fn work(&mut self, number: u32) -> bool {
        let Some(operation) = self.operations.get_mut(&number) else { return true };
        operation.polls = operation.polls.saturating_sub(1);
        if operation.polls > 0 {
            return false;
        }
        let (path, deletes) = (operation.path.clone(), operation.deletes);
        let state = if operation.failure.is_some() { "Failed" } else { "Succeeded" };
        let deleting =
            self.resources.get(&path).is_some_and(|of| of["properties"]["provisioningState"] == "Deleting");
        if deletes && deleting {
            self.resources.remove(&path);
        } else if let Some(resource) = self.resources.get_mut(&path).filter(|_| !deletes && !deleting) {
            resource["properties"]["provisioningState"] = state.into();
        }
        true
    }

    fn poll(&mut self, number: u32) -> Response<Bytes> {
        let done = self.work(number);
        let failure = self.operations.get(&number).and_then(|operation| operation.failure.clone());
        match (self.style, done, failure) {
            (Style::Location, true, _) => reply(204, &[], &Value::Null),
            (Style::Location, false, _) => reply(202, &[("retry-after", "0".to_owned())], &Value::Null),
            (_, true, Some(error)) => reply(200, &[], &json!({"status": "Failed", "error": error})),
            (_, true, None) => reply(200, &[], &json!({"status": "Succeeded"})),
            (_, false, _) => reply(200, &[("retry-after", "1".to_owned())], &json!({"status": "Running"})),
        }
    }
}

/// A resource without what the cloud sets.
fn content(resource: &Value) -> Value {
    let mut content = resource.clone();
    content.as_object_mut().unwrap().remove("etag");
    if let Some(properties) = content["properties"].as_object_mut() {
        properties.remove("provisioningState");
    }
    content
}

fn not_found() -> Response<Bytes> {
    reply(404, &[], &json!({"error": {"code": "ResourceNotFound", "message": "The Resource was not found."}}))
}

pub fn reply(status: u16, headers: &[(&str, String)], body: &Value) -> Response<Bytes> {
    let mut builder = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        builder = builder.header(*name, value);
    }
    let body = if body.is_null() { Bytes::new() } else { serde_json::to_vec(body).unwrap().into() };
    builder.body(body).unwrap()
}

/// Numbers that follow from a seed.
#[derive(Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// A fault in a third of all requests.
    pub fn fault(&mut self) -> Fault {
        const FAULTS: [Fault; 8] = [
            Fault::Throttled,
            Fault::Shed,
            Fault::ErrorBefore,
            Fault::ErrorAfter,
            Fault::Refused,
            Fault::CutBefore,
            Fault::CutAfter,
            Fault::Slow,
        ];
        FAULTS.get(self.roll(24) as usize).copied().unwrap_or(Fault::None)
    }
}

/// The model with faults. As a transport it needs no socket, so that time can be paused.
#[derive(Debug)]
pub struct World {
    pub model: Mutex<Model>,
    dice: Mutex<Option<Dice>>,
}

impl World {
    pub fn faultless(style: Style) -> Arc<Self> {
        Arc::new(Self { model: Mutex::new(Model::new(style)), dice: Mutex::new(None) })
    }

    pub fn faulty(style: Style, seed: u64) -> Arc<Self> {
        Arc::new(Self { model: Mutex::new(Model::new(style)), dice: Mutex::new(Some(Dice(seed))) })
    }

    pub fn fault(&self) -> Fault {
        self.dice.lock().as_mut().map_or(Fault::None, Dice::fault)
    }

    /// Answers a request with a fault that the server itself can cause; `None`: the connection ends.
    pub fn answer(&self, seen: Seen, fault: Fault) -> Option<Response<Bytes>> {
        match fault {
            Fault::None => Some(self.model.lock().handle(seen)),
            Fault::Throttled => Some(reply(429, &[("retry-after", "1".to_owned())], &Value::Null)),
            Fault::Shed => Some(reply(503, &[("retry-after", "1".to_owned())], &Value::Null)),
            Fault::ErrorBefore => Some(reply(500, &[], &Value::Null)),
            Fault::ErrorAfter => {
                self.model.lock().handle(seen);
                Some(reply(502, &[], &Value::Null))
            }
            Fault::CutAfter | Fault::Slow => {
                self.model.lock().handle(seen);
                None
            }
            Fault::Refused | Fault::CutBefore => None,
        }
    }

    pub fn cloud(self: &Arc<Self>) -> Cloud {
        let config = CloudConfig { retry_budget: 100, requests_per_second: 10_000, ..CloudConfig::default() };
        self.cloud_with(config)
    }

    pub fn cloud_with(self: &Arc<Self>, config: CloudConfig) -> Cloud {
        let clock: SharedClock = SystemClock::shared();
        Cloud::with_transport(&config.check().unwrap(), self.clone(), clock).unwrap().with_delays(
            Backoff::new(Duration::from_millis(100), Duration::from_secs(2)),
            Backoff::new(Duration::from_millis(100), Duration::from_secs(1)),
        )
    }
}

pub fn seen(request: Request<Bytes>) -> Seen {
    let (head, body) = request.into_parts();
    let host = head.uri.host().map(str::to_owned);
    let header = || head.headers.get("host").and_then(|host| host.to_str().ok()).map(str::to_owned);
    Seen {
        host: host.or_else(header).unwrap_or_default(),
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body,
    }
}

#[async_trait]
impl Transport for World {
    async fn send(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, TransportError> {
        let seen = seen(request);
        let host = seen.host.clone();
        let source = || std::io::Error::other("scripted").into();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let fault = self.fault();
        if fault == Fault::Refused {
            return Err(TransportError::Unreachable { host, source: source() });
        }
        match self.answer(seen, fault) {
            Some(reply) => Ok(reply),
            None if fault == Fault::Slow => {
                tokio::time::sleep(within).await;
                Err(TransportError::Late { host, within })
            }
            None => Err(TransportError::Lost { host, source: source() }),
        }
    }
}
