//! The query grammar of label selectors: a lexer and a descending parser, with upstream's error texts.

use std::collections::BTreeSet;

use super::labels::{Operator, Requirement};
use super::syntax::label_key_problems;
use crate::status::FieldError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Error,
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

/// Reads all requirements, in the order given.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { items: scan(text), position: 0 };
    let mut found = Vec::new();
    loop {
        let (token, literal) = parser.peek();
        match token {
            Token::Identifier | Token::Not => {
                let requirement =
                    parser.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
                found.push(requirement);
                let (token, literal) = parser.next();
                match token {
                    Token::End => return Ok(found),
                    Token::Comma => {
                        let (after, literal) = parser.peek();
                        if !matches!(after, Token::Identifier | Token::Not) {
                            return Err(format!("found '{literal}', expected: identifier after ','"));
                        }
                    }
                    _ => return Err(format!("found '{literal}', expected: ',' or 'end of string'")),
                }
            }
            Token::End => return Ok(found),
            _ => return Err(format!("found '{literal}', expected: !, identifier, or 'end of string'")),
        }
    }
}

struct Parser {
    /// Ends with [`Token::End`].
    items: Vec<(Token, String)>,
    position: usize,
}

impl Parser {
    /// The token at hand, keywords as they are.
    fn raw(&self) -> (Token, String) {
        self.items.get(self.position).cloned().unwrap_or((Token::End, String::new()))
    }

    /// The token at hand, where `in` and `notin` are plain words.
    fn peek(&self) -> (Token, String) {
        let (token, literal) = self.raw();
        (if matches!(token, Token::In | Token::NotIn) { Token::Identifier } else { token }, literal)
    }

    fn next(&mut self) -> (Token, String) {
        let item = self.peek();
        self.position += 1;
        item
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.next();
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.next();
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let problems = label_key_problems(&key);
        if !problems.is_empty() {
            // Upstream reports an empty path here.
            return Err(FieldError::invalid("<nil>", key, problems.join("; ")).to_string());
        }
        if negated {
            return Requirement::checked(&key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Requirement::checked(&key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::checked(&key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let (token, literal) = self.raw();
        self.position += 1;
        Ok(match token {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            _ => return Err(format!("found '{literal}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.next() {
            (Token::Identifier, literal) => Ok(literal),
            (_, literal) => Err(format!("found '{literal}', expected: identifier")),
        }
    }

    /// `(x,y)`: sorted, each once. `()` is the empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let (token, literal) = self.next();
        if token != Token::Open {
            return Err(format!("found '{literal}' expected: '('"));
        }
        let (token, literal) = self.peek();
        match token {
            Token::Identifier | Token::Comma => {
                let values = self.identifiers()?;
                self.position += 1; // the parenthesis that ended the list
                Ok(values.into_iter().collect())
            }
            Token::Close => {
                self.position += 1;
                Ok(vec![String::new()])
            }
            _ => Err(format!("found '{literal}', expected: ',', ')' or identifier")),
        }
    }

    /// Stops before the closing parenthesis. Nothing between commas is the empty value.
    fn identifiers(&mut self) -> Result<BTreeSet<String>, String> {
        let mut found = BTreeSet::new();
        loop {
            let (token, literal) = self.next();
            match token {
                Token::Identifier => {
                    found.insert(literal);
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(found),
                        (_, literal) => return Err(format!("found '{literal}', expected: ',' or ')'")),
                    }
                }
                Token::Comma => {
                    if found.is_empty() {
                        found.insert(String::new());
                    }
                    match self.peek().0 {
                        Token::Close => {
                            found.insert(String::new());
                            return Ok(found);
                        }
                        Token::Comma => {
                            found.insert(String::new());
                        }
                        _ => {}
                    }
                }
                _ => return Err(format!("found '{literal}', expected: ',', or identifier")),
            }
        }
    }
}

fn scan(text: &str) -> Vec<(Token, String)> {
    let mut items = Vec::new();
    // A zero byte ends the text, as it does upstream.
    let mut rest = text.split('\0').next().unwrap_or_default();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else {
            items.push((Token::End, String::new()));
            return items;
        };
        let (item, length) = if is_special(first) { scan_symbol(rest) } else { scan_word(rest) };
        items.push(item);
        rest = &rest[length..];
    }
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn scan_word(text: &str) -> ((Token, String), usize) {
    let ends = |c: char| is_special(c) || matches!(c, ' ' | '\t' | '\r' | '\n');
    let word = &text[..text.find(ends).unwrap_or(text.len())];
    let token = match word {
        "in" => Token::In,
        "notin" => Token::NotIn,
        _ => Token::Identifier,
    };
    ((token, word.to_owned()), word.len())
}

/// The longest symbol at the start: every first character is a symbol itself.
fn scan_symbol(text: &str) -> ((Token, String), usize) {
    const SYMBOLS: [(&str, Token); 9] = [
        ("==", Token::DoubleEquals),
        ("!=", Token::NotEquals),
        ("=", Token::Equals),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
        (">", Token::Greater),
        ("<", Token::Less),
    ];
    let found = SYMBOLS.iter().find(|(symbol, _)| text.starts_with(symbol));
    found.map_or(((Token::Error, String::new()), 1), |(symbol, token)| {
        ((*token, (*symbol).to_owned()), symbol.len())
    })
}
