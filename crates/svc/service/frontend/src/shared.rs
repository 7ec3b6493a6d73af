//! What all requests share, and one request after it has been read.

use std::future::Future;
use std::sync::Arc;

use aro_arm::hcp::resource::Context;
use aro_arm::hcp::version::ApiVersion;
use aro_arm::subscription::Subscription;
use aro_arm::{FieldError, FieldPath, ResourceId, SystemData};
use aro_base::{SharedClock, Timestamp};
use aro_rp_store::Documents;
use aro_store::Attempts;
use bytes::Bytes;
use http::Method;
use serde_json::Value;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::caller::Caller;
use crate::error::Failure;
use crate::observe::Observer;
use crate::ports::{Preflight, VersionCatalogue};
use crate::query::QueryParameters;
use crate::rendered::Rendered;
use crate::route::Matched;

/// What all requests share. Any replica can answer any request: nothing here is state.
pub struct Shared {
    pub documents: Documents,
    pub clock: SharedClock,
    pub location: String,
    pub max_body: usize,
    pub allow_data_plane_identities: bool,
    pub catalogue: Arc<dyn VersionCatalogue>,
    pub preflight: Arc<dyn Preflight>,
    pub observer: Observer,
    pub rendered: Rendered,
    /// Tells the cascade worker that there is something to do.
    pub cascade: Notify,
}

/// Runs a read-decide-write until its batch meets no conflict. `once` gets the number of failed attempts.
pub async fn retry_conflicts<T, F: Future<Output = Result<T, Failure>>>(
    mut once: impl FnMut(u32) -> F,
) -> Result<T, Failure> {
    let mut attempts = Attempts::default();
    loop {
        match once(attempts.failed()).await {
            Err(Failure::Contention) if attempts.wait_for_next().await => {}
            other => return other,
        }
    }
}

/// A request that passed the pipeline up to its handler.
pub struct Request {
    pub method: Method,
    pub matched: Matched,
    pub query: QueryParameters,
    pub caller: Caller,
    pub body: Bytes,
    /// The newest version for routes that need none.
    pub version: ApiVersion,
    pub subscription: Option<Subscription>,
}

impl Request {
    /// The body as JSON. What is no JSON is the caller's mistake.
    pub fn json(&self) -> Result<Value, Failure> {
        parse_json(&self.body)
    }

    /// The system data that ARM sent; nothing when it sent none.
    pub fn system_data(&self) -> Result<SystemData, Failure> {
        match &self.caller.system_data {
            None => Ok(SystemData::default()),
            Some(header) => SystemData::parse(header).map_err(|error| {
                Failure::BadParameter(format!(
                    "The header 'X-Ms-Arm-Resource-System-Data' is not valid: {error}."
                ))
            }),
        }
    }

    /// The tenant of the caller: what it sent, else its subscription's.
    pub fn tenant_id(&self) -> &str {
        let stored = || self.subscription.as_ref().and_then(Subscription::tenant_id);
        self.caller.tenant_id.as_deref().or_else(stored).unwrap_or_default()
    }

    /// What decides about a write beside its body.
    pub fn context<'a>(
        &'a self,
        id: &'a ResourceId,
        shared: &'a Shared,
        now: Timestamp,
    ) -> Result<Context<'a>, Failure> {
        Ok(Context {
            id,
            location: &shared.location,
            system_data: self.system_data()?,
            identity_url: self.caller.identity_url.as_deref(),
            now,
            new_uid: Uuid::new_v4(),
            experimental: self.subscription.as_ref().is_some_and(Subscription::has_experimental_features),
            allow_data_plane_identities: shared.allow_data_plane_identities,
            preflight: false,
        })
    }
}

/// Reads JSON, with an ARM error for what is none.
pub fn parse_json(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let why = if body.is_empty() { "the body is empty".to_owned() } else { error.to_string() };
        Failure::Problems(vec![FieldError::undecodable(&FieldPath::root(), why)])
    })
}
