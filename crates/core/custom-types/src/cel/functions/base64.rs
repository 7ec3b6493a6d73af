//! Bytes as text.

use std::rc::Rc;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;

use crate::cel::functions::{Run, fail, wrong};
use crate::cel::value::Val;

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("base64.encode", false, 1) => |args| match args {
            [Val::Bytes(bytes)] => Ok(Val::string(STANDARD.encode(bytes.as_slice()))),
            _ => wrong("base64.encode", args),
        },
        ("base64.decode", false, 1) => |args| match args {
            [Val::Str(text)] => match decode(text) {
                Some(bytes) => Ok(Val::Bytes(Rc::new(bytes))),
                None => fail("illegal base64 data"),
            },
            _ => wrong("base64.decode", args),
        },
        _ => return None,
    })
}
