//! Front Door: the public face of the clusters' OIDC documents.
//!
//! What it is: a caching server for two documents of every cluster, `/<tenant>/<cluster id>/.well-known/openid-configuration`
//! and `/<tenant>/<cluster id>/openid/v<n>/jwks`, which it gets from the static website of a storage account.
//!
//! What it is not: a general cache or proxy. Every other path and method is refused with 403, as the firewall policy in front
//! of the real one does. It changes no document.
//!
//! The flow: `path` decides whether a request passes; `documents` answers from the cache, or lets one request per document
//! ask the `origin` while the others wait for it; a document that is too old is served once more when the origin fails.
//!
//! Invariants:
//! * Only paths that the rule accepts reach the origin, without query and without any header of the client.
//! * What is served is JSON, at most 1 MiB, and came from the origin with status 200.
//! * A document that the origin no longer has is not served from the cache.
//! * Requests to the origin are bounded in number, size and time.

mod cache;
mod config;
mod descriptor;
mod documents;
mod metrics;
mod origin;
mod path;
mod ports;
mod role;
mod service;
mod tls;

pub use config::FrontdoorConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::FrontdoorPorts;
pub use role::Frontdoor;
