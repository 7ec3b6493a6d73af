//! What a group of batches did, as the rest of the adapter must learn it after the commit.

use std::collections::HashSet;

use aro_store::{Container, DocKey, Document};

/// Documents as they are after the commit; `None` where there is no longer one.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) documents: Vec<(DocKey, Option<Document>)>,
    pub(crate) containers: HashSet<Container>,
    pub(crate) batches: u64,
    pub(crate) ops: u64,
    pub(crate) conflicts: u64,
}
