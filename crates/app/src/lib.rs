//! Composition: picks adapters, binds listeners, builds roles, and runs them as one stack.
//!
//! What it is not: a place for behaviour. It knows every role and every adapter, and nothing of what they do.
//!
//! The flow of [`App::start`]: bind every listener, so that a port in use is known before any work; open the store
//! (the embedded one migrates itself); build each role from its checked configuration and its ports; run each in a
//! scope of its own; wait until all are ready. In a region only Kubernetes is started directly: the other roles are
//! images (`images`) that the kubelet starts because the region's manifests (`region`) ask for them. [`RunningApp::stop`] closes the scopes phase by phase and the store
//! last.
//!
//! Invariants:
//! * Nothing is process-global: several stacks run in one process, each with its own store, metrics and ports.
//! * The all-in-one process and a role alone take the same path; they differ in the list of roles.
//! * A role that was started directly and ends by itself is a failure and stops the stack; one in a pod is started again
//!   by its kubelet, as anywhere.

mod config;
mod data_dir;
mod endpoints;
mod error;
mod images;
mod names;
mod region;
mod roles;
mod running;
mod start;
mod store;

/// The custom resources that this program brings along.
pub use aro_crds as crds;
pub use config::{AdminConfig, AppConfig, ProcessConfig, schema};
pub use data_dir::DataDir;
pub use endpoints::{Endpoint, table, write_endpoints_file};
pub use error::{StartError, StopError};
pub use roles::RoleName;
pub use running::RunningApp;
pub use start::{App, Composition, StartOptions};
pub use store::{StoreConfig, StoreKind, migrate};
