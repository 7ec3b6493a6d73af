//! Formats of strings that are checked. Any other format says nothing.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use crate::cel::functions::{time, url::Url};

macro_rules! formats {
    ($($variant:ident $name:literal,)*) => {
        /// A format that is checked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Format {
            $($variant,)*
        }

        impl Format {
            /// By its name in a schema.
            pub(crate) fn find(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

formats! {
    BsonObjectId "bsonobjectid",
    Byte "byte",
    Cidr "cidr",
    CreditCard "creditcard",
    Date "date",
    DateTime "date-time",
    DateTimeJoined "datetime",
    Duration "duration",
    Email "email",
    HexColor "hexcolor",
    Hostname "hostname",
    Int32 "int32",
    Int64 "int64",
    Ipv4 "ipv4",
    Ipv6 "ipv6",
    Isbn "isbn",
    Isbn10 "isbn10",
    Isbn13 "isbn13",
    Mac "mac",
    RgbColor "rgbcolor",
    Ssn "ssn",
    Uri "uri",
    Uuid "uuid",
    Uuid3 "uuid3",
    Uuid4 "uuid4",
    Uuid5 "uuid5",
    Dns1123Label "k8s-short-name",
    Dns1123Subdomain "k8s-long-name",
}

impl Format {
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            // Formats of numbers say nothing about strings.
            Self::Int32 | Self::Int64 => true,
            Self::BsonObjectId => text.len() == 24 && is_hex(text),
            Self::Byte => !text.is_empty() && crate::cel::functions::base64::decode(text).is_some(),
            Self::Cidr => is_cidr(text),
            Self::CreditCard => luhn(text),
            Self::Date => time::date(text).is_some(),
            Self::DateTime | Self::DateTimeJoined => time::timestamp(text).is_some(),
            Self::Duration => time::any_duration(text).is_some(),
            Self::Email => is_email(text),
            Self::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && is_hex(digits)
            }
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => sloppy_ipv4(text).is_some(),
            Self::Ipv6 => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
            Self::Isbn => isbn10(text) || isbn13(text),
            Self::Isbn10 => isbn10(text),
            Self::Isbn13 => isbn13(text),
            Self::Mac => is_mac(text),
            Self::RgbColor => is_rgb(text),
            Self::Ssn => SSN.is_match(text),
            Self::Uri => Url::parse(text).is_ok(),
            Self::Uuid => is_uuid(text, None),
            Self::Uuid3 => is_uuid(text, Some('3')),
            Self::Uuid4 => is_uuid(text, Some('4')),
            Self::Uuid5 => is_uuid(text, Some('5')),
            Self::Dns1123Label => is_dns_label(text),
            Self::Dns1123Subdomain => is_dns_subdomain(text),
        }
    }
}

/// A part of a hostname: letters, digits and symbols of any script.
static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let c = r"a-zA-Z0-9\p{S}\p{L}";
    let single = format!("[{c}](-?[{c}]{{0,62}})?");
    let dotted = format!(r"([{c}]([{c}\-]{{0,61}}[{c}])?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
    Regex::new(&format!("^({single}|{dotted})$")).ok()
});

static SSN: LazyLock<Pattern> = LazyLock::new(|| Pattern::new(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));

/// A constant expression; one that did not compile would match nothing.
struct Pattern(Option<Regex>);

impl Pattern {
    fn new(source: &str) -> Self {
        Self(Regex::new(source).ok())
    }

    fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_hostname(text: &str) -> bool {
    let matches = HOSTNAME.as_ref().is_some_and(|regex| regex.is_match(text));
    matches && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

pub(crate) fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    // Labels of a subdomain have no own limit.
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

pub(crate) fn is_label_value(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// Leading zeros are allowed, as old clients write them.
fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
        let part = part.trim_start_matches('0');
        let whole = if part.is_empty() { "0" } else { part };
        *octet = whole.parse().ok()?;
    }
    let sound = parts.next().is_none() && text.split('.').all(|part| !part.is_empty());
    sound.then(|| Ipv4Addr::from(octets))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    if bits.is_empty() || !bits.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let Ok(bits) = bits.parse::<u8>() else { return false };
    if sloppy_ipv4(address).is_some() {
        return bits <= 32;
    }
    address.parse::<Ipv6Addr>().is_ok() && bits <= 128
}

fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(at), Some(whole)) => &whole[at + 1..],
        (None, None) => text,
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let word = |part: &str| {
        !part.is_empty()
            && !part.chars().any(|c| c.is_whitespace() || c.is_control() || "()<>[]:;@\\,\"".contains(c))
    };
    let dots = |part: &str| !part.starts_with('.') && !part.ends_with('.') && !part.contains("..");
    word(local) && word(domain) && dots(local) && dots(domain)
}

fn is_mac(text: &str) -> bool {
    for separator in [':', '-'] {
        if text.contains(separator) {
            let parts: Vec<&str> = text.split(separator).collect();
            return matches!(parts.len(), 6 | 8 | 20)
                && parts.iter().all(|part| part.len() == 2 && is_hex(part));
        }
    }
    let parts: Vec<&str> = text.split('.').collect();
    matches!(parts.len(), 3 | 4 | 10) && parts.iter().all(|part| part.len() == 4 && is_hex(part))
}

fn is_rgb(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let number = |part: &str| {
        let part = part.trim();
        part.parse::<u8>().is_ok() && (part == "0" || !part.starts_with(['0', '+']))
    };
    let parts: Vec<&str> = inner.split(',').collect();
    parts.len() == 3 && parts.into_iter().all(number)
}

/// Dashes may be left out.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let mut rest = text;
    let mut groups = [""; 5];
    for (index, (group, length)) in groups.iter_mut().zip(GROUPS).enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.get(..length).filter(|part| is_hex(part)) {
            Some(part) => *group = part,
            None => return false,
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    let variant = |group: &str| group.starts_with(['8', '9', 'a', 'b', 'A', 'B']);
    rest.is_empty()
        && version
            .is_none_or(|version| groups[2].starts_with(version) && (version == '3' || variant(groups[3])))
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| c.to_digit(10).unwrap_or(99)).collect()
}

fn isbn10(text: &str) -> bool {
    let mut digits = digits(text);
    if text.ends_with(['x', 'X'])
        && let Some(last) = digits.last_mut()
    {
        *last = 10;
    }
    let sound =
        digits.iter().rev().skip(1).all(|digit| *digit < 10) && digits.last().is_some_and(|d| *d <= 10);
    digits.len() == 10
        && sound
        && digits.iter().zip(1u32..).map(|(digit, at)| digit * at).sum::<u32>() % 11 == 0
}

fn isbn13(text: &str) -> bool {
    let digits = digits(text);
    let sum: u32 =
        digits.iter().enumerate().map(|(at, digit)| if at % 2 == 0 { *digit } else { 3 * digit }).sum();
    digits.len() == 13 && digits.iter().all(|digit| *digit < 10) && sum.is_multiple_of(10)
}

fn luhn(text: &str) -> bool {
    let digits = digits(text);
    let doubled = |(at, digit): (usize, &u32)| match (at % 2 == 1, digit * 2) {
        (false, _) => *digit,
        (true, twice) if twice > 9 => twice - 9,
        (true, twice) => twice,
    };
    let sum: u32 = digits.iter().rev().enumerate().map(doubled).sum();
    (12..=19).contains(&digits.len()) && digits.iter().all(|digit| *digit < 10) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_what_upstream_accepts() {
        // Recorded from a real server.
        for (format, good, bad) in [
            ("uri", &["http://a", "/x", "a:b"][..], &["not a uri", ""][..]),
            ("email", &["a@b", "a@b.c", "A <a@b.c>"], &["x"]),
            ("hostname", &["a-", "a.bc"], &["a_b", "a.b", "-a"]),
            ("ipv4", &["1.2.3.4", "01.2.3.4"], &["1.2.3", "::1"]),
            ("ipv6", &["::1"], &["1.2.3.4", "zz"]),
            ("cidr", &["1.2.3.4/24", "::/0"], &["1.2.3.4", "1.2.3.4/40"]),
            ("mac", &["01:23:45:67:89:ab"], &["x"]),
            ("uuid", &["ABCDEF12-1234-1234-1234-123456789012", "abcdef12123412341234123456789012"], &["x"]),
            ("uuid4", &["abcdef12-1234-4234-9234-123456789012"], &["abcdef12-1234-1234-1234-123456789012"]),
            ("byte", &["YQ=="], &["!", "YQ", "YWI_"]),
            ("date", &["2020-01-01"], &["2020-13-01", "x"]),
            ("duration", &["1s", "1h2m", "5 days", "0", "-1s", "1w"], &["x", "1"]),
            (
                "date-time",
                &["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.123+01:00"],
                &["x", "2020-01-01", "2020-01-01 00:00:00Z"],
            ),
            ("hexcolor", &["#fff"], &["x"]),
            ("rgbcolor", &["rgb(1,2,3)"], &["x"]),
            ("ssn", &["123-45-6789"], &["x"]),
            ("k8s-short-name", &["a"], &["A"]),
            ("isbn", &["0-306-40615-2", "978-3-16-148410-0"], &["x"]),
            ("creditcard", &["4111111111111111"], &["x"]),
        ] {
            let format = Format::find(format).unwrap();
            for text in good {
                assert!(format.accepts(text), "{} {text}", format.name());
            }
            for text in bad {
                assert!(!format.accepts(text), "{} {text}", format.name());
            }
        }
        assert_eq!(Format::find("password"), None);
    }
}
