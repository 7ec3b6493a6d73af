//! The words of Azure Resource Manager, and the resources this provider serves.
//!
//! Here: resource ids, the error envelope, asynchronous operations, paging links, system data, the JSON
//! form of answers, and under [`hcp`] the model of hosted clusters, node pools and external auths with their
//! api-versions, defaults, conversions, validation and admission.
//!
//! What it is not: HTTP, storage or time. Everything is a pure function of its arguments; ids and timestamps are
//! handed in.

pub mod error;
pub mod field;
pub mod hcp;
pub mod id;
pub mod json;
pub mod merge;
pub mod operation;
pub mod schema;
pub mod subscription;
pub mod system_data;

pub use error::{ArmError, Code};
pub use field::{FieldError, FieldPath};
pub use id::ResourceId;
pub use system_data::SystemData;
