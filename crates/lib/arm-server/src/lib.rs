//! What any ARM resource provider needs to serve its resource types over HTTP.
//!
//! A [`Provider`] registers its resource types as data ([`ResourceType`], [`Route`]) with their api-versions and actions, and
//! answers requests that passed the pipeline. This crate does the rest: [`ArmServer`] is the way of every request,
//! [`RouteTable`] finds what a path names, [`Failure`] is the only place where failures become answers, [`operations`]
//! has the headers and views of long-running operations, [`paging`] the form of lists, [`Preconditions`] the rules of
//! `If-Match` and `If-None-Match`.
//!
//! What it is not: a provider. It knows no resource, stores nothing and starts no task.
//!
//! The flow of a request: ids and caller → body limit and media type → route → method → names in the path → api-version →
//! state of the subscription (for routes that ask for it) → [`Provider::answer`]. Around it: panic barrier, metrics, log
//! line, audit record, headers.
//!
//! Invariants:
//! * A caller's mistake is never a 5xx. A 5xx never carries internal text.
//! * Every answer has an id, a metric, a log line and an audit record, also after a panic.
//! * Labels of metrics come from closed sets, so that callers cannot make metrics grow.
//! * Bodies, query strings and credentials are never logged.

mod answer;
mod caller;
mod failure;
mod links;
mod observe;
pub mod operations;
pub mod paging;
mod pipeline;
mod precondition;
mod provider;
mod query;
mod request;
mod resource_type;
mod route;
mod subscription_state;

pub use answer::Answer;
pub use caller::{Caller, UserAgent};
pub use failure::{CodedError, Failure};
pub use links::ClientUrl;
pub use pipeline::{ArmServer, Options};
pub use precondition::Preconditions;
pub use provider::{Provider, Versions};
pub use query::QueryParameters;
pub use request::{Request, parse_json, retry_conflicts};
pub use resource_type::{ResourceType, TypeName};
pub use route::{Matched, NoMatch, Route, RouteError, RouteTable};
