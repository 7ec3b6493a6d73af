//! Conditions on bodies as a tree, for searches that clients write.
//!
//! A [`Condition`] is an [`Expr`] that was checked: bounded in depth and size and free of what some backend cannot hold.
//! Paths and values may come from input; adapters bind them and never make them part of a statement.
//!
//! The meaning is SQL's, with its third truth value: a comparison with something absent, null or of another sort is
//! *unknown*, "not unknown" is unknown, and only what is true is found. [`crate::adapter::holds`] is the reference;
//! adapters must agree with it, and the conformance suite sees to it. In detail:
//! * A member is looked up by name from object to object; a list on the way means that there is none.
//! * Against text, strings are compared as they are and numbers and booleans by their JSON text, in the order of bytes.
//!   Lists and objects have no text. Against a number only numbers compare, against a boolean only booleans.
//! * `%` stands for any text and `_` for any character; a backslash takes the next character literally. Without regard
//!   to case means ASCII case.
//! * Containment is that of PostgreSQL's `jsonb`.
//! * A body with U+0000 or half of a surrogate pair in any of its strings meets no condition: not every backend can
//!   look into it.

use serde_json::Value;

/// How many members a path may go down.
pub const MAX_PATH: usize = 16;

/// How deep an expression may be nested.
pub const MAX_DEPTH: usize = 32;

/// How many comparisons, values and connectives an expression may hold.
pub const MAX_TERMS: usize = 1000;

/// How many bytes of values and paths an expression may hold.
pub const MAX_BYTES: usize = 256 * 1024;

/// Where a member is: the names that lead to it from the body's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<String>);

/// Why an expression is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// A path of no or too many names.
    #[error("a path must have 1 to {MAX_PATH} names")]
    Path,
    /// Too many levels.
    #[error("the condition is nested deeper than {MAX_DEPTH} levels")]
    Deep,
    /// Too many parts.
    #[error("the condition has more than {MAX_TERMS} parts")]
    Long,
    /// Too much text.
    #[error("the condition has more than {MAX_BYTES} bytes of names and values")]
    Large,
    /// U+0000, which not every backend can compare with.
    #[error("the condition holds the character U+0000")]
    Nul,
    /// Infinite, or not a number at all.
    #[error("the condition contains NaN or an infinite number")]
    Number,
}

impl Path {
    /// A path of these names.
    pub fn new<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Result<Self, ConditionError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        match names.len() {
            1..=MAX_PATH if names.iter().any(|name| name.contains('\0')) => Err(ConditionError::Nul),
            1..=MAX_PATH => Ok(Self(names)),
            _ => Err(ConditionError::Path),
        }
    }

    /// A member of the root.
    pub fn member(name: &'static str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// Its names, from the root.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// What a member is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// Text.
    Text(String),
    /// A finite number.
    Number(f64),
    /// A boolean.
    Bool(bool),
    /// SQL's null: every comparison with it is unknown.
    Null,
}

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// A condition that was not checked yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// All of them; none at all is true.
    And(Vec<Expr>),
    /// Any of them; none at all is false.
    Or(Vec<Expr>),
    /// Not so.
    Not(Box<Expr>),
    /// The member compared with a value.
    Compare(Path, Relation, Literal),
    /// The member's text matches a pattern.
    Like {
        /// The member.
        path: Path,
        /// The pattern.
        pattern: String,
        /// Whether ASCII case is ignored.
        ignore_case: bool,
    },
    /// The member is equal to one of these; false for none.
    In(Path, Vec<Literal>),
    /// The member lies between these two, ends included.
    Between(Path, Literal, Literal),
    /// The member is absent or null. Never unknown.
    IsNull(Path),
    /// The member contains this; unknown if it is absent.
    Contains(Path, Value),
}

impl Expr {
    /// The member is this text.
    pub fn is(path: Path, text: impl Into<String>) -> Self {
        Self::Compare(path, Relation::Eq, Literal::Text(text.into()))
    }

    /// Both.
    pub fn and(self, other: Self) -> Self {
        Self::And(vec![self, other])
    }

    /// The opposite.
    pub fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Checks it against the limits.
    pub fn check(self) -> Result<Condition, ConditionError> {
        Condition::new(self)
    }
}

/// An expression that every adapter can evaluate.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Expr);

impl Condition {
    /// Checks an expression.
    pub fn new(expr: Expr) -> Result<Self, ConditionError> {
        let mut budget = Budget { terms: MAX_TERMS, bytes: MAX_BYTES };
        budget.expr(&expr, MAX_DEPTH)?;
        Ok(Self(expr))
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.0
    }
}

/// What is left of the limits.
struct Budget {
    terms: usize,
    bytes: usize,
}

impl Budget {
    fn expr(&mut self, expr: &Expr, levels: usize) -> Result<(), ConditionError> {
        let levels = levels.checked_sub(1).ok_or(ConditionError::Deep)?;
        self.term()?;
        match expr {
            Expr::And(parts) | Expr::Or(parts) => parts.iter().try_for_each(|part| self.expr(part, levels)),
            Expr::Not(part) => self.expr(part, levels),
            Expr::Compare(path, _, value) => {
                self.path(path)?;
                self.literal(value)
            }
            Expr::Like { path, pattern, .. } => {
                self.path(path)?;
                self.text(pattern)
            }
            Expr::In(path, values) => {
                self.path(path)?;
                values.iter().try_for_each(|value| self.literal(value))
            }
            Expr::Between(path, low, high) => {
                self.path(path)?;
                self.literal(low)?;
                self.literal(high)
            }
            Expr::IsNull(path) => self.path(path),
            Expr::Contains(path, value) => {
                self.path(path)?;
                self.json(value, levels)
            }
        }
    }

    fn path(&mut self, path: &Path) -> Result<(), ConditionError> {
        path.names().iter().try_for_each(|name| self.text(name))
    }

    fn literal(&mut self, literal: &Literal) -> Result<(), ConditionError> {
        self.term()?;
        match literal {
            Literal::Text(text) => self.text(text),
            Literal::Number(number) if !number.is_finite() => Err(ConditionError::Number),
            Literal::Number(_) | Literal::Bool(_) | Literal::Null => Ok(()),
        }
    }

    fn json(&mut self, value: &Value, levels: usize) -> Result<(), ConditionError> {
        let levels = levels.checked_sub(1).ok_or(ConditionError::Deep)?;
        self.term()?;
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().try_for_each(|item| self.json(item, levels)),
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                self.text(name)?;
                self.json(value, levels)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn term(&mut self) -> Result<(), ConditionError> {
        self.terms = self.terms.checked_sub(1).ok_or(ConditionError::Long)?;
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), ConditionError> {
        if text.contains('\0') {
            return Err(ConditionError::Nul);
        }
        self.bytes = self.bytes.checked_sub(text.len()).ok_or(ConditionError::Large)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Path {
        Path::member("name")
    }

    #[test]
    fn limits_are_kept() {
        let deep = (0..MAX_DEPTH).fold(Expr::IsNull(name()), |inner, _| inner.negated());
        assert_eq!(deep.check(), Err(ConditionError::Deep));
        let long = Expr::In(name(), vec![Literal::Null; MAX_TERMS]);
        assert_eq!(long.check(), Err(ConditionError::Long));
        assert_eq!(Expr::is(name(), "x".repeat(MAX_BYTES)).check(), Err(ConditionError::Large));
        assert_eq!(Expr::is(name(), "a\0").check(), Err(ConditionError::Nul));
        let nan = Expr::Compare(name(), Relation::Eq, Literal::Number(f64::NAN));
        assert_eq!(nan.check(), Err(ConditionError::Number));
        assert_eq!(Path::new(Vec::<String>::new()), Err(ConditionError::Path));
        assert_eq!(Path::new(vec!["a"; MAX_PATH + 1]), Err(ConditionError::Path));
        assert_eq!(Path::new(["a\0"]), Err(ConditionError::Nul));
        assert!(Expr::is(name(), "x").and(Expr::IsNull(name()).negated()).check().is_ok());
    }
}
