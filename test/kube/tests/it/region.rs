//! A whole region as people run and operate it: the real binary as a child process, asked by unmodified kubectl.
//!
//! Every test has a region of its own, because most of them break something in it.

mod forwarding;
mod logs;
mod metrics;
mod nodes;
mod rollouts;
mod scaling;
mod storm;
mod workloads;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::{Names, TestClient, cluster_body, wait};
use aro_harness::Process;
use tokio::process::Child;

use crate::support::{Kubectl, kubeconfig, kubectls, whole_region};

const GA: ApiVersion = ApiVersion::V2026_10_01;
const DEPLOYMENT: &str = "deploy/aro-hcp-frontend";
const OF_FRONTEND: &str = "-l app=aro-hcp-frontend";

/// A region with those who look at it.
struct Region {
    process: Process,
    /// The cluster the region's own services live in, by each kubectl there is.
    all: Vec<Kubectl>,
    /// The same by the newest one.
    svc: Kubectl,
    /// A management cluster, by the newest one.
    mgmt: Kubectl,
}

impl Region {
    /// `None`: there is no kubectl here, which was said aloud.
    async fn start() -> Result<Option<Self>> {
        // The region's location, not the front end's own setting: a test replaces that by a pod's environment.
        Self::start_with(&[("region.location", "uksouth"), ("region.short_name", "uks")]).await
    }

    async fn start_with(settings: &[(&str, &str)]) -> Result<Option<Self>> {
        let programs = kubectls();
        let Some(newest) = programs.last() else { return Ok(None) };
        let process = whole_region(settings).await?;
        let config = kubeconfig(&process);
        let new = |program: &PathBuf, context: &str| Kubectl::new(program, &config, context);
        let all = programs.iter().map(|program| new(program, "svc")).collect::<Result<_>>()?;
        Ok(Some(Self { all, svc: new(newest, "svc")?, mgmt: new(newest, "mgmt-1")?, process }))
    }

    /// Runs a test, and shows the region's log if it fails.
    async fn run(test: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some(mut region) = Self::start().await? else { return Ok(()) };
        if let Err(error) = test(&mut region).await {
            bail!("{error:#}\nthe region's log:\n{}", region.process.log_text());
        }
        Ok(())
    }

    /// The ARM API through the region's debug port.
    fn arm(&self) -> Result<TestClient> {
        self.process.arm()
    }

    /// The names of the front end's pods that are not on their way out, one after the other.
    async fn pods(&self) -> Result<Vec<String>> {
        let template = "{range .items[*]}{.metadata.deletionTimestamp}{\"/\"}{.metadata.name}{\"\\n\"}{end}";
        let said =
            self.svc.ok(&format!("-n aro-hcp get pods {OF_FRONTEND} -o 'jsonpath={template}'")).await?;
        Ok(said.lines().filter_map(|line| line.strip_prefix('/')).map(str::to_owned).collect())
    }

    /// The name of the only pod of the front end.
    async fn pod(&self) -> Result<String> {
        wait::until("exactly one pod of the front end", || async {
            let mut pods = self.pods().await?;
            Ok(if pods.len() == 1 { pods.pop() } else { None })
        })
        .await
    }
}

/// A subscription with one cluster, and what is needed to look at it again.
struct Customer {
    names: Names,
}

impl Customer {
    async fn new(arm: &TestClient) -> Result<Self> {
        let customer = Self { names: Names::default() };
        arm.register(&customer.names.subscription).await?;
        customer.put(arm, "c1").await?;
        Ok(customer)
    }

    fn path(&self, cluster: &str) -> String {
        format!("{}?api-version={GA}", self.names.cluster(cluster))
    }

    async fn put(&self, arm: &TestClient, cluster: &str) -> Result<()> {
        let body = cluster_body(&self.names, cluster, GA);
        arm.put(&self.path(cluster), &body).await?.expect(201).map(drop)
    }

    async fn get(&self, arm: &TestClient, cluster: &str) -> Result<()> {
        arm.get(&self.path(cluster)).await?.expect(200).map(drop)
    }
}

/// `kubectl port-forward` while it runs.
struct Forward {
    child: Child,
    address: SocketAddr,
    errors: PathBuf,
}

impl Forward {
    /// Forwards a free port of this machine to the front end's, by whichever name.
    async fn to(kubectl: &Kubectl, target: &str) -> Result<Self> {
        let name = target.replace('/', "-");
        let file = |kind: &str| kubectl.home.path().join(format!("{name}.{kind}"));
        let (said, errors) = (file("out"), file("err"));
        let mut command = kubectl.command(&format!("-n aro-hcp port-forward {target} :8443"));
        // Files: nobody has to keep reading while it talks about every connection.
        command.stdin(Stdio::null()).stdout(std::fs::File::create(&said)?);
        let mut child = command.stderr(std::fs::File::create(&errors)?).spawn()?;
        let port = wait::until("kubectl to forward", || {
            let text = std::fs::read_to_string(&said).unwrap_or_default();
            let ended = child.try_wait();
            let errors = errors.clone();
            async move {
                if let Some(status) = ended? {
                    bail!("kubectl ended with {status}: {}", std::fs::read_to_string(errors)?);
                }
                let line = text.lines().find_map(|line| line.strip_prefix("Forwarding from 127.0.0.1:"));
                let port = line.and_then(|line| line.split_once(" -> 8443"));
                Ok(port.map(|(port, _)| port.parse::<u16>()).transpose()?)
            }
        })
        .await?;
        Ok(Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)), errors })
    }

    fn arm(&self) -> TestClient {
        TestClient::new(format!("http://{}", self.address))
    }

    /// What it complained about so far.
    fn complaints(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }

    fn runs(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("look at kubectl")?.is_none())
    }
}
