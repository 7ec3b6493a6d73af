//! Label and field selectors: the query grammar of lists and watches, and the selector objects inside specs.
//!
//! What it is not: it does not know which fields a resource can be selected by; the server checks that with
//! [`FieldSelector::requirements`].

mod fields;
mod labels;
mod parse;
pub mod syntax;

pub use fields::FieldSelector;
pub use labels::LabelSelector;

#[cfg(test)]
mod tests;
