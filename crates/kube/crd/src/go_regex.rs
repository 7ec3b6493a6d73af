//! Regular expressions as Go reads them, run by the `regex` crate.
//!
//! Both are finite automata with nearly one syntax. What differs is rewritten: Perl classes are ASCII in Go, and
//! inside brackets Go knows neither nesting nor set operations.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

/// Bound on the parts of an expression, so that a definition cannot eat the memory of the server. A part compiles to about
/// 20 bytes; the largest expression of OpenShift's own definitions (host names of all scripts) has 570 000.
const MAX_COST: u64 = 1_000_000;

/// Far above what [`MAX_COST`] allows.
const SIZE_LIMIT: usize = 64 << 20;

/// A checked expression that is compiled when first used: a definition has hundreds, an object meets few.
#[derive(Debug)]
pub(crate) struct GoRegex {
    source: String,
    /// `None`: it could not be compiled, although its estimated size is small enough. Such an expression matches nothing.
    compiled: OnceLock<Option<Regex>>,
}

impl GoRegex {
    /// Checks the syntax and the size.
    pub(crate) fn new(source: &str) -> Result<Self, String> {
        check(source)?;
        Ok(Self { source: source.to_owned(), compiled: OnceLock::new() })
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.source).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

/// Says what is wrong with an expression.
pub(crate) fn check(source: &str) -> Result<(), String> {
    if cost(&parse(source)?) > MAX_COST {
        return Err(format!("expression too large: `{source}`"));
    }
    Ok(())
}

/// The parts of an expression: what memory it takes, and what to charge for compiling it while a rule runs.
pub(crate) fn compile_cost(source: &str) -> u64 {
    parse(source).map_or(1, |hir| cost(&hir))
}

fn parse(source: &str) -> Result<Hir, String> {
    let translated = translate(source);
    regex_syntax::Parser::new().parse(&translated).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => go_problem(source, &translated, &error),
        regex_syntax::Error::Translate(error) => {
            let span = error.span();
            let part = translated.get(span.start.offset..span.end.offset).unwrap_or_default();
            format!("invalid character class range: `{part}`")
        }
        other => other.to_string(),
    })
}

/// An estimate of the parts of a compiled expression. The parser bounds how deep it recurses.
fn cost(hir: &Hir) -> u64 {
    let sum = |parts: &[Hir]| parts.iter().map(cost).fold(1, u64::saturating_add);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => 4 * class.ranges().len() as u64,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(repetition) => {
            let times = u64::from(repetition.max.unwrap_or(repetition.min).max(repetition.min).max(1));
            cost(&repetition.sub).saturating_add(1).saturating_mul(times)
        }
        HirKind::Capture(capture) => cost(&capture.sub).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// A problem in Go's words.
fn go_problem(source: &str, translated: &str, error: &regex_syntax::ast::Error) -> String {
    use regex_syntax::ast::ErrorKind as K;
    let from = translated.get(error.span().start.offset..).unwrap_or_default();
    let part = translated.get(error.span().start.offset..error.span().end.offset).unwrap_or_default();
    match error.kind() {
        K::ClassUnclosed => format!("missing closing ]: `{from}`"),
        K::GroupUnclosed => format!("missing closing ): `{source}`"),
        K::GroupUnopened => format!("unexpected ): `{source}`"),
        K::RepetitionMissing => {
            format!("missing argument to repetition operator: `{}`", from.get(..1).unwrap_or_default())
        }
        K::RepetitionCountInvalid | K::RepetitionCountUnclosed => format!("invalid repeat count: `{part}`"),
        K::ClassRangeInvalid => format!("invalid character class range: `{part}`"),
        K::EscapeUnexpectedEof => "trailing backslash at end of expression: ``".to_owned(),
        K::EscapeUnrecognized => format!("invalid escape sequence: `{part}`"),
        K::UnsupportedLookAround | K::FlagUnrecognized => {
            format!("invalid or unsupported Perl syntax: `{}`", from.get(..3).unwrap_or(from))
        }
        other => other.to_string(),
    }
}

pub(crate) fn compile(source: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(source)).size_limit(SIZE_LIMIT).build().map_err(|error| error.to_string())
}

fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut chars = source.chars().peekable();
    let mut in_class = false;
    // Right after `[` or `[^`, a `]` is literal.
    let mut class_start = false;
    while let Some(c) = chars.next() {
        let at_start = std::mem::take(&mut class_start);
        match c {
            '\\' => match chars.next() {
                Some('Q') => quote(&mut chars, &mut out),
                Some(next) => escape(next, in_class, &mut out),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' if in_class && !at_start => {
                in_class = false;
                out.push(']');
            }
            '[' | ']' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            // Two in a row would mean a difference of sets: the second is the end of a range, or literal.
            '-' if in_class && !at_start && chars.next_if_eq(&'-').is_some() => out.push_str("-\\-"),
            _ => out.push(c),
        }
    }
    out
}

/// Members of a Perl class, which is ASCII in Go.
fn perl_class(letter: char) -> Option<&'static str> {
    match letter.to_ascii_lowercase() {
        'd' => Some("0-9"),
        'w' => Some("0-9A-Za-z_"),
        's' => Some("\\t\\n\\x0C\\r "),
        _ => None,
    }
}

fn escape(next: char, in_class: bool, out: &mut String) {
    match (perl_class(next), next.is_ascii_uppercase()) {
        (Some(members), false) if in_class => out.push_str(members),
        (Some(members), negated) => {
            out.push_str(if negated { "[^" } else { "[" });
            out.push_str(members);
            out.push(']');
        }
        (None, _) if matches!(next, 'b' | 'B') && !in_class => {
            out.push_str("(?-u:\\");
            out.push(next);
            out.push(')');
        }
        (None, _) => {
            out.push('\\');
            out.push(next);
        }
    }
}

/// `\Q…\E` is literal.
fn quote(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let mut literal = String::new();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next_if_eq(&'E').is_some() {
            break;
        }
        literal.push(c);
    }
    out.push_str(&regex::escape(&literal));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١", false),
            (r"^\w\S+$", "ab", true),
            (r"^[^[]+$", "a[", false),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[a-zA-Z0-9-_\.]{2,4}$", "a-_.", true),
            (r"^[]a]+$", "]a", true),
            (r"^[+--]+$", ",", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^a\/b$", "a/b", true),
            (r"^[\w.]+$", "a_.", true),
            (r"^[\D]+$", "1", false),
            (r"^\W$", "é", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^[[:alpha:]]+$", "ab", true),
        ] {
            let regex = GoRegex::new(pattern).unwrap();
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text}");
        }
        assert!(GoRegex::new("([").is_err());
    }

    #[test]
    fn an_expression_too_large_to_compile_is_refused_and_does_not_match_everything() {
        for pattern in ["(a{1000}){1000}", r"(\pL{100}){10}", "((((a{100}){100}){100}){100})"] {
            let problem = GoRegex::new(pattern).unwrap_err();
            assert!(problem.contains("expression too large"), "{problem}");
        }
        // Go's own limit on one repetition.
        assert!(GoRegex::new("^[a-z]{1,1000}$").unwrap().is_match("abc"));
        let nested = format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(GoRegex::new(&nested).is_err());
    }
}
