//! What clients of a region's cloud need: how to reach it, whom to trust, which account to use.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use aro_azure_local::{AzureLocalConfig, CustomerAccount};
use aro_proxy::ProxyConfig;

use crate::{AppConfig, Endpoint};

/// The file with the address that the proxy really has.
const PROXY: &str = "proxy.addr";

/// The environment of a customer of the local cloud.
pub struct CloudEnvironment {
    proxy: SocketAddr,
    account: CustomerAccount,
    ca: String,
}

impl CloudEnvironment {
    /// Reads what a region wrote into its data directory.
    pub fn read(config: &AppConfig, data: &Path) -> io::Result<Self> {
        let cloud = config.loaded.section::<AzureLocalConfig>().map_err(io::Error::other)?;
        let dir = cloud.dir.clone().unwrap_or_else(|| data.join("azure-local"));
        let configured = config.loaded.section::<ProxyConfig>().map_err(io::Error::other)?.listen;
        let written = std::fs::read_to_string(dir.join(PROXY)).ok().and_then(|text| text.parse().ok());
        Ok(Self {
            proxy: written.unwrap_or(configured),
            account: CustomerAccount::read(&dir)?,
            ca: dir.join("ca.pem").display().to_string(),
        })
    }

    /// Writes the proxy's address, for readers in other processes.
    pub(crate) fn write(data: &Path, endpoints: &[Endpoint]) -> io::Result<()> {
        let Some(proxy) = endpoints.iter().find(|endpoint| endpoint.name == "proxy") else { return Ok(()) };
        let dir = data.join("azure-local");
        aro_files::create_dir(&dir)?;
        aro_files::replace(&dir.join(PROXY), proxy.addr.to_string().as_bytes())
    }

    /// The variables, in the order in which they are printed.
    pub fn variables(&self, data: &Path) -> Vec<(&'static str, String)> {
        let below = |path: &str| data.join(path).display().to_string();
        vec![
            ("HTTPS_PROXY", format!("http://{}", self.proxy)),
            ("NO_PROXY", "localhost,127.0.0.1".to_owned()),
            ("REQUESTS_CA_BUNDLE", self.ca.clone()),
            ("SSL_CERT_FILE", self.ca.clone()),
            ("AZURE_CONFIG_DIR", below("azure-local/azure-config")),
            ("AZURE_CORE_COLLECT_TELEMETRY", "false".to_owned()),
            ("AZURE_TENANT_ID", self.account.tenant_id.to_string()),
            ("AZURE_SUBSCRIPTION_ID", self.account.subscription_id.to_string()),
            ("AZURE_CLIENT_ID", self.account.client_id.to_string()),
            ("AZURE_CLIENT_SECRET", self.account.client_secret.clone()),
            ("KUBECONFIG", below("kube/kubeconfig.yaml")),
        ]
    }
}
