//! Requirements on fields.

use std::fmt;

/// Which values fields must have. All requirements must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    field: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    /// Reads `a=b,c==d,e!=f`. An empty text selects everything. `\` escapes `\`, `,` and `=` in values.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (field, equal, value) = split_term(part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            let value = unescape(value)?;
            // `=` alone requires nothing.
            if !(field.is_empty() && value.is_empty()) {
                terms.push(Term { field: field.to_owned(), equal, value });
            }
        }
        // The parts' own order decides which error is reported first; it differs from that of terms, as `==` is `=` too.
        terms.sort_unstable();
        Ok(Self { terms })
    }

    /// Field, whether it must be equal (else unequal), value.
    pub fn requirements(&self) -> impl Iterator<Item = (&str, bool, &str)> {
        self.terms.iter().map(|term| (&*term.field, term.equal, &*term.value))
    }

    /// Selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether fields, looked up by name, satisfy every requirement. An absent field is as an empty one.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| (get(&term.field).unwrap_or_default() == term.value) == term.equal)
    }
}

/// Parts between commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(index, _)| {
        let (field, rest) = term.split_at(index);
        [("!=", false), ("==", true), ("=", true)]
            .into_iter()
            .find_map(|(operator, equal)| rest.strip_prefix(operator).map(|value| (field, equal, value)))
    })
}

fn unescape(text: &str) -> Result<String, String> {
    if !text.contains(['\\', ',', '=']) {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut escaped = false;
    for c in text.chars() {
        match c {
            '\\' | ',' | '=' if escaped => {
                out.push(c);
                escaped = false;
            }
            c if escaped => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
            '\\' => escaped = true,
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", c as u32));
            }
            c => out.push(c),
        }
    }
    if escaped {
        return Err("invalid field selector: invalid escape sequence: \\".to_owned());
    }
    Ok(out)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.field)?;
        }
        Ok(())
    }
}
