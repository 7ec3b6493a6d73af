//! `If-Match` and `If-None-Match`, which the original ignores.

use aro_base::ETag;

/// The conditions of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    if_match: Option<String>,
    if_none_match: Option<String>,
}

impl Preconditions {
    pub fn new(if_match: Option<&str>, if_none_match: Option<&str>) -> Self {
        Self { if_match: if_match.map(str::to_owned), if_none_match: if_none_match.map(str::to_owned) }
    }

    /// Whether a write may go on; `Err` is the text for the caller.
    pub fn check_write(&self, current: Option<&ETag>) -> Result<(), String> {
        if let Some(wanted) = &self.if_match {
            match current {
                None => return Err("The resource does not exist, but If-Match was given.".to_owned()),
                Some(etag) if !matches(wanted, etag) => {
                    return Err("The resource has changed since the version named by If-Match.".to_owned());
                }
                Some(_) => {}
            }
        }
        if let (Some(unwanted), Some(etag)) = (&self.if_none_match, current)
            && matches(unwanted, etag)
        {
            return Err("The resource exists already, but If-None-Match was given.".to_owned());
        }
        Ok(())
    }

    /// Whether a read may be answered with 304.
    pub fn is_unmodified(&self, current: &ETag) -> bool {
        self.if_none_match.as_ref().is_some_and(|known| matches(known, current))
    }
}

/// `*` or a comma-separated list of quoted marks; weak marks count as their strong ones.
fn matches(header: &str, etag: &ETag) -> bool {
    header.split(',').map(str::trim).any(|candidate| {
        candidate == "*"
            || candidate.strip_prefix("W/").unwrap_or(candidate).trim_matches('"') == etag.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_match_and_if_none_match_are_honoured() {
        let etag = ETag::new("5");
        let check = |if_match, if_none_match, current| {
            Preconditions::new(if_match, if_none_match).check_write(current).is_ok()
        };
        assert!(check(None, None, None) && check(None, None, Some(&etag)));
        assert!(check(Some("\"5\""), None, Some(&etag)) && check(Some("\"1\", W/\"5\""), None, Some(&etag)));
        assert!(!check(Some("\"4\""), None, Some(&etag)) && !check(Some("*"), None, None));
        assert!(check(None, Some("*"), None) && !check(None, Some("*"), Some(&etag)));
        assert!(check(Some("*"), None, Some(&etag)) && check(None, Some("\"4\""), Some(&etag)));
    }
}
