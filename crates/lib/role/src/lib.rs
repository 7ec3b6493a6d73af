//! Role descriptors: everything the program needs to know about a role, in one value that the role's crate exports.
//!
//! A [`RoleDescriptor`] names the role, its subcommand, its configuration section, its listeners and debug ports, the
//! outside parts it needs, its Deployment on the region's clusters, and the function that starts it. `crates/app` keeps
//! one list of descriptors and derives the rest: command line, configuration reference, images, manifests, certificates,
//! debug ports. A new role is a crate with a descriptor and one line in that list.
//!
//! The flow: the composition binds the listeners, collects what the role needs into a [`RoleContext`] and calls
//! [`RoleDescriptor::start`]; the start function turns the context into the role's ports and launches it. A role alone and
//! a role in a pod take the same path, they differ in the context.
//!
//! What it is not: it starts nothing by itself, knows no particular role and picks no adapter.
//!
//! Invariants:
//! * The image of a role is `aro/<name>`.
//! * Every listener is bound before any role is built.
//! * A role gets only the parts that its descriptor lists in [`RoleDescriptor::needs`].
#![warn(missing_docs)]

mod cloud;
mod context;
mod deployment;
mod descriptor;
mod manifests;
pub mod services;

pub use cloud::{CloudAccess, FirstParty};
pub use context::{ClusterAccess, RoleContext};
pub use deployment::{
    Certificate, CertificateUsage, Issuer, RegionCluster, RoleDeployment, SERVICE_CLUSTER, UpdateStrategy,
    certificate_files,
};
pub use descriptor::{
    Beside, CommandGroup, DebugListener, LayoutSetting, ListenerDescriptor, Need, RegionSetting,
    RoleDescriptor,
};
pub use manifests::{PART_OF_REGION, namespace, workload};

/// The repository of the role images.
pub const REPOSITORY: &str = "aro/";
