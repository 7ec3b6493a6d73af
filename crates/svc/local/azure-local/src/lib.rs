//! A local Azure: the cloud that the service runs in when there is no Azure.
//!
//! One HTTPS listener answers for Azure's host names: ARM (`management.azure.com`), Entra ID (`login.microsoftonline.com` and its
//! siblings), Microsoft Graph, CheckAccess, Key Vault, blobs, and the managed identity data plane. Clients reach it through the region's proxy under those
//! names, or directly as a custom cloud.
//!
//! The flow: `tls` (certificate of the cloud's own authority) → `front_door` (which service the host names) → for ARM
//! `arm`: the token is verified before anything else of the request is read, ARM's identity headers replace the caller's, and
//! the request goes to the engine, or to the resource provider that is registered for its namespace (`forward`).
//!
//! What it is not: the engine (`aro-azure-local-engine`: resources, roles, deletions) and the directory
//! (`aro-azure-local-directory`: tenants, tokens, identities) are crates of their own. The data planes of Key
//! Vault and blobs are `aro-azure-local-data-plane`. Virtual machines and template deployments are not there yet.
//!
//! Invariants:
//! * No request reaches ARM without a token of the directory; identity headers of the caller are dropped.
//! * Everything that is written on disk is for its owner alone.

mod accounts;
mod admin;
mod arm;
mod bridge;
mod check_access;
mod config;
mod connection;
mod data_planes;
mod descriptor;
mod faults;
mod forward;
mod front_door;
mod issuer_fetch;
mod ports;
mod role;
mod tls;
mod tracking;

pub use accounts::{CustomerAccount, FirstPartyAccount, ServiceAccount};
pub use admin::{AdminAccess, AdminClient, AdminError, FaultList, MutationEntry, MutationPage, ResourcePage};
pub use config::AzureLocalConfig;
pub use descriptor::DESCRIPTOR;
pub use faults::{Fault, Operation, Rule, RuleStatus};
pub use front_door::Service;
pub use ports::AzureLocalPorts;
pub use role::AzureLocal;
pub use tls::CloudAuthority;
