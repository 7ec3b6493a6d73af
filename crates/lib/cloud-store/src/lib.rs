//! The documents of the local cloud: what `azure-local` writes and what the roles beside it read.
//!
//! One container, [`CLOUD`], holds every ARM resource of every subscription, one document per resource, partitioned by
//! subscription so that a resource and its operation commit together. `azure-local` is the only writer. The DNS server
//! follows the container's change feed and answers for the zones and record sets it finds there.
//!
//! What it is not: rules. What may be written is decided by `azure-local`'s engine.
//!
//! Invariant: the key of a document is a function of its resource id in lower case, so a point read needs nothing but the
//! id, in any case.
#![warn(missing_docs)]

mod hosts;
mod names;
pub mod registry;
mod resource;
mod secrets;

pub use hosts::{AZURE_HOSTS, FRONT_DOOR_ADDRESS, FRONT_DOOR_DOMAIN, is_azure_host};
pub use names::{CLOUD, TENANT_SCOPE, key_of, partition_of};
pub use resource::{Operation, Resource, kind_of};
pub use secrets::{NoRandom, ResourceSecret, SecretValue};
