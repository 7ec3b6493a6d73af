//! The head of a request, for services that route by host and path.

use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

/// The head of a request.
#[derive(Debug, Clone)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The path as received.
    pub raw_path: String,
    /// The parameters of the query, decoded.
    pub query: Vec<(String, String)>,
    /// The headers.
    pub headers: HeaderMap,
    /// The host that the client used, with its port if it named one. `None`: it named none, or what it named is no host.
    pub host: Option<String>,
}

impl RequestHead {
    /// Takes a request's head apart.
    pub fn new(parts: Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let named = parts.headers.get(HOST).and_then(|value| value.to_str().ok());
        let host = named.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
        Self {
            method: parts.method,
            raw_path: parts.uri.path().to_owned(),
            query,
            host: host.filter(|host| is_host(host)).map(str::to_owned),
            headers: parts.headers,
        }
    }

    /// The decoded path without its first slash; `None` if it is not UTF-8.
    pub fn path(&self) -> Option<String> {
        decoded(self.raw_path.trim_start_matches('/'))
    }

    /// The decoded segments of the path; `None` if one is not UTF-8. Empty ones are left out, because clients double slashes.
    pub fn segments(&self) -> Option<Vec<String>> {
        self.raw_path.split('/').filter(|part| !part.is_empty()).map(decoded).collect()
    }

    /// A parameter of the query; names are compared without case, as Azure does.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// A header that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The token of bearer authentication.
    pub fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }
}

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Hosts become part of answers.
fn is_host(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    !text.is_empty() && text.len() <= 255 && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(uri: &str, headers: &[(&str, &str)]) -> RequestHead {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        RequestHead::new(request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn paths_are_decoded_and_doubled_slashes_collapse_in_segments() {
        let request = head("/a//b%20c/%C3%A9?X=1&y=a%2Bb", &[]);
        assert_eq!(request.segments().unwrap(), ["a", "b c", "é"]);
        assert_eq!(request.path().as_deref(), Some("a//b c/é"));
        assert_eq!((request.parameter("x"), request.parameter("Y")), (Some("1"), Some("a+b")));
        assert!(head("/%ff", &[]).segments().is_none());
        assert!(head("/%ff", &[]).path().is_none());
    }

    #[test]
    fn the_host_is_the_headers_or_the_uris_and_never_what_is_no_host() {
        assert_eq!(head("/", &[("host", "a.example.com:8440")]).host.as_deref(), Some("a.example.com:8440"));
        assert_eq!(head("https://b.example.com/", &[]).host.as_deref(), Some("b.example.com"));
        assert_eq!(head("/", &[("host", "a\"b")]).host, None);
        assert_eq!(head("/", &[]).host, None);
    }

    #[test]
    fn only_bearer_authentication_has_a_token() {
        assert_eq!(head("/", &[("authorization", "bearer  t ")]).bearer(), Some("t"));
        assert_eq!(head("/", &[("authorization", "SharedKey a:b")]).bearer(), None);
        assert_eq!(head("/", &[]).bearer(), None);
    }
}
