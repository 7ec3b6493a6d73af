//! `format.dns1123Label().validate(x)` and its like.

use std::rc::Rc;

use crate::cel::eval::Res;
use crate::cel::functions::{Run, fail, wrong};
use crate::cel::value::Val;
use crate::validate::formats::Format;

/// The format of a name in this library.
fn named(name: &str) -> Option<Format> {
    Some(match name {
        "dns1123Label" | "dns1123LabelPrefix" => Format::Dns1123Label,
        "dns1123Subdomain" | "dns1123SubdomainPrefix" => Format::Dns1123Subdomain,
        "dns1035Label" | "dns1035LabelPrefix" => Format::Dns1035Label,
        "qualifiedName" => Format::QualifiedName,
        "labelValue" => Format::LabelValue,
        "uri" => Format::Uri,
        "uuid" => Format::Uuid,
        "byte" => Format::Byte,
        "date" => Format::Date,
        "datetime" => Format::DateTime,
        _ => return None,
    })
}

fn constant<'a>(name: &str) -> Res<'a> {
    named(name).map_or_else(|| fail("unknown format"), |format| Ok(Val::Format(format)))
}

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("format.named", false, 1) => |args| match args {
            [Val::Str(name)] => Ok(Val::Optional(named(name).map(|format| Rc::new(Val::Format(format))))),
            _ => wrong("format.named", args),
        },
        ("format.dns1123Label" | "format.dns1123LabelPrefix", false, 0) => |_| constant("dns1123Label"),
        ("format.dns1123Subdomain" | "format.dns1123SubdomainPrefix", false, 0) => {
            |_| constant("dns1123Subdomain")
        }
        ("format.dns1035Label" | "format.dns1035LabelPrefix", false, 0) => |_| constant("dns1035Label"),
        ("format.qualifiedName", false, 0) => |_| constant("qualifiedName"),
        ("format.labelValue", false, 0) => |_| constant("labelValue"),
        ("format.uri", false, 0) => |_| constant("uri"),
        ("format.uuid", false, 0) => |_| constant("uuid"),
        ("format.byte", false, 0) => |_| constant("byte"),
        ("format.date", false, 0) => |_| constant("date"),
        ("format.datetime", false, 0) => |_| constant("datetime"),
        // Empty when the value fits, else what is wrong with it.
        ("validate", true, 1) => |args| match args {
            [Val::Format(format), Val::Str(text)] => {
                if format.accepts(text) {
                    return Ok(Val::Optional(None));
                }
                let problem = Val::string(format!("must be of type {}", format.name()));
                Ok(Val::some(Val::list(vec![problem])))
            }
            _ => wrong("validate", args),
        },
        _ => return None,
    })
}
