//! Everything that can be wrong with an object, with upstream's texts.
//!
//! Order, as upstream's: the schema, what the scale subresource reads, embedded objects, lists that are sets or maps, and at last the rules, which are
//! left out when the object is so broken that they could not be trusted.

pub(crate) mod embedded;
pub(crate) mod formats;
pub(crate) mod lists;
pub(crate) mod rules;
pub(crate) mod scale;
pub(crate) mod schema;

use aro_kube_apimachinery::{FieldError, FieldErrorKind};
use serde_json::Value;

use crate::custom_type::ScalePaths;
use crate::node::Node;

/// How messages name the place of an error that has none.
pub(crate) const NOWHERE: &str = "<nil>";

const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

pub(crate) fn validate(
    root: &Node,
    scale: Option<&ScalePaths>,
    new: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let mut errors = schema::validate(root, new, old);
    if let Some(scale) = scale {
        scale::validate(scale, new, &mut errors);
    }
    if root.below.embedded {
        embedded::validate(root, new, &mut errors);
    }
    if root.below.unique_lists {
        lists::validate(root, new, old, &mut errors);
    }
    if root.below.rules {
        if errors.iter().any(blocks_rules) {
            errors.push(FieldError::invalid(NOWHERE, Value::Null, NOT_CHECKED));
        } else {
            rules::validate(root, new, old, &mut errors);
        }
    }
    errors
}

fn blocks_rules(error: &FieldError) -> bool {
    use FieldErrorKind as K;
    matches!(error.kind, K::NotSupported | K::Required | K::TooLong | K::TooMany | K::TypeInvalid)
}

/// Where a check stands in an object. Names are added on the way down and taken off on the way up.
#[derive(Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Runs a check below a member: `spec.name`.
    pub(crate) fn member<T>(&mut self, name: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.0.len();
        if length > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        let value = run(self);
        self.0.truncate(length);
        value
    }

    /// Runs a check below an item or a key: `spec[0]`.
    pub(crate) fn at<T>(&mut self, index: impl std::fmt::Display, run: impl FnOnce(&mut Self) -> T) -> T {
        use std::fmt::Write as _;
        let length = self.0.len();
        // Writing to a String cannot fail.
        let _ = write!(self.0, "[{index}]");
        let value = run(self);
        self.0.truncate(length);
        value
    }
}

/// The old item that a new one of a map list continues. Other lists have no such relation.
pub(crate) fn old_item<'v>(node: &Node, item: &Value, old: Option<&'v Value>) -> Option<&'v Value> {
    let aro_kube_apimachinery::schema::ListKind::Map(keys) = node.list.as_ref()? else { return None };
    old?.as_array()?.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}
