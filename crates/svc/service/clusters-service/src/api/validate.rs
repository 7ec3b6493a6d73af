//! Validation: everything that is wrong with a request, at once.
//!
//! The functions are pure. What needs other records (names that are taken, versions) is handed in or checked by the handlers.

mod azure;
mod cluster;
mod external_auth;
mod network;
mod node_pool;
mod shard;
mod value;

use aro_ocm::{Code, Problem};

pub(super) use cluster::{ClusterRules, cluster};
pub(super) use external_auth::external_auth;
pub(super) use node_pool::{NodePoolRules, node_pool};
pub(super) use shard::shard;

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Found(Vec<Problem>);

impl Found {
    fn add(&mut self, code: Code, field: &str, reason: impl Into<String>) {
        self.0.push(Problem::new(code, field, reason));
    }

    fn invalid(&mut self, field: &str, reason: impl Into<String>) {
        self.add(Code::InvalidValue, field, reason);
    }

    fn required(&mut self, field: &str) {
        self.add(Code::Required, field, format!("'{field}' is required"));
    }

    /// The text of a required member.
    fn text<'t>(&mut self, field: &str, value: Option<&'t String>) -> Option<&'t str> {
        match value.map(String::as_str) {
            Some(text) if !text.is_empty() => Some(text),
            _ => {
                self.required(field);
                None
            }
        }
    }

    /// A member that may be absent but not empty.
    fn not_empty(&mut self, field: &str, value: Option<&String>) {
        if value.is_some_and(String::is_empty) {
            self.invalid(field, format!("'{field}' must not be an empty string"));
        }
    }

    pub(super) fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.0
    }
}
