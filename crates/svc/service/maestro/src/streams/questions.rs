//! A source asks for what differs from what it knows. Every replica answers its own subscribers: the question goes through
//! the store.

use std::time::Duration;

use aro_bundle::KnownStatus;
use aro_store::{Batch, DocId, Document, NewDocument, Op, PartitionKey, Raw};
use serde::{Deserialize, Serialize};

use super::Streams;
use super::sweep::Sweep;
use crate::fault::Fault;
use crate::rows::CONTAINER;

const KIND: &str = "question";
/// Long enough for every replica to see it.
const KEPT: Duration = Duration::from_mins(1);
/// Entries of one document at most; what is not listed in it is left alone, so a list may be cut.
const MOST: usize = 5000;

#[derive(Debug, Serialize, Deserialize)]
struct Question {
    source: String,
    known: Vec<KnownStatus>,
}

impl Streams {
    /// Asks, on behalf of a source. Nothing known: everything is told.
    pub async fn ask(&self, source: &str, known: Vec<KnownStatus>) -> Result<(), Fault> {
        let mut lists: Vec<Vec<KnownStatus>> = known.chunks(MOST).map(<[_]>::to_vec).collect();
        if lists.is_empty() {
            lists.push(Vec::new());
        }
        for known in lists {
            let id = uuid::Uuid::new_v4().to_string();
            let question = Question { source: source.to_owned(), known };
            let body =
                Raw::of(&question).map_err(|error| Fault::caused("a question cannot be written", error))?;
            let new = NewDocument {
                id: DocId::new(&id),
                resource_type: KIND.to_owned(),
                resource_id: String::new(),
                ttl: Some(KEPT),
                body,
            };
            let batch = Batch::new(CONTAINER, PartitionKey::new(&id)).with(Op::Create(new));
            let written = self.dispatcher.rows.store().write(batch).await;
            written.map_err(|error| Fault::caused("a question cannot be stored", error))?;
        }
        Ok(())
    }

    /// Has every subscriber of the source brought the answer; nobody is asked while everything is read for the first time.
    pub(super) fn see_question(&self, document: &Document) {
        if document.resource_type != KIND || self.at.borrow().is_none() {
            return;
        }
        if let Ok(Question { source, known }) = document.body.to() {
            let sweep = Sweep::different(known);
            for listener in self.listening(&source) {
                if let Some(sweep) = sweep.again() {
                    listener.bring(sweep);
                }
            }
        }
    }
}
