//! What a group of batches did, as the rest of the adapter must learn it after the commit.

use std::collections::HashSet;

use aro_store::{Container, DocKey, Document};

use crate::tail::FeedChange;

/// All of it.
#[derive(Default)]
pub(crate) struct Effects {
    /// Documents as they are after the commit; `None` where there is no longer one.
    pub(crate) documents: Vec<(DocKey, Option<Document>)>,
    /// The same, as the feed delivers it.
    pub(crate) changes: Vec<FeedChange>,
    pub(crate) containers: HashSet<Container>,
    pub(crate) batches: u64,
    pub(crate) ops: u64,
    pub(crate) conflicts: u64,
}
