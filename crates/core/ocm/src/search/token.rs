//! The words and signs of a search.

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword.
    Word(String),
    /// A quoted name: never a keyword.
    Name(String),
    Text(String),
    Number(String),
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) | Self::Name(text) | Self::Text(text) | Self::Number(text) => {
                write!(f, "`{text}`")
            }
            Self::Sign(sign) => write!(f, "`{sign}`"),
        }
    }
}

const SIGNS: [&str; 18] =
    ["<=", ">=", "<>", "!=", "~=", "~!", "=", "<", ">", "(", ")", ",", ".", "+", "-", "*", "/", "%"];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some(&(at, c)) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
        } else if c.is_alphabetic() || c == '_' {
            tokens.push(Token::Word(run(&mut chars, |c| c.is_alphanumeric() || c == '_' || c == '-')));
        } else if c.is_ascii_digit() {
            tokens.push(Token::Number(number(&mut chars)));
        } else if c == '\'' {
            chars.next();
            tokens.push(Token::Text(until(&mut chars, '\'')?));
        } else if let Some(end) = [('"', '"'), ('`', '`'), ('[', ']')].iter().find(|(start, _)| *start == c) {
            chars.next();
            tokens.push(Token::Name(until(&mut chars, end.1)?));
        } else if let Some(sign) = SIGNS.iter().find(|sign| text[at..].starts_with(**sign)) {
            for _ in 0..sign.len() {
                chars.next();
            }
            tokens.push(Token::Sign(sign));
        } else {
            return Err(format!("`{c}` means nothing here"));
        }
    }
    Ok(tokens)
}

fn run(chars: &mut Peekable<CharIndices<'_>>, mut belongs: impl FnMut(char) -> bool) -> String {
    std::iter::from_fn(|| chars.next_if(|(_, c)| belongs(*c))).map(|(_, c)| c).collect()
}

/// Digits with an optional fraction and exponent; the comparison parses them.
fn number(chars: &mut Peekable<CharIndices<'_>>) -> String {
    let mut last = '0';
    run(chars, |c| {
        let belongs =
            c.is_ascii_alphanumeric() || c == '.' || (matches!(last, 'e' | 'E') && matches!(c, '+' | '-'));
        last = c;
        belongs
    })
}

/// A text up to its quote; a doubled quote stands for itself.
fn until(chars: &mut Peekable<CharIndices<'_>>, end: char) -> Result<String, String> {
    let mut text = String::new();
    while let Some((_, c)) = chars.next() {
        if c != end {
            text.push(c);
        } else if chars.next_if(|(_, c)| *c == end).is_some() {
            text.push(end);
        } else {
            return Ok(text);
        }
    }
    Err(format!("a {end} is missing"))
}
