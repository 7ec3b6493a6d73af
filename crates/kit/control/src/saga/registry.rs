//! The sagas of a role, so that tests can prove that none is missing.

use super::Saga;

/// What is known of a saga without its types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// The version of its steps.
    pub version: u16,
    /// The names of its steps.
    pub steps: Vec<&'static str>,
}

/// The sagas of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    sagas: Vec<Registered>,
}

impl Registry {
    /// Adds a saga.
    #[must_use]
    pub fn with<S: Saga>(mut self) -> Self {
        let steps = S::steps().names();
        self.sagas.push(Registered { name: S::NAME, version: S::VERSION, steps });
        self
    }

    /// The sagas.
    pub fn sagas(&self) -> &[Registered] {
        &self.sagas
    }
}
