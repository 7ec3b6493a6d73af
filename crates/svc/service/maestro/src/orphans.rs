//! Deletes orphans: works that an agent has and no row wants.
//!
//! A spec that was delivered late, or again, after its bundle was removed brings a work back; the next report of that work
//! leads here. Orphans are deleted only if the store may decide about the consumer ([`Rows::may_delete_orphans`]): the store
//! may be a wrong one, or a restored one.

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::chain;
use aro_bundle::{BundleStatus, Event, shortened};
use aro_runtime::{Fault, LogLimiter};

use crate::encoder::AgentEncoder;
use crate::fault::Code;
use crate::publisher::Publisher;
use crate::rows::Rows;

const BLOCKED: &str = "agent reports bundles missing from this store; deletion blocked (wrong or restored store?). If this is the right store, allow it with POST /api/aro/maestro/v1/consumers/{id}/trust; orphans are then deleted at the agent's next report or connect";

const DELETING: &str =
    "agent has orphaned works; deletion published (if that is wrong, check which store this server has)";

/// Publishes the deletion of orphans.
pub struct OrphanDeleter {
    pub rows: Rows,
    pub publisher: Arc<Publisher>,
    pub encoder: AgentEncoder,
    /// Limits the log lines that statuses cause.
    pub log_limiter: Arc<LogLimiter>,
}

impl OrphanDeleter {
    /// Deletes the work of a status for which there is no row. If the message is lost, the agent's next report or resync
    /// leads here again.
    pub async fn delete_reported(&self, event: &Event) {
        if !is_orphan(event, self.encoder.server()) {
            return;
        }
        let (id, consumer) = (event.resource_id.as_deref().unwrap_or_default(), &event.cluster_name);
        match self.rows.may_delete_orphans(consumer).await {
            Ok(true) => {}
            Ok(false) => {
                if let Some(suppressed) = self.log_limiter.permit() {
                    tracing::warn!(bundle = shortened(id), consumer, suppressed, "{BLOCKED}");
                }
                return;
            }
            Err(error) => {
                if let Some(suppressed) = self.log_limiter.permit() {
                    tracing::warn!(bundle = shortened(id), consumer, error = %chain(&error), suppressed, "orphaned work not deleted; its next report repeats it");
                }
                return;
            }
        }
        let version = event.resource_version.unwrap_or_default();
        let result = self.publisher.publish(consumer, &self.encoder.deletion(id, version, consumer)).await;
        if let Some(suppressed) = self.log_limiter.permit() {
            tracing::warn!(bundle = shortened(id), consumer, ?result, suppressed, "{DELETING}");
        }
    }

    /// Deletes works that an agent listed and for which the resync found no row. Rows are looked up again: one may have been
    /// created since, or belong to another consumer whose agent serves the same cluster. Returns how many are deleted.
    pub async fn delete_listed(&self, consumer: &str, listed: HashMap<String, i64>) -> Result<usize, Fault> {
        if listed.is_empty() {
            return Ok(0);
        }
        let allowed = self.rows.may_delete_orphans(consumer).await;
        if !allowed.map_err(|error| Fault::caused("read a consumer", error))? {
            tracing::warn!(consumer, orphans = listed.len(), "{BLOCKED}");
            return Ok(0);
        }
        let mut deletions = Vec::new();
        for (id, version) in listed {
            match self.rows.find_bundle(&id).await {
                Ok(None) => {}
                Ok(Some(_)) => continue,
                // There is a row, even if it cannot be decoded.
                Err(error) if error.code == Code::Unreadable => continue,
                Err(error) => return Err(Fault::caused("read a bundle", error)),
            }
            let version = i32::try_from(version).unwrap_or(i32::MAX);
            deletions.push(self.encoder.deletion(&id, version, consumer));
        }
        let deleted = self.publisher.publish_all(consumer, deletions).await?;
        if deleted > 0 {
            tracing::warn!(consumer, deleted, "{DELETING}");
        }
        Ok(deleted)
    }
}

/// Whether a status without a row is one of an orphan. A report of a finished deletion is not: deleting again would be
/// reported again, without end.
fn is_orphan(event: &Event, server: &str) -> bool {
    event.original_source.as_deref() == Some(server)
        && event.payload::<BundleStatus>().is_ok_and(|status| !status.is_deleted())
}

#[cfg(test)]
mod tests {
    use aro_bundle::{Action, EventType};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn status_without_a_row_is_an_orphan_unless_it_reports_its_deletion() {
        let status = |source: &str, conditions: Value| {
            let mut event = Event::new("e", "a", EventType::status(Action::Update), "c1");
            event.original_source = Some(source.to_owned());
            event.with_payload(&json!({ "conditions": conditions })).unwrap()
        };
        let deleted = json!([{"type": "Deleted", "status": "True", "reason": "ManifestsDeleted",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        assert!(is_orphan(&status("maestro", json!([])), "maestro"));
        assert!(!is_orphan(&status("maestro", deleted), "maestro"), "else it would be deleted for ever");
        assert!(!is_orphan(&status("another", json!([])), "maestro"));
        let malformed = Event { data: "nonsense".into(), ..status("maestro", json!([])) };
        assert!(!is_orphan(&malformed, "maestro"));
    }
}
