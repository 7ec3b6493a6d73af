//! Quantities (`500m`, `1Gi`, `1e3`): their canonical text and their order.
//!
//! An amount keeps the style of suffix it was written with. Nothing is finer than 10⁻⁹ (finer amounts are rounded away
//! from zero) or larger than 2⁶³−1 (larger ones are cut).

use std::cmp::Ordering;
use std::fmt;

/// An amount with the suffix style it was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    /// In units of 10⁻⁹.
    nano: i128,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Binary,
    Decimal,
    Exponent,
}

/// Why a text is no quantity, in upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Number,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

const NANO: i128 = 1_000_000_000;
const MAX: i128 = i64::MAX as i128 * NANO;

impl Quantity {
    /// `None` when the text is no quantity.
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    /// The empty text is zero, as it is for decoders.
    pub fn read(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Ok(Self { nano: 0, style: Style::Decimal });
        }
        let (negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        if number.is_empty() || !is_suffix_shaped(suffix) {
            return Err(QuantityError::Format);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') {
            return Err(QuantityError::Format);
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityError::Number);
        }
        let (scale, style) = read_suffix(suffix).ok_or(QuantityError::Suffix)?;
        let nano = scaled(whole, fraction, scale);
        Ok(Self { nano: if negative { -nano } else { nano }, style })
    }

    pub fn nano(&self) -> i128 {
        self.nano
    }

    pub fn is_negative(&self) -> bool {
        self.nano < 0
    }

    /// Whole units; parts of one round away from zero.
    pub fn units(&self) -> i128 {
        divide_up(self.nano, NANO)
    }

    /// Thousandths; parts of one round away from zero.
    pub fn milli(&self) -> i128 {
        divide_up(self.nano, NANO / 1000)
    }

    /// Nothing finer than a thousandth, rounding away from zero.
    pub fn round_up_to_milli(self) -> Self {
        Self { nano: self.milli() * (NANO / 1000), ..self }
    }
}

/// What a number is multiplied by.
#[derive(Debug, Clone, Copy)]
enum Scale {
    Ten(i64),
    Two(u32),
}

fn is_suffix_shaped(suffix: &str) -> bool {
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn read_suffix(suffix: &str) -> Option<(Scale, Style)> {
    let decimal = |power| Some((Scale::Ten(power), Style::Decimal));
    let binary = |power| Some((Scale::Two(power), Style::Binary));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((Scale::Ten(power), Style::Exponent))
        }
    }
}

fn divide_up(value: i128, by: i128) -> i128 {
    let away = if value % by == 0 { 0 } else { value.signum() };
    value / by + away
}

/// The number in 10⁻⁹, rounded up, cut at the largest amount.
fn scaled(whole: &str, fraction: &str, scale: Scale) -> i128 {
    // Digits before and after the decimal point once it has moved to where 10⁻⁹ ends.
    let shift = match scale {
        Scale::Ten(power) => power.saturating_add(9),
        Scale::Two(_) => 9,
    };
    let digits = whole.bytes().chain(fraction.bytes()).map(|digit| i128::from(digit - b'0'));
    let point = (whole.len() as i64).saturating_add(shift);
    let (mut value, mut rest) = (0_i128, false);
    for (place, digit) in (0_i64..).zip(digits) {
        if place < point {
            value = value.saturating_mul(10).saturating_add(digit);
        } else {
            rest |= digit != 0;
        }
    }
    let missing = point - (whole.len() + fraction.len()) as i64;
    for _ in 0..missing.clamp(0, 40) {
        value = value.saturating_mul(10);
    }
    if let Scale::Two(power) = scale {
        value = value.saturating_mul(1 << power);
    }
    (value.saturating_add(i128::from(rest))).min(MAX)
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.nano.cmp(&other.nano))
    }
}

impl fmt::Display for Quantity {
    /// The canonical text: no fraction, the largest suffix that needs none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        if self.nano == 0 {
            return f.write_str("0");
        }
        // Small binary amounts would lose their fraction, so they are written as decimal ones.
        let small = self.nano.abs() < 1024 * NANO;
        if self.style == Style::Binary && !small {
            let (mut value, mut at) = (divide_up(self.nano, NANO), 0);
            while value % 1024 == 0 && at + 1 < BINARY.len() {
                value /= 1024;
                at += 1;
            }
            return write!(f, "{value}{}", BINARY[at]);
        }
        let (mut value, mut at) = (self.nano, 0);
        while value % 1000 == 0 && at + 1 < DECIMAL.len() {
            value /= 1000;
            at += 1;
        }
        let power = 3 * (at as i32) - 9;
        match self.style {
            Style::Exponent if power != 0 => write!(f, "{value}e{power}"),
            _ => write!(f, "{value}{}", DECIMAL[at]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_take_their_canonical_form() {
        for (text, canonical) in [
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("0", "0"),
            ("0Mi", "0"),
            ("", "0"),
            ("1500", "1500"),
            ("2000", "2k"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e2", "1200"),
            ("1E", "1E"),
            ("0.5Ki", "512"),
            ("1.5Ki", "1536"),
            ("100n", "100n"),
            ("0.1n", "1n"),
            ("-1000m", "-1"),
            ("+5", "5"),
            (".5", "500m"),
            ("5.", "5"),
            ("10Ei", "9223372036854775807"),
            ("1e100", "9223372036854775807"),
            ("0.0001", "100u"),
        ] {
            assert_eq!(Quantity::parse(text).map(|of| of.to_string()).as_deref(), Some(canonical), "{text}");
        }
    }

    #[test]
    fn other_texts_say_what_is_wrong() {
        use QuantityError as E;
        for (text, error) in [
            ("abc", E::Format),
            ("1z", E::Format),
            ("1 Gi", E::Format),
            ("1.1.1", E::Format),
            (".", E::Number),
            ("1MiB", E::Format),
            ("1mm", E::Suffix),
            ("1K", E::Suffix),
            ("-", E::Format),
        ] {
            assert_eq!(Quantity::read(text), Err(error), "{text}");
        }
    }

    #[test]
    fn amounts_compare_across_styles() {
        let read = |text| Quantity::parse(text).unwrap();
        assert!(read("1Gi") > read("1G"));
        assert!(read("100m") < read("1"));
        assert_eq!(read("0.0001").round_up_to_milli().to_string(), "1m");
        assert_eq!(read("1500m").units(), 2);
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC{0,24}") {
            let _ = Quantity::read(&text);
        }

        #[test]
        fn the_canonical_text_reads_as_the_same_amount(number in "-?[0-9]{1,12}(\\.[0-9]{0,6})?", suffix in "(n|u|m|k|M|G|T|Ki|Mi|Gi|e[0-9]|)") {
            let once = Quantity::read(&format!("{number}{suffix}")).unwrap().to_string();
            let read = Quantity::read(&once).unwrap();
            // What was written in binary may have lost its suffix, and then reads as decimal: `816.082Mi` is `855724000`
            // is `855724k`. From there on nothing changes, and the amount never does.
            let twice = read.to_string();
            let again = Quantity::read(&twice).unwrap();
            prop_assert_eq!(read.partial_cmp(&again), Some(std::cmp::Ordering::Equal), "{} {}", once, twice);
            prop_assert_eq!(again.to_string(), twice);
        }
    }
}
