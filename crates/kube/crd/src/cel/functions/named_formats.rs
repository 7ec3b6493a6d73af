//! `format.dns1123Label().validate(x)` and its like.

use std::borrow::Cow;
use std::rc::Rc;

use crate::cel::eval::Res;
use crate::cel::functions::url::Url;
use crate::cel::functions::{Run, fail, wrong};
use crate::cel::value::Val;
use crate::definition::names::{SUBDOMAIN, label_problem};
use crate::validate::formats::{Format, is_dns_label, is_dns_subdomain, is_label_value};

/// A format of this library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    kind: Kind,
    /// Names are made by appending to the value, so that it may end in a dash.
    prefix: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

pub(crate) const DNS_1123_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
pub(crate) const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

impl Named {
    fn find(name: &str) -> Option<Self> {
        let stem = name.strip_suffix("Prefix");
        let kind = match stem.unwrap_or(name) {
            "dns1123Label" => Kind::Dns1123Label,
            "dns1123Subdomain" => Kind::Dns1123Subdomain,
            "dns1035Label" => Kind::Dns1035Label,
            _ if stem.is_some() => return None,
            "qualifiedName" => Kind::QualifiedName,
            "labelValue" => Kind::LabelValue,
            "uri" => Kind::Uri,
            "uuid" => Kind::Uuid,
            "byte" => Kind::Byte,
            "date" => Kind::Date,
            "datetime" => Kind::DateTime,
            _ => return None,
        };
        Some(Self { kind, prefix: stem.is_some() })
    }

    /// What is wrong with a text.
    fn problem(self, text: &str) -> Option<String> {
        let text = match text.strip_suffix('-').filter(|_| self.prefix) {
            Some(stem) => Cow::Owned(format!("{stem}a")),
            None => Cow::Borrowed(text),
        };
        let unless = |fits: bool, problem: &str| (!fits).then(|| problem.to_owned());
        match self.kind {
            Kind::Dns1123Label => unless(is_dns_label(&text), DNS_1123_LABEL),
            Kind::Dns1123Subdomain => unless(is_dns_subdomain(&text), SUBDOMAIN),
            Kind::Dns1035Label => label_problem(&text),
            Kind::QualifiedName => qualified_name_problem(&text),
            Kind::LabelValue => unless(is_label_value(&text), LABEL_VALUE),
            Kind::Uri => Url::parse(&text).err().map(|why| format!("parse {text:?}: {why}")),
            Kind::Uuid => unless(Format::Uuid.accepts(&text), "does not match the UUID format"),
            Kind::Byte => unless(Format::Byte.accepts(&text), "invalid base64"),
            Kind::Date => unless(Format::Date.accepts(&text), "invalid date"),
            Kind::DateTime => unless(Format::DateTime.accepts(&text), "invalid datetime"),
        }
    }
}

/// What is wrong with a name such as a label's, with or without a domain before a slash.
pub(crate) fn qualified_name_problem(text: &str) -> Option<String> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    if prefix.is_some_and(|prefix| !is_dns_subdomain(prefix)) {
        return Some(format!("prefix part {SUBDOMAIN}"));
    }
    let fits = !name.is_empty() && is_label_value(name);
    (!fits).then(|| QUALIFIED_NAME.to_owned())
}

fn constant<'a>(name: &str) -> Res<'a> {
    Named::find(name).map_or_else(|| fail("unknown format"), |format| Ok(Val::Format(format)))
}

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("format.named", false, 1) => |args| match args {
            [Val::Str(name)] => {
                Ok(Val::Optional(Named::find(name).map(|format| Rc::new(Val::Format(format)))))
            }
            _ => wrong("format.named", args),
        },
        ("format.dns1123Label", false, 0) => |_| constant("dns1123Label"),
        ("format.dns1123LabelPrefix", false, 0) => |_| constant("dns1123LabelPrefix"),
        ("format.dns1123Subdomain", false, 0) => |_| constant("dns1123Subdomain"),
        ("format.dns1123SubdomainPrefix", false, 0) => |_| constant("dns1123SubdomainPrefix"),
        ("format.dns1035Label", false, 0) => |_| constant("dns1035Label"),
        ("format.dns1035LabelPrefix", false, 0) => |_| constant("dns1035LabelPrefix"),
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
                let problem = format.problem(text).map(|problem| Val::list(vec![Val::string(problem)]));
                Ok(Val::Optional(problem.map(Rc::new)))
            }
            _ => wrong("validate", args),
        },
        _ => return None,
    })
}
