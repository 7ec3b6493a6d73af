//! Who did not stop in time.

use std::collections::BTreeMap;
use std::fmt;

/// The tasks that were still running when the grace period ended. They have been aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Laggards(BTreeMap<String, usize>);

impl Laggards {
    pub(super) fn new(tasks: Vec<String>) -> Self {
        let mut counted = BTreeMap::new();
        for task in tasks {
            *counted.entry(task).or_insert(0) += 1;
        }
        Self(counted)
    }

    /// Full names (scope path and task), each with how many of that name there were.
    pub fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }
}

impl fmt::Display for Laggards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("did not stop within the grace period: ")?;
        for (index, (name, count)) in self.names().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            f.write_str(name)?;
            if count > 1 {
                write!(f, " (x{count})")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Laggards {}
