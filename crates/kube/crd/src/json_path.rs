//! The part of JSONPath that printer columns, scale paths and selectable fields use.
//!
//! Known: `.name`, `['name']`, escaped dots, indices (also from the end), slices, wildcards, recursive descent and
//! filters that compare one member with a constant. Anything else does not parse.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Member(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    Wildcard,
    Descend,
    Filter(Filter),
}

/// `@.path op constant`, or `@.path` alone: the member exists.
#[derive(Debug, Clone, PartialEq)]
struct Filter {
    path: JsonPath,
    test: Option<(Operator, Value)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// Values found at most: wildcards and descents on a large object multiply.
const MAX_FOUND: usize = 10_000;

/// Longer paths are refused.
const MAX_SOURCE: usize = 4096;

/// Filters inside of filters: parsing and matching recurse.
const MAX_FILTERS: usize = 8;

impl JsonPath {
    /// Parses a path. `None`: it is not one, or uses what is not known here.
    pub fn parse(source: &str) -> Option<Self> {
        if source.len() > MAX_SOURCE {
            return None;
        }
        parse_path(source, MAX_FILTERS)
    }

    /// All values at the path, in the order of the document.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.0 {
            let mut next = Vec::new();
            for value in found {
                step.apply(value, &mut next);
                if next.len() >= MAX_FOUND {
                    break;
                }
            }
            found = next;
        }
        found
    }

    /// The names of a path that has nothing but names.
    pub fn names(&self) -> Option<Vec<&str>> {
        self.0
            .iter()
            .map(|step| if let Step::Member(name) = step { Some(name.as_str()) } else { None })
            .collect()
    }
}

/// `filters`: how many more filters may be inside of each other.
fn parse_path(source: &str, filters: usize) -> Option<JsonPath> {
    let mut steps = Vec::new();
    let mut rest = source.strip_prefix('$').unwrap_or(source);
    while !rest.is_empty() {
        rest = step(rest, &mut steps, filters)?;
    }
    Some(JsonPath(steps))
}

fn step<'s>(source: &'s str, steps: &mut Vec<Step>, filters: usize) -> Option<&'s str> {
    if let Some(rest) = source.strip_prefix("..") {
        steps.push(Step::Descend);
        return if rest.starts_with('[') { Some(rest) } else { member(rest, steps) };
    }
    if let Some(rest) = source.strip_prefix('.') {
        // `.[` and a lone `.` are tolerated.
        return if rest.starts_with('[') || rest.is_empty() { Some(rest) } else { member(rest, steps) };
    }
    if let Some(rest) = source.strip_prefix('[') {
        let end = closing(rest)?;
        steps.push(bracket(&rest[..end], filters)?);
        return Some(&rest[end + 1..]);
    }
    None
}

/// A name up to the next dot or bracket; a backslash makes the next character a plain one.
fn member<'s>(source: &'s str, steps: &mut Vec<Step>) -> Option<&'s str> {
    if let Some(rest) = source.strip_prefix('*') {
        steps.push(Step::Wildcard);
        return Some(rest);
    }
    let mut name = String::new();
    let mut chars = source.char_indices();
    let mut end = source.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            ' ' | '{' | '}' | ']' | '(' | ')' => return None,
            _ => name.push(c),
        }
    }
    if name.is_empty() {
        return None;
    }
    steps.push(Step::Member(name));
    Some(&source[end..])
}

/// Where the bracket ends: brackets nest, and quotes hide them.
fn closing(source: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in source.char_indices() {
        match (c, quote) {
            _ if std::mem::take(&mut escaped) => {}
            ('\\', _) => escaped = true,
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('[', None) => depth += 1,
            (']', None) if depth == 0 => return Some(at),
            (']', None) => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str, filters: usize) -> Option<Step> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::Wildcard);
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return parse_filter(filter.trim(), filters.checked_sub(1)?).map(Step::Filter);
    }
    if let Some(name) = quoted(inner) {
        // Upstream splits a quoted name at its dots unless they are escaped.
        return if name.contains('.') && !inner.contains("\\.") { None } else { Some(Step::Member(name)) };
    }
    if let Some((from, to)) = inner.split_once(':') {
        let bound = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        return Some(Step::Slice(bound(from)?, bound(to)?));
    }
    inner.parse().ok().map(Step::Index)
}

fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    Some(inner.replace('\\', ""))
}

fn parse_filter(source: &str, filters: usize) -> Option<Filter> {
    const OPERATORS: [(&str, Operator); 6] = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessEqual),
        (">=", Operator::GreaterEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    let path = |text: &str| parse_path(text.trim().strip_prefix('@')?, filters);
    let split = source.char_indices().find_map(|(at, _)| {
        OPERATORS.iter().find(|(sign, _)| source[at..].starts_with(sign)).map(|found| (at, found))
    });
    let Some((at, (sign, operator))) = split else { return Some(Filter { path: path(source)?, test: None }) };
    let constant = source[at + sign.len()..].trim();
    let constant = match quoted(constant) {
        Some(text) => Value::String(text),
        None => serde_json::from_str(constant).ok()?,
    };
    Some(Filter { path: path(&source[..at])?, test: Some((*operator, constant)) })
}

impl Step {
    fn apply<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) {
        match self {
            Self::Member(name) => found.extend(value.get(name)),
            Self::Index(index) => {
                if let Value::Array(items) = value {
                    let at = if *index < 0 { items.len() as i64 + index } else { *index };
                    found.extend(usize::try_from(at).ok().and_then(|at| items.get(at)));
                }
            }
            Self::Slice(from, to) => {
                if let Value::Array(items) = value {
                    let length = items.len() as i64;
                    let bound = |at: i64| (if at < 0 { length + at } else { at }).clamp(0, length) as usize;
                    let (from, to) = (bound(from.unwrap_or(0)), bound(to.unwrap_or(length)));
                    found.extend(items.get(from..to).unwrap_or_default());
                }
            }
            Self::Wildcard => match value {
                Value::Array(items) => found.extend(items),
                Value::Object(members) => found.extend(members.values()),
                _ => {}
            },
            Self::Descend => descend(value, found),
            Self::Filter(filter) => {
                if let Value::Array(items) = value {
                    found.extend(items.iter().filter(|item| filter.holds(item)));
                }
            }
        }
    }
}

fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    if found.len() >= MAX_FOUND {
        return;
    }
    found.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, found)),
        Value::Object(members) => members.values().for_each(|member| descend(member, found)),
        _ => {}
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        let found = self.path.find(item);
        let Some(value) = found.first() else { return false };
        let Some((operator, constant)) = &self.test else { return true };
        let order = match (value, constant) {
            (Value::Number(a), Value::Number(b)) => {
                a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b))
            }
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (a, b) => (*a == b).then_some(std::cmp::Ordering::Equal),
        };
        match operator {
            Operator::Equal => order.is_some_and(|order| order.is_eq()),
            Operator::NotEqual => order.is_none_or(|order| order.is_ne()),
            Operator::Less => order.is_some_and(|order| order.is_lt()),
            Operator::LessEqual => order.is_some_and(|order| order.is_le()),
            Operator::Greater => order.is_some_and(|order| order.is_gt()),
            Operator::GreaterEqual => order.is_some_and(|order| order.is_ge()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_what_upstream_finds() {
        let object = json!({
            "a": {"b.c/d": "dotted", "list": ["x", "y", "z"]},
            "conds": [{"type": "A", "status": "False", "n": 1}, {"type": "Ready", "status": "True", "n": 2}],
        });
        for (path, found) in [
            (".a.list[0]", json!(["x"])),
            (".a.list[-1]", json!(["z"])),
            (".a.list[0:2]", json!(["x", "y"])),
            (".a.list[*]", json!(["x", "y", "z"])),
            (r".a.b\.c/d", json!(["dotted"])),
            (r#".conds[?(@.type=="Ready")].status"#, json!(["True"])),
            (".conds[?(@.type == 'Ready')].status", json!(["True"])),
            (".conds[?(@.n>1)].type", json!(["Ready"])),
            (".conds[*].type", json!(["A", "Ready"])),
            ("..type", json!(["A", "Ready"])),
            ("['a']['list'][1]", json!(["y"])),
            (".missing.x", json!([])),
        ] {
            let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(json!(parsed.find(&object)), found, "{path}");
        }
        for bad in ["a", ".a[", ".a[?(x)]", ".a b", ".a[b]"] {
            assert_eq!(JsonPath::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn filters_inside_of_filters_do_not_overflow_the_stack() {
        let nested = |times: usize| format!("{}.a{}", ".a[?(@".repeat(times), ")]".repeat(times));
        assert!(JsonPath::parse(&nested(MAX_FILTERS)).is_some());
        assert_eq!(JsonPath::parse(&nested(MAX_FILTERS + 1)), None);
        assert_eq!(JsonPath::parse(&nested(100_000)), None);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(source in "\\PC{0,40}", steps in r#"[.\[\]*:?()@'"\\a1=<>-]{0,24}"#) {
            for text in [source, steps] {
                if let Some(path) = JsonPath::parse(&text) {
                    path.find(&json!({"a": [{"a": 1}, "1"]}));
                }
            }
        }
    }
}
