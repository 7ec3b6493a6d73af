//! Texts with a form of their own: times, bytes.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time in UTC with seconds, as the server answers it.
pub(super) fn time(text: &str) -> Result<String, String> {
    if is_plain_utc(text) {
        return Ok(text.to_owned());
    }
    Ok(instant(text)?.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A time in UTC with microseconds.
pub(super) fn micro_time(text: &str) -> Result<String, String> {
    Ok(instant(text)?.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

fn instant(text: &str) -> Result<Timestamp, String> {
    // The layout has a `T` at its eleventh place: jiff would take other separators too.
    let parsed = if text.as_bytes().get(10) == Some(&b'T') { text.parse::<Timestamp>().ok() } else { None };
    parsed.ok_or_else(|| {
        let text = crate::status::go_quote(text);
        format!("parsing time {text} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text} as \"2006\"")
    })
}

/// `2006-01-02T15:04:05Z` with digits that certainly make a time: most times are in this form already.
pub fn is_plain_utc(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00Z";
    let shaped = bytes.len() == shape.len()
        && bytes.iter().zip(shape).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            form => byte == form,
        });
    let number = |at: usize| (bytes[at] - b'0') * 10 + bytes[at + 1] - b'0';
    shaped
        && (1..=12).contains(&number(5))
        && (1..=28).contains(&number(8))
        && number(11) < 24
        && number(14) < 60
        && number(17) < 60
}

/// Standard base64, line breaks taken out.
pub(super) fn base64(text: &str) -> Result<String, String> {
    let illegal = |at: usize| Err(format!("illegal base64 data at input byte {at}"));
    let mut out = String::with_capacity(text.len());
    let mut padding = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\r' | b'\n' => continue,
            b'=' if out.len() % 4 >= 2 && padding < 2 => padding += 1,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if padding == 0 => {}
            _ => return illegal(at),
        }
        out.push(char::from(byte));
    }
    if out.len().is_multiple_of(4) { Ok(out) } else { illegal(text.len() - text.len() % 4) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_shown_in_utc() {
        for (text, shown) in [
            ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z"),
            ("2024-05-06T07:08:09.123Z", "2024-05-06T07:08:09Z"),
            ("2024-05-06T07:08:09+02:00", "2024-05-06T05:08:09Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ] {
            assert_eq!(time(text).as_deref(), Ok(shown));
        }
        assert_eq!(micro_time("2024-05-06T07:08:09Z").as_deref(), Ok("2024-05-06T07:08:09.000000Z"));
        assert_eq!(
            time("xx").unwrap_err(),
            r#"parsing time "xx" as "2006-01-02T15:04:05Z07:00": cannot parse "xx" as "2006""#
        );
        assert!(time("2024-02-30T00:00:00Z").is_err());
        assert!(time("2024-02-03").is_err());
    }

    #[test]
    fn bytes_are_checked() {
        for text in ["", "YQ==", "YWI=", "YWJj", "YW\nJj"] {
            assert!(base64(text).is_ok(), "{text}");
        }
        assert_eq!(base64("***").unwrap_err(), "illegal base64 data at input byte 0");
        assert_eq!(base64("YQ=a").unwrap_err(), "illegal base64 data at input byte 3");
        assert!(base64("YWJjZ").is_err());
        assert!(base64("Y===").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,30}", near in "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}[Zä]?") {
            for text in [text, near] {
                let _ = (time(&text), micro_time(&text), base64(&text));
            }
        }
    }
}
