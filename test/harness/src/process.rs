//! A stack as a child process of the real binary.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use anyhow::{Context, Result, bail};
use aro_fixtures::{TestClient, wait};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::binary::{Build, aro_binary};

/// Which store the child uses.
#[derive(Debug, Clone)]
pub enum StoreChoice {
    /// Embedded, in the child's data directory.
    Embedded,
    /// A PostgreSQL server that the caller runs.
    Postgres { url: String },
}

/// Everything that listens does so wherever there is room, unless a test says otherwise.
pub(crate) const LISTENERS: [&str; 13] = [
    "admin.listen",
    "azure_local.listen",
    "broker.listen",
    "clusters_service.debug_listen",
    "clusters_service.listen",
    "dns.listen",
    "frontdoor.listen",
    "frontend.listen",
    "kube.listen",
    "maestro.grpc_listen",
    "maestro.listen",
    "maestro.debug_listen",
    "proxy.listen",
];

/// A region without what completes operations, unless a test says otherwise: tests of the ARM surface complete them
/// themselves ([`aro_fixtures::CompletingBackend`]), for clusters whose networks and identities exist nowhere.
pub(crate) const PROVIDER_ALONE: [(&str, &str); 3] = [
    ("frontend.clusters_service", ""),
    (LOCATION, "uksouth"),
    ("up.without", "[\"backend\", \"clusters-service\"]"),
];

/// Left out where a test sets the location of the whole region: the command line would win over a pod's environment.
const LOCATION: &str = "frontend.location";

/// A child process, its directory, and how it was started, so that it can be started again.
pub struct Process {
    child: Option<Child>,
    dir: TempDir,
    store: StoreChoice,
    settings: Vec<String>,
    addresses: BTreeMap<String, SocketAddr>,
    starts: usize,
    build: Build,
    role: &'static str,
}

impl Process {
    /// Starts `aro up` and returns when it is ready.
    pub async fn start(store: StoreChoice) -> Result<Self> {
        Self::start_with(store, &[]).await
    }

    /// The same with settings of the test's own.
    pub async fn start_with(store: StoreChoice, settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_build(Build::Debug, "up", store, settings).await
    }

    /// One role alone: `aro kube`, say.
    pub async fn start_role(role: &'static str, settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_build(Build::Debug, role, StoreChoice::Embedded, settings).await
    }

    /// One role alone on a store that others may share.
    pub async fn start_role_on(
        role: &'static str,
        store: StoreChoice,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        Self::start_build(Build::Debug, role, store, settings).await
    }

    /// One role alone, in the release build, for measuring.
    pub async fn start_release(
        role: &'static str,
        store: StoreChoice,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        Self::start_build(Build::Release, role, store, settings).await
    }

    async fn start_build(
        build: Build,
        role: &'static str,
        store: StoreChoice,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let settings = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut process =
            Self { child: None, dir, store, settings, addresses: BTreeMap::new(), starts: 0, build, role };
        if let StoreChoice::Postgres { .. } = process.store {
            process.run_to_end("migrate")?;
        }
        process.start_again().await?;
        Ok(process)
    }

    /// Starts it on the data it had.
    pub async fn start_again(&mut self) -> Result<()> {
        self.starts += 1;
        let endpoints = self.dir.path().join(format!("endpoints-{}.json", self.starts));
        let mut command = self.command(self.role)?;
        if self.role == "up" {
            command.arg("--debug-ports");
        }
        command.arg("--endpoints-file").arg(&endpoints);
        self.child = Some(command.stderr(File::create(self.log())?).spawn().context("start the binary")?);
        self.addresses = wait::until("the region to be ready", || async {
            if let Ok(text) = std::fs::read_to_string(&endpoints) {
                return Ok(Some(serde_json::from_str(&text)?));
            }
            Ok(None)
        })
        .await
        .with_context(|| format!("its log:\n{}", self.log_text()))?;
        Ok(())
    }

    /// A client of its ARM API.
    pub fn arm(&self) -> Result<TestClient> {
        let addr = self.addresses.get("frontend").context("the frontend listens")?;
        Ok(TestClient::new(format!("http://{addr}")))
    }

    /// Where something listens.
    pub fn addr(&self, name: &str) -> Option<SocketAddr> {
        self.addresses.get(name).copied()
    }

    /// `kill -9`, for real.
    pub fn kill(&mut self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.wait().map(drop)
    }

    /// Asks it to stop and waits for it.
    pub fn interrupt(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGINT)?;
        self.wait()
    }

    pub fn pid(&self) -> Result<u32> {
        Ok(self.child.as_ref().context("the process runs")?.id())
    }

    /// Everything it logged since it was last started.
    pub fn log_text(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Runs the binary once more on the same data, to its end.
    pub fn second(&self, subcommand: &str) -> Result<Output> {
        Ok(self.command(subcommand)?.stdout(Stdio::piped()).stderr(Stdio::piped()).output()?)
    }

    fn log(&self) -> PathBuf {
        Path::new(self.dir.path()).join(format!("log-{}.txt", self.starts))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid()?)?;
        kill(Pid::from_raw(pid), signal).context("signal the process")
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let mut child = self.child.take().context("the process runs")?;
        Ok(child.wait()?)
    }

    fn run_to_end(&self, subcommand: &str) -> Result<()> {
        let output = self.second(subcommand)?;
        if !output.status.success() {
            bail!("aro {subcommand} failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    fn command(&self, subcommand: &str) -> Result<Command> {
        let mut command = Command::new(aro_binary(self.build)?);
        command.args(subcommand.split(' ')).arg("--data-dir").arg(self.data_dir());
        for listener in LISTENERS {
            command.args(["--set", &format!("{listener}=127.0.0.1:0")]);
        }
        let in_region = self.settings.iter().any(|setting| setting.starts_with("region.location="));
        for (key, value) in PROVIDER_ALONE.into_iter().filter(|(key, _)| !in_region || *key != LOCATION) {
            command.args(["--set", &format!("{key}={value}")]);
        }
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        if let StoreChoice::Postgres { url } = &self.store {
            command.args(["--set", "store.kind=postgres", "--set", &format!("store.url={url}")]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
