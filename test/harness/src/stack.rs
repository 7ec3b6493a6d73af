//! A stack in the test's own process.

use std::sync::Arc;

use anyhow::{Context, Result};
use aro_app::{App, AppConfig, Composition, DataDir, RunningApp, StartOptions};
use aro_base::{ManualClock, SharedClock};
use aro_fixtures::{CompletingBackend, TestClient};
use aro_runtime::SystemClock;
use aro_runtime::config::Sources;
use aro_store::SharedStore;
use tokio::task::JoinHandle;

use crate::process::{LISTENERS, PROVIDER_ALONE};

/// A running region.
pub struct Stack {
    app: Option<RunningApp>,
    clock: SharedClock,
    backend: Option<JoinHandle<Result<()>>>,
    client: TestClient,
}

impl Stack {
    /// Everything but what completes operations, on the embedded store.
    pub async fn start() -> Result<Self> {
        Self::with(&[], SystemClock::shared()).await
    }

    /// The same on a clock that the test moves.
    pub async fn on_clock(clock: Arc<ManualClock>) -> Result<Self> {
        Self::with(&[], clock).await
    }

    /// With settings of the test's own.
    pub async fn with(settings: &[(&str, &str)], clock: SharedClock) -> Result<Self> {
        let mut sources = Sources::default();
        for key in LISTENERS {
            sources = sources.set(key, "127.0.0.1:0");
        }
        for (key, value) in PROVIDER_ALONE.iter().chain(settings) {
            sources = sources.set(*key, *value);
        }
        Self::of(Composition::Region { debug_ports: true }, sources, clock).await
    }

    /// Embedded Kubernetes alone: API servers without controllers.
    pub async fn kube(settings: &[(&str, &str)]) -> Result<Self> {
        let mut sources = Sources::default().set("kube.workloads", "false").set("kube.nodes", "0");
        for key in LISTENERS {
            sources = sources.set(key, "127.0.0.1:0");
        }
        for (key, value) in settings {
            sources = sources.set(*key, *value);
        }
        Self::of(Composition::Kube, sources, SystemClock::shared()).await
    }

    async fn of(what: Composition, sources: Sources, clock: SharedClock) -> Result<Self> {
        let config = AppConfig::load(&sources)?;
        let options = StartOptions { what, data: DataDir::ephemeral()?, clock: clock.clone() };
        let app = App::start(config, options).await?;
        let url = app.addr("frontend").map(|addr| format!("http://{addr}")).unwrap_or_default();
        Ok(Self { app: Some(app), clock, backend: None, client: TestClient::new(url) })
    }

    /// A client of its ARM API.
    pub fn arm(&self) -> &TestClient {
        &self.client
    }

    /// Where the ARM API is.
    pub fn base_url(&self) -> String {
        self.app
            .as_ref()
            .and_then(|app| app.addr("frontend"))
            .map(|addr| format!("http://{addr}"))
            .unwrap_or_default()
    }

    pub fn app(&self) -> Result<&RunningApp> {
        self.app.as_ref().context("the stack runs")
    }

    pub fn store(&self) -> Result<SharedStore> {
        Ok(self.app()?.store())
    }

    /// A backend that completes operations on request.
    pub fn backend(&self) -> Result<CompletingBackend> {
        Ok(CompletingBackend::new(self.store()?, self.clock.clone()))
    }

    /// Lets such a backend run beside the stack.
    #[allow(clippy::disallowed_methods, reason = "the stack's own stop and drop end this task")]
    pub fn run_backend(&mut self) -> Result<()> {
        self.backend = Some(tokio::spawn(self.backend()?.run()));
        Ok(())
    }

    /// Stops it and fails if anything was late or broken.
    pub async fn stop(mut self) -> Result<()> {
        if let Some(backend) = self.backend.take() {
            backend.abort();
        }
        self.app.take().context("the stack runs")?.stop().await?;
        Ok(())
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if let Some(backend) = &self.backend {
            backend.abort();
        }
    }
}
