//! Resource Manager: requests on resources, by id and api-version.
//!
//! `get`, `find`, `list` read. `put`, `patch`, `delete`, `post` also wait for the operation that they start. Effects happen
//! once, whatever is lost on the way: see [`ArmClient::put`].

mod ensure;
mod operation;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aro_arm::ResourceId;
use aro_net::Backoff;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

pub use ensure::Update;
pub(crate) use ensure::unchanged;
pub use write::Precondition;

use crate::credential::Scope;
use crate::error::{CloudError, Failure};
use crate::pipeline::{Outgoing, Pipeline, Progress, service_error};

/// Pages of a list that are followed.
const MAX_PAGES: usize = 1000;
/// Items of a list that are kept.
const MAX_ITEMS: usize = 100_000;

/// A client of Resource Manager. Cloning is cheap; `with_…` changes a clone only.
#[derive(Debug, Clone)]
pub struct ArmClient {
    pipeline: Pipeline,
    endpoint: Url,
    audience: String,
    polls: Backoff,
    operation_deadline: Duration,
    deadline: Duration,
    role_wait: Option<Duration>,
    correlation_id: Option<String>,
    writes: Writes,
}

/// How many PUTs of a client and its clones were accepted.
#[derive(Debug, Clone, Default)]
pub struct Writes(Arc<AtomicUsize>);

impl Writes {
    /// So many.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl ArmClient {
    pub(crate) fn new(
        pipeline: Pipeline,
        endpoint: Url,
        audience: String,
        polls: Backoff,
        operation_deadline: Duration,
    ) -> Self {
        let deadline = pipeline.core.deadline;
        Self {
            pipeline,
            endpoint,
            audience,
            polls,
            operation_deadline,
            deadline,
            role_wait: None,
            correlation_id: None,
            writes: Writes::default(),
        }
    }

    /// The same client with a count of its own of what it writes: whether an `ensure_…` found everything as wanted.
    pub fn counting_writes(&self) -> (Self, Writes) {
        let writes = Writes::default();
        (Self { writes: writes.clone(), ..self.clone() }, writes)
    }

    /// Calls may take this long, with all attempts.
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// Operations are followed this long.
    pub fn with_operation_deadline(&self, operation_deadline: Duration) -> Self {
        Self { operation_deadline, ..self.clone() }
    }

    /// Calls carry this correlation id, which links them with the request that caused them.
    pub fn with_correlation_id(&self, correlation_id: impl Into<String>) -> Self {
        Self { correlation_id: Some(correlation_id.into()), ..self.clone() }
    }

    /// A missing role is waited for this long: it was just assigned, and takes minutes to be known everywhere.
    pub fn waiting_for_roles(&self, role_wait: Duration) -> Self {
        Self { role_wait: Some(role_wait), ..self.clone() }
    }

    /// Reads a resource; an error if there is none.
    pub async fn get<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: &str,
    ) -> Result<T, CloudError> {
        let out = self.outgoing(Method::GET, id, api_version)?;
        let mut progress = self.progress();
        let reply = self.pipeline.exchange(&out, &mut progress).await?;
        self.decode(&out, &progress, &self.accept(&out, &progress, reply)?)
    }

    /// Reads a resource; `None` if there is none.
    pub async fn find<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: &str,
    ) -> Result<Option<T>, CloudError> {
        match self.get(id, api_version).await {
            Ok(resource) => Ok(Some(resource)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads every page of a list. `path` is a collection, e.g. `/subscriptions/{s}/resourceGroups`; `query` holds further
    /// parameters such as `$filter`.
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        api_version: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, CloudError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase", bound = "T: DeserializeOwned")]
        struct Page<T> {
            #[serde(default = "Vec::new")]
            value: Vec<T>,
            next_link: Option<String>,
        }
        let mut out = self.outgoing_path(Method::GET, path, api_version)?;
        out.url.query_pairs_mut().extend_pairs(query);
        let mut items = Vec::new();
        for _ in 0..MAX_PAGES {
            let mut progress = self.progress();
            let reply = self.pipeline.exchange(&out, &mut progress).await?;
            let page: Page<T> = self.decode(&out, &progress, &self.accept(&out, &progress, reply)?)?;
            items.extend(page.value);
            let Some(next) = page.next_link.filter(|link| !link.is_empty()) else { return Ok(items) };
            if items.len() > MAX_ITEMS {
                break;
            }
            let next = out.url.join(&next).ok();
            let broken = || progress.error(&out, Failure::Protocol("the link to the next page is not a URL"));
            out.url = self.check_link(&out, &progress, next.ok_or_else(broken)?)?;
        }
        Err(self.progress().error(&out, Failure::Protocol("the list has too many pages or items")))
    }

    pub(crate) fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_deref()
    }

    fn progress(&self) -> Progress {
        Progress::new(self.deadline, self.role_wait, self.correlation_id.clone())
    }

    fn outgoing(&self, method: Method, id: &ResourceId, api_version: &str) -> Result<Outgoing, CloudError> {
        let mut out = self.outgoing_path(method, id.as_str(), api_version)?;
        out.subscription = id.subscription().map(str::to_owned);
        Ok(out)
    }

    fn outgoing_path(&self, method: Method, path: &str, api_version: &str) -> Result<Outgoing, CloudError> {
        let Some(url) = resource_url(&self.endpoint, path, api_version) else {
            let correlation_id = self.correlation_id.clone().unwrap_or_default();
            let failure = Failure::Protocol("the resource id cannot be part of a URL");
            return Err(CloudError::new(&method, path, correlation_id, failure));
        };
        let mut out = Outgoing::new(method, url, path).with_scope(Scope::new(&self.audience));
        let mut segments = path.trim_start_matches('/').split('/');
        let in_subscription = segments.next().is_some_and(|word| word.eq_ignore_ascii_case("subscriptions"));
        out.subscription = segments.next().filter(|_| in_subscription).map(str::to_owned);
        Ok(out)
    }

    /// A reply that is a success.
    fn accept(
        &self,
        out: &Outgoing,
        progress: &Progress,
        reply: Response<Bytes>,
    ) -> Result<Response<Bytes>, CloudError> {
        match reply.status() {
            status if status.is_success() => Ok(reply),
            StatusCode::PRECONDITION_FAILED => Err(progress.error(out, Failure::Changed)),
            _ => {
                let error = service_error(&reply, self.pipeline.core.clock.now());
                Err(progress.error(out, Failure::Refused(error)))
            }
        }
    }

    #[expect(clippy::unused_self, reason = "reads like its neighbours")]
    fn decode<T: DeserializeOwned>(
        &self,
        out: &Outgoing,
        progress: &Progress,
        reply: &Response<Bytes>,
    ) -> Result<T, CloudError> {
        serde_json::from_slice(reply.body())
            .map_err(|_| progress.error(out, Failure::Protocol("the body is not the expected JSON")))
    }

    /// Links in replies carry our token to wherever they lead: only to Resource Manager itself.
    fn check_link(&self, out: &Outgoing, progress: &Progress, link: Url) -> Result<Url, CloudError> {
        match link.origin() == self.endpoint.origin() {
            true => Ok(link),
            false => Err(progress.error(out, Failure::Protocol("a link leads to another host"))),
        }
    }
}

/// The URL of a path; `None` if a segment would change its meaning.
fn resource_url(endpoint: &Url, path: &str, api_version: &str) -> Option<Url> {
    let mut url = endpoint.clone();
    let segments = path.trim_matches('/').split('/');
    if segments.clone().any(|segment| segment.is_empty() || segment == "." || segment == "..") {
        return None;
    }
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    url.query_pairs_mut().append_pair("api-version", api_version);
    Some(url)
}

/// The body of a reply; `null` if it is empty or not JSON.
fn body_value(reply: &Response<Bytes>) -> Value {
    serde_json::from_slice(reply.body()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_paths_stay_what_they_are() {
        let endpoint = Url::parse("https://management.azure.com").unwrap();
        let url = |path| resource_url(&endpoint, path, "2024-07-01").map(String::from);
        assert_eq!(
            url("/subscriptions/s/resourceGroups/a b/providers/Microsoft.Network/dnsZones/z/A/*.apps")
                .unwrap(),
            "https://management.azure.com/subscriptions/s/resourceGroups/a%20b/providers/Microsoft.Network/dnsZones/z/A/*.apps?api-version=2024-07-01"
        );
        for path in ["/subscriptions/../x", "/subscriptions//x", "/subscriptions/./x", ""] {
            assert_eq!(url(path), None, "{path}");
        }
        assert!(url("/subscriptions/a?b#c").unwrap().contains("a%3Fb%23c"));
    }
}
