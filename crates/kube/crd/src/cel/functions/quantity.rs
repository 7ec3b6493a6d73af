//! Kubernetes quantities: `100m`, `1.5Gi`, `2e3`.

use std::cmp::Ordering;

use crate::cel::eval::Res;
use crate::cel::functions::{Run, fail, wrong};
use crate::cel::value::Val;

/// A number of billionths. Finer parts are rounded up, as upstream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    nanos: i128,
}

const SCALE: i128 = 1_000_000_000;
const MISMATCH: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

impl Quantity {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // A lone sign is zero, as upstream has it.
        if text.is_empty() || fraction.contains('.') || (number.is_empty() && !suffix.is_empty()) {
            return None;
        }
        let (factor, shift) = suffix_of(suffix)?;
        let nanos = magnitude(whole, fraction, factor, shift)?;
        Some(Self { nanos: if negative { -nanos } else { nanos } })
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }

    fn integer(self) -> Option<i64> {
        if self.nanos % SCALE == 0 { i64::try_from(self.nanos / SCALE).ok() } else { None }
    }
}

/// A factor and a power of ten.
fn suffix_of(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => (1, suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok().filter(|power| power.abs() <= 60)?),
    })
}

/// Billionths, rounded away from zero. `None` when they do not fit.
fn magnitude(whole: &str, fraction: &str, factor: i128, shift: i32) -> Option<i128> {
    let fraction = fraction.trim_end_matches('0');
    let digits: i128 = match format!("{whole}{fraction}").trim_start_matches('0') {
        "" => return Some(0),
        digits => digits.parse().ok()?,
    };
    let digits = digits.checked_mul(factor)?;
    let power = 9 + shift - i32::try_from(fraction.len()).ok()?;
    let ten = 10i128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        return digits.checked_mul(ten?);
    }
    let Some(divisor) = ten else { return Some(1) };
    Some(digits / divisor + i128::from(digits % divisor != 0))
}

fn computed<'a>(name: &str, args: &[Val<'a>], compute: fn(i128, i128) -> Option<i128>) -> Res<'a> {
    let (a, b) = match args {
        [Val::Quantity(a), Val::Quantity(b)] => (a.nanos, b.nanos),
        [Val::Quantity(a), Val::Int(b)] => (a.nanos, i128::from(*b) * SCALE),
        _ => return wrong(name, args),
    };
    compute(a, b).map_or_else(|| fail("quantity overflow"), |nanos| Ok(Val::Quantity(Quantity { nanos })))
}

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("isQuantity", false, 1) => |args| match args {
            [Val::Str(text)] => Ok(Val::Bool(Quantity::parse(text).is_some())),
            _ => wrong("isQuantity", args),
        },
        ("quantity", false, 1) => |args| match args {
            [Val::Str(text)] => {
                Quantity::parse(text).map_or_else(|| fail(MISMATCH), |q| Ok(Val::Quantity(q)))
            }
            _ => wrong("quantity", args),
        },
        ("isInteger", true, 0) => |args| match args {
            [Val::Quantity(q)] => Ok(Val::Bool(q.integer().is_some())),
            _ => wrong("isInteger", args),
        },
        ("asInteger", true, 0) => |args| match args {
            [Val::Quantity(q)] => {
                q.integer().map_or_else(|| fail("cannot convert value to integer"), |i| Ok(Val::Int(i)))
            }
            _ => wrong("asInteger", args),
        },
        ("asApproximateFloat", true, 0) => |args| match args {
            [Val::Quantity(q)] => Ok(Val::Double(q.nanos as f64 / SCALE as f64)),
            _ => wrong("asApproximateFloat", args),
        },
        ("add", true, 1) => |args| computed("add", args, i128::checked_add),
        ("sub", true, 1) => |args| computed("sub", args, i128::checked_sub),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare_by_value() {
        let q = |text: &str| Quantity::parse(text).unwrap();
        assert_eq!(q("1000m"), q("1"));
        assert_eq!(q("1Gi"), q("1024Mi"));
        assert_eq!(q("1.5k"), q("15e2"));
        assert_eq!(q("-1").compare(&q("1n")), Ordering::Less);
        assert_eq!(q("0.0000000001"), q("1n"));
        for bad in ["", "a", "1.2.3", "1Qi", "+k", "1 "] {
            assert_eq!(Quantity::parse(bad), None, "{bad}");
        }
    }
}
