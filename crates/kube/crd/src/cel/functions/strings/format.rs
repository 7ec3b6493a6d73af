//! `'%s is %d'.format([…])`.

use std::fmt::Write as _;

use crate::cel::eval::Res;
use crate::cel::functions::strings::plain;
use crate::cel::functions::{fail, wrong};
use crate::cel::value::Val;

/// Wider fields are refused: they only serve to fill memory.
const MAX_PRECISION: usize = 1000;

pub(crate) fn run<'a>(args: &[Val<'a>]) -> Res<'a> {
    let [Val::Str(template), list] = args else { return wrong("format", args) };
    let Some(mut values) = list.items() else { return wrong("format", args) };
    let mut out = String::with_capacity(template.len());
    let mut chars = template.chars().peekable();
    let mut used = 0usize;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut precision = None;
        if chars.next_if_eq(&'.').is_some() {
            let mut digits = 0usize;
            while let Some(digit) = chars.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10)) {
                digits = digits.saturating_mul(10).saturating_add(digit as usize);
            }
            if digits > MAX_PRECISION {
                return fail("precision is too large");
            }
            precision = Some(digits);
        }
        let Some(verb) = chars.next() else { return fail("unexpected end of string") };
        let Some(value) = values.next() else { return fail(format!("index {used} out of range")) };
        used += 1;
        match clause(verb, precision, &value) {
            Some(text) => out.push_str(&text),
            None => {
                return fail(format!("could not parse formatting clause: unrecognized or unfit \"{verb}\""));
            }
        }
    }
    Ok(Val::string(out))
}

fn clause(verb: char, precision: Option<usize>, value: &Val<'_>) -> Option<String> {
    let precision = precision.unwrap_or(6);
    Some(match (verb, value) {
        ('s', value) => plain(value),
        ('d', Val::Int(_) | Val::Uint(_)) => plain(value),
        ('d' | 'f', Val::Double(a)) if !a.is_finite() => super::double(*a),
        ('f', Val::Double(a)) => format!("{a:.precision$}"),
        ('e', Val::Double(a)) => {
            let text = format!("{a:.precision$e}");
            let (mantissa, exponent) = text.split_once('e')?;
            let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
            format!("{mantissa}×10{sign}{}", superscript(&format!("{digits:0>2}")))
        }
        ('b', Val::Bool(b)) => u8::from(*b).to_string(),
        ('b' | 'o' | 'x' | 'X', Val::Int(a)) => {
            let sign = if *a < 0 { "-" } else { "" };
            format!("{sign}{}", radix(verb, a.unsigned_abs()))
        }
        ('b' | 'o' | 'x' | 'X', Val::Uint(a)) => radix(verb, *a),
        ('x' | 'X', Val::Str(text)) => hexadecimal(verb, text.as_bytes()),
        ('x' | 'X', Val::Bytes(bytes)) => hexadecimal(verb, bytes),
        _ => return None,
    })
}

/// Upstream writes powers of ten as people do.
fn superscript(digits: &str) -> String {
    const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    digits
        .chars()
        .filter_map(|c| c.to_digit(10))
        .filter_map(|digit| SUPERSCRIPTS.get(digit as usize))
        .collect()
}

fn radix(verb: char, value: u64) -> String {
    match verb {
        'b' => format!("{value:b}"),
        'o' => format!("{value:o}"),
        'x' => format!("{value:x}"),
        _ => format!("{value:X}"),
    }
}

fn hexadecimal(verb: char, bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = if verb == 'x' { write!(out, "{byte:02x}") } else { write!(out, "{byte:02X}") };
        out
    })
}

/// Lists and maps, as `%s` writes them.
pub(crate) fn nested(value: &Val<'_>) -> String {
    if let Some(items) = value.items() {
        let items: Vec<_> = items.map(|item| member(&item)).collect();
        return format!("[{}]", items.join(", "));
    }
    let Some(entries) = value.entries() else { return value.type_name().to_owned() };
    let mut entries: Vec<_> =
        entries.iter().map(|(key, value)| format!("{}:{}", member(key), member(value))).collect();
    entries.sort();
    format!("{{{}}}", entries.join(", "))
}

/// Inside of lists and maps, strings are quoted and floats have six digits.
fn member(value: &Val<'_>) -> String {
    match value {
        Val::Str(text) => aro_kube_apimachinery::status::go_quote(text),
        Val::Double(a) if a.is_finite() => format!("{a:.6}"),
        other => plain(other),
    }
}
