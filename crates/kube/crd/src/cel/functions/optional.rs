//! Optional values.

use std::rc::Rc;

use crate::cel::functions::{Run, fail, wrong};
use crate::cel::value::Val;

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("optional.of", false, 1) => |args| Ok(Val::Optional(args.first().cloned().map(Rc::new))),
        ("optional.none", false, 0) => |_| Ok(Val::Optional(None)),
        ("optional.ofNonZeroValue", false, 1) => {
            |args| Ok(Val::Optional(args.first().filter(|value| !is_zero(value)).cloned().map(Rc::new)))
        }
        ("hasValue", true, 0) => |args| match args {
            [Val::Optional(value)] => Ok(Val::Bool(value.is_some())),
            _ => wrong("hasValue", args),
        },
        ("value", true, 0) => |args| match args {
            [Val::Optional(Some(value))] => Ok(value.as_ref().clone()),
            [Val::Optional(None)] => fail("optional.none() dereference"),
            _ => wrong("value", args),
        },
        ("orValue", true, 1) => |args| match args {
            [Val::Optional(Some(value)), _] => Ok(value.as_ref().clone()),
            [Val::Optional(None), other] => Ok(other.clone()),
            _ => wrong("orValue", args),
        },
        ("or", true, 1) => |args| match args {
            [some @ Val::Optional(Some(_)), _] => Ok(some.clone()),
            [Val::Optional(None), other] => Ok(other.clone()),
            _ => wrong("or", args),
        },
        _ => return None,
    })
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(b) => !b,
        Val::Int(a) | Val::Duration(a) => *a == 0,
        Val::Uint(a) => *a == 0,
        Val::Double(a) => *a == 0.0,
        Val::Optional(value) => value.is_none(),
        other => other.size() == Some(0),
    }
}
