//! `io.cloudevents.v1.CloudEventService`: the gRPC contract between sources and Maestro.
//!
//! Two calls: `Publish` accepts one event, `Subscribe` streams events back. [`Client`] is the source's end; [`serve`] makes
//! a service of any [`CloudEvents`]. The messages and their mapping are in `aro-bundle`.
//!
//! [`Client::to`] connects to a [`Target`]; any other HTTP/2 service can be used too.
//!
//! What it is not: it makes no decision about events.
//!
//! The stubs are written by hand: two methods do not justify a `.proto` compiler in every build.
#![warn(missing_docs)]

mod client;
mod connect;
mod server;

pub use client::{Client, ClientError, Subscription};
pub use connect::Target;
pub use server::{CloudEventServer, CloudEvents, EventStream, SUBSCRIPTION_ID, serve};

/// The full name of the service.
pub const SERVICE: &str = "io.cloudevents.v1.CloudEventService";
const PUBLISH: &str = "/io.cloudevents.v1.CloudEventService/Publish";
const SUBSCRIBE: &str = "/io.cloudevents.v1.CloudEventService/Subscribe";
