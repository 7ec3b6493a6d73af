//! A client that counts its requests, and rejects some.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;

/// The requests: method, path and query.
#[derive(Debug, Clone, Default)]
pub struct RequestCounter(Arc<Mutex<Vec<(String, String)>>>);

impl RequestCounter {
    /// A counting client. Requests for which `reject` returns true are answered with 403.
    pub fn on(client: &Client, refuse: fn(&str, &str) -> bool) -> (Self, Client) {
        let request_counter = Self::default();
        let (inside, client) = (request_counter.clone(), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inside, client) = (inside.clone(), client.clone());
            async move {
                let method = request.method().to_string();
                let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
                if refuse(&method, &path) {
                    return Ok(refused());
                }
                inside.0.lock().push((method, path));
                // The in-process server always answers.
                Ok::<_, Infallible>(client.send(request).await.unwrap_or_else(|_| refused()))
            }
        });
        (request_counter, Client::new(service, "default"))
    }

    /// Requests with this method and this part in their path, without lists and watches.
    pub fn count(&self, method: &str, part: &str) -> usize {
        let all = self.0.lock();
        let asks = all.iter().filter(|(known, path)| known == method && path.contains(part));
        asks.filter(|(_, path)| !path.contains("watch=") && !path.contains("limit=")).count()
    }

    /// Resets the counts.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

fn refused() -> Response<Body> {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "not allowed to look",
        "reason": "Forbidden", "code": 403});
    let mut response = Response::new(Body::from(body.to_string().into_bytes()));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}
