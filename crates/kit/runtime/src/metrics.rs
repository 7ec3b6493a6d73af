//! One registry of metrics per stack.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The media type of [`Metrics::encode`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A shared registry. Handed to roles in their ports; there is no global one, so two stacks never mix numbers.
///
/// Names: the encoder adds `_total` to counters, so register `frontend_http_requests` to expose
/// `frontend_http_requests_total`.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Registry>>);

impl Metrics {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers metrics. Done once at start; recording afterwards never takes this lock.
    pub fn register<R>(&self, with: impl FnOnce(&mut Registry) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything, in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        let registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a String cannot fail; a metric that refuses to be encoded leaves the text cut short.
        if encode(&mut text, &registry).is_err() {
            tracing::error!("a metric could not be encoded; the scrape is cut short");
        }
        text
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::counter::Counter;

    #[test]
    fn two_registries_do_not_share_numbers() {
        let (one, two) = (Metrics::new(), Metrics::new());
        let counter = Counter::<u64>::default();
        one.register(|r| r.register("frontend_http_requests", "Requests", counter.clone()));
        counter.inc();
        assert!(one.encode().contains("frontend_http_requests_total 1"), "{}", one.encode());
        assert!(!two.encode().contains("frontend_http_requests"));
    }
}
