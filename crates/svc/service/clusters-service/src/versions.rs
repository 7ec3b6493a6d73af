//! The releases on offer, per channel group.
//!
//! The list is embedded; where a graph URL is configured the graph of OpenShift's update service takes its place, and the
//! embedded list is the fallback while the graph cannot be read. Edges follow a rule: from a release to every later one of
//! its minor version and to every one of the next minor version. Digests of the embedded list are derived from the version.

mod catalogue;
mod embedded;
mod graph;
mod number;

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_net::Backoff;
use parking_lot::RwLock;

pub use catalogue::{Catalogue, Release};
pub use graph::{Graph, GraphError};
pub use number::VersionNumber;

/// The channel groups.
pub const CHANNEL_GROUPS: [&str; 3] = ["stable", "fast", "candidate"];

/// Delays while the graph cannot be read.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_mins(10));

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

    /// Takes another list.
    pub fn replace(&self, catalogue: Catalogue) {
        *self.0.write() = Arc::new(catalogue);
    }

    /// Keeps the list as new as the graph. While the graph cannot be read the last list stays.
    pub async fn follow(&self, graph: &Graph, refresh: Duration) {
        let mut attempts = BACKOFF.attempts();
        loop {
            match graph.read().await {
                Ok(catalogue) => {
                    attempts.reset();
                    tracing::debug!(releases = catalogue.releases().len(), "update graph read");
                    self.replace(catalogue);
                    tokio::time::sleep(refresh).await;
                }
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "update graph not read; the last list of versions stays");
                    attempts.wait().await;
                }
            }
        }
    }
}
