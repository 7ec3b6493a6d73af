//! What clients of a region's cloud need: how to reach it, whom to trust, which account to use.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use aro_azure_local::{AzureLocalConfig, CloudAuthority, CustomerAccount};
use aro_proxy::ProxyConfig;

use crate::{AppConfig, Endpoint};

/// The file with the address that the proxy really has.
const PROXY: &str = "proxy.addr";

/// The environment of a customer of the local cloud.
pub struct CloudEnvironment {
    proxy: SocketAddr,
    account: CustomerAccount,
    dir: PathBuf,
}

impl CloudEnvironment {
    /// Reads what a region wrote into its data directory.
    pub fn read(config: &AppConfig, data: &Path) -> io::Result<Self> {
        let cloud = config.loaded.section::<AzureLocalConfig>().map_err(io::Error::other)?;
        let dir = cloud.dir.clone().unwrap_or_else(|| data.join("azure-local"));
        let configured = config.loaded.section::<ProxyConfig>().map_err(io::Error::other)?.listen;
        let written = std::fs::read_to_string(dir.join(PROXY)).ok().and_then(|text| text.parse().ok());
        Ok(Self { proxy: written.unwrap_or(configured), account: CustomerAccount::read(&dir)?, dir })
    }

    /// Writes the proxy's address, for readers in other processes.
    pub(crate) fn write(dir: &Path, endpoints: &[Endpoint]) -> io::Result<()> {
        let Some(proxy) = endpoints.iter().find(|endpoint| endpoint.name == "proxy") else { return Ok(()) };
        aro_files::create_dir(dir)?;
        aro_files::replace(&dir.join(PROXY), proxy.addr.to_string().as_bytes())
    }

    /// The variables, in the order in which they are printed.
    pub fn variables(&self, data: &Path) -> Vec<(&'static str, String)> {
        let below = |path: &str| data.join(path).display().to_string();
        let of_cloud = |name: &str| self.dir.join(name).display().to_string();
        let ca = of_cloud(CloudAuthority::CERTIFICATE);
        vec![
            ("HTTPS_PROXY", format!("http://{}", self.proxy)),
            ("NO_PROXY", "localhost,127.0.0.1".to_owned()),
            ("REQUESTS_CA_BUNDLE", ca.clone()),
            ("SSL_CERT_FILE", ca),
            ("AZURE_CONFIG_DIR", of_cloud("azure-config")),
            ("AZURE_CORE_COLLECT_TELEMETRY", "false".to_owned()),
            ("AZURE_TENANT_ID", self.account.tenant_id.to_string()),
            ("AZURE_SUBSCRIPTION_ID", self.account.subscription_id.to_string()),
            ("AZURE_CLIENT_ID", self.account.client_id.to_string()),
            ("AZURE_CLIENT_SECRET", self.account.client_secret.clone()),
            ("AZURE_CLIENT_CERTIFICATE_PATH", of_cloud(CustomerAccount::CERTIFICATE)),
            ("KUBECONFIG", below("kube/kubeconfig.yaml")),
        ]
    }
}
