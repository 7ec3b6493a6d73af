//! One exchange of a request and its reply over plain HTTP, and what its failure proves.
//!
//! Peers are other roles of the service: the mesh between them encrypts and authenticates, so there is no TLS here.

mod connector;
mod hyper;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};

pub use hyper::HyperTransport;

/// The largest reply that is read: a page of a hundred clusters is below 1 MiB.
pub const MAX_REPLY: usize = 16 << 20;

/// Sends one request and reads the whole reply. Tests and all-in-one processes may put a router in place of a socket.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends a request with an absolute URI; ends within the given time.
    async fn send(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, TransportError>;
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// No connection: the request was not sent.
    #[error("no connection to {host}")]
    Unreachable {
        /// The host.
        host: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection ended before the reply did: the request may have been processed.
    #[error("the connection to {host} ended before the reply")]
    Lost {
        /// The host.
        host: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No reply in time: the request may have been processed.
    #[error("no reply from {host} within {within:?}")]
    Late {
        /// The host.
        host: String,
        /// The limit.
        within: Duration,
    },
    /// The reply is too large: the request was processed.
    #[error("the reply of {host} is larger than {MAX_REPLY} bytes")]
    TooLarge {
        /// The host.
        host: String,
    },
    /// The request cannot be sent as it is.
    #[error("the request is not valid: {0}")]
    Invalid(&'static str),
}
