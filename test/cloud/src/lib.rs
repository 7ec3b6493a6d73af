//! The local cloud and our client of Azure against each other: `azure-local` in the test's process, over real connections.
//!
//! What it is not: a test of either alone. Their own crates have those.
#![allow(clippy::missing_errors_doc, reason = "helpers of tests")]

mod principal;
mod site;

pub use principal::Principal;
pub use site::{Administration, Site, client_of};
