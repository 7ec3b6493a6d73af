//! The directory of the local Azure: Entra ID's tenants, applications and managed identities, its token endpoint, the part of
//! Microsoft Graph that Azure's clients call, and the data plane that hands out the credentials of managed identities.
//!
//! The flow: [`Directory::open`] loads everything from the store into memory. The region registers tenants and applications
//! ([`Directory::ensure_application`]), the resource engine registers identities ([`Directory::register_identity`]). A client
//! proves who it is at the token endpoint ([`login_router`]) with a secret, a certificate or a token of a federated issuer and
//! gets a token that [`Verifier`] accepts. [`graph_router`] and [`identity_router`] are the other two protocols.
//!
//! Invariants:
//! * Secrets of applications are stored as salted digests only; a client gets one once, when it is made.
//! * Every change is in the store before the read model shows it. One process owns the container.
//! * A public key stays published until the last token it signed has expired.
//! * Comparisons of secrets take the same time for every input; failures per client are limited.
//! * Keys of a federated issuer are fetched only for issuers that an application names, within a deadline and a size.
//!
//! What it is not: users, groups, consent or conditional access. Only applications sign in (ADR 0071).

mod assertion;
mod directory;
mod documents;
mod error;
mod federation;
mod graph;
mod http;
mod identity;
mod keys;
mod limiter;
mod model;
mod replay;
mod resources;
mod secrets;
mod settings;
mod tokens;
mod verifier;

pub use directory::{Directory, Identity};
pub use error::DirectoryError;
pub use federation::{Fetch, FetchError, NoFetch};
pub use graph::graph_router;
pub use http::{Endpoints, login_router};
pub use identity::identity_router;
pub use model::{Application, ApplicationSpec, FederatedCredential, Origin, Tenant};
pub use settings::DirectorySettings;
pub use verifier::{Principal, PrincipalKind, TokenError, Verifier};
