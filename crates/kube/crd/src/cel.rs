//! Rules of `x-kubernetes-validations`: the Common Expression Language as Kubernetes speaks it.
//!
//! The `cel` crate parses. Evaluation is our own, for three reasons: it reads the JSON document in place (a rule on
//! a large object converts nothing), it sees values through the schema (a `date-time` is a timestamp, a set compares
//! without order, escaped names are found), and every step is counted, so that no rule can run away.
//!
//! Invariant: no tree is deeper than [`nesting`] allows, so that recursion over trees is bounded.
//!
//! What it is not: a type checker. A rule with a wrong type fails when it runs, not when it is compiled.
//!
//! Layout: [`lower`] turns the parsed tree into one with resolved names and functions, [`value`] is what expressions
//! compute with, [`eval`] runs them, [`functions`] are the standard and Kubernetes libraries.

pub(crate) mod eval;
pub(crate) mod functions;
pub(crate) mod lower;
mod nesting;
pub(crate) mod value;

use crate::cel::eval::{Budget, Failure, Machine};
use crate::cel::lower::Expr;
use crate::cel::value::Val;

/// One compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    expr: Expr,
    uses_old: bool,
}

impl Program {
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        Self::compile_with(source, lower::IN_SCHEMAS)
    }

    /// The same, with other names for the two values.
    pub(crate) fn compile_with(source: &str, names: lower::Names) -> Result<Self, String> {
        let (expr, uses_old) = lower::compile(source, names)?;
        Ok(Self { expr, uses_old })
    }

    /// Whether the expression names `oldSelf`.
    pub(crate) fn uses_old(&self) -> bool {
        self.uses_old
    }

    pub(crate) fn run<'a>(
        &'a self,
        this: Val<'a>,
        old: Option<Val<'a>>,
        budget: &mut Budget,
    ) -> Result<Val<'a>, Failure> {
        Machine::new(this, old, budget).eval(&self.expr)
    }
}
