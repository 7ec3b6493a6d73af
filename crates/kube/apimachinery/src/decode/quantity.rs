//! Amounts of resources (`500m`, `1Gi`), in the one form the server answers with.

const FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// Amounts are counted in billionths: the smallest unit there is.
const NANO: i32 = 9;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The largest amount in binary units, in billionths.
const MAX_BINARY: i128 = i64::MAX as i128 * 1_000_000_000;

enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// Digits that are counted exactly without looking closer.
const MAX_DIGITS: usize = 18;

/// Rewrites an amount: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`. Amounts that are short enough already stay as
/// they are written. The error is upstream's text.
pub fn canonical(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Err(FORM);
    }
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = split_digits(unsigned);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    check_suffix(suffix)?;
    let (format, exponent) = interpret(suffix).ok_or(SUFFIX)?;
    let whole = whole.trim_start_matches('0');
    if is_short(whole, fraction, &format, exponent) {
        return Ok(text.to_owned());
    }
    Ok(match (count(whole, fraction, &format, exponent), format) {
        (Some(nanos), Format::Binary) => show(nanos.min(MAX_BINARY), &Format::Binary, negative),
        (None, Format::Binary) => show(MAX_BINARY, &Format::Binary, negative),
        (Some(nanos), format) => show(nanos, &format, negative),
        (None, _) => text.to_owned(),
    })
}

/// Whether upstream would keep the text: nothing can be taken out of the digits, and the unit is a plain one.
fn is_short(whole: &str, fraction: &str, format: &Format, exponent: i32) -> bool {
    let digits = whole.len() + fraction.len();
    let last_three = || whole.bytes().chain(fraction.bytes()).rev().take(3);
    match format {
        Format::Binary => {
            let value: Option<u64> = whole.parse().ok();
            // A tenth of the exponent counts three digits, roughly.
            let room = 14 - i32::try_from(digits).unwrap_or(i32::MAX) - exponent * 3;
            fraction.is_empty() && room >= 0 && value.is_some_and(|value| value % 8 != 0)
        }
        Format::Decimal | Format::Exponent => {
            let scale = exponent.saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
            !whole.is_empty()
                && digits <= MAX_DIGITS
                && scale >= -NANO
                && scale % 3 == 0
                && !(digits >= 3 && last_three().all(|digit| digit == b'0'))
        }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn check_suffix(suffix: &str) -> Result<(), &'static str> {
    let rest = suffix.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    if rest.bytes().all(|byte| byte.is_ascii_digit()) { Ok(()) } else { Err(FORM) }
}

fn interpret(suffix: &str) -> Option<(Format, i32)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, *exponent));
    }
    if let Some(index) = BINARY.iter().position(|name| *name == suffix) {
        return Some((Format::Binary, i32::try_from(index).ok()?));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    exponent.parse().ok().map(|exponent| (Format::Exponent, exponent))
}

/// Billionths, rounded up. `None` when they do not fit.
fn count(whole: &str, fraction: &str, format: &Format, exponent: i32) -> Option<i128> {
    let mut digits: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        digits = digits.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let places = i32::try_from(fraction.len()).ok()?;
    let (factor, shift) = match format {
        Format::Binary => (1i128.checked_shl(u32::try_from(exponent).ok()? * 10)?, NANO - places),
        _ => (1, exponent.checked_add(NANO)?.checked_sub(places)?),
    };
    let digits = digits.checked_mul(factor)?;
    let power = 10i128.checked_pow(shift.unsigned_abs());
    if shift >= 0 {
        if digits == 0 { Some(0) } else { digits.checked_mul(power?) }
    } else {
        // A positive amount stays positive: one that is too small becomes the smallest.
        Some(power.map_or(i128::from(digits != 0), |power| digits / power + i128::from(digits % power != 0)))
    }
}

fn show(nanos: i128, format: &Format, negative: bool) -> String {
    const UNIT: i128 = 1_000_000_000;
    if nanos == 0 {
        return "0".to_owned();
    }
    let sign = if negative { "-" } else { "" };
    if matches!(format, Format::Binary) && nanos % UNIT == 0 && nanos / UNIT >= 1024 {
        let (mut amount, mut index) = (nanos / UNIT, 0);
        while amount % 1024 == 0 && index + 1 < BINARY.len() {
            amount /= 1024;
            index += 1;
        }
        return format!("{sign}{amount}{}", BINARY[index]);
    }
    let (mut amount, mut index) = (nanos, 0);
    while amount % 1000 == 0 && index + 1 < DECIMAL.len() {
        amount /= 1000;
        index += 1;
    }
    let (name, exponent) = DECIMAL[index];
    match format {
        Format::Exponent if exponent != 0 => format!("{sign}{amount}e{exponent}"),
        _ => format!("{sign}{amount}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_have_one_form() {
        for (text, form) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1Ki", "1Ki"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1000000", "1M"),
            ("1500000", "1500k"),
            ("-1000m", "-1"),
            ("1e3", "1e3"),
            ("1000e0", "1e3"),
            ("0.0000000001", "1n"),
            ("1.", "1."),
            ("1e+3", "1e+3"),
            ("372.884831G", "372.884831G"),
            ("+5", "+5"),
            (" 1 ", "1"),
            ("e3", "0"),
            ("100Ei", "9223372036854775807"),
            ("1100Mi", "1100Mi"),
            (".5", "500m"),
            ("1E", "1E"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(form), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused_in_upstreams_words() {
        for (text, error) in [
            ("", FORM),
            ("xx", FORM),
            ("true", FORM),
            ("1mm", SUFFIX),
            ("1Q", FORM),
            ("1 Gi", FORM),
            ("--1", SUFFIX),
        ] {
            assert_eq!(canonical(text), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_form_of_a_form_is_itself(text in "[-+]?[0-9]{0,40}\\.?[0-9]{0,12}([numkKMGTPE]i?|[eE][-+]?[0-9]{1,12})?") {
            if let Ok(form) = canonical(&text) {
                prop_assert_eq!(canonical(&form), Ok(form));
            }
        }
    }
}
