//! Query parameters. Names match without regard to case, as ARM's own rules say; values are kept.

use aro_store::{Page, PageToken};

/// The parameters of one request, decoded.
#[derive(Debug, Clone, Default)]
pub struct QueryParameters(Vec<(String, String)>);

/// How many items a page has by default.
pub const DEFAULT_PAGE: usize = 20;
/// How many items a page has at most.
pub const LARGEST_PAGE: usize = 100;

impl QueryParameters {
    /// Reads `a=b&c=d`.
    pub fn parse(query: &str) -> Self {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        Self(pairs.map(|(name, value)| (name.to_lowercase(), value.into_owned())).collect())
    }

    /// The value of a parameter; the name is given in lower case. Of several, the first counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Which page of a list is asked for. `Err` is the text for the caller.
    pub fn page(&self) -> Result<Page, String> {
        self.page_within(DEFAULT_PAGE, LARGEST_PAGE)
    }

    /// The same for lists with other sizes of pages.
    pub fn page_within(&self, default: usize, largest: usize) -> Result<Page, String> {
        let size = match self.get("$top").map(str::parse::<usize>) {
            None => default,
            Some(Ok(top)) if top > 0 => top.min(largest),
            Some(_) => {
                return Err("The query parameter '$top' must be a whole number greater than 0.".to_owned());
            }
        };
        let after = self.get("$skiptoken").filter(|token| !token.is_empty()).map(PageToken::new);
        Ok(Page { size, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_names_match_in_any_case() {
        let query = QueryParameters::parse("API-Version=2026-10-01&%24SkipToken=a%2Bb&t=1");
        assert_eq!(query.get("api-version"), Some("2026-10-01"));
        assert_eq!(query.get("$skiptoken"), Some("a+b"));
    }

    #[test]
    fn top_counts_on_the_first_page_and_has_a_ceiling() {
        assert_eq!(QueryParameters::parse("$top=7").page().unwrap().size, 7);
        assert_eq!(QueryParameters::parse("$top=100000").page().unwrap().size, LARGEST_PAGE);
        assert_eq!(QueryParameters::parse("").page().unwrap().size, DEFAULT_PAGE);
        for bad in ["$top=0", "$top=-1", "$top=x", "$top="] {
            assert!(QueryParameters::parse(bad).page().is_err(), "{bad}");
        }
    }
}
