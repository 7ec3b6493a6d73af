//! Functions on strings. Positions count characters, not bytes.

use std::borrow::Cow;

use crate::cel::eval::{Failure, Res};
use crate::cel::functions::{Run, fail, time, wrong};
use crate::cel::value::Val;
use crate::go_regex;

pub(crate) mod format;

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    if name == "strings.quote" && !member && args == 1 {
        return Some(|args| match args {
            [Val::Str(text)] => Ok(Val::string(aro_kube_apimachinery::status::go_quote(text))),
            _ => wrong("strings.quote", args),
        });
    }
    if !member {
        return None;
    }
    Some(match (name, args) {
        ("contains", 1) => |args| match args {
            [Val::Str(text), Val::Str(part)] => Ok(Val::Bool(text.contains(part.as_ref()))),
            _ => wrong("contains", args),
        },
        ("startsWith", 1) => |args| match args {
            [Val::Str(text), Val::Str(part)] => Ok(Val::Bool(text.starts_with(part.as_ref()))),
            _ => wrong("startsWith", args),
        },
        ("endsWith", 1) => |args| match args {
            [Val::Str(text), Val::Str(part)] => Ok(Val::Bool(text.ends_with(part.as_ref()))),
            _ => wrong("endsWith", args),
        },
        ("matches", 1) => |args| match args {
            [Val::Str(text), Val::Str(pattern)] => {
                let found = regex(pattern)?.is_match(text);
                Ok(Val::Bool(found))
            }
            _ => wrong("matches", args),
        },
        ("find", 1) => |args| match args {
            [Val::Str(text), Val::Str(pattern)] => {
                let found = regex(pattern)?.find(text).map_or("", |found| found.as_str());
                Ok(Val::string(found))
            }
            _ => wrong("find", args),
        },
        ("findAll", 1 | 2) => find_all,
        ("charAt", 1) => |args| match args {
            [Val::Str(text), Val::Int(at)] => match usize::try_from(*at) {
                Ok(at) if at < text.chars().count() => {
                    Ok(Val::string(text.chars().nth(at).map(String::from).unwrap_or_default()))
                }
                Ok(at) if at == text.chars().count() => Ok(Val::string("")),
                _ => fail(format!("index out of range: {at}")),
            },
            _ => wrong("charAt", args),
        },
        ("indexOf", 2) => index_of,
        ("lastIndexOf", 2) => last_index_of,
        ("lowerAscii", 0) => |args| match args {
            [Val::Str(text)] => Ok(Val::string(text.to_ascii_lowercase())),
            _ => wrong("lowerAscii", args),
        },
        ("upperAscii", 0) => |args| match args {
            [Val::Str(text)] => Ok(Val::string(text.to_ascii_uppercase())),
            _ => wrong("upperAscii", args),
        },
        ("trim", 0) => |args| match args {
            [Val::Str(text)] => Ok(Val::string(text.trim())),
            _ => wrong("trim", args),
        },
        ("replace", 2 | 3) => |args| match args {
            [Val::Str(text), Val::Str(from), Val::Str(to)] => {
                Ok(Val::string(text.replace(from.as_ref(), to)))
            }
            [Val::Str(text), Val::Str(from), Val::Str(to), Val::Int(limit)] => {
                let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
                Ok(Val::string(text.replacen(from.as_ref(), to, limit)))
            }
            _ => wrong("replace", args),
        },
        ("split", 1 | 2) => split,
        ("substring", 1 | 2) => substring,
        ("format", 1) => format::run,
        _ => return None,
    })
}

fn regex(pattern: &str) -> Result<regex::Regex, Failure> {
    let failure = |problem| Failure::Error(format!("error parsing regexp: {problem}"));
    go_regex::check(pattern).map_err(failure)?;
    go_regex::compile(pattern).map_err(failure)
}

fn find_all<'a>(args: &[Val<'a>]) -> Res<'a> {
    let (text, pattern, limit) = match args {
        [Val::Str(text), Val::Str(pattern)] => (text, pattern, usize::MAX),
        [Val::Str(text), Val::Str(pattern), Val::Int(limit)] => {
            (text, pattern, usize::try_from(*limit).unwrap_or(usize::MAX))
        }
        _ => return wrong("findAll", args),
    };
    let regex = regex(pattern)?;
    let found = regex.find_iter(text).take(limit).map(|found| Val::string(found.as_str())).collect();
    Ok(Val::list(found))
}

pub(crate) fn index_of<'a>(args: &[Val<'a>]) -> Res<'a> {
    let (text, part, from) = match args {
        [Val::Str(text), Val::Str(part)] => (text, part, 0),
        [Val::Str(text), Val::Str(part), Val::Int(from)] => (text, part, *from),
        _ => return wrong("indexOf", args),
    };
    let Ok(start) = usize::try_from(from) else { return fail(format!("index out of range: {from}")) };
    let Some(start) = offset(text, start) else { return Ok(Val::Int(-1)) };
    let at = text[start..].find(part.as_ref()).map(|at| text[..start + at].chars().count());
    Ok(Val::Int(at.map_or(-1, |at| at as i64)))
}

pub(crate) fn last_index_of<'a>(args: &[Val<'a>]) -> Res<'a> {
    let (text, part, end) = match args {
        [Val::Str(text), Val::Str(part)] => (text, part, None),
        [Val::Str(text), Val::Str(part), Val::Int(last)] => {
            let Some(at) = usize::try_from(*last).ok().and_then(|last| offset(text, last)) else {
                return fail(format!("index out of range: {last}"));
            };
            (text, part, Some(at))
        }
        _ => return wrong("lastIndexOf", args),
    };
    // The part may begin at the given position at the latest.
    let at = text.rmatch_indices(part.as_ref()).map(|(at, _)| at).find(|at| end.is_none_or(|end| *at <= end));
    Ok(Val::Int(at.map_or(-1, |at| text[..at].chars().count() as i64)))
}

/// Where the nth character begins; the end of the text counts too.
fn offset(text: &str, nth: usize) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(nth)
}

fn split<'a>(args: &[Val<'a>]) -> Res<'a> {
    let (text, separator, limit) = match args {
        [Val::Str(text), Val::Str(separator)] => (text, separator, -1),
        [Val::Str(text), Val::Str(separator), Val::Int(limit)] => (text, separator, *limit),
        _ => return wrong("split", args),
    };
    let parts: Vec<Cow<'a, str>> = match text {
        Cow::Borrowed(text) => pieces(text, separator, limit).into_iter().map(Cow::Borrowed).collect(),
        Cow::Owned(text) => {
            pieces(text, separator, limit).into_iter().map(|part| Cow::Owned(part.to_owned())).collect()
        }
    };
    Ok(Val::list(parts.into_iter().map(Val::Str).collect()))
}

/// As Go's `SplitN` does: an empty separator splits into characters, a negative limit means all.
fn pieces<'t>(text: &'t str, separator: &str, limit: i64) -> Vec<&'t str> {
    let limit = match limit {
        0 => return Vec::new(),
        1.. => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    if !separator.is_empty() {
        return text.splitn(limit, separator).collect();
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if pieces.len() + 1 == limit {
            pieces.push(rest);
            return pieces;
        }
        let (piece, after) = rest.split_at(c.len_utf8());
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn substring<'a>(args: &[Val<'a>]) -> Res<'a> {
    let (text, from, to) = match args {
        [Val::Str(text), Val::Int(from)] => (text, *from, None),
        [Val::Str(text), Val::Int(from), Val::Int(to)] => (text, *from, Some(*to)),
        _ => return wrong("substring", args),
    };
    let find = |at: i64| usize::try_from(at).ok().and_then(|at| offset(text, at));
    let Some(start) = find(from) else { return fail(format!("index out of range: {from}")) };
    let end = match to {
        None => text.len(),
        Some(to) => match find(to) {
            Some(end) => end,
            None => return fail(format!("index out of range: {to}")),
        },
    };
    match (text, start <= end) {
        (_, false) => {
            fail(format!("invalid substring range. start: {from}, end: {}", to.unwrap_or_default()))
        }
        (Cow::Borrowed(text), true) => Ok(Val::Str(Cow::Borrowed(&text[start..end]))),
        (Cow::Owned(text), true) => Ok(Val::string(&text[start..end])),
    }
}

/// A scalar as text.
pub(crate) fn plain(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".to_owned(),
        Val::Bool(b) => b.to_string(),
        Val::Int(a) => a.to_string(),
        Val::Uint(a) => a.to_string(),
        Val::Double(a) => double(*a),
        Val::Str(text) => text.to_string(),
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::Timestamp(at) => time::show_timestamp(at),
        Val::Duration(nanos) => time::show_duration(*nanos),
        Val::Ip(ip) => ip.to_string(),
        Val::Cidr(cidr) => cidr.to_string(),
        Val::Type(name) => (*name).to_owned(),
        Val::Optional(Some(value)) => format!("optional({})", plain(value)),
        Val::Optional(None) => "optional.none()".to_owned(),
        other => format::nested(other),
    }
}

/// Shortest form, as `string()` writes floats.
fn double(value: f64) -> String {
    shortest(value, 1e6)
}

/// Shortest form, as messages show floats.
pub(crate) fn shown_double(value: f64) -> String {
    shortest(value, 1e21)
}

/// Shortest form; from the bound on with an exponent.
fn shortest(value: f64, bound: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..bound).contains(&magnitude) {
        let text = format!("{value:e}");
        // Go writes at least two digits of exponent, with its sign.
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    value.to_string()
}
