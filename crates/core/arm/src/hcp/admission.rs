//! Checks that need more than the object itself: running versions, the parent, siblings.
//!
//! Pure like the rest: the caller reads the state and hands it in.

pub mod cluster;
pub mod external_auth;
pub mod node_pool;

use super::openshift_version::Release;

/// What is known of a running control plane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlPlaneVersions {
    /// Releases that run now; more than one during an upgrade, none before the first one is up.
    pub active: Vec<Release>,
    /// `<group>-<x.y>` channels that offer the desired version; empty while unknown.
    pub channels: Vec<String>,
}

/// What is known of the versions of a node pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePoolVersions {
    pub name: String,
    /// What the caller asked for.
    pub requested: Option<Release>,
    pub active: Vec<Release>,
}
