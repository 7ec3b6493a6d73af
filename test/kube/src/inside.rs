//! Our API server in the test's own process, with one cluster and nobody who acts on what is written to it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use aro_kube_apiserver::{Cluster, Kube, KubeConfig, KubePorts, NoImages};
use aro_runtime::{
    Listener, Metrics, Phase, Readiness, Role as _, Scope, Section as _, SystemClock, TaskKind,
};

/// What the cluster is called.
pub const CLUSTER: &str = "one";

/// Starts it in a scope, on a directory where it leaves its kubeconfig; returns when it answers.
pub async fn start(dir: &Path, scope: &Scope) -> Result<Arc<Cluster>> {
    let config = KubeConfig {
        clusters: vec![CLUSTER.to_owned()],
        workloads: false,
        nodes: 0,
        ..KubeConfig::default()
    };
    let started = tokio::sync::watch::Sender::new(None);
    let ports = KubePorts {
        listener: Listener::bind(([127, 0, 0, 1], 0).into(), "kube.listen").await?,
        dir: dir.to_owned(),
        flush: false,
        clock: SystemClock::shared(),
        metrics: Metrics::new(),
        readiness: Readiness::new(),
        images: Arc::new(NoImages),
        started: started.clone(),
    };
    let server = Kube::build(config.check()?, ports)?;
    let own = scope.child(Phase::Store, "kube");
    let inside = own.clone();
    own.spawn(TaskKind::Helper, "kube", async move { server.run(inside).await });
    let mut answers = started.subscribe();
    let clusters = answers.wait_for(Option::is_some).await?.clone().context("the clusters")?;
    clusters.get(CLUSTER).context("the cluster")
}
