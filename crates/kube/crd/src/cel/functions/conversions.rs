//! Conversions between types, `size` and `type`.

use std::rc::Rc;

use crate::cel::eval::Res;
use crate::cel::functions::{Run, fail, strings, wrong};
use crate::cel::value::Val;

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("size", true, 0) | ("size", false, 1) => |args| match args.first().and_then(Val::size) {
            Some(size) => Ok(Val::Int(size as i64)),
            None => wrong("size", args),
        },
        ("type", false, 1) => |args| Ok(Val::Type(args.first().map_or("null_type", Val::type_name))),
        ("int", false, 1) => int,
        ("uint", false, 1) => uint,
        ("double", false, 1) => double,
        ("string", false, 1) => string,
        ("bool", false, 1) => |args| match args {
            [Val::Bool(b)] => Ok(Val::Bool(*b)),
            [Val::Str(text)] => match text.as_ref() {
                "1" | "t" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
                "0" | "f" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
                _ => fail("type conversion error from 'string' to 'bool'"),
            },
            _ => wrong("bool", args),
        },
        ("bytes", false, 1) => |args| match args {
            [Val::Str(text)] => Ok(Val::Bytes(Rc::new(text.as_bytes().to_vec()))),
            [bytes @ Val::Bytes(_)] => Ok(bytes.clone()),
            _ => wrong("bytes", args),
        },
        _ => return None,
    })
}

fn int<'a>(args: &[Val<'a>]) -> Res<'a> {
    match args {
        [Val::Int(a)] => Ok(Val::Int(*a)),
        [Val::Uint(a)] => i64::try_from(*a).map_or_else(|_| fail("integer overflow"), |a| Ok(Val::Int(a))),
        // The bounds are exact powers of two.
        [Val::Double(a)] if *a > -9.223_372_036_854_776e18 && *a < 9.223_372_036_854_776e18 => {
            Ok(Val::Int(*a as i64))
        }
        [Val::Double(_)] => fail("integer overflow"),
        [Val::Timestamp(at)] => Ok(Val::Int(at.as_second())),
        [Val::Duration(nanos)] => Ok(Val::Int(*nanos)),
        [Val::Str(text)] => text
            .parse()
            .map_or_else(|_| fail("type conversion error from 'string' to 'int'"), |a| Ok(Val::Int(a))),
        _ => wrong("int", args),
    }
}

fn uint<'a>(args: &[Val<'a>]) -> Res<'a> {
    match args {
        [Val::Uint(a)] => Ok(Val::Uint(*a)),
        [Val::Int(a)] => {
            u64::try_from(*a).map_or_else(|_| fail("unsigned integer overflow"), |a| Ok(Val::Uint(a)))
        }
        [Val::Double(a)] if *a >= 0.0 && *a < 18_446_744_073_709_551_615.0 => Ok(Val::Uint(*a as u64)),
        [Val::Double(_)] => fail("unsigned integer overflow"),
        [Val::Str(text)] => text
            .parse()
            .map_or_else(|_| fail("type conversion error from 'string' to 'uint'"), |a| Ok(Val::Uint(a))),
        _ => wrong("uint", args),
    }
}

fn double<'a>(args: &[Val<'a>]) -> Res<'a> {
    match args {
        [Val::Double(a)] => Ok(Val::Double(*a)),
        [Val::Int(a)] => Ok(Val::Double(*a as f64)),
        [Val::Uint(a)] => Ok(Val::Double(*a as f64)),
        [Val::Str(text)] => text
            .parse()
            .map_or_else(|_| fail("type conversion error from 'string' to 'double'"), |a| Ok(Val::Double(a))),
        _ => wrong("double", args),
    }
}

fn string<'a>(args: &[Val<'a>]) -> Res<'a> {
    match args {
        [text @ Val::Str(_)] => Ok(text.clone()),
        [Val::Bytes(bytes)] => String::from_utf8(bytes.as_ref().clone()).map_or_else(
            |_| fail("invalid UTF-8 in bytes, cannot convert to string"),
            |text| Ok(Val::string(text)),
        ),
        [
            value @ (Val::Bool(_)
            | Val::Int(_)
            | Val::Uint(_)
            | Val::Double(_)
            | Val::Timestamp(_)
            | Val::Duration(_)
            | Val::Ip(_)
            | Val::Cidr(_)),
        ] => Ok(Val::string(strings::plain(value))),
        _ => wrong("string", args),
    }
}
