//! Our side: the real binary as a child.

use anyhow::{Context, Result};
use aro_harness::Process;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::client::Client;
use crate::scenario::at;

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
        let config: Value = serde_saphyr::from_str(&text)?;
        let text = |path: &str| {
            at(&config, path).and_then(Value::as_str).with_context(|| format!("{path} in a kubeconfig"))
        };
        let decoded =
            |path: &str| -> Result<String> { Ok(String::from_utf8(STANDARD.decode(text(path)?)?)?) };
        let server = text("clusters[0].cluster.server")?.trim_start_matches("https://").parse()?;
        let client = Client::new(
            server,
            text("clusters[0].cluster.tls-server-name")?,
            &decoded("clusters[0].cluster.certificate-authority-data")?,
            &decoded("users[0].user.client-certificate-data")?,
            &decoded("users[0].user.client-key-data")?,
        )?;
        Ok(Self { process, client })
    }

    pub fn log(&self) -> String {
        self.process.log_text()
    }
}
