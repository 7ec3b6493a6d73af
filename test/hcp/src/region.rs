//! A region under test.

use std::path::PathBuf;

use anyhow::{Context, Result};
use aro_fixtures::{HyperShiftStandIn, TestClient, free_port};
use aro_harness::{Process, StoreChoice};
use kube::Client;
use tokio::task::JoinHandle;

use crate::customer::Customer;

/// What every region of these tests is started with: the whole chain, in one Azure region.
const CHAIN: [(&str, &str); 3] = [
    ("up.without", "[]"),
    ("frontend.clusters_service", CLUSTERS_SERVICE),
    // The region's own, which other tests of the harness replace.
    ("frontend.location", crate::customer::LOCATION),
];
const CLUSTERS_SERVICE: &str = "clusters-service.cluster-service.svc:8000";

/// A region with the whole chain.
pub struct HcpRegion {
    process: Process,
    stand_in: HyperShiftStandIn,
    task: JoinHandle<()>,
}

impl HcpRegion {
    /// Starts one on the embedded store.
    pub async fn start(settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_on(StoreChoice::Embedded, settings).await
    }

    /// Starts one on a store.
    pub async fn start_on(store: StoreChoice, settings: &[(&str, &str)]) -> Result<Self> {
        let settings: Vec<(&str, &str)> = CHAIN.iter().chain(settings).copied().collect();
        Self::of(Process::start_with(store, &settings).await?).await
    }

    /// The same on ports that stay the same, so that clients find it again after a restart.
    pub async fn start_fixed(settings: &[(&str, &str)]) -> Result<Self> {
        let (kube, azure) = (free_port()?, free_port()?);
        let (kube, azure) = (format!("127.0.0.1:{kube}"), format!("127.0.0.1:{azure}"));
        let fixed = [("kube.listen", kube.as_str()), ("azure_local.listen", azure.as_str())];
        let settings: Vec<(&str, &str)> = fixed.iter().chain(settings).copied().collect();
        Self::start(&settings).await
    }

    /// Starts the process again on its data, after a kill.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process.start_again().await
    }

    /// The same in the release build, for measuring.
    pub async fn start_release(settings: &[(&str, &str)]) -> Result<Self> {
        let settings: Vec<(&str, &str)> = CHAIN.iter().chain(settings).copied().collect();
        Self::of(Process::start_release("up", StoreChoice::Embedded, &settings).await?).await
    }

    #[allow(clippy::disallowed_methods, reason = "the region's own drop ends this task")]
    async fn of(process: Process) -> Result<Self> {
        let stand_in = HyperShiftStandIn::new(kube(&process, "mgmt-1").await?);
        let task = tokio::spawn(stand_in.clone().run());
        Ok(Self { process, stand_in, task })
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The process, to kill it.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The stand-in for `HyperShift`.
    pub fn hypershift(&self) -> &HyperShiftStandIn {
        &self.stand_in
    }

    /// A client of a cluster of the region, with all rights.
    pub async fn kube(&self, cluster: &str) -> Result<Client> {
        kube(&self.process, cluster).await
    }

    /// The ARM API of the frontend, without ARM before it.
    pub fn arm(&self) -> Result<TestClient> {
        self.process.arm()
    }

    /// A plain client of an endpoint.
    pub fn http(&self, endpoint: &str) -> Result<TestClient> {
        let addr = self.process.addr(endpoint).with_context(|| format!("{endpoint} listens"))?;
        Ok(TestClient::new(format!("http://{addr}")))
    }

    /// The customer of the region's cloud.
    pub async fn customer(&self) -> Result<Customer> {
        let azure_local = self.process.addr("azure-local").context("the local cloud listens")?;
        Customer::open(&self.process.data_dir().join("azure-local"), azure_local).await
    }
}

impl Drop for HcpRegion {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn kube(process: &Process, cluster: &str) -> Result<Client> {
    let path: PathBuf = process.data_dir().join("kube/kubeconfig.yaml");
    aro_kube::of_kubeconfig(&path, Some(cluster)).await.context("open the kubeconfig of the region")
}
