//! The three kinds of patches that do not track ownership: JSON patch, merge patch and strategic merge patch.

use serde_json::Value;

use crate::schema::Typed;

/// Why a patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatchError {
    pub class: PatchErrorClass,
    pub message: String,
}

/// Which status a refused patch is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchErrorClass {
    /// 400: the patch itself is malformed.
    BadRequest,
    /// 413: more operations than allowed.
    TooLarge,
    /// 422 `Invalid` without details of kind: a well-formed patch does not fit the object.
    Unprocessable,
    /// 500: what upstream does not classify.
    Internal,
}

/// Applies RFC 6902.
pub fn json_patch(_object: &Value, _patch: &Value) -> Result<Value, PatchError> {
    Err(PatchError { class: PatchErrorClass::Internal, message: "not there yet".to_owned() })
}

/// Applies RFC 7386.
pub fn merge_patch(object: &Value, _patch: &Value) -> Value {
    object.clone()
}

/// Applies a strategic merge patch by the merge keys and strategies of the type.
pub fn strategic_merge(_object: &Value, _patch: &Value, _typed: Typed<'_>) -> Result<Value, PatchError> {
    Err(PatchError { class: PatchErrorClass::Internal, message: "not there yet".to_owned() })
}
