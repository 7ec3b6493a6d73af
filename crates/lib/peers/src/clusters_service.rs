//! The client of Clusters Service.

mod children;
mod clusters;
mod events;
mod shards;

use std::sync::Arc;
use std::time::Duration;

use aro_net::Resolve;
use aro_ocm::{List, Root};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::Instrument as _;

use crate::call::CallContext;
use crate::error::CallError;
use crate::transport::{HyperTransport, Transport};

pub use events::EventPage;

/// The peer's name in errors.
const PEER: &str = "Clusters Service";
/// Items of one page of a list.
const PAGE: usize = 100;
/// Pages of a list that are read at most: two hundred thousand objects.
const MAX_PAGES: usize = 2000;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What stands for itself in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where Clusters Service is, and how long it may take.
#[derive(Debug, Clone)]
pub struct ClustersServiceOptions {
    /// `host:port`.
    pub address: String,
    /// The longest time of one call.
    pub deadline: Duration,
}

/// A client of Clusters Service. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct ClustersService {
    transport: Arc<dyn Transport>,
    origin: Arc<str>,
    deadline: Duration,
    context: Arc<CallContext>,
}

impl std::fmt::Debug for ClustersService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClustersService").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl ClustersService {
    /// A client over sockets.
    pub fn new(options: &ClustersServiceOptions, resolve: Arc<dyn Resolve>) -> Self {
        Self::over(Arc::new(HyperTransport::new(resolve)), options)
    }

    /// A client over any transport.
    pub fn over(transport: Arc<dyn Transport>, options: &ClustersServiceOptions) -> Self {
        Self {
            transport,
            origin: format!("http://{}", options.address).into(),
            deadline: options.deadline,
            context: Arc::default(),
        }
    }

    /// The same client, for calls that are part of a customer's request.
    pub fn in_context(&self, context: CallContext) -> Self {
        Self { context: Arc::new(context), ..self.clone() }
    }

    /// The same client with another deadline.
    pub fn within(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        let (_, body) = self.exchange(Method::GET, path, None, self.deadline).await?;
        read(&body)
    }

    /// `None` if there is no such object.
    async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, CallError> {
        absent(self.get(path).await)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<T, CallError> {
        let (_, body) = self.exchange(method, path, Some(body), self.deadline).await?;
        read(&body)
    }

    /// Whether there was something to delete.
    async fn delete(&self, path: &str) -> Result<bool, CallError> {
        let deleted = self.exchange(Method::DELETE, path, None, self.deadline).await.map(drop);
        Ok(absent(deleted)?.is_some())
    }

    /// Every item of a list, page by page, as `search` and `order` ask for.
    async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, CallError> {
        let mut items = Vec::new();
        for page in 1..=MAX_PAGES {
            let numbers = [("page", page.to_string()), ("size", PAGE.to_string())];
            let query =
                numbers.iter().map(|(name, value)| (*name, value.as_str())).chain(query.iter().copied());
            let listed: List<T> = self.get(&with_query(path, query)).await?;
            let last = listed.items.is_empty();
            items.extend(listed.items);
            if last || items.len() as u64 >= listed.total {
                break;
            }
        }
        Ok(items)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<(StatusCode, Bytes), CallError> {
        let unreadable = |source| CallError::Unreadable { peer: PEER, source };
        let body = body.map(serde_json::to_vec).transpose().map_err(|error| unreadable(error.into()))?;
        let mut request = Request::builder().method(&method).uri(format!("{}{path}", self.origin));
        if let Some(headers) = request.headers_mut() {
            headers.insert(ACCEPT, JSON);
            if body.is_some() {
                headers.insert(CONTENT_TYPE, JSON);
            }
        }
        let request = request.body(Bytes::from(body.unwrap_or_default()));
        let mut request = request.map_err(|error| unreadable(error.into()))?;
        let route = path.split('?').next().unwrap_or_default();
        let span = tracing::debug_span!("clusters_service", %method, route, otel.kind = "client");
        span.in_scope(|| self.context.write(request.headers_mut()));
        let reply = self.transport.send(request, within).instrument(span).await;
        let reply = reply.map_err(|source| CallError::Unreachable { peer: PEER, source })?;
        let (head, body) = reply.into_parts();
        if head.status.is_success() {
            return Ok((head.status, body));
        }
        Err(CallError::of_reply(PEER, head.status, &body))
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|error| CallError::Unreadable { peer: PEER, source: error.into() })
}

fn absent<T>(result: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(CallError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A path of the API that ARO HCP mutates.
fn at(path: &str) -> String {
    format!("{}{path}", Root::AroHcp.path())
}

fn with_query<'a>(path: &str, query: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<String> = query
        .into_iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, QUERY)))
        .collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests;
