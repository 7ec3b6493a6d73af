//! Absolute links in answers, built on the address the client used.
//!
//! ARM passes the client's own URL in `Referer`; without it the request's own `Host` serves. Only path, api-version
//! and paging token are replaced, so that the other parameters of the request survive.

use aro_arm::ResourceId;
use url::Url;

/// The address a request was made to, as its client saw it.
#[derive(Debug, Clone)]
pub struct ClientUrl(Url);

impl ClientUrl {
    /// From the `Referer` if it is an absolute http(s) URL, else from the parts of the request.
    pub fn new(
        referer: Option<&str>,
        forwarded_proto: Option<&str>,
        host: Option<&str>,
        path_and_query: &str,
    ) -> Self {
        let web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if let Some(url) = referer.and_then(|text| Url::parse(text).ok()).filter(web) {
            return Self(url);
        }
        let scheme = if forwarded_proto.is_some_and(|proto| proto.eq_ignore_ascii_case("https")) {
            "https"
        } else {
            "http"
        };
        let host = host.filter(|host| !host.is_empty()).unwrap_or("localhost");
        let fallback = Url::parse(&format!("{scheme}://{host}{path_and_query}")).ok().filter(web);
        Self(fallback.unwrap_or_else(localhost))
    }

    /// The link to a resource, with the request's api-version.
    pub fn to(&self, id: &ResourceId, api_version: &str) -> String {
        let mut url = self.0.clone();
        url.set_path(id.as_str());
        url.set_fragment(None);
        set_parameter(&mut url, "api-version", api_version);
        url.into()
    }

    /// The address itself.
    pub fn here(&self) -> String {
        self.0.to_string()
    }

    /// The link to the next page.
    pub fn next_page(&self, token: &str) -> String {
        let mut url = self.0.clone();
        url.set_fragment(None);
        set_parameter(&mut url, "$skipToken", token);
        url.into()
    }
}

/// The last resort for a request that names no usable host.
fn localhost() -> Url {
    #[expect(clippy::expect_used, reason = "a constant that parses")]
    Url::parse("http://localhost/").expect("a constant URL parses")
}

fn set_parameter(url: &mut Url, name: &str, value: &str) {
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(known, _)| !known.eq_ignore_ascii_case(name))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(kept).append_pair(name, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn links_are_absolute_for_any_headers(
            referer in proptest::option::of("\\PC{0,60}"),
            proto in proptest::option::of("\\PC{0,8}"),
            host in proptest::option::of("\\PC{0,30}"),
            token in "\\PC{0,40}",
        ) {
            let url = ClientUrl::new(referer.as_deref(), proto.as_deref(), host.as_deref(), "/a?b=c");
            prop_assert!(url.to(&id(), "v").starts_with("http"));
            let next = Url::parse(&url.next_page(&token)).unwrap();
            prop_assert!(next.query_pairs().any(|(name, value)| name == "$skipToken" && value == token.as_str()));
        }
    }

    fn id() -> ResourceId {
        ResourceId::parse("/subscriptions/s/providers/P/locations/l/hcpOperationStatuses/u").unwrap()
    }

    #[test]
    fn links_use_the_address_the_client_used_and_keep_its_parameters() {
        let url = ClientUrl::new(
            Some("https://management.azure.com/subscriptions/s?api-version=x&extra=1"),
            None,
            Some("ignored:8443"),
            "/",
        );
        assert_eq!(
            url.to(&id(), "2026-10-01"),
            "https://management.azure.com/subscriptions/s/providers/P/locations/l/hcpOperationStatuses/u?extra=1&api-version=2026-10-01"
        );
    }

    #[test]
    fn without_a_referer_the_host_serves_and_the_forwarded_scheme_counts() {
        let url = ClientUrl::new(None, Some("https"), Some("127.0.0.1:8443"), "/a?API-VERSION=1&$top=2");
        assert_eq!(
            url.next_page("t&k"),
            "https://127.0.0.1:8443/a?API-VERSION=1&%24top=2&%24skipToken=t%26k"
        );
    }

    #[test]
    fn a_referer_that_is_no_web_address_is_not_used() {
        for referer in ["javascript:alert(1)", "/relative", "ftp://x/", "not a url"] {
            let url = ClientUrl::new(Some(referer), None, Some("h"), "/p");
            assert!(url.to(&id(), "v").starts_with("http://h/"), "{referer}");
        }
        assert!(
            ClientUrl::new(None, None, Some("b a d"), "/").to(&id(), "v").starts_with("http://localhost/")
        );
    }
}
