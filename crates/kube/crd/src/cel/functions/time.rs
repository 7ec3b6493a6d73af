//! Timestamps and durations.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::cel::eval::{Res, no_overload};
use crate::cel::functions::{Run, fail, wrong};
use crate::cel::lower::Operator;
use crate::cel::value::Val;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// RFC 3339.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    // jiff also takes a blank for the T, and seconds left out.
    let bytes = text.as_bytes();
    let strict = bytes.len() >= 20
        && matches!(bytes[10], b'T' | b't')
        && bytes[13] == b':'
        && bytes[16] == b':'
        && !text.contains(['[', ',']);
    if strict { text.parse().ok() } else { None }
}

/// `2006-01-02`
pub(crate) fn date(text: &str) -> Option<Timestamp> {
    if text.len() != 10 {
        return None;
    }
    let date: Date = text.parse().ok()?;
    date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Go's durations: `1h2m3.5s`, in nanoseconds.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0f64;
    let mut whole = 0i128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let scale: i64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => NANOS_PER_SECOND,
            "m" => 60 * NANOS_PER_SECOND,
            "h" => 3600 * NANOS_PER_SECOND,
            _ => return None,
        };
        if number == "." {
            return None;
        }
        match number.split_once('.') {
            None => {
                whole = whole.checked_add(number.parse::<i128>().ok()?.checked_mul(i128::from(scale))?)?;
            }
            Some(_) => total += number.parse::<f64>().ok()? * scale as f64,
        }
        rest = after;
    }
    let total = whole.checked_add(total.round() as i128)?;
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Durations as OpenAPI formats allow them: Go's, and words such as `5 days`.
pub(crate) fn any_duration(text: &str) -> Option<i64> {
    duration(text).or_else(|| spelled_duration(text))
}

fn spelled_duration(text: &str) -> Option<i64> {
    const DAY: i64 = 24 * 3600 * NANOS_PER_SECOND;
    let mut total = 0i64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let unit_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let scale = match unit {
            "ns" | "nano" => 1,
            "us" | "µs" | "micro" => 1_000,
            "ms" | "milli" => 1_000_000,
            "s" | "sec" | "secs" | "second" | "seconds" => NANOS_PER_SECOND,
            "m" | "min" | "mins" | "minute" | "minutes" => 60 * NANOS_PER_SECOND,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600 * NANOS_PER_SECOND,
            "d" | "day" | "days" => DAY,
            "w" | "wk" | "wks" | "week" | "weeks" => 7 * DAY,
            _ => return None,
        };
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(scale)?)?;
        rest = after.trim_start();
    }
    Some(total)
}

pub(crate) fn show_timestamp(at: &Timestamp) -> String {
    at.to_string()
}

/// Seconds with a fraction, as `string(duration)` writes them.
pub(crate) fn show_duration(nanos: i64) -> String {
    let (seconds, fraction) = (nanos / NANOS_PER_SECOND, (nanos % NANOS_PER_SECOND).abs());
    let sign = if nanos < 0 && seconds == 0 { "-" } else { "" };
    if fraction == 0 {
        return format!("{seconds}s");
    }
    let digits = format!("{fraction:09}");
    format!("{sign}{seconds}.{}s", digits.trim_end_matches('0'))
}

pub(crate) fn compute<'a>(operator: Operator, a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
    let shifted = |at: &Timestamp, nanos: Option<i64>| {
        nanos
            .and_then(|nanos| at.checked_add(SignedDuration::from_nanos(nanos)).ok())
            .map_or_else(|| fail("timestamp overflow"), |at| Ok(Val::Timestamp(at)))
    };
    let lasting =
        |nanos: Option<i64>| nanos.map_or_else(|| fail("duration overflow"), |n| Ok(Val::Duration(n)));
    match (operator, a, b) {
        (Operator::Add, Val::Timestamp(at), Val::Duration(nanos))
        | (Operator::Add, Val::Duration(nanos), Val::Timestamp(at)) => shifted(at, Some(*nanos)),
        (Operator::Subtract, Val::Timestamp(at), Val::Duration(nanos)) => shifted(at, nanos.checked_neg()),
        (Operator::Subtract, Val::Timestamp(a), Val::Timestamp(b)) => {
            lasting(i64::try_from(a.as_nanosecond() - b.as_nanosecond()).ok())
        }
        (Operator::Add, Val::Duration(a), Val::Duration(b)) => lasting(a.checked_add(*b)),
        (Operator::Subtract, Val::Duration(a), Val::Duration(b)) => lasting(a.checked_sub(*b)),
        _ => {
            let name = match operator {
                Operator::Add => "_+_",
                Operator::Subtract => "_-_",
                Operator::Multiply => "_*_",
                Operator::Divide => "_/_",
                _ => "_%_",
            };
            Err(no_overload(name, &[a, b]))
        }
    }
}

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("duration", false, 1) => |args| match args {
            [Val::Duration(nanos)] => Ok(Val::Duration(*nanos)),
            [Val::Str(text)] => duration(text).map_or_else(
                || fail("type conversion error from 'string' to 'google.protobuf.Duration'"),
                |nanos| Ok(Val::Duration(nanos)),
            ),
            _ => wrong("duration", args),
        },
        ("timestamp", false, 1) => |args| match args {
            [Val::Timestamp(at)] => Ok(Val::Timestamp(*at)),
            [Val::Int(seconds)] => Timestamp::from_second(*seconds)
                .map_or_else(|_| fail("timestamp overflow"), |at| Ok(Val::Timestamp(at))),
            [Val::Str(text)] => timestamp(text).map_or_else(
                || fail("type conversion error from 'string' to 'google.protobuf.Timestamp'"),
                |at| Ok(Val::Timestamp(at)),
            ),
            _ => wrong("timestamp", args),
        },
        ("getFullYear", true, 0 | 1) => |args| part(args, |at| i64::from(at.year())),
        ("getMonth", true, 0 | 1) => |args| part(args, |at| i64::from(at.month()) - 1),
        ("getDate", true, 0 | 1) => |args| part(args, |at| i64::from(at.day())),
        ("getDayOfMonth", true, 0 | 1) => |args| part(args, |at| i64::from(at.day()) - 1),
        ("getDayOfYear", true, 0 | 1) => |args| part(args, |at| i64::from(at.day_of_year()) - 1),
        ("getDayOfWeek", true, 0 | 1) => {
            |args| part(args, |at| i64::from(at.weekday().to_sunday_zero_offset()))
        }
        ("getHours", true, 0 | 1) => |args| match args {
            [Val::Duration(nanos)] => Ok(Val::Int(nanos / (3600 * NANOS_PER_SECOND))),
            _ => part(args, |at| i64::from(at.hour())),
        },
        ("getMinutes", true, 0 | 1) => |args| match args {
            [Val::Duration(nanos)] => Ok(Val::Int(nanos / (60 * NANOS_PER_SECOND))),
            _ => part(args, |at| i64::from(at.minute())),
        },
        ("getSeconds", true, 0 | 1) => |args| match args {
            [Val::Duration(nanos)] => Ok(Val::Int(nanos / NANOS_PER_SECOND)),
            _ => part(args, |at| i64::from(at.second())),
        },
        ("getMilliseconds", true, 0 | 1) => |args| match args {
            [Val::Duration(nanos)] => Ok(Val::Int(nanos / 1_000_000)),
            _ => part(args, |at| i64::from(at.millisecond())),
        },
        _ => return None,
    })
}

/// A part of a timestamp, in UTC or in the given zone.
fn part<'a>(args: &[Val<'a>], read: fn(&Zoned) -> i64) -> Res<'a> {
    let (at, zone) = match args {
        [Val::Timestamp(at)] => (at, Some(TimeZone::UTC)),
        [Val::Timestamp(at), Val::Str(zone)] => (at, time_zone(zone)),
        _ => return wrong("timestamp accessor", args),
    };
    match zone {
        Some(zone) => Ok(Val::Int(read(&at.to_zoned(zone)))),
        None => fail("unknown time zone"),
    }
}

/// A name, or an offset such as `-02:30`.
fn time_zone(zone: &str) -> Option<TimeZone> {
    let Some((hours, minutes)) = zone.split_once(':') else { return TimeZone::get(zone).ok() };
    let negative = hours.starts_with('-');
    let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok()?;
    let minutes: i32 = minutes.parse().ok()?;
    let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
    let offset = jiff::tz::Offset::from_seconds(if negative { -seconds } else { seconds }).ok()?;
    Some(TimeZone::fixed(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("1s", Some(1_000_000_000)),
            ("1h2m", Some(3_720_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("0", Some(0)),
            (".5s", Some(500_000_000)),
            ("1", None),
            ("", None),
            ("s", None),
            (".s", None),
            ("9999999h", None),
        ] {
            assert_eq!(duration(text), nanos, "{text}");
        }
        assert_eq!(show_duration(-1_500_000_000), "-1.5s");
        assert_eq!(show_duration(-500_000_000), "-0.5s");
    }
}
