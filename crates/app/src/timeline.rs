//! The decision journal over the listener for operators: `GET /aro/v1/timeline?id=…`, and the client that `aro why` is.
//!
//! Any process that shares the store answers for all roles, for the journal is in the store.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use aro_base::chain;
use aro_decisions::Timeline;
use aro_store::SharedStore;
use axum::Router;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HOST};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpStream;

/// Where it is served.
const PATH: &str = "/aro/v1/timeline";
/// The file in the data directory with the address of the listener.
const ADDRESS: &str = "admin.addr";
/// A call takes at most this long.
const WITHIN: Duration = Duration::from_secs(30);
/// The largest answer.
const MAX_ANSWER: usize = 64 << 20;
/// The longest id that is looked up.
const MAX_ID: usize = 2048;

/// The endpoint.
pub(crate) fn router(store: SharedStore) -> Router {
    Router::new().route(PATH, get(read)).with_state(store)
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    id: String,
}

async fn read(State(store): State<SharedStore>, Query(asked): Query<Asked>) -> Response {
    if asked.id.is_empty() || asked.id.len() > MAX_ID {
        return refused(
            StatusCode::BAD_REQUEST,
            "the parameter `id` must name a resource, an operation or a bundle",
        );
    }
    match Timeline::read(&store, &asked.id).await {
        Ok(timeline) => {
            let blockers: Vec<_> = timeline.blockers().into_iter().cloned().collect();
            let mut body = json!(timeline);
            body["blockers"] = json!(blockers);
            ([(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
        }
        Err(error) => {
            tracing::warn!(error = %chain(&error), "timeline not read");
            refused(StatusCode::SERVICE_UNAVAILABLE, "the journal cannot be read now")
        }
    }
}

fn refused(status: StatusCode, message: &str) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], json!({"message": message}).to_string()).into_response()
}

/// Writes the address of the listener, for `aro why`.
pub(crate) fn write_address(data: &Path, address: SocketAddr) -> io::Result<()> {
    aro_files::create_dir(data)?;
    aro_files::replace(&data.join(ADDRESS), address.to_string().as_bytes())
}

/// The address that a process wrote into its data directory.
pub fn admin_address(data: &Path) -> io::Result<SocketAddr> {
    let text = std::fs::read_to_string(data.join(ADDRESS))?;
    text.trim().parse().map_err(io::Error::other)
}

/// Why a timeline could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchTimelineError {
    /// The listener does not answer.
    #[error("the process at {address} does not answer")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It does not answer with a timeline.
    #[error("{0}")]
    Refused(String),
}

/// Fetches the timeline of an id as JSON: `entries` in order of time, and `blockers`.
pub async fn fetch_timeline(address: SocketAddr, id: &str) -> Result<serde_json::Value, FetchTimelineError> {
    let unreachable = |source| FetchTimelineError::Unreachable { address, source };
    let (status, body) = tokio::time::timeout(WITHIN, call(address, id))
        .await
        .map_err(|elapsed| unreachable(elapsed.into()))?
        .map_err(unreachable)?;
    let value: serde_json::Value = serde_json::from_slice(&body)
        .map_err(|_| FetchTimelineError::Refused(format!("the process at {address} is not one of aro")))?;
    if status.is_success() {
        return Ok(value);
    }
    let message = value["message"].as_str().unwrap_or("refused");
    Err(FetchTimelineError::Refused(message.to_owned()))
}

async fn call(
    address: SocketAddr,
    id: &str,
) -> Result<(StatusCode, bytes::Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("id", id).finish();
    let request = http::Request::get(format!("{PATH}?{query}"))
        .header(HOST, address.to_string())
        .body(Empty::<bytes::Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await?;
        Ok((status, body.to_bytes()))
    };
    tokio::select! {
        biased;
        answered = exchange => answered,
        ended = connection => {
            ended?;
            Err("the connection ended".into())
        }
    }
}
