//! The grammar that reaches into JSON: `column -> 'member' ->> 'member' operator value`, joined by `and`, `or` and
//! parentheses.

use aro_store::{Expr, Literal, Path, Relation};

use super::columns::{Column, Kind, Table};
use super::{MAX_NESTING, joined};

/// The `and` and `or` of one search.
const MAX_CONNECTIVES: usize = 10;

pub(super) fn read(table: Table, text: &str) -> Result<Expr, String> {
    let mut parser = Parser { table, rest: text, connectives: 0 };
    let expr = parser.any(MAX_NESTING)?;
    parser.blank();
    if parser.rest.is_empty() {
        Ok(expr)
    } else {
        Err(format!("nothing more is expected before `{}`", parser.head()))
    }
}

struct Parser<'a> {
    table: Table,
    rest: &'a str,
    connectives: usize,
}

impl<'a> Parser<'a> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// The start of the remaining text, for error messages.
    fn head(&self) -> String {
        self.rest.chars().take(20).collect()
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.blank();
        let Some(rest) = self.rest.strip_prefix(sign) else { return false };
        self.rest = rest;
        true
    }

    /// A keyword, not the prefix of a longer word.
    fn takes_word(&mut self, word: &str) -> bool {
        self.blank();
        let Some((head, rest)) = self.rest.split_at_checked(word.len()) else { return false };
        let is_it = head.eq_ignore_ascii_case(word)
            && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        if is_it {
            self.rest = rest;
        }
        is_it
    }

    fn any(&mut self, levels: usize) -> Result<Expr, String> {
        let levels = levels.checked_sub(1).ok_or("it is nested too deep")?;
        let mut any = vec![vec![self.one(levels)?]];
        loop {
            let and = self.takes_word("and");
            if !and && !self.takes_word("or") {
                return Ok(joined(any));
            }
            self.connectives += 1;
            if self.connectives > MAX_CONNECTIVES {
                return Err(format!("it has more than {MAX_CONNECTIVES} and/or"));
            }
            let part = self.one(levels)?;
            match any.last_mut() {
                Some(last) if and => last.push(part),
                _ => any.push(vec![part]),
            }
        }
    }

    fn one(&mut self, levels: usize) -> Result<Expr, String> {
        if self.takes("(") {
            let inner = self.any(levels)?;
            return if self.takes(")") { Ok(inner) } else { Err("a ) is missing".to_owned()) };
        }
        let column = self.column()?;
        if self.rest.trim_start().starts_with("->") {
            return self.member(column);
        }
        self.comparison(column)
    }

    fn column(&mut self) -> Result<Column, String> {
        self.blank();
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(format!("a field is expected before `{}`", self.head()));
        }
        let column = self.table.column(name)?;
        self.rest = rest;
        Ok(column)
    }

    fn comparison(&mut self, column: Column) -> Result<Expr, String> {
        for (sign, relation) in [
            (">=", Relation::Ge),
            ("<=", Relation::Le),
            ("<>", Relation::Ne),
            (">", Relation::Gt),
            ("<", Relation::Lt),
            ("=", Relation::Eq),
        ] {
            if self.takes(sign) {
                return column.compare(relation, &self.value()?);
            }
        }
        if let Some(ignore_case) = self.takes_like() {
            return column.like(&self.value()?, ignore_case);
        }
        let (not, values) = self.list()?;
        let list = column.one_of(&values)?;
        Ok(if not { list.negated() } else { list })
    }

    /// A member of a JSON column: its text compared, or its content.
    fn member(&mut self, column: Column) -> Result<Expr, String> {
        if column.kind != Kind::Json {
            return Err(format!("`{}` cannot be looked into", column.name));
        }
        let mut names = vec![column.name.to_owned()];
        let as_text = loop {
            if self.takes("->>") {
                names.push(self.quoted()?);
                break true;
            } else if self.takes("->") {
                names.push(self.quoted()?);
            } else if names.len() > 1 && self.takes("@>") {
                break false;
            } else {
                return Err(format!("->, ->> or @> is expected before `{}`", self.head()));
            }
        };
        let path = Path::new(names).map_err(|error| error.to_string())?;
        if !as_text {
            let wanted = self.quoted()?;
            let wanted = serde_json::from_str(&wanted).map_err(|_| format!("`{wanted}` is not JSON"))?;
            return Ok(Expr::Contains(path, wanted));
        }
        for (sign, relation) in [("=", Relation::Eq), ("<>", Relation::Ne)] {
            if self.takes(sign) {
                return Ok(Expr::Compare(path, relation, Literal::Text(self.value()?)));
            }
        }
        if let Some(ignore_case) = self.takes_like() {
            return Ok(Expr::Like { path, pattern: self.value()?, ignore_case });
        }
        let (not, values) = self.list()?;
        let list = Expr::In(path, values.into_iter().map(Literal::Text).collect());
        Ok(if not { list.negated() } else { list })
    }

    /// Whether a pattern follows, and whether it ignores case.
    fn takes_like(&mut self) -> Option<bool> {
        if self.takes_word("like") {
            return Some(false);
        }
        self.takes_word("ilike").then_some(true)
    }

    fn list(&mut self) -> Result<(bool, Vec<String>), String> {
        let not = self.takes_word("not");
        if !self.takes_word("in") {
            return Err(format!("an operator is expected before `{}`", self.head()));
        }
        if !self.takes("(") {
            return Err("in needs a list in parentheses".to_owned());
        }
        let mut values = vec![self.value()?];
        while self.takes(",") {
            values.push(self.value()?);
        }
        if self.takes(")") { Ok((not, values)) } else { Err("a ) is missing".to_owned()) }
    }

    /// A value in quotes, or a bare one.
    fn value(&mut self) -> Result<String, String> {
        self.blank();
        if self.rest.starts_with('\'') {
            return self.quoted();
        }
        let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '\'' | '<' | '>' | '=' | '@');
        let (value, rest): (&'a str, &'a str) =
            self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        if value.is_empty() {
            return Err(format!("a value is expected before `{}`", self.head()));
        }
        self.rest = rest;
        Ok(value.to_owned())
    }

    /// A string in single quotes; a backslash escapes a quote.
    fn quoted(&mut self) -> Result<String, String> {
        if !self.takes("'") {
            return Err(format!("a text in quotes is expected before `{}`", self.head()));
        }
        let mut text = String::new();
        let mut chars = self.rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\'' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                '\\' if chars.next_if(|(_, next)| *next == '\'').is_some() => text.push('\''),
                c => text.push(c),
            }
        }
        Err("a ' is missing".to_owned())
    }
}
