//! Semantic versions, and the comparisons that versions and quantities share.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::cel::eval::Res;
use crate::cel::functions::{Run, fail, wrong};
use crate::cel::value::Val;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    /// Dot separated parts after the dash.
    pre: Vec<String>,
}

impl Semver {
    pub(crate) fn parse(text: &str, normalize: bool) -> Result<Self, &'static str> {
        let text = if normalize { text.trim_start_matches(['v', 'V']) } else { text };
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let mut parts: Vec<&str> = core.split('.').collect();
        while normalize && parts.len() < 3 {
            parts.push("0");
        }
        let [major, minor, patch] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found");
        };
        let number = |part: &str| {
            let part = if normalize && part.len() > 1 { part.trim_start_matches('0') } else { part };
            let part = if normalize && part.is_empty() { "0" } else { part };
            let sound = !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_digit())
                && (part == "0" || !part.starts_with('0'));
            part.parse().ok().filter(|_| sound).ok_or("Invalid character(s) found in number")
        };
        let numbers = [number(major)?, number(minor)?, number(patch)?];
        let pre: Vec<String> = pre.map(|pre| pre.split('.').map(str::to_owned).collect()).unwrap_or_default();
        let sound =
            |part: &String| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if pre.iter().all(sound) {
            Ok(Self { numbers, pre })
        } else {
            Err("Invalid character(s) in prerelease")
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let pairs = self.pre.iter().zip(&other.pre);
                let first = pairs.map(|(a, b)| compare_part(a, b)).find(|order| order.is_ne());
                first.unwrap_or_else(|| self.pre.len().cmp(&other.pre.len()))
            }
        })
    }
}

/// Numbers come before words.
fn compare_part(a: &str, b: &str) -> Ordering {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

fn parse<'a>(args: &[Val<'a>]) -> Res<'a> {
    let (text, normalize) = match args {
        [Val::Str(text)] => (text, false),
        [Val::Str(text), Val::Bool(normalize)] => (text, *normalize),
        _ => return wrong("semver", args),
    };
    Semver::parse(text, normalize).map_or_else(fail, |version| Ok(Val::Semver(Rc::new(version))))
}

fn order(args: &[Val<'_>]) -> Option<Ordering> {
    match args {
        [Val::Semver(a), Val::Semver(b)] => Some(a.compare(b)),
        [Val::Quantity(a), Val::Quantity(b)] => Some(a.compare(b)),
        _ => None,
    }
}

fn compared<'a>(name: &str, args: &[Val<'a>], holds: fn(Ordering) -> bool) -> Res<'a> {
    order(args).map_or_else(|| wrong(name, args), |order| Ok(Val::Bool(holds(order))))
}

fn number<'a>(name: &str, args: &[Val<'a>], at: usize) -> Res<'a> {
    match args {
        [Val::Semver(version)] => Ok(Val::Int(version.numbers.get(at).copied().unwrap_or_default() as i64)),
        _ => wrong(name, args),
    }
}

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("isSemver", false, 1 | 2) => |args| Ok(Val::Bool(parse(args).is_ok())),
        ("semver", false, 1 | 2) => parse,
        ("major", true, 0) => |args| number("major", args, 0),
        ("minor", true, 0) => |args| number("minor", args, 1),
        ("patch", true, 0) => |args| number("patch", args, 2),
        ("isLessThan", true, 1) => |args| compared("isLessThan", args, Ordering::is_lt),
        ("isGreaterThan", true, 1) => |args| compared("isGreaterThan", args, Ordering::is_gt),
        ("compareTo", true, 1) => |args| match order(args) {
            Some(order) => Ok(Val::Int(order as i64)),
            None => wrong("compareTo", args),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_semver_says() {
        let v = |text: &str| Semver::parse(text, false).unwrap();
        for (a, b) in
            [("1.2.3", "1.2.10"), ("1.0.0-a", "1.0.0"), ("1.0.0-1", "1.0.0-a"), ("1.0.0-a", "1.0.0-a.1")]
        {
            assert_eq!(v(a).compare(&v(b)), Ordering::Less, "{a} {b}");
        }
        assert!(Semver::parse("v1.0", false).is_err());
        assert_eq!(Semver::parse("v1.0", true).unwrap(), v("1.0.0"));
        assert!(Semver::parse("01.0.0", false).is_err());
    }
}
