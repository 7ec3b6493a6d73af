//! Deliveries: what is due, who delivers it, and giving up on a cluster that is gone.

use aro_base::Timestamp;
use aro_bundle::{Action, Event, EventType, SequenceId, SequenceSource, condition, json};
use aro_store::{Condition, ConditionError, Expr, Literal, Page, PageToken, Path, Relation};
use serde_json::json;
use serde_json::value::RawValue;

use super::decide;
use super::{ATTEMPTS, BUNDLE, Bundle, Moment, Row, Rows, bundles_of, contended, of_type};
use crate::fault::Fault;

/// How many rows are looked at in one go.
const PAGE: usize = 100;

impl Rows {
    /// A page of the bundles whose consumer has not answered for what is wanted and that are due to be published again
    /// by then.
    pub async fn undelivered(
        &self,
        before: Timestamp,
        page: Page,
    ) -> Result<(Vec<Row<Bundle>>, Option<PageToken>), Fault> {
        self.page(&of_type(BUNDLE, Some(due(Some(before))?)), page).await
    }

    /// A page of the bundles whose consumer has not answered for what is wanted, of one consumer or all.
    pub async fn waiting(
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

    /// Takes the next attempt at publishing a bundle: of several who try with the same row one gets it. It gets the row
    /// as it is then; `None` means that somebody was faster or that there is no need any more.
    pub async fn claim_attempt(&self, row: &Row<Bundle>) -> Result<Option<Row<Bundle>>, Fault> {
        if !row.value.is_undelivered() {
            return Ok(None);
        }
        let mut bundle = row.value.clone();
        bundle.delivery.attempted(self.clock.now());
        self.put(bundle, Some(row.etag.clone())).await
    }

    /// Notes when the broker first took a version. `false`: there is nothing to note, it is another version by now.
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

    /// Lets the versions of a bundle go on above one that an agent has. `None`: there is no need to, or no room.
    pub async fn raise(&self, id: &str, above: i64) -> Result<Option<Bundle>, Fault> {
        for _ in 0..ATTEMPTS {
            let Some(row) = self.find_bundle(id).await? else { return Ok(None) };
            let Some(raised) = decide::raised(&row.value, above, self.clock.now()) else { return Ok(None) };
            if let Some(row) = self.put(raised, Some(row.etag)).await? {
                return Ok(Some(row.value));
            }
        }
        Err(contended(id))
    }

    /// Says that a consumer's cluster is gone and will never answer: its bundles that are to go are removed, and their
    /// sources are told so. What is still wanted stays. Returns how many went.
    pub async fn abandon(&self, consumer: &str) -> Result<usize, Fault> {
        let deleting = Expr::IsNull(Path::member("deleted_at")).negated().check().map_err(refused)?;
        let query = of_type(BUNDLE, Some(deleting)).under(bundles_of(consumer));
        let mut gone = 0;
        let mut page = Page::first(PAGE);
        loop {
            let (rows, next) = self.page::<Bundle>(&query, page).await?;
            for row in rows {
                let (status, sequence) = self.last_words(&row.value)?;
                // Somebody else was faster: the agent lives after all, or another operator asked too.
                gone += usize::from(self.remove(row, status, Some(sequence)).await?);
            }
            match next {
                Some(next) => page = Page { size: PAGE, after: Some(next) },
                None => return Ok(gone),
            }
        }
    }

    /// What the agent would have said at the end.
    fn last_words(&self, bundle: &Bundle) -> Result<(Box<RawValue>, String), Fault> {
        let now = self.clock.now();
        let known = bundle.delivery.sequence.as_deref().and_then(SequenceId::parse);
        let sequence = SequenceSource::after(known).next(now).to_string();
        let message = format!(
            "The cluster {} was abandoned; nobody looked what is left of the manifests",
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
            // Of a bundle that cannot be read its source is told at least the end.
            metadata: bundle.spec_event().ok().and_then(|spec| spec.metadata),
            ..event
        };
        let event = event.with_payload(&data).map_err(Fault::unreadable)?;
        Ok((json::write(&event).map_err(Fault::unreadable)?, sequence))
    }
}

/// Bundles that have to be published again, by then or at all.
fn due(before: Option<Timestamp>) -> Result<Condition, Fault> {
    let path = Path::new(["delivery", "next_attempt"]).map_err(refused)?;
    let expr = match before {
        Some(before) => Expr::Compare(path, Relation::Le, Literal::Text(Moment(before).to_string())),
        None => Expr::IsNull(path).negated(),
    };
    expr.check().map_err(refused)
}

fn refused(error: ConditionError) -> Fault {
    Fault::caused("a query of ours was refused", error)
}
