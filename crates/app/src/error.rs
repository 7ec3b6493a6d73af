//! Why a stack did not start or did not stop.

use std::sync::Arc;

use crate::cloud_access::CloudAccessError;
use aro_runtime::config::SecretFileError;
use aro_runtime::{BindError, BuildError, ConfigProblems, Failure, Laggards};

/// Why a stack did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address of the proxy could not be written for `aro env`.
    #[error("write the address of the cloud's proxy into the data directory")]
    CloudEnvironment(#[source] std::io::Error),
    /// The address of the listener for operators could not be written for `aro why`.
    #[error("write the address of the listener for operators into the data directory")]
    AdminAddress(#[source] std::io::Error),
    /// The certificate of Front Door could not be made.
    #[error("issue Front Door's certificate into the directory of the local cloud")]
    CloudCertificate(#[source] std::io::Error),
    /// The cluster that an agent is to work on cannot be reached.
    #[error(transparent)]
    Cluster(#[from] aro_kube::ClientError),
    /// A role needs the cloud and cannot have it.
    #[error(transparent)]
    Cloud(#[from] CloudAccessError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigProblems),
    /// A listener could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The data directory could not be made, or not be closed to other users.
    #[error("cannot use the data directory `{path}`")]
    DataDir {
        /// Which one.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The store's URL could not be read.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The store could not be opened.
    #[error("cannot open the {kind} store")]
    Store {
        /// Which kind.
        kind: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A role could not be built.
    #[error("cannot build the role `{role}`")]
    Build {
        /// Which one.
        role: &'static str,
        /// Why.
        #[source]
        source: BuildError,
    },
    /// A role failed before it was ready.
    #[error("start failed")]
    Failed(#[source] Arc<Failure>),
    /// Not ready in time.
    #[error("not ready after {after}: {waiting}")]
    NotReady {
        /// How long we waited.
        after: String,
        /// Which components are not ready, each with its reason.
        waiting: String,
    },
}

/// Why a stack did not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// Some tasks were late and were cut off.
    #[error(transparent)]
    Laggards(#[from] Laggards),
}
