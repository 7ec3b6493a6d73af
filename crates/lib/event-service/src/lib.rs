//! `io.cloudevents.v1.CloudEventService`: how sources reach Maestro.
//!
//! Two calls: `Publish` takes one event, `Subscribe` streams events back. [`Client`] is the source's end; [`serve`] makes
//! the service of anything that is [`CloudEvents`]. The messages and their mapping are in `aro-bundle`.
//!
//! [`Client::to`] connects to a [`Target`]; any other HTTP/2 service does as well.
//!
//! What it is not: it decides nothing about events.
//!
//! The stubs are written by hand: two methods do not earn a compiler for `.proto` files in everybody's build.
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
