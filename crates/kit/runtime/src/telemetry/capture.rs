//! Logs of one part of a process, kept apart: what a container logs is its pod's log.
//!
//! A scope may have a sink ([`crate::Scope::role_logging`]). Whatever its tasks and those of its children log is also
//! given to the sink, as lines of text. It goes by the task and not by spans: a request's span begins a trace of its own.

use std::fmt::Write as _;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Takes lines.
pub trait LogSink: Send + Sync + 'static {
    /// One line without its end. Called on the task that logs: must not block.
    fn line(&self, text: &str);
}

tokio::task_local! {
    static SINK: Arc<dyn LogSink>;
}

/// What the future logs goes to the sink as well.
pub async fn logging_to<F: Future>(sink: Arc<dyn LogSink>, future: F) -> F::Output {
    SINK.scope(sink, future).await
}

/// Hands lines to sinks.
pub(super) struct Capture;

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        // Most tasks have none.
        let _ = SINK.try_with(|sink| {
            let metadata = event.metadata();
            let mut line = Line(format!("{:>5} {}:", metadata.level(), metadata.target()));
            event.record(&mut line);
            // One event is one line, whatever it says.
            sink.line(&line.0.replace('\n', "\\n"));
        });
    }
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
    use std::time::Duration;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::{Fault, Phase, Scope, TaskKind};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl LogSink for Lines {
        fn line(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    #[tokio::test]
    async fn what_a_scopes_tasks_log_reaches_its_sink_and_no_other() {
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(Capture));
        let root = Scope::root("test");
        let (one, two) = (Arc::new(Lines::default()), Arc::new(Lines::default()));
        let (first, second) = (root.role_logging("one", one.clone()), root.role_logging("two", two.clone()));
        tracing::info!("outside");
        let inner = first.child(Phase::Requests, "inner");
        inner.spawn(TaskKind::Job, "job", async {
            let _trace = tracing::info_span!(parent: None, "request").entered();
            tracing::info!(port = 8443, name = "x\ny", "ready");
            Ok::<_, Fault>(())
        });
        second.spawn(TaskKind::Job, "job", async {
            tracing::warn!("two\nlines");
            Ok::<_, Fault>(())
        });
        root.close(Duration::from_secs(5)).await.unwrap();
        let target = module_path!();
        assert_eq!(*one.0.lock().unwrap(), [format!(" INFO {target}: ready port=8443 name=\"x\\ny\"")]);
        assert_eq!(*two.0.lock().unwrap(), [format!(" WARN {target}: two\\nlines")]);
    }
}
