//! Image digest mirrors: a source repository and where its images may be had instead.

use std::net::IpAddr;

use crate::hcp::cluster::ImageDigestMirror;
use crate::schema::pattern;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

/// A longer one is reported by the reader.
const MAX_LENGTH: usize = 255;

pattern!(
    DNS_SUBDOMAIN,
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    "host must be a DNS-1123 subdomain or an IP address"
);
pattern!(
    /// What OpenShift takes as a source: a wildcard host, or a host with an optional port and path.
    SOURCE,
    r"^\*(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+$|^((?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(?::[0-9]+)?)(?:(?:/[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?)+)?$",
    "must be host[:port][/path] or *.host"
);
pattern!(
    /// What OpenShift takes as a mirror: a host with an optional port and path.
    MIRROR,
    r"^((?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(?::[0-9]+)?)(?:(?:/[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?)+)?$",
    "must be host[:port][/path]"
);

pub fn check(mirrors: &[ImageDigestMirror], path: &FieldPath, problems: &mut Problems) {
    for (index, mirror) in mirrors.iter().enumerate() {
        let path = path.index(index);
        // A missing source is reported by the reader.
        if !mirror.source.is_empty() && mirror.source.len() <= MAX_LENGTH {
            let at = path.child("source");
            let host = mirror.source.strip_prefix("*.").unwrap_or(&mirror.source);
            if let Some(why) = wrong(&mirror.source, host).or_else(|| mismatch(&SOURCE, &mirror.source)) {
                problems.push(FieldError::invalid(&at, &mirror.source, why));
            }
        }
        for (index, text) in mirror.mirrors.iter().enumerate() {
            let at = path.child("mirrors").index(index);
            if text.is_empty() {
                problems.push(FieldError::required(&at));
            } else if let Some(why) = wrong(text, text).or_else(|| mismatch(&MIRROR, text))
                && text.len() <= MAX_LENGTH
            {
                problems.push(FieldError::invalid(&at, text, why));
            }
        }
    }
}

fn mismatch(pattern: &crate::schema::Pattern, text: &str) -> Option<&'static str> {
    (!pattern.matches(text)).then_some(pattern.why)
}

/// What is wrong with a repository; `rest` is what follows a wildcard.
fn wrong(text: &str, rest: &str) -> Option<&'static str> {
    if text.chars().any(char::is_whitespace) {
        return Some("must not contain whitespace");
    }
    let lower = text.to_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return Some("must not start with http:// or https://");
    }
    if lower != text {
        return Some("must be lower case");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Some("port must be a number");
    }
    (host.parse::<IpAddr>().is_err() && !DNS_SUBDOMAIN.matches(host)).then_some(DNS_SUBDOMAIN.why)
}
