//! A request that passed the pipeline, and the loop of its write.

use std::future::Future;

use aro_arm::subscription::Subscription;
use aro_arm::{FieldError, FieldPath, SystemData};
use aro_store::Attempts;
use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::caller::Caller;
use crate::failure::Failure;
use crate::query::QueryParameters;
use crate::route::Matched;

/// A request as its handler sees it.
#[derive(Debug)]
pub struct Request<E, V> {
    pub method: Method,
    pub matched: Matched<E>,
    pub query: QueryParameters,
    pub caller: Caller,
    pub body: Bytes,
    /// The negotiated api-version; [`Provider::UNVERSIONED`](crate::Provider::UNVERSIONED) on routes that need none.
    pub version: V,
    /// Its name; empty on routes that need none.
    pub api_version: &'static str,
    /// Present on routes that depend on the state of the subscription.
    pub subscription: Option<Subscription>,
}

impl<E, V> Request<E, V> {
    /// The body as JSON. A body that is not JSON is the caller's mistake.
    pub fn json(&self) -> Result<Value, Failure> {
        parse_json(&self.body)
    }

    /// The system data that ARM sent; the default when it sent none.
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

    /// The tenant of the caller: the one it sent, else its subscription's.
    pub fn tenant_id(&self) -> &str {
        let stored = || self.subscription.as_ref().and_then(Subscription::tenant_id);
        self.caller.tenant_id.as_deref().or_else(stored).unwrap_or_default()
    }
}

/// Reads JSON, with an ARM error for anything else.
pub fn parse_json(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let why = if body.is_empty() { "the body is empty".to_owned() } else { error.to_string() };
        Failure::Problems(vec![FieldError::undecodable(&FieldPath::root(), why)])
    })
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
