//! One exchange of a request and its reply, and what its failure proves.
//!
//! What it is not: it does not retry, authenticate or read bodies. The pipeline above it does.

mod connector;
mod hyper;
mod sdk;
mod trust;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};

pub use hyper::HyperTransport;
pub use sdk::SdkTransport;
pub use trust::{TrustError, client_config};

/// The largest reply that is read.
pub const MAX_BODY: usize = 8 << 20;

/// Sends one request and reads the whole reply.
#[async_trait]
pub trait Transport: std::fmt::Debug + Send + Sync + 'static {
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
    /// No connection became free in time: the request was not sent.
    #[error("too many requests to {host} are under way")]
    Busy {
        /// The host.
        host: String,
    },
    /// The reply is too large: the request was processed.
    #[error("the reply of {host} is larger than {MAX_BODY} bytes")]
    TooLarge {
        /// The host.
        host: String,
    },
    /// The request cannot be sent as it is.
    #[error("the request is not valid: {0}")]
    Invalid(&'static str),
}

impl TransportError {
    /// Whether it proves that the server did not process the request.
    pub fn proves_no_effect(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Busy { .. } | Self::Invalid(_))
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::TooLarge { .. } | Self::Invalid(_))
    }
}
