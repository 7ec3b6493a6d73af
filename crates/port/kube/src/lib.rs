//! Kubernetes clusters by name, for controllers that work on any of them.
//!
//! A cluster is reached by kubeconfig (a real one, or one of ours over its socket) or as a service in this process.
//! Either way controllers get a `kube::Client` and cannot distinguish the two.
//!
//! [`informer`] keeps one shared copy of a resource's objects for all controllers of a process.
//!
//! What it is not: a place for decisions about objects.

mod class;
mod clusters;
pub mod events;
pub mod informer;

pub use class::class_of;
pub use clusters::{ClientError, KubeClients, of_kubeconfig, of_service, of_surroundings};
