//! A principal without rights, registered through Microsoft Graph.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_base::Secret;
use aro_cloud::{Cloud, Scope, SharedCredential, Transport};
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use uuid::Uuid;

/// How long one request may take.
const WITHIN: Duration = Duration::from_secs(20);

/// An application with a secret.
#[derive(Clone)]
pub struct Principal {
    pub object_id: Uuid,
    pub credential: SharedCredential,
}

impl Principal {
    /// Registers one in the customer's tenant.
    pub async fn register(
        cloud: &Cloud,
        transport: Arc<dyn Transport>,
        customer: &SharedCredential,
        tenant: Uuid,
    ) -> Result<Self> {
        let token = customer.token(&Scope::new("https://graph.microsoft.com")).await?;
        let graph = Graph { transport, token: token.secret.expose().clone() };
        let application = graph.post("applications", &json!({"displayName": "worker"})).await?;
        let (id, app_id) = (text(&application, "id")?, text(&application, "appId")?);
        let password = graph.post(&format!("applications/{id}/addPassword"), &json!({})).await?;
        let principal = graph.post("servicePrincipals", &json!({"appId": app_id})).await?;
        let secret = Secret::new(text(&password, "secretText")?.to_owned());
        Ok(Self {
            object_id: text(&principal, "id")?.parse()?,
            credential: cloud.client_secret(&tenant.to_string(), app_id, secret),
        })
    }
}

struct Graph {
    transport: Arc<dyn Transport>,
    token: String,
}

impl Graph {
    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("https://graph.microsoft.com/v1.0/{path}"))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(Bytes::from(body.to_string()))?;
        let reply = self.transport.send(request, WITHIN).await?;
        let shown = String::from_utf8_lossy(reply.body()).into_owned();
        ensure!(reply.status().is_success(), "{path}: {} {shown}", reply.status());
        Ok(serde_json::from_slice(reply.body())?)
    }
}

fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str> {
    value.get(name).and_then(Value::as_str).with_context(|| format!("{name} is in {value}"))
}
