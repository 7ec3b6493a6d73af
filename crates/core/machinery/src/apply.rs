//! Server-side apply: who owns which fields, and merging what appliers say.

pub mod fieldset;

use serde_json::Value;

pub use self::fieldset::Set;
use crate::schema::Typed;

/// Who changes what, when.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub manager: &'a str,
    /// Of the request; what the object is written in.
    pub api_version: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// RFC 3339, seconds, `Z`.
    pub time: &'a str,
    /// Take fields away from others instead of conflicting (apply only).
    pub force: bool,
    /// The type in `api_version`.
    pub typed: Typed<'a>,
    /// What nobody may own through this (sub)resource: `status` on the object itself, all else on `/status`.
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
    /// As upstream shows it: `"kubectl-client-side-apply" using apps/v1 at 2020-01-01T00:00:00Z`.
    pub manager: String,
    /// `.spec.replicas`
    pub field: String,
}

fn conflict_message(_conflicts: &[Conflict]) -> String {
    String::new()
}

/// Tracks ownership for a create (`live` is `None`), update or patch: writes `metadata.managedFields` of `new`.
pub fn update(_live: Option<&Value>, _new: &mut Value, _cx: &Context<'_>) {}

/// Applies a configuration. `None`: nothing changes. The answer carries its `metadata.managedFields`.
pub fn apply(_live: Option<&Value>, _config: &Value, _cx: &Context<'_>) -> Result<Option<Value>, ApplyError> {
    Err(ApplyError::Internal("not there yet".to_owned()))
}
