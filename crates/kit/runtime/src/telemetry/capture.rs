//! Logs of one part of a process, kept apart: what a container logs is its pod's log.
//!
//! A [`mark`] is a span that carries a sink. Whatever is logged inside it, however deep, is also given to the sink as
//! lines of text. The subscriber is process-wide, so the list of sinks is, too; entries go when their sink does.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, Weak};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Metadata, Span, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Takes lines.
pub trait LogSink: Send + Sync + 'static {
    /// One line without its end. Called on the task that logs: must not block.
    fn line(&self, text: &str);
}

type Sinks = RwLock<HashMap<u64, Weak<dyn LogSink>>>;
static SINKS: LazyLock<Sinks> = LazyLock::new(RwLock::default);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The target of marks; nobody else uses it.
const TARGET: &str = "aro_runtime::capture";

/// A span whose logs go to the sink as well, for as long as the sink lives.
pub fn mark(sink: &Arc<dyn LogSink>) -> Span {
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut sinks = SINKS.write().unwrap_or_else(PoisonError::into_inner);
    sinks.retain(|_, sink| sink.strong_count() > 0);
    sinks.insert(id, Arc::downgrade(sink));
    drop(sinks);
    tracing::error_span!(target: TARGET, parent: None, "captured", sink = id)
}

pub(super) fn is_mark(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET
}

/// Hands lines to sinks.
pub(super) struct Capture;

/// What a marked span carries.
struct Sink(Weak<dyn LogSink>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Capture {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if !is_mark(attributes.metadata()) {
            return;
        }
        let mut found = SinkId(0);
        attributes.record(&mut found);
        let sinks = SINKS.read().unwrap_or_else(PoisonError::into_inner);
        if let (Some(sink), Some(span)) = (sinks.get(&found.0), context.span(id)) {
            span.extensions_mut().insert(Sink(sink.clone()));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(scope) = context.event_scope(event) else { return };
        let mut spans = scope.into_iter();
        let sink = spans.find_map(|span| span.extensions().get::<Sink>().map(|sink| sink.0.clone()));
        let Some(sink) = sink.and_then(|sink| sink.upgrade()) else { return };
        let metadata = event.metadata();
        let mut line = Line(format!("{:>5} {}:", metadata.level(), metadata.target()));
        event.record(&mut line);
        // One event is one line, whatever it says.
        sink.line(&line.0.replace('\n', "\\n"));
    }
}

struct SinkId(u64);

impl Visit for SinkId {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "sink" {
            self.0 = value;
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}

struct Line(String);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tracing::Instrument as _;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl LogSink for Lines {
        fn line(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    #[tokio::test]
    async fn what_is_logged_inside_a_mark_reaches_its_sink_and_no_other() {
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(Capture));
        let (one, two) = (Arc::new(Lines::default()), Arc::new(Lines::default()));
        let mark_of = |lines: &Arc<Lines>| {
            let sink: Arc<dyn LogSink> = lines.clone();
            mark(&sink)
        };
        let (first, second) = (mark_of(&one), mark_of(&two));
        tracing::info!("outside");
        async {
            tracing::info!(port = 8443, name = "x\ny", "ready");
            async { tracing::warn!("deeper\nline") }.instrument(tracing::info_span!("inner")).await;
        }
        .instrument(first)
        .await;
        second.in_scope(|| tracing::info!("other"));
        let target = module_path!();
        assert_eq!(
            *one.0.lock().unwrap(),
            [
                format!(" INFO {target}: ready port=8443 name=\"x\\ny\""),
                format!(" WARN {target}: deeper\\nline"),
            ]
        );
        assert_eq!(*two.0.lock().unwrap(), [format!(" INFO {target}: other")]);
    }
}
