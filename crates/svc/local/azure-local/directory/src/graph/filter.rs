//! The filters that Azure's clients send (`$filter`): comparisons of text, joined by one connective.

/// One comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    /// `property eq 'value'`.
    Eq(String, String),
    /// `startswith(property,'value')`.
    StartsWith(String, String),
    /// `property/any(x:x eq 'value')`.
    Any(String, String),
}

/// Comparisons, all or any of which must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    terms: Vec<Term>,
    all: bool,
}

const MOST_TERMS: usize = 100;

impl Filter {
    /// `None`: not one of the filters that are supported.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        let (mut terms, mut connective) = (Vec::new(), None);
        loop {
            let (term, after) = term(rest)?;
            terms.push(term);
            rest = after.trim_start();
            if rest.is_empty() {
                return Some(Self { terms, all: connective == Some("and") });
            }
            let (word, after) = rest.split_once(' ')?;
            let word = ["and", "or"].into_iter().find(|known| known.eq_ignore_ascii_case(word))?;
            if connective.is_some_and(|before| before != word) || terms.len() >= MOST_TERMS {
                return None;
            }
            connective = Some(word);
            rest = after.trim_start();
        }
    }

    /// Whether an object with these properties meets it. Values are compared without case, as Graph does.
    pub(super) fn holds(&self, property: &dyn Fn(&str) -> Vec<String>) -> bool {
        let term = |term: &Term| match term {
            Term::Eq(name, value) | Term::Any(name, value) => {
                property(&name.to_ascii_lowercase()).iter().any(|own| own.eq_ignore_ascii_case(value))
            }
            Term::StartsWith(name, value) => property(&name.to_ascii_lowercase())
                .iter()
                .any(|own| own.to_lowercase().starts_with(&value.to_lowercase())),
        };
        if self.all { self.terms.iter().all(term) } else { self.terms.iter().any(term) }
    }
}

fn term(text: &str) -> Option<(Term, &str)> {
    if let Some(rest) = strip_word(text, "startswith(") {
        let (name, rest) = rest.split_once(',')?;
        let (value, rest) = quoted(rest.trim_start())?;
        return Some((Term::StartsWith(name.trim().to_owned(), value), rest.trim_start().strip_prefix(')')?));
    }
    let end = text.find([' ', '/'])?;
    let (name, rest) = text.split_at_checked(end)?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    if let Some(rest) = strip_word(rest, "/any(") {
        let (variable, rest) = rest.split_once(':')?;
        let rest = rest.trim_start().strip_prefix(variable.trim())?;
        let (value, rest) = quoted(strip_word(rest.trim_start(), "eq")?.trim_start())?;
        return Some((Term::Any(name.to_owned(), value), rest.trim_start().strip_prefix(')')?));
    }
    let (value, rest) = quoted(strip_word(rest.trim_start(), "eq ")?.trim_start())?;
    Some((Term::Eq(name.to_owned(), value), rest))
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

/// A text in single quotes; two in a row stand for one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (before, after) = rest.split_once('\'')?;
        value.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(filter: &str) -> Option<bool> {
        let properties = |name: &str| match name {
            "appid" => vec!["a-1".to_owned()],
            "displayname" => vec!["O'Neil's app".to_owned()],
            "serviceprincipalnames" => vec!["a-1".to_owned(), "api://x".to_owned()],
            _ => vec![],
        };
        Filter::parse(filter).map(|filter| filter.holds(&properties))
    }

    #[test]
    fn the_filters_of_azure_clients_are_understood() {
        for (filter, expected) in [
            ("appId eq 'A-1'", true),
            ("appId eq 'b'", false),
            ("displayName eq 'O''Neil''s app'", true),
            ("startswith(displayName,'o''n')", true),
            ("servicePrincipalNames/any(c:c eq 'api://x')", true),
            ("servicePrincipalNames/any(c:c eq 'y') or appId eq 'a-1'", true),
            ("servicePrincipalNames/any(c:c eq 'y') and appId eq 'a-1'", false),
            ("unknown eq 'x'", false),
        ] {
            assert_eq!(holds(filter), Some(expected), "{filter}");
        }
    }

    #[test]
    fn other_filters_are_refused_without_a_panic() {
        for filter in [
            "",
            "appId",
            "appId eq",
            "appId eq 'a",
            "appId ne 'a'",
            "a eq 'x' or b eq 'y' and c eq 'z'",
            "é",
            "startswith(",
            "x/any(:",
        ] {
            assert_eq!(holds(filter), None, "{filter}");
        }
    }
}
