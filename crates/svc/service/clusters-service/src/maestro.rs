//! Clusters Service as a source of Maestro: bundles out, statuses in.
//!
//! [`Sources`] publishes: one source per provision shard, all over one connection. [`Subscriptions`] receives: one stream per
//! shard, opened again when it ends; what was missed meanwhile is requested by a resync. [`status`] reads the nested feedback.
//!
//! Invariants:
//! * The id of a bundle follows from its source and its object, and the id of an event from its content: a repeated publish is
//!   the same publish.
//! * A status older than one that was handed on is dropped, whatever the order of delivery.

mod event;
mod publish;
pub(crate) mod status;
mod subscription;

pub(crate) use event::{Route, Trace};
pub(crate) use publish::{PublishError, Publisher, Sources};
pub(crate) use status::{Received, StatusHandler};
pub(crate) use subscription::{Shard, Subscriptions};
