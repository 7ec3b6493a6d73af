//! What every role runs on: a scope that owns its tasks, configuration, listeners, readiness, metrics, logs.
//!
//! What it is not: a framework. It knows no protocol and no domain; HTTP is `aro-web`, wiring is `aro-app`.
//!
//! The flow of one process: the binary takes one [`Environment`] snapshot, merges a [`config::Schema`] into
//! checked [`Section`]s, installs [`telemetry`], binds every [`Listener`], and builds each [`Role`] from its
//! checked section and its ports. Every role runs in a [`Scope`] of its own; on a signal the root scope is closed
//! phase by phase ([`Phase`]), and tasks that are late are reported by name.
//!
//! Invariants:
//! * Nothing here is process-global except what the operating system makes so (signals, the log subscriber), and
//!   both are installed by the binary only. Two stacks can live in one process.
//! * `tokio::spawn`, the wall clock and the environment are touched in this crate and nowhere else.
#![warn(missing_docs)]

mod clock;
pub mod config;
mod environment;
mod fault;
mod listener;
mod log_limiter;
mod metrics;
mod readiness;
mod role;
mod scope;
mod signals;
pub mod telemetry;
pub mod trace_context;

pub use clock::{SystemClock, reached};
pub use config::{ByteSize, Checked, ConfigProblems, Described, Key, Period, Problems, Profile, Section};
pub use environment::Environment;
pub use fault::Fault;
pub use listener::{BindError, Listener};
pub use log_limiter::LogLimiter;
pub use metrics::{METRICS_CONTENT_TYPE, Metrics};
pub use readiness::{Component, Readiness};
pub use role::{BuildError, Role, RunError, launch};
pub use scope::{Failure, Laggards, OnCancel, OnError, Phase, Scope, TaskKind};
pub use signals::Signals;
