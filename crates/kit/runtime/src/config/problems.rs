//! Everything that is wrong with a configuration, at once.

use std::fmt;

use super::Origin;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key's full path, `frontend.listen`; or the place (a file) if there is no key.
    pub key: String,
    /// What is wrong with it and what would be right.
    pub message: String,
    /// Where the offending value came from, if it came from anywhere.
    pub origin: Option<Origin>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.key, self.message)?;
        match &self.origin {
            Some(origin) => write!(f, " (from {origin})"),
            None => Ok(()),
        }
    }
}

/// Gathers the problems of one section.
#[derive(Debug)]
pub struct Problems {
    table: &'static str,
    found: Vec<Problem>,
}

impl Problems {
    pub(super) fn of(table: &'static str) -> Self {
        Self { table, found: Vec::new() }
    }

    /// Notes what is wrong with a key of this section.
    pub fn add(&mut self, key: &str, message: impl Into<String>) {
        self.found.push(Problem {
            key: format!("{}.{key}", self.table),
            message: message.into(),
            origin: None,
        });
    }

    pub(super) fn into_result(self) -> Result<(), ConfigProblems> {
        ConfigProblems::unless_empty(self.found)
    }
}

/// A configuration that cannot be used, and every reason why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblems(Vec<Problem>);

impl ConfigProblems {
    /// One problem with one key (`table.key`), for checks that need more than its section.
    pub fn with_key(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::one(Problem { key: key.into(), message: message.into(), origin: None })
    }

    pub(super) fn unless_empty(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }

    pub(super) fn one(problem: Problem) -> Self {
        Self(vec![problem])
    }

    /// Each problem, in the order of the tables.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    pub(super) fn into_vec(self) -> Vec<Problem> {
        self.0
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used: ")?;
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}
