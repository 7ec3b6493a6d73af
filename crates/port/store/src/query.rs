//! Queries: by type, by resource-id prefix, by equality on members of the body, by a condition.
//!
//! Two ways to read the results: by [`Page`], in the order of the resource id, from wherever the last page ended; or by
//! [`Slice`], in an order of the caller's choice, counted from the start, for APIs that have page numbers.

use crate::{Condition, Container, Document, PartitionKey, Path};

/// What to look for. Conditions are joined by "and"; results come in the order of the lower-cased resource id.
#[derive(Debug, Clone)]
pub struct Query {
    /// The container.
    pub container: Container,
    /// One partition, or all of them.
    pub partition: Option<PartitionKey>,
    /// Only documents of this type (compared without case).
    pub resource_type: Option<String>,
    /// Only documents whose resource id starts so (compared without case).
    pub id_prefix: Option<String>,
    /// Conditions on the body.
    pub filters: Vec<Filter>,
    /// What a client searches for.
    pub condition: Option<Condition>,
}

impl Query {
    /// Everything in one partition.
    pub fn partition(container: Container, partition: PartitionKey) -> Self {
        Self {
            container,
            partition: Some(partition),
            resource_type: None,
            id_prefix: None,
            filters: Vec::new(),
            condition: None,
        }
    }

    /// Everything in all partitions.
    pub fn all(container: Container) -> Self {
        Self {
            container,
            partition: None,
            resource_type: None,
            id_prefix: None,
            filters: Vec::new(),
            condition: None,
        }
    }

    /// Narrows to a type.
    pub fn of_type(mut self, resource_type: impl Into<String>) -> Self {
        self.resource_type = Some(resource_type.into());
        self
    }

    /// Narrows to a resource-id prefix.
    pub fn under(mut self, id_prefix: impl Into<String>) -> Self {
        self.id_prefix = Some(id_prefix.into());
        self
    }

    /// Narrows to what a client searches for. The last one counts.
    pub fn matching(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Narrows by a condition on the body.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }
}

/// A condition on one member of the body. The path is dotted (`properties.status`) and comes from code, never
/// from input; the value is always bound, never spliced into a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// The member is a string equal to this.
    Eq(&'static str, String),
    /// The member is a string equal to this, without regard to ASCII case.
    EqIgnoreCase(&'static str, String),
    /// The member is a string and one of these.
    In(&'static str, Vec<String>),
    /// The member is absent or null.
    Absent(&'static str),
}

/// One key to sort by. Numbers come first, by value; then texts, in the order of bytes; then all else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The member.
    pub path: Path,
    /// The other way round.
    pub descending: bool,
}

impl Order {
    /// Smallest first.
    pub fn ascending(path: Path) -> Self {
        Self { path, descending: false }
    }
}

/// A part of the results counted from the start. What the keys leave equal is in the order of the lower-cased resource
/// id, or of age, so that a walk over unchanging documents shows each of them once.
#[derive(Debug, Clone, Default)]
pub struct Slice {
    /// What to sort by, the first key first.
    pub order: Vec<Order>,
    /// What the keys leave equal is in the order in which it was first written: what is new comes last. Without any key
    /// this is the cheapest order there is.
    pub oldest_first: bool,
    /// How many to leave out.
    pub skip: usize,
    /// At most this many.
    pub size: usize,
}

/// Which part of the results to return.
#[derive(Debug, Clone)]
pub struct Page {
    /// At most this many (at least 1 is taken).
    pub size: usize,
    /// Where the previous page ended.
    pub after: Option<PageToken>,
}

impl Page {
    /// The first page of this size.
    pub fn first(size: usize) -> Self {
        Self { size, after: None }
    }
}

/// Where a page ended. Opaque; survives URL encoding and restarts; holds nothing secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageToken(String);

impl PageToken {
    /// Wraps the text of a token, as a client sent it back or as an adapter made it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text of the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One page of results.
#[derive(Debug, Clone)]
pub struct Paged {
    /// The documents, in order.
    pub items: Vec<Document>,
    /// Where to go on; `None` at the end.
    pub next: Option<PageToken>,
}
