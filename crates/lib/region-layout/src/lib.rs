//! The resources that a region of the service consists of in Azure, or in the local cloud.
//!
//! What it is: [`RegionLayout`] names everything (subscriptions, groups, zones, vaults, storage, registries, clusters) from
//! the few facts in [`LayoutParams`]; [`plan()`] lists what must exist, with dependencies, as data; [`apply()`] makes it so
//! through the cloud client. Roles that need a name take it from [`RegionLayout`], which they derive from the section
//! `[region]` without asking the cloud.
//!
//! What it is not: it creates no subscription and no principal (accounts exist before anything can be written), writes
//! nothing of a hosted cluster, and deletes nothing.
//!
//! The flow: configuration → params → layout → plan → apply. Each item reads before it writes (`ensure_…`), so applying a
//! plan again changes nothing. An item runs as soon as the items that it depends on are done.
//!
//! Invariants:
//! * Names and plan are functions of the params: same params, same plan.
//! * An item depends on items before it only, so a plan has no cycle.
//! * A failed item stops what depends on it and nothing else.
#![warn(missing_docs)]

mod apply;
mod config;
mod layout;
mod names;
mod plan;
mod schedule;

pub use apply::{AppliedLayout, ApplyError, Clients, apply};
pub use config::RegionConfig;
pub use layout::{
    GlobalLayout, ManagementLayout, ManagementVaults, RegionLayout, RegionalLayout, ServiceLayout,
};
pub use names::LayoutParams;
pub use plan::{Item, Key, Plan, Role, Spec, plan};
