//! Keeps the zones as the store has them: a list, then the change feed; an expired cursor starts over.

use std::time::Duration;

use aro_base::chain;
use aro_cloud_store::CLOUD;
use aro_net::Backoff;
use aro_runtime::LogLimiter;
use aro_store::{Follower, Page, Query, SharedStore, StoreError};

use crate::front_door;
use crate::metrics::DnsMetrics;
use crate::model::{Applied, Model, PUBLIC_ADDRESSES, ZONES};
use crate::record_set::TYPES;
use crate::shared::SharedZones;

/// Documents in one page of the list.
const PAGE: usize = 200;
/// Delays while the store is not available.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

/// Replaces `zones` after the first list and after every page of changes; never returns. `synced` is called after each list.
pub async fn follow(
    store: SharedStore,
    zones: SharedZones,
    budget: usize,
    metrics: DnsMetrics,
    synced: impl Fn() + Send,
) {
    let follow = Follow { store, zones, budget, metrics, limiter: LogLimiter::every(Duration::from_mins(1)) };
    let mut attempts = BACKOFF.attempts();
    loop {
        let error = match follow.list().await {
            Ok((mut model, mut follower)) => {
                attempts.reset();
                synced();
                follow.changes(&mut model, &mut follower).await
            }
            Err(error) => error,
        };
        if !matches!(error, StoreError::CursorExpired) {
            tracing::warn!(error = %chain(&error), "DNS zones not listed; retrying");
            attempts.wait().await;
        }
    }
}

struct Follow {
    store: SharedStore,
    zones: SharedZones,
    budget: usize,
    metrics: DnsMetrics,
    limiter: LogLimiter,
}

impl Follow {
    /// Lists into a new model; the zones served meanwhile are those of the old one.
    async fn list(&self) -> Result<(Model, Follower), StoreError> {
        let cursor = self.store.latest_cursor(CLOUD).await?;
        let follower = Follower::new(self.store.clone(), CLOUD, Some(cursor));
        let mut model = Model::new(self.budget);
        let sets = TYPES.iter().map(|(name, _)| format!("{ZONES}/{name}"));
        for resource_type in [ZONES.to_owned(), PUBLIC_ADDRESSES.to_owned()].into_iter().chain(sets) {
            self.list_type(&mut model, resource_type).await?;
        }
        // Also without any zone: those of an earlier list may be gone.
        let zones = model.zones().unwrap_or_default();
        self.publish(&model, zones);
        Ok((model, follower))
    }

    async fn list_type(&self, model: &mut Model, resource_type: String) -> Result<(), StoreError> {
        let query = Query::all(CLOUD).of_type(resource_type);
        let mut page = Page::first(PAGE);
        loop {
            let paged = self.store.query(&query, page).await?;
            for document in paged.items {
                self.record(model.upsert(document));
            }
            match paged.next {
                Some(next) => page = Page { size: PAGE, after: Some(next) },
                None => return Ok(()),
            }
        }
    }

    /// Takes over changes until the cursor expires.
    async fn changes(&self, model: &mut Model, follower: &mut Follower) -> StoreError {
        let mut attempts = BACKOFF.attempts();
        loop {
            match follower.next().await {
                Ok(page) => {
                    attempts.reset();
                    for change in page.changes {
                        self.record(model.apply(change));
                    }
                    if let Some(zones) = model.zones() {
                        self.publish(model, zones);
                    }
                }
                Err(error @ StoreError::CursorExpired) => return error,
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "change feed not read; retrying");
                    attempts.wait().await;
                }
            }
        }
    }

    fn publish(&self, model: &Model, zones: crate::Zones) {
        self.metrics.zones.set(gauge(zones.len()));
        self.metrics.record_sets.set(gauge(model.record_sets()));
        self.metrics.bytes.set(gauge(model.bytes()));
        self.zones.replace(zones.with(front_door::zone()));
    }

    fn record(&self, applied: Applied) {
        match applied {
            Applied::Yes | Applied::Ignored => {}
            Applied::Unreadable => {
                self.metrics.unreadable.inc();
                if let Some(suppressed) = self.limiter.permit() {
                    tracing::error!(suppressed, "DNS document unreadable; not served");
                }
            }
            Applied::OverBudget => {
                self.metrics.over_budget.inc();
                if let Some(suppressed) = self.limiter.permit() {
                    tracing::warn!(
                        suppressed,
                        budget = self.budget,
                        "memory budget of DNS zones used up; record set not served"
                    );
                }
            }
        }
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
