//! Clusters in which nothing happens have no controllers, and nobody notices.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_control::ReconcileMetrics;
use aro_fixtures::wait;
use aro_kube_apiserver::identity::user::User;
use aro_kube_apiserver::{ActivationOptions, ClusterService, Clusters, NoImages, Observer};
use aro_runtime::{Metrics, Scope, SystemClock};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Clusters whose controllers go at once when nothing happens.
struct House {
    clusters: Clusters,
    active: Box<dyn Fn() -> i64 + Send + Sync>,
    scope: Scope,
    _data: TempDir,
}

const CLUSTER: &str = "quiet";

impl House {
    async fn new() -> Result<Self> {
        let (data, scope) = (tempfile::tempdir()?, Scope::root("house"));
        let clusters = Clusters::open(data.path(), false, 1000, "kube.localhost", SystemClock::shared())?;
        clusters.start_internal_controllers(&ReconcileMetrics::default(), &scope);
        let activation = ActivationOptions {
            host_paths: Vec::new(),
            clock: SystemClock::shared(),
            metrics: ReconcileMetrics::default(),
            active: Observer::new(&Metrics::new()).active.clone(),
            images: Arc::new(NoImages),
            dir: data.path().to_owned(),
            node_grace: Duration::from_secs(40),
            idle_after: Duration::from_millis(200),
            nodes: BTreeMap::new(),
        };
        let active = activation.active.clone();
        clusters.activate_controllers(activation, &scope);
        clusters.create(CLUSTER).await?;
        Ok(Self { clusters, active: Box::new(move || active.get()), scope, _data: data })
    }

    fn client(&self) -> Result<Client> {
        let cluster = self.clusters.get(CLUSTER).context("the cluster")?;
        Ok(aro_kube::of_service(ClusterService::in_process(cluster, User::admin())))
    }

    async fn until_active(&self, wanted: i64) -> Result<()> {
        wait::until(&format!("{wanted} clusters to be active"), || async {
            Ok(((self.active)() == wanted).then_some(()))
        })
        .await
    }

    async fn stop(self) -> Result<()> {
        self.scope.close(Duration::from_secs(10)).await.ok().context("everything ended in time")
    }
}

fn deployment(name: &str) -> Result<Deployment> {
    Ok(serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}}))?)
}

/// Waits for pods with a label, and says of each what became of it.
async fn pods_become(client: &Client, label: &str, count: usize, status: Value) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let found = wait::until("pods", || async {
        let found = pods.list(&ListParams::default().labels(label)).await?.items;
        Ok((found.len() == count).then_some(found))
    })
    .await?;
    let patch = json!({"status": status});
    for pod in found {
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(&patch)).await?;
    }
    Ok(())
}

async fn comes_up(client: &Client, name: &str) -> Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &deployment(name)?).await?;
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    pods_become(client, &format!("app={name}"), 2, ready).await?;
    wait::until("it to be available", || async {
        let status = deployments.get(name).await?.status.unwrap_or_default();
        Ok((status.available_replicas == Some(2)).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_cluster_sleeps_and_what_is_made_in_it_comes_up() -> Result<()> {
    let house = House::new().await?;
    ensure!((house.active)() == 0, "an empty cluster has no controllers");
    let client = house.client()?;
    for name in ["first", "second", "third"] {
        comes_up(&client, name).await.context(name)?;
        house.until_active(0).await?;
    }
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.delete("first", &DeleteParams::default()).await?;
    let scaled = json!({"spec": {"replicas": 1}});
    deployments.patch("second", &PatchParams::default(), &Patch::Merge(&scaled)).await?;
    let pods: Api<Pod> = Api::default_namespaced(client);
    wait::until("two and one to go", || async {
        Ok((pods.list_metadata(&ListParams::default()).await?.items.len() == 3).then_some(()))
    })
    .await?;
    house.until_active(0).await?;
    house.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_in_a_sleeping_cluster_is_done_in_time() -> Result<()> {
    let house = House::new().await?;
    let client = house.client()?;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let job = json!({"metadata": {"name": "brief"}, "spec": {"ttlSecondsAfterFinished": 10,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}});
    jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    pods_become(&client, "job-name=brief", 1, json!({"phase": "Succeeded"})).await?;
    wait::until("it to be complete", || async {
        let status = jobs.get("brief").await?.status.unwrap_or_default();
        Ok(status.completion_time.map(|_| ()))
    })
    .await?;
    house.until_active(0).await?;
    ensure!(jobs.get_opt("brief").await?.is_some(), "it stays for ten seconds, and sleep comes earlier");
    wait::until("it to go", || async { Ok(jobs.get_opt("brief").await?.is_none().then_some(())) }).await?;
    house.until_active(0).await?;
    house.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_made_again_under_its_name_has_controllers_of_its_own() -> Result<()> {
    let house = House::new().await?;
    for _ in 0..3 {
        // Deleted while its controllers are at work.
        comes_up(&house.client()?, "web").await?;
        house.clusters.delete(CLUSTER).await?;
        house.clusters.create(CLUSTER).await?;
        let pods: Api<Pod> = Api::default_namespaced(house.client()?);
        ensure!(pods.list(&ListParams::default()).await?.items.is_empty(), "nothing is left of the first");
    }
    house.until_active(0).await?;
    house.stop().await
}
