//! The ARM resource engine of the local cloud: resource types as data, on `aro-arm-server`.
//!
//! A type is a row of `types`: routes, api-versions, checks, references, children, computed members and quotas follow from
//! it. [`Cloud`] holds the state: one document per resource in the store, and indexes in memory that are derived from the
//! documents. [`Cloud`] implements [`aro_arm_server::Provider`]; the front door of `azure-local` verifies the caller's token, sets the
//! identity headers and hands the request over.
//!
//! What it is not: it verifies no token, speaks no data plane (Key Vault, blobs) and knows nothing of TLS or hosts.
//!
//! The flow of a write: route → permission of the caller ([`Grants`]) → provider registered → body read, envelope, members
//! and names checked → computed members → references exist and may be used → quota and unique names reserved → one batch: the
//! resource, checked against the group and the parent it was decided on → log of mutations, answer.
//!
//! Invariants:
//! * Every request is authorized by role assignments, also lists and reads of operations.
//! * What other resources refer to cannot be deleted; a reference to what is being deleted cannot be made.
//! * A deletion that was accepted is completed, also after `kill -9`; a group goes with everything in it, dependents first.
//! * The state of a long-running operation follows from the document and the clock.
//! * One process writes a cloud's documents.

pub mod authorization;
mod catalogue;
mod check;
mod cloud;
mod compute;
mod credentials;
mod delete;
mod deleted_vaults;
mod directory;
mod faults;
mod graph;
mod groups;
mod inventory;
mod keys;
mod list;
mod locations;
mod mutations;
mod operations;
mod owners;
mod provider;
mod references;
mod refusal;
mod render;
mod routes;
mod skus;
mod spec;
mod stuck;
mod tracked;
mod types;
mod walk;
mod write;

pub use authorization::Grants;
pub use cloud::{Cloud, ForwardedType, Options, SubscriptionFacts, group_id};
pub use compute::IdentityFacts;
pub use directory::{Directory, DirectoryError, FederatedCredential};
pub use faults::{FaultHooks, NoFaults, Stick, Target};
pub use inventory::{Inventory, InventoryPage};
pub use mutations::{Cause, Change, Gap, Mutation, Mutations, Slice};
pub use provider::Forwarded;
pub use refusal::Refusal;
pub use routes::{Endpoint, all as routes};
