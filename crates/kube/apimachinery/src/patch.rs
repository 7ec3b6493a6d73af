//! The three kinds of patches that do not track ownership: JSON patch, merge patch and strategic merge patch.
//!
//! Whether the result is of its type is not checked here: `decode::coerce` does that, and the server reports it in a status
//! that names the patch.

mod json;
mod merge;
mod order;
mod strategic;

use std::fmt::Write as _;

use serde_json::Value;

pub use self::json::json_patch;
pub use self::merge::merge_patch;
pub use self::strategic::strategic_merge;
use crate::status::{Details, Status};

#[cfg(test)]
mod tests;

/// Why a patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatchError {
    pub class: PatchErrorClass,
    /// The message for the client.
    pub message: String,
}

/// Which status a refused patch is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchErrorClass {
    /// 400: the patch itself is malformed.
    BadRequest,
    /// 413: more operations than allowed.
    TooLarge,
    /// 422 `Invalid`, with empty details: a well-formed patch does not fit the object.
    Unprocessable,
    /// 500 without a reason: what upstream does not classify.
    Internal,
}

impl PatchError {
    fn bad_request(message: impl Into<String>) -> Self {
        Self { class: PatchErrorClass::BadRequest, message: message.into() }
    }

    fn internal(message: impl Into<String>) -> Self {
        Self { class: PatchErrorClass::Internal, message: message.into() }
    }

    /// Upstream tells the client nothing more.
    fn unprocessable() -> Self {
        Self {
            class: PatchErrorClass::Unprocessable,
            message: "the server rejected our request due to an error in our request".to_owned(),
        }
    }

    /// The answer to the client.
    pub fn status(&self) -> Status {
        let message = self.message.clone();
        match self.class {
            PatchErrorClass::BadRequest => Status::bad_request(message),
            PatchErrorClass::TooLarge => Status::too_large(message),
            PatchErrorClass::Unprocessable => {
                Status::new(422, "Invalid", message).with_details(Details::default())
            }
            PatchErrorClass::Internal => Status::new(500, "", message),
        }
    }
}

/// A value as Go's `%v` prints it (`map[a:1 b:[x y]]`): how errors show patches.
pub fn show(value: &Value) -> String {
    let mut out = String::new();
    write_go(value, &mut out);
    out
}

fn write_go(value: &Value, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match value {
        Value::Null => out.write_str("<nil>"),
        Value::String(text) => out.write_str(text),
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Number(number) => write!(out, "{number}"),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_go(item, out);
            }
            out.write_char(']')
        }
        Value::Object(members) => {
            out.push_str("map[");
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(name);
                out.push(':');
                write_go(member, out);
            }
            out.write_char(']')
        }
    };
}
