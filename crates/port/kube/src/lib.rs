//! Kubernetes clusters by name, for controllers that must not care which kind they are on.
//!
//! A cluster is reached by kubeconfig (a real one, or one of ours over its socket) or as a service in this process.
//! Either way controllers get a `kube::Client`, and nothing tells them which.
//!
//! What it is not: it caches nothing and watches nothing; that is `kube`'s own runtime.

mod class;
mod clusters;
pub mod node;

pub use class::class_of;
pub use clusters::{ClientError, KubeClients, of_kubeconfig, of_service};
