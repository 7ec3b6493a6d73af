//! A Clusters Service that does what a test asks for: it keeps objects, tells of changes in an event feed, and moves states
//! only when the test moves them. Faults are those of a network: replies are lost, requests are held or refused.
//!
//! It takes the place of a socket, so a test sees every request.

mod objects;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use aro_ocm::ErrorBody;
use aro_ocm::Root;
use aro_peers::{Transport, TransportError};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use objects::Objects;

/// What happens to one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// It is carried out, and its reply is lost.
    LostReply,
    /// It does not arrive.
    Unreachable,
    /// It is answered with this status and reason.
    Refuse(u16, String),
    /// It arrives when the test releases it; the caller has long given up.
    Delayed,
}

#[derive(Default)]
struct Script {
    /// For the next requests of this method whose path contains the text.
    faults: Vec<(Method, String, VecDeque<Fault>)>,
    delayed: Vec<(Method, String, Value)>,
    requests: Vec<(Method, String)>,
    headers: Vec<http::HeaderMap>,
    away: bool,
}

/// The scripted Clusters Service. Cloning gives another handle.
#[derive(Clone, Default)]
pub struct ScriptedClustersService {
    objects: Arc<Mutex<Objects>>,
    script: Arc<Mutex<Script>>,
    changed: Arc<Notify>,
}

type Reply = (StatusCode, Value);

impl ScriptedClustersService {
    /// The next matching requests fare like this, in order.
    pub fn fault(&self, method: Method, path: &str, faults: impl IntoIterator<Item = Fault>) {
        self.script.lock().faults.push((method, path.to_owned(), faults.into_iter().collect()));
    }

    /// Whether nothing arrives.
    pub fn set_away(&self, away: bool) {
        self.script.lock().away = away;
    }

    /// Carries out the requests that were delayed.
    pub fn release_delayed(&self) {
        let delayed = std::mem::take(&mut self.script.lock().delayed);
        for (method, path, body) in delayed {
            let _ = self.objects.lock().answer(&method, &path, &body);
        }
        self.changed.notify_waiters();
    }

    /// How many requests of a method had a path that contains the text.
    pub fn count(&self, method: &Method, path: &str) -> usize {
        let script = self.script.lock();
        script.requests.iter().filter(|(known, at)| known == method && at.contains(path)).count()
    }

    /// The headers of every request so far.
    pub fn headers(&self) -> Vec<http::HeaderMap> {
        self.script.lock().headers.clone()
    }

    /// The objects below a path, by path.
    pub fn objects(&self, path: &str) -> Vec<(String, Value)> {
        self.objects.lock().below(path)
    }

    /// Changes an object as the service itself does, and tells of it.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        self.objects.lock().change(path, change);
        self.changed.notify_waiters();
    }

    /// Removes an object and everything below it, as the end of a deletion does.
    pub fn remove(&self, path: &str) {
        self.objects.lock().remove(path);
        self.changed.notify_waiters();
    }

    /// Forgets old events: cursors that were handed out are no longer valid.
    pub fn expire_cursors(&self) {
        self.objects.lock().expire();
        self.changed.notify_waiters();
    }

    /// Adds an object that no request created.
    pub fn put(&self, path: &str, object: Value) {
        self.objects.lock().put(path, object);
        self.changed.notify_waiters();
    }

    async fn events(&self, query: &str) -> Reply {
        let value = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
                .map(ToOwned::to_owned)
        };
        let Some(after) = value("after") else {
            let cursor = self.objects.lock().head();
            return (StatusCode::OK, json!({"kind": "EventList", "items": [], "cursor": cursor}));
        };
        let wait = value("timeout").and_then(|text| text.parse().ok()).unwrap_or(0);
        let until = tokio::time::Instant::now() + Duration::from_secs(wait);
        loop {
            let changed = self.changed.notified();
            match self.objects.lock().after(&after) {
                None => return refusal(410, "the cursor has expired"),
                Some((items, cursor)) if !items.is_empty() => {
                    return (StatusCode::OK, json!({"kind": "EventList", "items": items, "cursor": cursor}));
                }
                Some(_) => {}
            }
            if tokio::time::timeout_at(until, changed).await.is_err() {
                return (StatusCode::OK, json!({"kind": "EventList", "items": [], "cursor": after}));
            }
        }
    }

    fn next_fault(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut script = self.script.lock();
        script.requests.push((method.clone(), path.to_owned()));
        let matching = script.faults.iter_mut().find(|(known, part, faults)| {
            known == method && path.contains(part.as_str()) && !faults.is_empty()
        });
        matching.and_then(|(_, _, faults)| faults.pop_front())
    }
}

fn refusal(status: u16, reason: &str) -> Reply {
    let body = serde_json::to_value(ErrorBody::new(Root::AroHcp, status, reason)).unwrap_or_default();
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body)
}

fn lost() -> TransportError {
    TransportError::Lost { host: "scripted".to_owned(), source: "the reply is lost".into() }
}

#[async_trait]
impl Transport for ScriptedClustersService {
    async fn send(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, TransportError> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let body: Value = serde_json::from_slice(request.body()).unwrap_or(Value::Null);
        self.script.lock().headers.push(request.headers().clone());
        if self.script.lock().away {
            return Err(TransportError::Late { host: "scripted".to_owned(), within });
        }
        let dry_run = query.contains("dryRun=true");
        let (status, body) =
            match self.next_fault(&method, &path).filter(|fault| !(dry_run && *fault == Fault::Delayed)) {
                Some(Fault::Unreachable) => return Err(lost()),
                Some(Fault::Refuse(status, reason)) => refusal(status, &reason),
                Some(Fault::Delayed) => {
                    self.script.lock().delayed.push((method, path, body));
                    return Err(TransportError::Late { host: "scripted".to_owned(), within });
                }
                fault => {
                    let reply = match path.as_str() {
                        aro_ocm::event::PATH => self.events(&query).await,
                        _ if dry_run => (StatusCode::NO_CONTENT, Value::Null),
                        _ => self.objects.lock().answer(&method, &path, &body),
                    };
                    self.changed.notify_waiters();
                    if fault == Some(Fault::LostReply) {
                        return Err(lost());
                    }
                    reply
                }
            };
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        Ok(response)
    }
}
