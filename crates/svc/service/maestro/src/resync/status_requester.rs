//! Requests the statuses that differ from the stored ones.

use std::sync::Arc;

use aro_bundle::{KnownStatus, MAX_PACKET, status_pages};
use aro_mqtt::PublishError;
use aro_runtime::Fault;

use super::read_page;
use crate::encoder::AgentEncoder;
use crate::publisher::Publisher;
use crate::rows::{Bundle, Rows};

/// Bytes reserved for the envelope of a resync.
const ENVELOPE: usize = 4 * 1024;
/// The digest of an empty status.
const NO_STATUS: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Publishes status resync requests.
pub struct StatusRequester {
    pub rows: Rows,
    pub publisher: Arc<Publisher>,
    pub encoder: AgentEncoder,
    /// Bytes of one event.
    pub max_event: usize,
}

impl StatusRequester {
    /// Requests the statuses of one consumer's agent.
    pub async fn request(&self, consumer: &str) -> Result<(), Fault> {
        let mut known = Vec::new();
        let mut after = None;
        loop {
            let (rows, next) = read_page(&self.rows, consumer, after).await?;
            known.extend(rows.iter().map(|row| known_status(&row.value)));
            after = next;
            if after.is_none() {
                break;
            }
        }
        for (range, page) in status_pages(known, MAX_PACKET.min(self.max_event) - ENVELOPE) {
            let event = self.encoder.status_resync(consumer, &range, &page);
            let event = event.map_err(|error| Fault::caused("encode a resync", error))?;
            match self.publisher.publish(consumer, &event).await {
                // A topic that the broker rejects must not block the other consumers.
                Err(error @ (PublishError::TooLarge(_) | PublishError::Refused(_))) => {
                    tracing::error!(consumer, %error, "statuses cannot be requested");
                }
                result => result.map_err(|error| Fault::caused("publish", error))?,
            }
        }
        Ok(())
    }
}

/// The digest of a row's status. The status of an earlier version counts as none.
fn known_status(row: &Bundle) -> KnownStatus {
    let hash = row.status_event().ok().flatten().and_then(|status| status.status_hash);
    let hash = hash.filter(|_| row.delivery.observed_version == row.version);
    KnownStatus { id: row.id.clone(), hash: hash.unwrap_or_else(|| NO_STATUS.to_owned()) }
}
