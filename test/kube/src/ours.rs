//! Our side: the real binary as a child.

use anyhow::{Context, Result};
use aro_harness::Process;

use crate::client::Client;

/// A region with embedded Kubernetes; one of its clusters is compared.
pub struct Ours {
    process: Process,
    pub client: Client,
}

const CLUSTER: &str = "svc";

impl Ours {
    pub async fn start() -> Result<Self> {
        // An API server and nothing else, as the real one is: nobody acts on what the scenarios write.
        let settings = [("kube.listen", "127.0.0.1:0"), ("kube.workloads", "false"), ("kube.nodes", "0")];
        let process = Process::start_role("kube", &settings).await?;
        let path = process.data_dir().join("kube").join("kubeconfig").join(format!("{CLUSTER}.yaml"));
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let client = Client::of_kubeconfig(&text)?;
        Ok(Self { process, client })
    }

    pub fn log(&self) -> String {
        self.process.log_text()
    }
}
