//! Server-side apply: who owns which fields, and merging what appliers say.
//!
//! [`update`] tracks ownership for every write that is no apply; [`apply`] merges a configuration, refuses to take
//! fields from others, and removes what its manager no longer says. Both speak of fields by the type: structs and maps
//! in parts, lists by what tells their items apart, atomic ones as a whole.
//!
//! What it is not: it sets no defaults, checks no values and converts between no versions. An entry written in another
//! version is read with that version's type, on the object as it is.
//!
//! Invariants: fields that no manager may own (names, versions, what the server fills in, `Context::reset`) are in no entry
//! written here; an entry's time changes only with what it owns, or when its apply changed the object.

mod compare;
mod element;
pub mod fieldset;
pub mod managed;
mod merge;
mod own;
mod shape;
mod validate;
mod write;

use serde_json::Value;

pub use self::compare::{Comparison, compare};
pub use self::fieldset::Set;
pub use self::merge::{extract, merge, remove_items};
pub use self::own::of_object;
pub use self::write::{apply, ignore_times, update};
use crate::schema::Typed;
use crate::status::{Cause, Details, Status};

#[cfg(test)]
mod tests;

/// Who changes what, when.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Empty: `unknown`.
    pub manager: &'a str,
    /// Of the request; what the object is written in.
    pub api_version: &'a str,
    /// Of the request; a configuration must be of it.
    pub kind: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// RFC 3339, seconds, `Z`.
    pub time: &'a str,
    /// Take fields away from others instead of conflicting (apply only).
    pub force: bool,
    /// The type in `api_version`. Its `metadata` should refer to `ObjectMeta` for custom types too.
    pub typed: Typed<'a>,
    /// What no manager may own through this (sub)resource: `status` on the object itself, all else on `/status`.
    pub reset: &'a Set,
    /// The type in another version, for entries written by it. `None`: no such version any more.
    pub typed_for: &'a dyn Fn(&str) -> Option<Typed<'a>>,
}

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// 409 with a cause per conflict.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<Conflict>),
    /// 400
    #[error("{0}")]
    BadRequest(String),
    /// 500
    #[error("{0}")]
    Internal(String),
}

/// Another manager owns a field with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// As upstream shows it: `"kubectl-client-side-apply" using apps/v1`.
    pub manager: String,
    /// `.spec.replicas`
    pub field: String,
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", only.manager, only.field);
    }
    let mut lines: Vec<String> = Vec::new();
    let mut manager = None;
    for conflict in conflicts {
        if manager != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            manager = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.field));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

impl ApplyError {
    /// The answer to the client.
    pub fn status(&self) -> Status {
        let message = self.to_string();
        match self {
            Self::BadRequest(_) => Status::bad_request(message),
            Self::Internal(_) => Status::new(500, "", message),
            Self::Conflict(conflicts) => {
                let cause = |conflict: &Conflict| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {}", conflict.manager),
                    field: conflict.field.clone(),
                };
                Status::new(409, "Conflict", message).with_details(Details {
                    causes: conflicts.iter().map(cause).collect(),
                    ..Details::default()
                })
            }
        }
    }
}

fn is_empty_text(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_none_or(str::is_empty)
}
