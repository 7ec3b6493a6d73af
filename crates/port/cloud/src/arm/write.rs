//! Requests with an effect.
//!
//! A reply can be lost after the effect. DELETE and PATCH may simply be repeated. Before a PUT is repeated the resource is
//! read: if it is as wanted, the first attempt did it. An action (POST) is repeated only when it certainly had no effect,
//! or when its caller knows that repeating is harmless.

use aro_arm::ResourceId;
use bytes::Bytes;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::Value;

use super::operation::{is_final, reading};
use super::{ArmClient, body_value};
use crate::compare::{covers, provisioning_state};
use crate::error::{CloudError, Failure};
use crate::pipeline::{Outgoing, Progress, Sent};
use crate::retry::Repeat;

/// What must hold for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    None,
    /// The resource does not exist.
    Absent,
    /// The resource has not changed since it had this etag.
    Unchanged(String),
}

/// How a PUT was applied.
enum Put {
    /// By a reply, which may have started an operation.
    Replied(Response<Bytes>),
    /// By an attempt whose reply was lost; this is the resource.
    Found(Value),
}

impl ArmClient {
    /// Creates or replaces a resource, waits for the operation, and returns the resource.
    ///
    /// In effect it happens once: after a lost reply the resource is read and compared before anything is sent again, and a
    /// precondition that our own first attempt broke counts as success.
    pub async fn put(
        &self,
        id: &ResourceId,
        api_version: &str,
        body: &Value,
        precondition: &Precondition,
    ) -> Result<Value, CloudError> {
        let mut out = self.write_request(Method::PUT, id, api_version, body)?;
        out.repeat = Repeat::AfterLook;
        let mut progress = self.progress();
        let header = match precondition {
            Precondition::None => None,
            Precondition::Absent => Some((IF_NONE_MATCH, HeaderValue::from_static("*"))),
            Precondition::Unchanged(etag) => {
                let invalid = |_| progress.error(&out, Failure::Protocol("the etag cannot be a header"));
                Some((IF_MATCH, HeaderValue::try_from(etag.as_str()).map_err(invalid)?))
            }
        };
        out.headers.extend(header);
        let applied = self.put_once(&out, &mut progress, body).await?;
        self.writes.add();
        match applied {
            Put::Replied(reply) => self.follow(&out, &progress, reply).await,
            Put::Found(resource) => self.settle(&out, &progress, resource).await,
        }
    }

    async fn put_once(
        &self,
        out: &Outgoing,
        progress: &mut Progress,
        body: &Value,
    ) -> Result<Put, CloudError> {
        loop {
            match self.pipeline.send(out, progress).await? {
                Sent::Reply(reply) => {
                    let broken = reply.status() == StatusCode::PRECONDITION_FAILED;
                    if broken && progress.uncertain {
                        let found = self.look(out, progress, body).await?;
                        return found.map(Put::Found).ok_or_else(|| progress.error(out, Failure::Changed));
                    }
                    return self.accept(out, progress, reply).map(Put::Replied);
                }
                Sent::Uncertain => {
                    if let Some(resource) = self.look(out, progress, body).await? {
                        return Ok(Put::Found(resource));
                    }
                }
            }
        }
    }

    /// The resource, if it is as the body wants it and has not failed.
    async fn look(
        &self,
        out: &Outgoing,
        progress: &mut Progress,
        body: &Value,
    ) -> Result<Option<Value>, CloudError> {
        let request = reading(out, out.url.clone());
        let reply = self.pipeline.exchange(&request, progress).await?;
        if reply.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let resource = body_value(&self.accept(&request, progress, reply)?);
        let failed = provisioning_state(&resource)
            .is_some_and(|state| is_final(state) && !state.eq_ignore_ascii_case("succeeded"));
        Ok((!failed && covers(&resource, body)).then_some(resource))
    }

    /// Changes the members in the body (JSON merge), waits for the operation, and returns the resource.
    pub async fn patch(&self, id: &ResourceId, api_version: &str, body: &Value) -> Result<Value, CloudError> {
        let out = self.write_request(Method::PATCH, id, api_version, body)?;
        let mut progress = self.progress();
        let reply = self.pipeline.exchange(&out, &mut progress).await?;
        let reply = self.accept(&out, &progress, reply)?;
        self.follow(&out, &progress, reply).await
    }

    /// Deletes a resource and waits until it is gone. One that does not exist is gone.
    pub async fn delete(&self, id: &ResourceId, api_version: &str) -> Result<(), CloudError> {
        let out = self.outgoing(Method::DELETE, id, api_version)?;
        let mut progress = self.progress();
        let reply = self.pipeline.exchange(&out, &mut progress).await?;
        if reply.status() == StatusCode::NOT_FOUND {
            return Ok(());
        }
        let reply = self.accept(&out, &progress, reply)?;
        self.follow(&out, &progress, reply).await.map(drop)
    }

    /// Performs an action once: it is sent again only if it certainly had no effect. A lost reply is an error.
    pub async fn post(
        &self,
        id: &ResourceId,
        action: &str,
        api_version: &str,
        body: &Value,
    ) -> Result<Value, CloudError> {
        self.act(id, action, api_version, body, Repeat::IfUnapplied).await
    }

    /// Performs an action that may be repeated without harm, e.g. one that only reads.
    pub async fn post_idempotent(
        &self,
        id: &ResourceId,
        action: &str,
        api_version: &str,
        body: &Value,
    ) -> Result<Value, CloudError> {
        self.act(id, action, api_version, body, Repeat::Always).await
    }

    async fn act(
        &self,
        id: &ResourceId,
        action: &str,
        api_version: &str,
        body: &Value,
        repeat: Repeat,
    ) -> Result<Value, CloudError> {
        let mut out = self.outgoing_path(Method::POST, &format!("{id}/{action}"), api_version)?;
        if !body.is_null() {
            out = self.with_body(out, body)?;
        }
        out.repeat = repeat;
        let mut progress = self.progress();
        let reply = self.pipeline.exchange(&out, &mut progress).await?;
        let reply = self.accept(&out, &progress, reply)?;
        self.follow(&out, &progress, reply).await
    }

    fn write_request(
        &self,
        method: Method,
        id: &ResourceId,
        api_version: &str,
        body: &Value,
    ) -> Result<Outgoing, CloudError> {
        let out = self.outgoing(method, id, api_version)?;
        self.with_body(out, body)
    }

    fn with_body(&self, out: Outgoing, body: &Value) -> Result<Outgoing, CloudError> {
        let (method, target) = (out.method.clone(), out.target.clone());
        let correlation_id = self.correlation_id.clone().unwrap_or_default();
        out.with_json(body).map_err(|_| {
            CloudError::new(&method, target, correlation_id, Failure::Protocol("the body cannot be JSON"))
        })
    }
}
