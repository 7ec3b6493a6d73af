//! The way of every request, in one list.
//!
//! Before routing: ids and caller → body limits and media type. Then: route → method → path parts → api-version →
//! subscription state → handler. Around it all: panic barrier, metrics, log line, audit record, headers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use aro_arm::ResourceId;
use aro_arm::hcp::version::ApiVersion;
use aro_arm::subscription::Subscription;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use http::{HeaderMap, Method, Response};
use http_body_util::BodyExt;
use tokio::time::Instant;
use uuid::Uuid;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::error::Failure;
use crate::handlers;
use crate::observe::Exchange;
use crate::query::QueryParameters;
use crate::route::{self, NoMatch, Route};
use crate::shared::{Request, Shared};
use crate::subscription_state::{self, Verdict};

/// Answers one request. Never fails: every failure is an answer.
pub async fn handle(shared: Arc<Shared>, request: http::Request<Body>) -> Response<Body> {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    // Probes and the location are not ARM traffic: no ids, no audit.
    if let Some(answer) = handlers::plain(&shared, &parts) {
        return answer.into_response();
    }
    let path_and_query = parts.uri.path_and_query().map_or("/", |all| all.as_str());
    let caller = Caller::new(&parts.headers, path_and_query, Uuid::new_v4());
    let mut exchange = Exchange::new(&parts.method, parts.uri.path());
    let (request_id, client_request_id) =
        (caller.request_id, caller.client_request_id.clone().filter(|_| caller.return_client_request_id));

    let outcome =
        AssertUnwindSafe(answer(&shared, &parts, body, caller.clone(), &mut exchange)).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| {
        shared.observer.panicked(exchange.route, &parts.method);
        Err(Failure::Panicked)
    });
    let answer = outcome.unwrap_or_else(|failure| {
        if let Some(cause) = failure.cause() {
            exchange.failed(&caller, cause);
        }
        failure.into_answer()
    });
    shared.observer.finished(&exchange, &caller, &answer, started.elapsed());

    let answer = answer.header("x-ms-request-id", &request_id.to_string());
    match client_request_id {
        Some(id) => answer.header("x-ms-client-request-id", &id),
        None => answer,
    }
    .into_response()
}

/// The inside of the panic barrier.
async fn answer(
    shared: &Shared,
    parts: &http::request::Parts,
    body: Body,
    caller: Caller,
    exchange: &mut Exchange,
) -> Result<Answer, Failure> {
    let body = read_body(&parts.method, &parts.headers, body, shared.max_body).await?;
    let matched = route::find(parts.uri.path()).map_err(|no_match| match no_match {
        NoMatch::Unknown => Failure::NoRoute,
        NoMatch::Malformed => Failure::MalformedPath,
    })?;
    exchange.route = Some(matched.route);
    if !matched.route.methods().contains(&parts.method.as_str()) {
        return Err(Failure::MethodNotAllowed(matched.route.methods()));
    }
    if matched.route != Route::ProviderOperations && Uuid::try_parse(&matched.subscription).is_err() {
        return Err(Failure::InvalidSubscriptionId(matched.subscription));
    }
    if !matched.resource_group.is_empty() && !route::is_resource_group_name(&matched.resource_group) {
        return Err(Failure::InvalidResourceGroupName(matched.resource_group));
    }
    let query = QueryParameters::parse(parts.uri.query().unwrap_or_default());
    let checks = matched.route.checks();
    let version = match query.get("api-version") {
        Some(text) if checks.api_version => {
            ApiVersion::parse(text).ok_or_else(|| Failure::UnknownApiVersion(text.to_owned()))?
        }
        None if checks.api_version => return Err(Failure::MissingApiVersion),
        _ => ApiVersion::NEWEST,
    };
    exchange.version = checks.api_version.then_some(version);
    let subscription = match checks.subscription_state {
        true => Some(check_subscription(shared, &matched.subscription, &parts.method, exchange).await?),
        false => None,
    };
    let request =
        Request { method: parts.method.clone(), matched, query, caller, body, version, subscription };
    handlers::dispatch(shared, &request).await
}

/// Reads the body of a method that has one.
async fn read_body(method: &Method, headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Failure> {
    if !matches!(*method, Method::PUT | Method::PATCH | Method::POST) {
        return Ok(Bytes::new());
    }
    let bytes = read_limited(body, limit).await?;
    let content_type = headers.get(http::header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let media_type = content_type.map(|text| text.split(';').next().unwrap_or_default().trim());
    match media_type {
        Some(media_type) if media_type.eq_ignore_ascii_case("application/json") => Ok(bytes),
        None if bytes.is_empty() => Ok(bytes),
        other => Err(Failure::MediaType(other.unwrap_or_default().to_owned())),
    }
}

/// How much of a body that is too large is still read, in multiples of the limit: a client that is cut off while it
/// sends may never see why.
const TOLERATED: usize = 16;

async fn read_limited(mut body: Body, limit: usize) -> Result<Bytes, Failure> {
    let mut read = BytesMut::new();
    let mut total = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Failure::BodyUnreadable)?.into_data() else { continue };
        total = total.saturating_add(data.len());
        if total <= limit {
            read.extend_from_slice(&data);
        } else if total > limit.saturating_mul(TOLERATED) {
            break;
        } else {
            read.clear();
        }
    }
    if total > limit { Err(Failure::BodyTooLarge) } else { Ok(read.freeze()) }
}

async fn check_subscription(
    shared: &Shared,
    id: &str,
    method: &Method,
    exchange: &mut Exchange,
) -> Result<Subscription, Failure> {
    let stored = shared.documents.find::<Subscription>(&ResourceId::of_subscription(id)).await?;
    let stored = stored.map(|stored| stored.value);
    let state = stored.as_ref().map(|subscription| subscription.state);
    exchange.subscription_state = state;
    match (subscription_state::decide(state, method.as_str()), stored, state) {
        (Verdict::Allowed, Some(subscription), _) => Ok(subscription),
        (Verdict::ReadOnly(state), ..) => Err(Failure::SubscriptionReadOnly(state)),
        (Verdict::Gone, _, Some(state)) => Err(Failure::SubscriptionGone(state)),
        _ => Err(Failure::Unregistered(id.to_owned())),
    }
}
