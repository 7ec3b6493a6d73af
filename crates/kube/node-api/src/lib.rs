//! The protocol between an API server and a kubelet: container logs, and connections to the ports of a pod.
//!
//! A real node serves it on the kubelet's port 10250. A kubelet in the API server's process implements [`NodeApi`] and
//! registers itself in the cluster's [`NodeDirectory`]; the contract is the same.
//!
//! What it is not: the API of Node objects. Those are ordinary resources of the API server.
#![warn(missing_docs)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use aro_base::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncWrite};

/// A pod as nodes know it. A name that is used again is another pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodIdentity {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which of all pods that ever had this name.
    pub uid: String,
}

/// Which part of a container's log is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on with what is written later, until the container ends.
    pub follow: bool,
    /// Of the container that ran before the last restart.
    pub previous: bool,
    /// Only lines written at or after this time.
    pub since: Option<Timestamp>,
    /// Only this many lines from the end.
    pub tail: Option<usize>,
    /// Stop after this many bytes.
    pub limit: Option<usize>,
    /// Put the time before each line.
    pub timestamps: bool,
}

/// Why a node could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// There is no such pod or container on that node.
    #[error("{0}")]
    NotFound(String),
    /// It is there, but what was asked makes no sense for it.
    #[error("{0}")]
    BadRequest(String),
    /// The node does not answer now.
    #[error("{0}")]
    Unavailable(String),
}

/// Bytes both ways.
pub trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Pipe for T {}

/// A node's side.
#[async_trait]
pub trait NodeApi: Send + Sync + 'static {
    /// A container's log, in chunks of whole lines.
    async fn logs(
        &self,
        pod: &PodIdentity,
        container: &str,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, NodeError>;

    /// A connection to a port of a pod, as if made from inside it.
    async fn connect(&self, pod: &PodIdentity, port: u16) -> Result<Box<dyn Pipe>, NodeError>;

    /// Where a port of a pod really is, for those who connect themselves. Not every node can tell.
    async fn address(&self, pod: &PodIdentity, port: u16) -> Result<SocketAddr, NodeError> {
        Err(NodeError::BadRequest(format!("port {port} of pod {} has no address here", pod.name)))
    }
}

/// The nodes of one cluster that are reached without a network.
#[derive(Clone, Default)]
pub struct NodeDirectory {
    nodes: Arc<RwLock<HashMap<String, Arc<dyn NodeApi>>>>,
}

impl std::fmt::Debug for NodeDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.nodes.read().keys()).finish()
    }
}

impl NodeDirectory {
    /// Makes a node known; replaces an earlier one of that name.
    pub fn add(&self, node: impl Into<String>, api: Arc<dyn NodeApi>) {
        self.nodes.write().insert(node.into(), api);
    }

    /// Forgets a node.
    pub fn remove(&self, node: &str) {
        self.nodes.write().remove(node);
    }

    /// How to ask a node.
    pub fn get(&self, node: &str) -> Option<Arc<dyn NodeApi>> {
        self.nodes.read().get(node).cloned()
    }
}
