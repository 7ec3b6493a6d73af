//! Clients of clusters, by name.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

use bytes::Bytes;
use http::{Request, Response};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use parking_lot::RwLock;
use tower::Service;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig cannot be used.
    #[error("read the kubeconfig {path}")]
    Kubeconfig {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// The client cannot be made.
    #[error("make a client of {cluster}")]
    Client {
        /// For which cluster.
        cluster: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// There is neither a service account nor a kubeconfig.
    #[error("no cluster configuration found: neither a pod's service account nor a kubeconfig")]
    Surroundings(#[source] Box<kube::config::InferConfigError>),
    /// No client is registered for that cluster.
    #[error("no cluster `{0}` is known here")]
    Unknown(String),
}

/// A client of a cluster inside this process.
pub fn of_service<S, B>(service: S) -> kube::Client
where
    S: Service<Request<Body>, Response = Response<B>> + Send + Clone + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    kube::Client::new(service, "default")
}

/// A client by a kubeconfig, in one of its contexts or its current one.
pub async fn of_kubeconfig(path: &Path, context: Option<&str>) -> Result<kube::Client, ClientError> {
    let unreadable = |source| ClientError::Kubeconfig { path: path.display().to_string(), source };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unreadable)?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(unreadable)?;
    of_config(config, context.unwrap_or("the current context"))
}

/// A client of the cluster that this process is in or that its user uses, and where that is: the service account of a
/// pod, or the usual kubeconfig.
pub async fn of_surroundings() -> Result<(kube::Client, String), ClientError> {
    let config = kube::Config::infer().await.map_err(|source| ClientError::Surroundings(Box::new(source)))?;
    let address = config.cluster_url.to_string();
    Ok((of_config(config, "the current context")?, address))
}

fn of_config(mut config: kube::Config, cluster: &str) -> Result<kube::Client, ClientError> {
    // The caller decides about a refusal, and sooner: the client would retry for minutes. An eviction that would
    // break a budget is one of those.
    config.default_retry = false;
    let failed = |source| ClientError::Client { cluster: cluster.to_owned(), source: Box::new(source) };
    kube::Client::try_from(config).map_err(failed)
}

/// The clusters a role may talk to.
#[derive(Default)]
pub struct KubeClients {
    clients: RwLock<HashMap<String, kube::Client>>,
}

impl std::fmt::Debug for KubeClients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.clients.read().keys()).finish()
    }
}

impl KubeClients {
    /// Makes a cluster known.
    pub fn add(&self, name: impl Into<String>, client: kube::Client) {
        self.clients.write().insert(name.into(), client);
    }

    /// Forgets a cluster; clients that were given out go on.
    pub fn remove(&self, name: &str) {
        self.clients.write().remove(name);
    }

    /// The client of a cluster.
    pub fn get(&self, name: &str) -> Result<kube::Client, ClientError> {
        self.clients.read().get(name).cloned().ok_or_else(|| ClientError::Unknown(name.to_owned()))
    }
}
