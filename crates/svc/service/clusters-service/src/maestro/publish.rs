//! Publishes bundles.

use std::collections::HashMap;
use std::time::Duration;

use aro_base::{Class, Classify, SharedClock};
use aro_bundle::{Action, EventError};
use aro_event_service::{Client, ClientError};
use async_trait::async_trait;
use parking_lot::Mutex;
use tonic::Code;
use tonic::transport::Channel;
use uuid::Uuid;

use super::event::{self, Payload, Route, Trace};
use crate::manifests::Bundle;

/// How long one call may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// Bundles whose published content is remembered; more are published again, which changes nothing.
const MAX_KNOWN: usize = 200_000;

/// Why a bundle was not published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    /// Maestro refused the bundle.
    #[error("Maestro refused to {action} bundle {id} of {consumer}: {message}")]
    Refused { action: &'static str, id: Uuid, consumer: String, message: String },
    /// Maestro did not answer.
    #[error("Maestro did not {action} bundle {id} of {consumer}: {message}")]
    Unavailable { action: &'static str, id: Uuid, consumer: String, message: String },
    /// The bundle cannot be written.
    #[error("write bundle {id}")]
    Event {
        id: Uuid,
        #[source]
        source: EventError,
    },
}

impl Classify for PublishError {
    fn class(&self) -> Class {
        match self {
            Self::Refused { .. } | Self::Event { .. } => Class::Terminal,
            Self::Unavailable { .. } => Class::Retry,
        }
    }
}

/// Publishes bundles of a shard.
#[async_trait]
pub(crate) trait Publisher: Send + Sync + 'static {
    /// Makes a bundle as given; returns whether something was sent.
    async fn put(&self, route: &Route, bundle: &Bundle, trace: &Trace) -> Result<bool, PublishError>;

    /// Requests the deletion of a bundle.
    async fn delete(&self, route: &Route, id: Uuid, trace: &Trace) -> Result<(), PublishError>;

    /// Whether Maestro has no such bundle: also what it had is removed from the management cluster.
    async fn is_gone(&self, route: &Route, id: Uuid) -> Result<bool, PublishError>;

    /// Publishes the bundle again at the next occasion, even if it is as it was.
    fn forget(&self, id: Uuid);
}

/// Publishes over gRPC.
pub(crate) struct Sources {
    client: Client<Channel>,
    clock: SharedClock,
    /// The content that Maestro stored last, by bundle.
    published: Mutex<HashMap<Uuid, String>>,
}

/// What Maestro answered.
enum Answer {
    Done,
    Exists,
    NotFound,
    Conflict(String),
}

impl Sources {
    pub(crate) fn new(client: Client<Channel>, clock: SharedClock) -> Self {
        Self { client, clock, published: Mutex::default() }
    }

    async fn send(&self, route: &Route, id: Uuid, event: &aro_bundle::Event) -> Result<Answer, PublishError> {
        let action = match event.kind.action {
            Action::Create => "create",
            Action::Delete => "delete",
            _ => "update",
        };
        let consumer = route.consumer.clone();
        let unavailable = |message: String| PublishError::Unavailable {
            action,
            id,
            consumer: route.consumer.clone(),
            message,
        };
        let mut client = self.client.clone();
        let answer = tokio::time::timeout(DEADLINE, client.publish(event)).await;
        let error = match answer {
            Ok(Ok(())) => return Ok(Answer::Done),
            Ok(Err(error)) => error,
            Err(_) => return Err(unavailable(format!("no answer within {DEADLINE:?}"))),
        };
        let ClientError::Refused(status) = &error else { return Err(unavailable(error.to_string())) };
        let (reason, message) = reason(status.message());
        match (status.code(), reason.as_deref()) {
            (Code::AlreadyExists, _) | (_, Some("AlreadyExists")) => Ok(Answer::Exists),
            (Code::NotFound, _) | (_, Some("NotFound")) => Ok(Answer::NotFound),
            (Code::Aborted, _) | (_, Some("Conflict")) => Ok(Answer::Conflict(message)),
            // The original server answers everything with `Unknown` and a text.
            (Code::Unknown, _) if message.contains("already exist") => Ok(Answer::Exists),
            (Code::Unknown, _) if message.contains("not found") => Ok(Answer::NotFound),
            (Code::Unknown, _)
                if message.contains("under deletion") || message.contains("not the latest") =>
            {
                Ok(Answer::Conflict(message))
            }
            (Code::InvalidArgument | Code::PermissionDenied, _) => {
                Err(PublishError::Refused { action, id, consumer, message })
            }
            _ => Err(unavailable(message)),
        }
    }

    fn remember(&self, id: Uuid, hash: String) {
        let mut published = self.published.lock();
        if published.len() >= MAX_KNOWN {
            published.clear();
        }
        published.insert(id, hash);
    }
}

/// The reason and the message of a refusal, which may be a Kubernetes status as JSON.
fn reason(text: &str) -> (Option<String>, String) {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let member = |name: &str| {
        value.pointer(&format!("/ErrStatus/{name}")).and_then(serde_json::Value::as_str).map(str::to_owned)
    };
    (member("reason"), member("message").unwrap_or_else(|| text.to_owned()))
}

#[async_trait]
impl Publisher for Sources {
    async fn put(&self, route: &Route, bundle: &Bundle, trace: &Trace) -> Result<bool, PublishError> {
        let id = bundle.id;
        let failed = |source| PublishError::Event { id, source };
        let payload = Payload::of(bundle).map_err(|error| failed(EventError::Data(error.to_string())))?;
        let known = self.published.lock().get(&id).cloned();
        if known.as_ref() == Some(&payload.hash) {
            return Ok(false);
        }
        // What was published before exists; anything else probably not.
        let order = match known {
            Some(_) => [Action::Update, Action::Create],
            None => [Action::Create, Action::Update],
        };
        let mut conflict = String::new();
        for action in order {
            let event =
                event::put(route, action, bundle, &payload, trace, self.clock.now()).map_err(failed)?;
            match self.send(route, id, &event).await? {
                Answer::Done => {
                    self.remember(id, payload.hash);
                    return Ok(true);
                }
                Answer::Exists | Answer::NotFound => {}
                Answer::Conflict(message) => conflict = message,
            }
        }
        let consumer = route.consumer.clone();
        Err(PublishError::Unavailable { action: "update", id, consumer, message: conflict })
    }

    async fn delete(&self, route: &Route, id: Uuid, trace: &Trace) -> Result<(), PublishError> {
        self.forget(id);
        match self.send(route, id, &event::delete(route, id, trace, self.clock.now())).await? {
            Answer::Conflict(message) => {
                let consumer = route.consumer.clone();
                Err(PublishError::Unavailable { action: "delete", id, consumer, message })
            }
            Answer::Done | Answer::Exists | Answer::NotFound => Ok(()),
        }
    }

    async fn is_gone(&self, route: &Route, id: Uuid) -> Result<bool, PublishError> {
        let event = event::probe(route, id, self.clock.now());
        let event = event.map_err(|source| PublishError::Event { id, source })?;
        Ok(matches!(self.send(route, id, &event).await?, Answer::NotFound))
    }

    fn forget(&self, id: Uuid) {
        self.published.lock().remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_as_kubernetes_statuses_or_as_text() {
        let text = r#"{"ErrStatus":{"reason":"Conflict","message":"under deletion","code":409}}"#;
        assert_eq!(reason(text), (Some("Conflict".to_owned()), "under deletion".to_owned()));
        assert_eq!(reason("maestro-7: x"), (None, "maestro-7: x".to_owned()));
    }
}
