//! The cloud, by one client: Azure, or its local emulation, which cannot be told apart.
//!
//! What it is: [`Cloud`] holds the transport and makes credentials and clients. [`ArmClient`] speaks to Resource Manager:
//! requests by resource id, and on top of them typed operations such as `ensure_subnet`. [`Secrets`], [`Certificates`], [`Blobs`],
//! [`MsiDataPlane`] and [`CheckAccess`] are the few data planes that the service uses. Paging, polling of operations,
//! throttling, retries and deadlines end here.
//!
//! What it is not: it decides nothing about clusters, keeps no state, and has no background task.
//!
//! The flow of a call: the typed operation reads the resource and compares; a difference becomes a PUT; `pipeline` gets a
//! token, takes the subscription's turn, sends, and judges the outcome (`retry`); `lro` follows the operation; the resource
//! is read again.
//!
//! Invariants:
//! * An effect happens once. What can be repeated is repeated; before a PUT is repeated the resource is read and compared;
//!   an action is repeated only when it certainly had no effect.
//! * Every call ends by its deadline; retries add a bounded share of load.
//! * Tokens go to the configured hosts only: a link in a reply that leads elsewhere is refused.
//! * No token, secret, body or query string reaches a log or an error.
#![warn(missing_docs)]

pub mod api_version;
mod arm;
mod cloud;
mod compare;
mod config;
mod credential;
mod data_plane;
mod error;
mod lro;
mod pipeline;
pub mod resources;
mod retry;
mod throttle;
mod transport;

pub use arm::{ArmClient, Precondition, Update, Writes};
pub use cloud::{Cloud, SetupError};
pub use compare::{covers, overlay};
pub use config::CloudConfig;
pub use credential::{
    CachedCredential, CertificateAssertion, CertificateError, Credential, CredentialError, EntraCredential,
    Fetch, IMDS, ManagedIdentity, ManagedIdentityCredential, Proof, Scope, SharedCredential, Token,
};
pub use data_plane::{
    AccessDecision, AccessRequest, Blobs, CertificateSpec, Certificates, CheckAccess, Decision,
    ExplicitIdentity, IdentityCredentials, IdentityUrl, MsiDataPlane, SecretAttributes, SecretSpec, Secrets,
    Subject, VaultSecret,
};
pub use error::{CloudError, Failure, ServiceError};
pub use transport::{
    HyperTransport, MAX_BODY, SdkTransport, Transport, TransportError, TrustError, client_config,
};
