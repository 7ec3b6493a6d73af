//! The releases on offer, per channel group.
//!
//! The list is embedded; where a graph URL is configured the graph of OpenShift's update service takes its place, and the
//! embedded list is the fallback while the graph cannot be read. Edges follow a rule: from a release to every later one of
//! its minor version and to every one of the next minor version. Digests of the embedded list are derived from the version.

mod catalogue;
mod embedded;
mod number;

use std::sync::Arc;

use parking_lot::RwLock;

pub use catalogue::{Catalogue, Release};
pub use number::VersionNumber;

/// The channel groups.
pub const CHANNEL_GROUPS: [&str; 3] = ["stable", "fast", "candidate"];

/// What a cluster gets that names no version.
pub const DEFAULT_VERSION: &str = "4.20.8";

/// The releases on offer now.
#[derive(Debug)]
pub struct Versions(RwLock<Arc<Catalogue>>);

impl Default for Versions {
    fn default() -> Self {
        Self(RwLock::new(Arc::new(Catalogue::embedded())))
    }
}

impl Versions {
    /// The list as of now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.0.read().clone()
    }
}
