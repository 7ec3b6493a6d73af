//! Lists.

use serde::{Deserialize, Serialize};

/// A page of a list. `items` is always there: the client of this API refuses a list without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct List<T> {
    /// `<Kind>List`.
    pub kind: String,
    /// From 1; 0 for an empty list.
    pub page: u64,
    /// How many items this page has.
    pub size: u64,
    /// How many items all pages have.
    pub total: u64,
    /// The items.
    #[serde(default = "Vec::new")]
    pub items: Vec<T>,
}

impl<T> List<T> {
    /// A page. An empty list has page 0, as the original answers.
    pub fn new(kind: &str, page: u64, total: u64, items: Vec<T>) -> Self {
        let page = if total == 0 { 0 } else { page };
        Self { kind: format!("{kind}List"), page, size: items.len() as u64, total, items }
    }
}
