//! A source requests the statuses that differ from its own. Every replica answers its own subscribers, so the request goes
//! through the store.

use std::time::Duration;

use aro_bundle::KnownStatus;
use aro_store::{Batch, DocId, Document, NewDocument, Op, PartitionKey, Raw};
use serde::{Deserialize, Serialize};

use super::Streams;
use super::replay::Replay;
use crate::fault::Fault;
use crate::rows::CONTAINER;

const KIND: &str = "question";
/// Long enough for every replica to read it.
const TTL: Duration = Duration::from_mins(1);
/// Entries of one document. Only listed statuses are compared, so a list may be split.
const MAX_ENTRIES: usize = 5000;

#[derive(Debug, Serialize, Deserialize)]
struct ResyncRequest {
    source: String,
    known: Vec<KnownStatus>,
}

impl Streams {
    /// Requests a resync for a source. An empty list requests every status.
    pub async fn request_resync(&self, source: &str, known: Vec<KnownStatus>) -> Result<(), Fault> {
        let mut lists: Vec<Vec<KnownStatus>> = known.chunks(MAX_ENTRIES).map(<[_]>::to_vec).collect();
        if lists.is_empty() {
            lists.push(Vec::new());
        }
        for known in lists {
            let id = uuid::Uuid::new_v4().to_string();
            let request = ResyncRequest { source: source.to_owned(), known };
            let body = Raw::of(&request).map_err(|error| Fault::caused("encode a resync request", error))?;
            let new = NewDocument {
                id: DocId::new(&id),
                resource_type: KIND.to_owned(),
                resource_id: String::new(),
                ttl: Some(TTL),
                body,
            };
            let batch = Batch::new(CONTAINER, PartitionKey::new(&id)).with(Op::Create(new));
            let written = self.rows.store().write(batch).await;
            written.map_err(|error| Fault::caused("store a resync request", error))?;
        }
        Ok(())
    }

    /// Starts the replay for every subscriber of the source.
    pub(super) fn start_resync(&self, document: &Document) {
        if document.resource_type != KIND || self.head.borrow().is_none() {
            return;
        }
        if let Ok(ResyncRequest { source, known }) = document.body.to() {
            let replay = Replay::different(known);
            for subscriber in self.subscribers_of(&source) {
                if let Some(replay) = replay.restart() {
                    subscriber.replay(replay);
                }
            }
        }
    }
}
