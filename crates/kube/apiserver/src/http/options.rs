//! Options in the query of a request.

use std::borrow::Cow;

use aro_kube_apimachinery::selector::{FieldSelector, LabelSelector};
use aro_kube_apimachinery::status::Status;
use percent_encoding::percent_decode_str;

/// A query, decoded. Later values of a name are ignored, as upstream does.
#[derive(Debug, Clone, Default)]
pub struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub fn parse(query: Option<&'a str>) -> Self {
        let parts = query.unwrap_or_default().split('&').filter(|part| !part.is_empty());
        Self(
            parts
                .map(|part| part.split_once('=').unwrap_or((part, "")))
                .map(|(k, v)| (decode(k), decode(v)))
                .collect(),
        )
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Query<'static> {
        let own = |(name, value): (Cow<'a, str>, Cow<'a, str>)| {
            (name.into_owned().into(), value.into_owned().into())
        };
        Query(self.0.into_iter().map(own).collect())
    }

    /// Adds that only the object of this name is meant.
    pub fn require_name(&mut self, name: &str) {
        let selector = match self.get("fieldSelector") {
            Some(known) => format!("{known},metadata.name={name}"),
            None => format!("metadata.name={name}"),
        };
        self.0.retain(|(known, _)| known != "fieldSelector");
        self.0.push(("fieldSelector".into(), selector.into()));
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
            .filter(|value| !value.is_empty())
    }

    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// As Go's `strconv.ParseBool`, and present without a value is true.
    pub fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .is_some_and(|(_, value)| !matches!(&**value, "0" | "f" | "F" | "false" | "FALSE" | "False"))
    }

    /// A whole number. One that is too large or too small is the largest or smallest there is.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse::<i64>() {
            Ok(number) => Ok(Some(number)),
            Err(error) if *error.kind() == PosOverflow => Ok(Some(i64::MAX)),
            Err(error) if *error.kind() == NegOverflow => Ok(Some(i64::MIN)),
            Err(_) => {
                let quoted = aro_kube_apimachinery::status::go_quote(text);
                Err(Status::bad_request(format!("strconv.ParseInt: parsing {quoted}: invalid syntax")))
            }
        }
    }

    pub fn labels(&self) -> Result<LabelSelector, Status> {
        let text = self.get("labelSelector").unwrap_or_default();
        LabelSelector::parse(text).map_err(Status::bad_request)
    }

    pub fn fields(&self) -> Result<FieldSelector, Status> {
        FieldSelector::parse(self.get("fieldSelector").unwrap_or_default()).map_err(Status::bad_request)
    }

    /// `dryRun=All`; anything else is refused elsewhere.
    pub fn dry_run(&self) -> bool {
        self.all("dryRun").any(|value| value == "All")
    }
}

fn decode(part: &str) -> Cow<'_, str> {
    if part.contains('+') {
        let spaced = part.replace('+', " ");
        return Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned());
    }
    percent_decode_str(part).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc&watch&pretty=true&x=1+2&limit=x"));
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert!(query.flag("watch"));
        assert_eq!(query.get("x"), Some("1 2"));
        assert_eq!(query.number("limit").unwrap_err().code, 400);
        assert!(!query.flag("nope"));
    }

    #[test]
    fn numbers_may_be_negative_and_saturate() {
        let query =
            Query::parse(Some("limit=-1&timeoutSeconds=18446744073709551615&low=-18446744073709551615"));
        assert_eq!(query.number("limit").unwrap(), Some(-1));
        assert_eq!(query.number("timeoutSeconds").unwrap(), Some(i64::MAX));
        assert_eq!(query.number("low").unwrap(), Some(i64::MIN));
        assert_eq!(query.number("nope").unwrap(), None);
    }
}
