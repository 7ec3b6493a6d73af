//! Composition: picks adapters, binds listeners, builds roles, and runs them as one stack.
//!
//! What it is not: a place for behaviour. It knows every role and every adapter by name, and their behaviour not at all.
//!
//! The flow of [`App::start`]: bind every listener, so that a port in use is known before any work; open the store
//! (the embedded one migrates itself); build each role from its checked configuration and its ports; run each in a
//! scope of its own; wait until all are ready. In a region only embedded Kubernetes is started directly: the roles are
//! images (`role_images`) that kubelets start for the Deployments of the region (`region`). Which roles there are, and
//! everything about them, comes from their descriptors ([`Registry`]). [`RunningApp::stop`] closes the scopes phase by
//! phase, and the store last.
//!
//! Invariants:
//! * Nothing is process-global: several stacks run in one process, each with its own store, metrics and ports.
//! * The all-in-one process and a role alone take the same path; they differ in the list of roles.
//! * A role that was started directly and ends by itself is a failure and stops the stack; one in a pod is restarted by
//!   its kubelet.

mod cloud_access;
mod cloud_environment;
mod config;
mod data_dir;
mod endpoints;
mod error;
mod region;
mod registry;
mod role_images;
mod running;
mod service_resolver;
mod start;
mod store;
mod timeline;

/// The local cloud, whose administration the command line calls.
pub use aro_azure_local as azure_local;
/// The custom resources of the product.
pub use aro_crds as crds;
/// What a role exports about itself.
pub use aro_role::RoleDescriptor;
pub use cloud_environment::CloudEnvironment;
pub use config::{AdminConfig, AppConfig, ProcessConfig, UpConfig, schema};
pub use data_dir::DataDir;
pub use endpoints::{Endpoint, table, write_endpoints_file};
pub use error::{StartError, StopError};
pub use registry::Registry;
pub use running::RunningApp;
pub use start::{App, Composition, StartOptions};
pub use store::{StoreConfig, StoreKind, migrate};
pub use timeline::{FetchTimelineError, admin_address, fetch_timeline};
