//! One registry of metrics per stack, and one below it for each part that comes and goes.

mod merge;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The media type of [`Metrics::encode`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A shared registry. Handed to roles in their ports; there is no global one, so two stacks never mix numbers.
///
/// Names: the encoder adds `_total` to counters, so register `frontend_http_requests` to expose
/// `frontend_http_requests_total`.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Default)]
struct Inner {
    registry: Mutex<Registry>,
    parts: Mutex<Vec<Part>>,
}

/// A registry below another one; its series carry these labels.
struct Part {
    labels: String,
    inner: Weak<Inner>,
}

impl Metrics {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers metrics. Done once at start; recording afterwards never takes this lock.
    pub fn register<R>(&self, with: impl FnOnce(&mut Registry) -> R) -> R {
        with(&mut self.0.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A registry for a part of the stack that comes and goes, such as a container: while anybody holds it, what is in it
    /// is shown here as well, with these labels.
    pub fn part(&self, labels: &[(&str, &str)]) -> Self {
        let part = Self::default();
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let mut parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|part| part.inner.strong_count() > 0);
        parts.push(Part { labels: labels.join(","), inner: Arc::downgrade(&part.0) });
        part
    }

    /// Everything, in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let own = self.own();
        let parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<(String, String)> = parts
            .iter()
            .filter_map(|part| Some((part.labels.clone(), Self(part.inner.upgrade()?).own())))
            .collect();
        if parts.is_empty() { own } else { merge::merge(&own, &parts) }
    }

    fn own(&self) -> String {
        let mut text = String::new();
        let registry = self.0.registry.lock().unwrap_or_else(PoisonError::into_inner);
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

    #[test]
    fn parts_are_shown_with_their_labels_until_they_are_gone() {
        let whole = Metrics::new();
        let (one, two) = (whole.part(&[("pod", "a")]), whole.part(&[("pod", "b")]));
        for part in [&one, &two] {
            let counter = Counter::<u64>::default();
            part.register(|r| r.register("requests", "Requests", counter.clone()));
            counter.inc();
        }
        let text = whole.encode();
        assert_eq!(text.matches("# TYPE requests counter").count(), 1, "{text}");
        assert!(text.contains("requests_total{pod=\"a\"} 1\nrequests_total{pod=\"b\"} 1\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        drop(two);
        assert!(!whole.encode().contains("pod=\"b\""));
    }
}
