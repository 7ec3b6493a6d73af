//! Running a stack as a process: logs, signals, exit code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use aro_app::{App, AppConfig, Composition, DataDir, RunningApp, StartOptions};
use aro_base::chain;
use aro_runtime::config::Sources;
use aro_runtime::{Environment, Signals, SystemClock, telemetry};

use crate::output::complain;

/// What the process does besides running.
pub struct Job {
    pub sources: Sources,
    pub ephemeral: bool,
    pub what: Composition,
    pub endpoints_file: Option<PathBuf>,
    /// Called once everything is ready.
    pub announce: fn(&RunningApp),
}

/// Runs until a signal or a failure.
pub async fn run(job: Job) -> anyhow::Result<ExitCode> {
    let config = AppConfig::load(&job.sources)?;
    let telemetry = telemetry::install(&config.telemetry, "aro")?;
    let ended = run_stack(config, &job).await;
    telemetry.shutdown().await;
    ended
}

async fn run_stack(config: AppConfig, job: &Job) -> anyhow::Result<ExitCode> {
    // Before anything is started: a signal during the start is a stop, too.
    let mut signals = Signals::install().context("listen for signals")?;
    let data = data_dir(&config, job.ephemeral, &job.sources.environment)?;
    let options = StartOptions { what: job.what.clone(), data, clock: SystemClock::shared() };
    let app = tokio::select! {
        started = App::start(config, options) => started?,
        signal = signals.next() => {
            tracing::info!(signal, "stopped before everything was ready");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let ended = until_the_end(&app, job, &mut signals).await;
    let stopped = tokio::select! {
        stopped = app.stop() => stopped,
        signal = signals.next() => exit_at_once(signal),
    };
    ended?;
    stopped?;
    Ok(ExitCode::SUCCESS)
}

/// Reports readiness, then waits for a signal or a failure.
async fn until_the_end(app: &RunningApp, job: &Job, signals: &mut Signals) -> anyhow::Result<()> {
    if let Some(path) = &job.endpoints_file {
        write_endpoints(path, app)?;
    }
    (job.announce)(app);
    tokio::select! {
        failure = app.failed() => Err(anyhow!("{}", chain(&*failure))),
        signal = signals.next() => {
            tracing::info!(signal, "stopping");
            Ok(())
        }
    }
}

fn write_endpoints(path: &Path, app: &RunningApp) -> anyhow::Result<()> {
    aro_app::write_endpoints_file(path, app.endpoints())
        .with_context(|| format!("write the endpoints to `{}`", path.display()))
}

/// Where data lives: what was asked for, else the user's data home.
pub fn data_dir(config: &AppConfig, ephemeral: bool, environment: &Environment) -> anyhow::Result<DataDir> {
    if ephemeral {
        return DataDir::ephemeral().context("make a temporary data directory");
    }
    let dir = config.process.data_dir.clone().or_else(|| environment.data_home());
    dir.map(DataDir::kept)
        .context("there is no home directory to keep data in; give --data-dir or --ephemeral")
}

/// The second signal: exit without waiting.
#[expect(clippy::disallowed_methods, reason = "this is bin/")]
fn exit_at_once(signal: &str) -> ! {
    complain(&format!("{signal} again: exiting at once"));
    std::process::exit(130)
}
