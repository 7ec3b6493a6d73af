//! Types made from CustomResourceDefinitions: structural schemas, pruning, defaults, validation and CEL rules.
//!
//! What it is: pure functions. [`custom_type::CustomType`] is one served version of one definition, compiled once
//! and then used on every write; [`definition`] checks the definition itself and says what its status becomes.
//!
//! What it is not: it stores nothing, serves nothing, and reads no clock. Names, labels and other metadata of objects
//! are checked by the server, which does it alike for all types.
//!
//! Invariants: no function panics on any input; an object is never changed by validation; a rule that cannot be
//! enforced is listed in [`custom_type::CustomType::unenforced`], never dropped silently.

mod cel;
pub mod columns;
pub mod convert;
pub mod custom_type;
mod defaults;
pub mod definition;
mod expression;
mod go_regex;
pub mod json_path;
mod node;
mod prune;
mod validate;

pub use columns::{Column, cell};
pub use convert::convert;
pub use custom_type::{CompileError, CustomType, ScalePaths, Unenforced, compile};
pub use expression::Expression;
pub use json_path::JsonPath;
