//! The way of every request, in one list.
//!
//! Before routing: ids and caller → body limit and media type. Then: route → method → names in the path → api-version →
//! subscription state → handler. Around it all: panic barrier, metrics, log line, audit record, headers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use aro_arm::subscription::Subscription;
use aro_runtime::Metrics;
use aro_web::{BodyError, BodyLimits, HeldBody};
use axum::Router;
use axum::body::Body;
use futures::FutureExt;
use http::{HeaderMap, Method, Response};
use tokio::time::Instant;
use uuid::Uuid;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::observe::{Exchange, Observer};
use crate::provider::Provider;
use crate::query::QueryParameters;
use crate::request::Request;
use crate::route::{
    GROUP, Matched, NoMatch, Route, RouteError, RouteTable, SUBSCRIPTION, is_resource_group_name,
};
use crate::subscription_state::{self, Verdict};

/// What a server can be told beside its provider.
#[derive(Debug, Clone)]
pub struct Options {
    /// The beginning of the names of its metrics.
    pub name: &'static str,
    /// What request bodies are read by. Of a body that is too large, some multiples of the limit are received and dropped.
    pub body: BodyLimits,
}

/// Serves the resource types of one provider.
pub struct ArmServer<P: Provider> {
    provider: Arc<P>,
    routes: RouteTable<P::Endpoint, P::Version>,
    observer: Observer,
    body: BodyLimits,
}

impl<P: Provider> ArmServer<P> {
    /// A server of these routes.
    pub fn new(
        provider: Arc<P>,
        routes: impl IntoIterator<Item = Route<P::Endpoint, P::Version>>,
        metrics: &Metrics,
        options: &Options,
    ) -> Result<Self, RouteError> {
        Ok(Self {
            provider,
            routes: RouteTable::new(routes)?,
            observer: Observer::new(metrics, options.name),
            body: BodyLimits { discard: options.body.max.saturating_mul(TOLERATED), ..options.body.clone() },
        })
    }

    /// The HTTP service. All paths go to one pipeline; it does its own routing, because ARM's paths match without regard to
    /// case.
    pub fn into_router(self) -> Router {
        let server = Arc::new(self);
        Router::new()
            .fallback(move |request| {
                let server = server.clone();
                async move { server.handle(request).await }
            })
            .layer(aro_web::TraceLayer::new())
    }

    /// Answers one request. Never fails: every failure is an answer.
    pub async fn handle(&self, request: http::Request<Body>) -> Response<Body> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        if let Some(answer) = self.provider.probe(&parts.method, parts.uri.path()) {
            return answer.into_response();
        }
        let path_and_query = parts.uri.path_and_query().map_or("/", |all| all.as_str());
        let caller = Caller::new(&parts.headers, path_and_query, Uuid::new_v4());
        let mut exchange = Exchange::new(&parts.method, parts.uri.path());

        let outcome =
            AssertUnwindSafe(self.answer(&parts, body, caller.clone(), &mut exchange)).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|_| {
            self.observer.panicked(&exchange);
            Err(Failure::Panicked)
        });
        let answer = outcome.unwrap_or_else(|failure| {
            if let Some(cause) = failure.cause() {
                exchange.failed(&caller, cause);
            }
            self.provider.refuse(failure, parts.uri.path())
        });
        self.observer.finished(&exchange, &caller, &answer, started.elapsed());

        let answer = answer.header("x-ms-request-id", &caller.request_id.to_string());
        match caller.client_request_id.filter(|_| caller.return_client_request_id) {
            Some(id) => answer.header("x-ms-client-request-id", &id),
            None => answer,
        }
        .into_response()
    }

    /// The inside of the panic barrier.
    async fn answer(
        &self,
        parts: &http::request::Parts,
        body: Body,
        caller: Caller,
        exchange: &mut Exchange,
    ) -> Result<Answer, Failure> {
        // Held until the request is answered: its bytes count against the budget.
        let held = read_body(&parts.method, &parts.headers, body, &self.body).await?;
        let body = held.bytes();
        let (route, matched) = self.routes.find(parts.uri.path()).map_err(|no_match| match no_match {
            NoMatch::Unknown => Failure::NoRoute,
            NoMatch::Malformed => Failure::MalformedPath,
        })?;
        exchange.route = Some(matched.label().clone());
        if !route.methods.contains(&parts.method.as_str()) {
            return Err(Failure::MethodNotAllowed(route.methods));
        }
        check_names(&matched)?;
        let query = QueryParameters::parse(parts.uri.query().unwrap_or_default());
        let (api_version, version) = match &route.versions {
            Some(versions) => versions.negotiate(query.get("api-version"))?,
            None => ("", P::UNVERSIONED),
        };
        exchange.api_version = route.versions.is_some().then_some(api_version);
        let subscription = match route.checks_subscription {
            true => Some(self.check_subscription(matched.subscription(), &parts.method, exchange).await?),
            false => None,
        };
        let method = parts.method.clone();
        let request = Request { method, matched, query, caller, body, version, api_version, subscription };
        self.provider.answer(&request).await
    }

    async fn check_subscription(
        &self,
        id: &str,
        method: &Method,
        exchange: &mut Exchange,
    ) -> Result<Subscription, Failure> {
        let known = self.provider.subscription(id).await?;
        let state = known.as_ref().map(|subscription| subscription.state);
        exchange.subscription_state = state;
        match (subscription_state::decide(state, method.as_str()), known, state) {
            (Verdict::Allowed, Some(subscription), _) => Ok(subscription),
            (Verdict::ReadOnly(state), ..) => Err(Failure::SubscriptionReadOnly(state)),
            (Verdict::Gone, _, Some(state)) => Err(Failure::SubscriptionGone(state)),
            _ => Err(Failure::Unregistered(id.to_owned())),
        }
    }
}

/// Checks the names that mean the same to every provider.
fn check_names<E>(matched: &Matched<E>) -> Result<(), Failure> {
    let subscription = matched.subscription();
    if matched.has(SUBSCRIPTION) && Uuid::try_parse(subscription).is_err() {
        return Err(Failure::InvalidSubscriptionId(subscription.to_owned()));
    }
    if matched.has(GROUP) && !is_resource_group_name(matched.group()) {
        return Err(Failure::InvalidResourceGroupName(matched.group().to_owned()));
    }
    Ok(())
}

/// Reads the body of a method that has one.
async fn read_body(
    method: &Method,
    headers: &HeaderMap,
    body: Body,
    limits: &BodyLimits,
) -> Result<HeldBody, Failure> {
    if !matches!(*method, Method::PUT | Method::PATCH | Method::POST) {
        return Ok(HeldBody::default());
    }
    let held = limits.read(body).await.map_err(|error| match error {
        BodyError::TooLarge => Failure::BodyTooLarge,
        BodyError::Unreadable => Failure::BodyUnreadable,
        BodyError::TimedOut => Failure::BodyTimedOut,
        BodyError::OverBudget => Failure::Overloaded,
    })?;
    let content_type = headers.get(http::header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let media_type = content_type.map(|text| text.split(';').next().unwrap_or_default().trim());
    match media_type {
        Some(media_type) if media_type.eq_ignore_ascii_case("application/json") => Ok(held),
        None if held.bytes().is_empty() => Ok(held),
        other => Err(Failure::MediaType(other.unwrap_or_default().to_owned())),
    }
}

/// How much of a body that is too large is still read, in multiples of the limit: a client whose connection ends while it
/// sends may never read the answer.
const TOLERATED: usize = 15;
