//! Kubeconfigs: how clients reach a cluster, and as whom.

use std::net::SocketAddr;

use aro_base::Secret;
use aro_pki::Issued;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// One cluster in a kubeconfig.
pub struct Entry<'a> {
    pub cluster: &'a str,
    pub server: SocketAddr,
    /// What the client asks for in its handshake; it tells the cluster.
    pub server_name: &'a str,
    pub authority: &'a str,
    pub user: &'a Issued,
}

/// A kubeconfig of several clusters; the first one is current. It holds private keys.
pub fn render(entries: &[Entry<'_>]) -> Secret<String> {
    let encode = |text: &str| STANDARD.encode(text);
    let list = |make: &dyn Fn(&Entry<'_>) -> Value| Value::Array(entries.iter().map(make).collect());
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": list(&|entry| json!({"name": entry.cluster, "cluster": {
            "server": format!("https://{}", entry.server),
            "tls-server-name": entry.server_name,
            "certificate-authority-data": encode(entry.authority),
        }})),
        "users": list(&|entry| json!({"name": format!("{}-admin", entry.cluster), "user": {
            "client-certificate-data": encode(&entry.user.certificate),
            "client-key-data": encode(entry.user.key.expose()),
        }})),
        "contexts": list(&|entry| json!({"name": entry.cluster, "context": {
            "cluster": entry.cluster, "user": format!("{}-admin", entry.cluster),
        }})),
        "current-context": entries.first().map(|entry| entry.cluster).unwrap_or_default(),
    });
    // JSON is YAML; people read YAML.
    Secret::new(serde_saphyr::to_string(&config).unwrap_or_else(|_| config.to_string()))
}
