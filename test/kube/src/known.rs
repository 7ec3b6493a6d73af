//! Differences somebody has decided to live with.

use std::cell::Cell;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::compare::Difference;

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    pub scenario: String,
    /// `*`: every step.
    pub step: String,
    /// Where it shows, and everything below. `*` stands for any name or index.
    pub path: String,
    /// Why it is there.
    pub reason: String,
    #[serde(skip)]
    seen: Cell<bool>,
}

#[derive(Debug, Default)]
pub struct Differences(Vec<Known>);

impl Differences {
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let list: Option<Vec<Known>> = serde_saphyr::from_str(&text)?;
        Ok(Self(list.unwrap_or_default()))
    }

    /// Whether this difference is listed.
    pub fn knows(&self, scenario: &str, step: &str, difference: &Difference) -> bool {
        let mut found = false;
        for known in &self.0 {
            let here = (known.scenario == "*" || known.scenario == scenario)
                && (known.step == "*" || known.step == step);
            if here && covers(&known.path, &difference.path) {
                known.seen.set(true);
                found = true;
            }
        }
        found
    }

    /// Entries that no difference needed, in scenarios that ran.
    pub fn unused<'a>(&'a self, ran: &'a [&str]) -> impl Iterator<Item = &'a Known> {
        self.0.iter().filter(|known| {
            !known.seen.get() && (known.scenario == "*" || ran.contains(&known.scenario.as_str()))
        })
    }
}

fn covers(pattern: &str, path: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        text.split(['.', '[']).map(|part| part.trim_end_matches(']').to_owned()).collect()
    };
    let (pattern, path) = (parts(pattern), parts(path));
    pattern.len() <= path.len()
        && pattern.iter().zip(&path).all(|(known, part)| known == "*" || known == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_covers_what_is_below_it() {
        assert!(covers("body.items[*].spec", "body.items[3].spec.a"));
        assert!(covers("body", "body.items[3]"));
        assert!(!covers("body.items[0]", "body.items[1]"));
        assert!(!covers("body.spec.a", "body.spec"));
    }
}
