//! Deliveries: which are due, which replica claims them, and the removal of bundles of a lost cluster.

use aro_base::Timestamp;
use aro_bundle::{Action, Event, EventType, SequenceId, SequenceSource, condition, json};
use aro_store::{Condition, ConditionError, Expr, Literal, Page, PageToken, Path, Relation};
use serde_json::json;
use serde_json::value::RawValue;

use super::decide;
use super::{ATTEMPTS, BUNDLE, Bundle, Moment, Row, Rows, bundles_of, contended, of_type};
use crate::fault::Fault;

/// Rows per page.
const PAGE: usize = 100;

impl Rows {
    /// A page of the unconfirmed bundles whose next attempt is due by then.
    pub async fn due_bundles(
        &self,
        before: Timestamp,
        page: Page,
    ) -> Result<(Vec<Row<Bundle>>, Option<PageToken>), Fault> {
        self.page(&of_type(BUNDLE, Some(due(Some(before))?)), page).await
    }

    /// A page of the unconfirmed bundles of one consumer, or of all.
    pub async fn undelivered_bundles(
        &self,
        consumer: Option<&str>,
        page: Page,
    ) -> Result<(Vec<Row<Bundle>>, Option<PageToken>), Fault> {
        let query = of_type(BUNDLE, Some(due(None)?));
        let query = match consumer {
            Some(consumer) => query.under(bundles_of(consumer)),
            None => query,
        };
        self.page(&query, page).await
    }

    /// Claims the next attempt at publishing a bundle: of several replicas with the same row one succeeds, and gets the row as
    /// it is then. `None` if another replica has claimed it, or the bundle is confirmed.
    pub async fn claim_attempt(&self, row: &Row<Bundle>) -> Result<Option<Row<Bundle>>, Fault> {
        if !row.value.is_undelivered() {
            return Ok(None);
        }
        let mut bundle = row.value.clone();
        bundle.delivery.attempted(self.clock.now());
        self.put(bundle, Some(row.etag.clone())).await
    }

    /// Records when the broker first acknowledged a version. `false` if it is recorded already, or the version is another.
    pub async fn mark_published(&self, id: &str, version: i32, when: Timestamp) -> Result<bool, Fault> {
        for _ in 0..ATTEMPTS {
            let Some(row) = self.find_bundle(id).await? else { return Ok(false) };
            let mut bundle = row.value;
            if bundle.version != version || bundle.delivery.published.is_some() {
                return Ok(false);
            }
            bundle.delivery.published = Some(when.into());
            if self.put(bundle, Some(row.etag)).await?.is_some() {
                return Ok(true);
            }
        }
        Err(contended(id))
    }

    /// Raises the version of a bundle above an agent's. `None` if it is above already, or there is no room.
    pub async fn raise_version(&self, id: &str, above: i64) -> Result<Option<Bundle>, Fault> {
        for _ in 0..ATTEMPTS {
            let Some(row) = self.find_bundle(id).await? else { return Ok(None) };
            let Some(raised) = decide::raised(&row.value, above, self.clock.now()) else { return Ok(None) };
            if let Some(row) = self.put(raised, Some(row.etag)).await? {
                return Ok(Some(row.value));
            }
        }
        Err(contended(id))
    }

    /// Removes the bundles being deleted of a consumer whose cluster is lost, with a final status for their sources. All other
    /// bundles stay. Returns how many were removed.
    pub async fn abandon(&self, consumer: &str) -> Result<usize, Fault> {
        let deleting = Expr::IsNull(Path::member("deleted_at")).negated().check().map_err(invalid_query)?;
        let query = of_type(BUNDLE, Some(deleting)).under(bundles_of(consumer));
        let mut removed = 0;
        let mut page = Page::first(PAGE);
        loop {
            let (rows, next) = self.page::<Bundle>(&query, page).await?;
            for row in rows {
                let (status, sequence) = self.abandoned_status(&row.value)?;
                // On a conflict the agent is alive after all, or another operator has abandoned the consumer too.
                removed += usize::from(self.remove(row, status, Some(sequence)).await?);
            }
            match next {
                Some(next) => page = Page { size: PAGE, after: Some(next) },
                None => return Ok(removed),
            }
        }
    }

    /// The final status in place of the agent's.
    fn abandoned_status(&self, bundle: &Bundle) -> Result<(Box<RawValue>, String), Fault> {
        let now = self.clock.now();
        let known = bundle.delivery.sequence.as_deref().and_then(SequenceId::parse);
        let sequence = SequenceSource::after(known).next(now).to_string();
        let message = format!(
            "The cluster {} was abandoned; remaining manifests were not checked",
            bundle.consumer_name
        );
        let data = json!({ "conditions": [{
            "type": condition::DELETED,
            "status": "True",
            "reason": condition::MANIFESTS_DELETED,
            "message": message,
            "lastTransitionTime": Moment(now).seconds(),
        }]});
        let kind = EventType::status(Action::Update);
        let event =
            Event::new(uuid::Uuid::new_v4().to_string(), &*self.server, kind, bundle.consumer_name.clone());
        let event = Event {
            time: Some(now),
            original_source: Some(self.server.to_string()),
            resource_id: Some(bundle.id.clone()),
            resource_version: Some(bundle.version),
            sequence_id: Some(sequence.clone()),
            // The source of a bundle that cannot be decoded gets the final status all the same.
            metadata: bundle.spec_event().ok().and_then(|spec| spec.metadata),
            ..event
        };
        let event = event.with_payload(&data).map_err(Fault::unreadable)?;
        Ok((json::write(&event).map_err(Fault::unreadable)?, sequence))
    }
}

/// Bundles with a next attempt, due by then or at any time.
fn due(before: Option<Timestamp>) -> Result<Condition, Fault> {
    let path = Path::new(["delivery", "next_attempt"]).map_err(invalid_query)?;
    let expr = match before {
        Some(before) => Expr::Compare(path, Relation::Le, Literal::Text(Moment(before).to_string())),
        None => Expr::IsNull(path).negated(),
    };
    expr.check().map_err(invalid_query)
}

fn invalid_query(error: ConditionError) -> Fault {
    Fault::caused("invalid query", error)
}
