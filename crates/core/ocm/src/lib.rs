//! The model of Clusters Service: the objects of its REST API as they are on the wire, and the pure rules about them.
//!
//! The flow of a request body: [`shape`] compares the JSON with the type's table and reports every mismatch at once, serde reads
//! it, [`patch`] merges it into what is stored. [`href`] and [`ids`] name objects, [`names`] derives what a cluster is called
//! elsewhere, [`search`] reads the search language of lists (which Maestro shares), [`event`] is the event feed.
//!
//! What it is not: a client, a server or a store; it draws no randomness and reads no clock.
//!
//! Invariants:
//! * An absent member is not written: the client of this API refuses `null` for numbers, booleans and dates.
//! * Members are declared once ([`wire`]); serde and the OpenAPI document both follow from the declaration.
#[macro_use]
pub mod wire;

mod error;
pub mod event;
pub mod href;
pub mod ids;
mod list;
mod model;
pub mod names;
pub mod patch;
mod recorded;
mod scalar;
pub mod search;
pub mod shape;

pub use error::{Code, ErrorBody, Problem};
pub use href::{Href, Root};
pub use ids::{BadId, ClusterId, CredentialId, ExternalAuthId, NodePoolId, ShardId};
pub use list::List;
pub use model::*;
pub use recorded::{RECORDED_LINES, RecordedLine};
pub use scalar::{Float, Sensitive, Time};
