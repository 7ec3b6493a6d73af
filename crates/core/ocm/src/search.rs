//! The search language of lists: `field operator value`, joined by `and`, `or`, `not` and parentheses.
//!
//! Clusters Service and Maestro share it. The parser knows no fields: it returns a [`Term`] with the names and values as they
//! were written, and the service decides what a field is and what it compares with. Values stay values: no part of a search
//! becomes part of a statement.
//!
//! Arithmetic and regular expressions, which the original's grammar has, are refused: no client uses them, and no index
//! supports them.

mod order;
#[cfg(test)]
mod tests;
mod token;

use token::{Token, tokens};

pub use order::{OrderKey, order};

/// The depth of parentheses and negations.
const MAX_NESTING: usize = 16;

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A quoted text.
    Text(String),
    /// A number.
    Number(String),
    /// `true` or `false` without quotes.
    Bool(bool),
}

impl Value {
    /// The text, without quotes.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
        }
    }
}

/// The name of a field: segments that were separated by dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field(Vec<String>);

impl Field {
    /// The segments.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// The name with dots.
    pub fn dotted(&self) -> String {
        self.0.join(".")
    }
}

/// A search as a tree. `And` and `Or` are flat, so a long search is not a deep one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    And(Vec<Term>),
    Or(Vec<Term>),
    Not(Box<Term>),
    Compare(Field, Relation, Value),
    Like { field: Field, pattern: Value, ignore_case: bool },
    In(Field, Vec<Value>),
    Between(Field, Value, Value),
    IsNull(Field),
}

/// Parses a search that is not blank.
pub fn parse(text: &str) -> Result<Term, String> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let term = parser.any(MAX_NESTING)?;
    match parser.next() {
        None => Ok(term),
        Some(token) => Err(format!("nothing more is expected before {token}")),
    }
}

/// A disjunction of conjunctions.
fn joined(mut any: Vec<Vec<Term>>) -> Term {
    let all = |mut parts: Vec<Term>| match parts.len() {
        1 => parts.remove(0),
        _ => Term::And(parts),
    };
    match any.len() {
        1 => all(any.remove(0)),
        _ => Term::Or(any.into_iter().map(all).collect()),
    }
}

struct Parser {
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

    fn any(&mut self, levels: usize) -> Result<Term, String> {
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

    fn one(&mut self, levels: usize) -> Result<Term, String> {
        let levels = levels.checked_sub(1).ok_or("it is nested too deep")?;
        if self.takes_word("not") {
            return Ok(Term::Not(Box::new(self.one(levels)?)));
        }
        if self.takes_sign("(") {
            let inner = self.any(levels)?;
            return if self.takes_sign(")") { Ok(inner) } else { Err("a ) is missing".to_owned()) };
        }
        let field = self.field()?;
        self.comparison(field)
    }

    fn field(&mut self) -> Result<Field, String> {
        let mut segments = vec![self.segment()?];
        while self.takes_sign(".") {
            segments.push(self.segment()?);
        }
        Ok(Field(segments))
    }

    fn segment(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Word(name) | Token::Name(name)) => Ok(name),
            Some(token) => Err(format!("a field is expected, not {token}")),
            None => Err("a field is expected at the end".to_owned()),
        }
    }

    fn comparison(&mut self, field: Field) -> Result<Term, String> {
        if self.takes_word("is") {
            let not = self.takes_word("not");
            if self.takes_word("null") {
                return Ok(negated_if(not, Term::IsNull(field)));
            }
            let relation = if not { Relation::Ne } else { Relation::Eq };
            return Ok(Term::Compare(field, relation, self.value()?));
        }
        let not = self.takes_word("not");
        for (word, ignore_case) in [("like", false), ("ilike", true)] {
            if self.takes_word(word) {
                return Ok(negated_if(not, Term::Like { field, pattern: self.value()?, ignore_case }));
            }
        }
        if self.takes_word("between") {
            let low = self.value()?;
            if !self.takes_word("and") {
                return Err("between needs `and`".to_owned());
            }
            return Ok(negated_if(not, Term::Between(field, low, self.value()?)));
        }
        if self.takes_word("in") {
            return Ok(negated_if(not, Term::In(field, self.list()?)));
        }
        match self.next() {
            Some(Token::Sign(sign)) if !not && relation(sign).is_some() => {
                let relation = relation(sign).ok_or("an operator is expected")?;
                Ok(Term::Compare(field, relation, self.value()?))
            }
            Some(token) => Err(format!("an operator is expected, not {token}")),
            None => Err("an operator is expected at the end".to_owned()),
        }
    }

    fn list(&mut self) -> Result<Vec<Value>, String> {
        if !self.takes_sign("(") {
            return Err("in needs a list in parentheses".to_owned());
        }
        let mut values = vec![self.value()?];
        while self.takes_sign(",") {
            values.push(self.value()?);
        }
        if self.takes_sign(")") { Ok(values) } else { Err("a ) is missing".to_owned()) }
    }

    fn value(&mut self) -> Result<Value, String> {
        for (word, value) in [("true", true), ("false", false)] {
            if self.takes_word(word) {
                return Ok(Value::Bool(value));
            }
        }
        let (minus, plus) = (self.takes_sign("-"), self.takes_sign("+"));
        match self.next() {
            Some(Token::Number(number)) if minus && plus => {
                Err(format!("a value is expected, not `-+{number}`"))
            }
            Some(Token::Number(number)) => {
                Ok(Value::Number(if minus { format!("-{number}") } else { number }))
            }
            Some(Token::Text(text)) if !minus && !plus => Ok(Value::Text(text)),
            Some(token) => Err(format!("a value is expected, not {token}")),
            None => Err("a value is expected at the end".to_owned()),
        }
    }
}

fn negated_if(not: bool, term: Term) -> Term {
    if not { Term::Not(Box::new(term)) } else { term }
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
