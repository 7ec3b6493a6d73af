//! The older grammar: `column operator literal`, joined by `and`, `or`, `not` and parentheses.
//!
//! Arithmetic on columns is rejected: no client uses it, and no index supports it.

use std::iter::Peekable;
use std::str::CharIndices;

use aro_store::{Expr, Relation};

use super::columns::{Column, Table};
use super::{MAX_NESTING, joined};

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A name or a keyword.
    Word(String),
    /// A quoted name: never a keyword.
    Name(String),
    Text(String),
    Number(String),
    Sign(&'static str),
}

pub(super) fn read(table: Table, text: &str) -> Result<Expr, String> {
    let mut parser = Parser { table, tokens: tokens(text)?, at: 0 };
    let expr = parser.any(MAX_NESTING)?;
    match parser.next() {
        None => Ok(expr),
        Some(token) => Err(format!("nothing more is expected before {}", told(&token))),
    }
}

struct Parser {
    table: Table,
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it =
            matches!(self.tokens.get(self.at), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word));
        self.at += usize::from(is_it);
        is_it
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.tokens.get(self.at), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn any(&mut self, levels: usize) -> Result<Expr, String> {
        let levels = levels.checked_sub(1).ok_or("it is nested too deep")?;
        let mut any = vec![vec![self.one(levels)?]];
        loop {
            if self.takes_word("and") {
                let part = self.one(levels)?;
                if let Some(last) = any.last_mut() {
                    last.push(part);
                }
            } else if self.takes_word("or") {
                any.push(vec![self.one(levels)?]);
            } else {
                return Ok(joined(any));
            }
        }
    }

    fn one(&mut self, levels: usize) -> Result<Expr, String> {
        let levels = levels.checked_sub(1).ok_or("it is nested too deep")?;
        if self.takes_word("not") {
            return Ok(self.one(levels)?.negated());
        }
        if self.takes_sign("(") {
            let inner = self.any(levels)?;
            return if self.takes_sign(")") { Ok(inner) } else { Err("a ) is missing".to_owned()) };
        }
        let column = self.column()?;
        self.comparison(column)
    }

    fn column(&mut self) -> Result<Column, String> {
        let name = |token: Option<Token>| match token {
            Some(Token::Word(name) | Token::Name(name)) => Ok(name),
            Some(token) => Err(format!("a field is expected, not {}", told(&token))),
            None => Err("a field is expected at the end".to_owned()),
        };
        let mut written = name(self.next())?;
        while self.takes_sign(".") {
            written = format!("{written}.{}", name(self.next())?);
        }
        self.table.column(&written)
    }

    fn comparison(&mut self, column: Column) -> Result<Expr, String> {
        if self.takes_word("is") {
            let not = self.takes_word("not");
            if self.takes_word("null") {
                let null = Expr::IsNull(column.path());
                return Ok(if not { null.negated() } else { null });
            }
            let relation = if not { Relation::Ne } else { Relation::Eq };
            return column.compare(relation, &self.literal()?);
        }
        let not = self.takes_word("not");
        let negated = |expr: Expr| if not { expr.negated() } else { expr };
        if self.takes_word("like") {
            return column.like(&self.literal()?, false).map(negated);
        }
        if self.takes_word("ilike") {
            return column.like(&self.literal()?, true).map(negated);
        }
        if self.takes_word("between") {
            let low = column.literal(&self.literal()?)?;
            if !self.takes_word("and") {
                return Err("between needs `and`".to_owned());
            }
            let high = column.literal(&self.literal()?)?;
            return Ok(negated(Expr::Between(column.path(), low, high)));
        }
        if self.takes_word("in") {
            return column.one_of(&self.list()?).map(negated);
        }
        match self.next() {
            Some(Token::Sign(sign)) if !not && relation(sign).is_some() => {
                let relation = relation(sign).ok_or("an operator is expected")?;
                column.compare(relation, &self.literal()?)
            }
            Some(token) => Err(format!("an operator is expected, not {}", told(&token))),
            None => Err("an operator is expected at the end".to_owned()),
        }
    }

    fn list(&mut self) -> Result<Vec<String>, String> {
        if !self.takes_sign("(") {
            return Err("in needs a list in parentheses".to_owned());
        }
        let mut values = vec![self.literal()?];
        while self.takes_sign(",") {
            values.push(self.literal()?);
        }
        if self.takes_sign(")") { Ok(values) } else { Err("a ) is missing".to_owned()) }
    }

    fn literal(&mut self) -> Result<String, String> {
        let sign = if self.takes_sign("-") {
            "-"
        } else {
            self.takes_sign("+");
            ""
        };
        match self.next() {
            Some(Token::Number(number)) => Ok(format!("{sign}{number}")),
            Some(Token::Text(text)) if sign.is_empty() => Ok(text),
            Some(token) => Err(format!("a value is expected, not {}", told(&token))),
            None => Err("a value is expected at the end".to_owned()),
        }
    }
}

fn relation(sign: &str) -> Option<Relation> {
    Some(match sign {
        "=" => Relation::Eq,
        "!=" | "<>" => Relation::Ne,
        "<" => Relation::Lt,
        "<=" => Relation::Le,
        ">" => Relation::Gt,
        ">=" => Relation::Ge,
        _ => return None,
    })
}

fn told(token: &Token) -> String {
    match token {
        Token::Word(text) | Token::Name(text) | Token::Text(text) | Token::Number(text) => {
            format!("`{text}`")
        }
        Token::Sign(sign) => format!("`{sign}`"),
    }
}

const SIGNS: [&str; 18] =
    ["<=", ">=", "<>", "!=", "~=", "~!", "=", "<", ">", "(", ")", ",", ".", "+", "-", "*", "/", "%"];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some(&(at, c)) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
        } else if c.is_alphabetic() || c == '_' {
            tokens.push(Token::Word(run(&mut chars, |c| c.is_alphanumeric() || c == '_')));
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

/// A string up to its quote; a doubled quote stands for itself.
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
