//! What ARM notes of the answers of other resource providers, so that generic lists and the deletion of groups know their resources.

use aro_arm::ResourceId;
use aro_arm_server::Failure;
use aro_azure_local_engine::Cloud;
use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::Value;

/// The largest answer whose body is read; what is larger passes as an error of the provider.
const MOST_BYTES: usize = 8 << 20;

/// A forwarded request, as far as its answer changes what ARM knows.
pub(crate) struct Tracking {
    method: Method,
    id: ResourceId,
    caller: String,
}

impl Tracking {
    /// `None` for requests that name no resource.
    pub(crate) fn of(method: &Method, path: &str, caller: &str) -> Option<Self> {
        // Clients double slashes.
        let path: String =
            path.split('/').filter(|part| !part.is_empty()).flat_map(|part| ["/", part]).collect();
        let id = ResourceId::parse(&path).ok()?;
        id.namespace()?;
        Some(Self { method: method.clone(), id, caller: caller.to_owned() })
    }

    /// Notes an answer and passes it on. The provider's answer counts even if the record cannot be written.
    pub(crate) async fn note(self, cloud: &Cloud, response: Response) -> Response {
        let status = response.status();
        let (noted, response) = match (&self.method, status) {
            (&Method::PUT | &Method::PATCH, status) if status.is_success() => {
                self.note_write(cloud, response).await
            }
            (&Method::DELETE, StatusCode::ACCEPTED) => (cloud.track_deletion(&self.id).await, response),
            (&Method::DELETE, StatusCode::OK | StatusCode::NO_CONTENT)
            | (&Method::GET, StatusCode::NOT_FOUND) => (cloud.untrack(&self.id).await, response),
            _ => (Ok(()), response),
        };
        if let Err(failure) = noted {
            tracing::warn!(id = %self.id, ?failure, "record of a forwarded resource not written");
        }
        response
    }

    async fn note_write(&self, cloud: &Cloud, response: Response) -> (Result<(), Failure>, Response) {
        let (head, body) = response.into_parts();
        let Ok(bytes) = to_bytes(body, MOST_BYTES).await else {
            let mut failed = Response::new(Body::empty());
            *failed.status_mut() = StatusCode::BAD_GATEWAY;
            return (Ok(()), failed);
        };
        let noted = match serde_json::from_slice::<Value>(&bytes) {
            Ok(shown) => cloud.track(&self.id, &shown, Some(&self.caller)).await,
            Err(_) => Ok(()),
        };
        (noted, Response::from_parts(head, Body::from(bytes)))
    }
}
