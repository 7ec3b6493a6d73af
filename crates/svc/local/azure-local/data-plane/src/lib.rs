//! The data planes of the local Azure: Key Vault and Blob Storage.
//!
//! The flow: a request names a vault or an account by its host; [`Accounts`] finds the resource, [`Guard`] authenticates the
//! caller and decides about the action, and the handler reads or writes documents. [`keyvault_router`] and [`blob_router`] are
//! the two protocols, [`website_router`] serves the static website of an account without authentication.
//!
//! Invariants:
//! * Nothing is read from a body and nothing is looked up by a caller's names before the caller is authenticated; a static website
//!   is public by intent.
//! * A change is one batch of one partition: a certificate with its key and its secret, a blob with the list of its chunks.
//! * A blob's bytes are in chunks of bounded size; chunks that no blob names are garbage with a record, removed by
//!   [`BlobStore::maintain`], so that readers of the old content finish and a crash leaves nothing behind.
//! * No input of a caller makes a server error.
//!
//! What it is not: resources. Vaults and accounts are created, configured and deleted by ARM; their removal is passed on by
//! [`KeyVaultStore::remove_vault`] and [`BlobStore::remove_account`]. See ADR 0072.

mod blob;
mod guard;
mod http;
mod keyvault;

pub use blob::{BlobStore, blob_router, website_router};
pub use guard::{AccessPolicy, Accounts, Action, Guard, Principal, Refusal, Storage, Vault};
pub use http::AccountName;
pub use keyvault::{KeyVaultStore, keyvault_router};
