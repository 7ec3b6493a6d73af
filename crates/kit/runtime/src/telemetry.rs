//! Logs and traces of a process.
//!
//! The subscriber is process-wide by nature of the tracing library, so only the binary calls [`install`]; a stack in
//! a test logs to whatever the test installed, or nowhere. Logs go to stderr: stdout belongs to the command's answer.
//!
//! Traces leave by OTLP when `telemetry.otlp_endpoint` is set. Only our own spans are exported: the exporter's HTTP
//! client traces itself, too, and would feed on its own output.

pub mod capture;
mod writer;

use std::io::IsTerminal as _;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{self, FilterExt as _};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{Checked, Period, Problems, Profile, Section};
use writer::LogWriter;

/// What log lines look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people on a terminal, JSON elsewhere.
    Auto,
    /// One readable line.
    Human,
    /// One JSON object per line.
    Json,
}

crate::section! {
    /// Logs (to stderr) and traces.
    pub struct TelemetryConfig in "telemetry" {
        /// What is logged: a level, or a list such as `info,aro_frontend=debug`.
        pub log: String = "info".to_owned(),
        /// How it is logged: `human`, `json`, or `auto` (human on a terminal, JSON elsewhere).
        pub log_format: LogFormat = LogFormat::Auto,
        /// Where traces are sent by OTLP over gRPC, for example `http://127.0.0.1:4317`. Not set: nowhere.
        pub otlp_endpoint: Option<String> = None,
        /// How long one export may take, and the last one when the process stops.
        pub otlp_timeout: Period = Period::secs(5),
        /// Which share of traces that begin here is exported, from 0 to 1. Callers' decisions are followed.
        pub sample_ratio: f64 = 1.0,
    }
}

impl Section for TelemetryConfig {
    fn profile(profile: Profile) -> toml::Table {
        match profile {
            Profile::Dev => toml::Table::new(),
            Profile::Prod => toml::Table::from_iter([("log_format".to_owned(), "json".into())]),
        }
    }

    fn examine(&self, problems: &mut Problems) {
        if let Err(error) = EnvFilter::builder().parse(&self.log) {
            problems.add("log", format!("is not a log filter: {error}"));
        }
        if let Some(endpoint) = &self.otlp_endpoint
            && !endpoint.starts_with("http://")
        {
            problems.add(
                "otlp_endpoint",
                "must start with `http://`; for TLS send to a collector on this machine",
            );
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            problems.add("sample_ratio", "must be between 0 and 1");
        }
    }
}

/// Why logs or traces could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not one. `check` finds it earlier.
    #[error("read the log filter")]
    Filter(#[source] filter::ParseError),
    /// The exporter could not be made.
    #[error("set up the export of traces to {endpoint}")]
    Exporter {
        /// Where to.
        endpoint: String,
        /// Why.
        #[source]
        source: opentelemetry_otlp::ExporterBuildError,
    },
    /// The thread that writes logs could not be started.
    #[error("start the log thread")]
    Thread(#[source] std::io::Error),
    /// Something else already installed a subscriber.
    #[error("install the log subscriber")]
    Install(#[source] tracing_subscriber::util::TryInitError),
}

/// What has to be flushed when the process stops.
#[derive(Debug)]
#[must_use = "call `shutdown` at the end, or the last spans are lost"]
pub struct Telemetry {
    logs: LogWriter,
    provider: Option<SdkTracerProvider>,
    timeout: Duration,
}

/// How long the end of a process waits for the reader of its logs.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Sets up logs and traces for this process. Needs a running tokio runtime when traces are exported.
pub fn install(
    config: &Checked<TelemetryConfig>,
    service: &'static str,
) -> Result<Telemetry, TelemetryError> {
    let provider =
        config.otlp_endpoint.as_deref().map(|endpoint| provider(config, endpoint, service)).transpose()?;
    let traces = provider.as_ref().map(|provider| {
        let ours = filter::filter_fn(|metadata| metadata.target().starts_with("aro"));
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("aro"))
            .with_filter(ours.and(LevelFilter::INFO))
    });
    let writer = LogWriter::start(std::io::stderr()).map_err(TelemetryError::Thread)?;
    let filter = EnvFilter::builder().parse(&config.log).map_err(TelemetryError::Filter)?;
    let captured = EnvFilter::builder().parse(&config.log).map_err(TelemetryError::Filter)?;
    tracing_subscriber::registry()
        .with(capture::Capture.with_filter(captured))
        .with(format(config.log_format, writer.clone()).with_filter(filter))
        .with(traces)
        .try_init()
        .map_err(TelemetryError::Install)?;
    Ok(Telemetry { logs: writer, provider, timeout: config.otlp_timeout.get() })
}

fn format<S>(format: LogFormat, writer: LogWriter) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let terminal = std::io::stderr().is_terminal();
    let base = fmt::layer().with_writer(writer).with_ansi(terminal);
    match format {
        LogFormat::Human => base.boxed(),
        LogFormat::Auto if terminal => base.boxed(),
        LogFormat::Json | LogFormat::Auto => base.json().flatten_event(true).with_span_list(false).boxed(),
    }
}

fn provider(
    config: &TelemetryConfig,
    endpoint: &str,
    service: &'static str,
) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(config.otlp_timeout.get())
        .build()
        .map_err(|source| TelemetryError::Exporter { endpoint: endpoint.to_owned(), source })?;
    let ratio = Sampler::TraceIdRatioBased(config.sample_ratio);
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(ratio)))
        .with_resource(Resource::builder().with_service_name(service).build())
        .build())
}

impl Telemetry {
    /// Sends and writes what is still waiting, within bounds.
    pub async fn shutdown(self) {
        let Self { logs, provider, timeout } = self;
        // The exporter needs the runtime to make progress, so we must not block it.
        let flushed = tokio::task::spawn_blocking(move || {
            if let Some(Err(error)) = provider.map(|provider| provider.shutdown_with_timeout(timeout)) {
                tracing::warn!(%error, "the last traces could not be sent");
            }
            logs.flush(LAST_LINES);
        });
        // The closure does not panic, and the runtime is still here.
        let _ = flushed.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(config: TelemetryConfig) -> Vec<String> {
        config.check().err().map(|all| all.iter().map(|one| one.key.clone()).collect()).unwrap_or_default()
    }

    #[test]
    fn nonsense_is_found_before_anything_starts() {
        assert!(problems(TelemetryConfig::default()).is_empty());
        let bad = TelemetryConfig {
            log: "info,aro_frontend=lots".to_owned(),
            otlp_endpoint: Some("localhost:4317".to_owned()),
            sample_ratio: 1.5,
            ..TelemetryConfig::default()
        };
        assert_eq!(problems(bad), ["telemetry.log", "telemetry.otlp_endpoint", "telemetry.sample_ratio"]);
    }
}
