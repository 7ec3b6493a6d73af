//! Workloads on embedded Kubernetes: pods from Deployment to Ready, nodes, memory, and the start of a region.
//!
//! The pods are simulated: what is measured is everything from the API to the kubelet's last word, and no program of
//! the pods.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_harness::{Process, StoreChoice};
use clap::Args;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

use crate::report::{self, Row, resident_mib};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Pods brought to Ready.
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Deployments they are spread over.
    #[arg(long, default_value_t = 20)]
    deployments: usize,
    /// Nodes in the measurement with many.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// Starts of a region.
    #[arg(long, default_value_t = 5)]
    starts: usize,
    /// Only these, comma-separated: pods, many, region.
    #[arg(long)]
    only: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { pods: 10_000, deployments: 20, nodes: 1000, starts: 5, only: None }
    }
}

pub async fn run(options: Options) -> Result<()> {
    let wanted =
        |what: &str| options.only.as_deref().is_none_or(|only| only.split(',').any(|name| name == what));
    let mut rows = Vec::new();
    if wanted("pods") {
        rows.extend(pods(&options, 10).await?);
    }
    if wanted("many") {
        rows.extend(pods(&options, options.nodes).await?);
    }
    if wanted("region") {
        rows.extend(region(&options).await?);
    }
    report::print("Workloads on embedded Kubernetes, durable writes; pods are simulated", &rows);
    Ok(())
}

const PATIENCE: Duration = Duration::from_mins(5);
const LOOK: Duration = Duration::from_millis(50);

async fn pods(options: &Options, nodes: usize) -> Result<Vec<Row>> {
    let who = format!("aro, {nodes} nodes");
    let count = nodes.to_string();
    let settings =
        [("kube.clusters", "[\"one\"]"), ("kube.nodes", count.as_str()), ("telemetry.log", "warn")];
    let begin = Instant::now();
    let process = Process::start_release("kube", StoreChoice::Embedded, &settings).await?;
    let pid = process.pid()?;
    let measured = async {
        let client = client(&process).await?;
        let registered = until(|| async { Ok(ready_nodes(&client).await? == nodes) }).await;
        registered.context("the nodes to be ready")?;
        let mut rows = Vec::new();
        let mut record = |what: String, count: usize, took: Duration| -> Result<f64> {
            let memory = resident_mib(pid)?;
            eprintln!("{who}: {what}: {:.0}/s, {memory:.0} MiB", count as f64 / took.as_secs_f64());
            rows.push(Row::single(&who, &what, count, took, memory));
            Ok(memory)
        };
        let empty =
            record("nodes registered, from the start of the process".to_owned(), nodes, begin.elapsed())?;
        let begin = Instant::now();
        make(&client, options).await?;
        until(|| async { Ok(ready_pods(&client).await? == options.pods) })
            .await
            .context("the pods to be ready")?;
        let full = record("pods, from Deployment to Ready".to_owned(), options.pods, begin.elapsed())?;
        eprintln!("{who}: {:.1} KiB per pod", (full - empty) * 1024.0 / options.pods as f64);
        let begin = Instant::now();
        restart(&client).await?;
        until(|| rolled_out(&client, options.pods)).await.context("the pods to be replaced")?;
        record("pods replaced by a rolling update".to_owned(), options.pods, begin.elapsed())?;
        let begin = Instant::now();
        scale_down(&client).await?;
        let gone = until(|| async {
            let pods: Api<Pod> = Api::all(client.clone());
            Ok(pods.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty())
        });
        gone.await.context("the pods to go")?;
        record("pods gone after scaling to 0".to_owned(), options.pods, begin.elapsed())?;
        Ok(rows)
    };
    let rows: Result<Vec<Row>> = measured.await;
    rows.with_context(|| format!("the server's log:\n{}", process.log_text()))
}

async fn client(process: &Process) -> Result<Client> {
    Ok(aro_kube::of_kubeconfig(&process.data_dir().join("kube/kubeconfig.yaml"), None).await?)
}

async fn until<F: Future<Output = Result<bool>>>(mut holds: impl FnMut() -> F) -> Result<()> {
    let begin = Instant::now();
    while !holds().await? {
        ensure!(begin.elapsed() < PATIENCE, "not after {PATIENCE:?}");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

async fn ready_nodes(client: &Client) -> Result<usize> {
    let nodes: Api<Node> = Api::all(client.clone());
    let ready = |node: &Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        { conditions }.any(|one| one.type_ == "Ready" && one.status == "True")
    };
    Ok(nodes.list(&ListParams::default()).await?.iter().filter(|node| ready(node)).count())
}

/// As the Deployments tell it: asking for ten thousand pods again and again would be the larger load.
async fn ready_pods(client: &Client) -> Result<usize> {
    let status = |deployment: &Deployment| deployment.status.clone().and_then(|status| status.ready_replicas);
    let ready = deployments(client).await?.iter().filter_map(status).sum::<i32>();
    Ok(usize::try_from(ready)?)
}

async fn rolled_out(client: &Client, pods: usize) -> Result<bool> {
    let mut ready = 0;
    for deployment in deployments(client).await? {
        let status = deployment.status.unwrap_or_default();
        if status.observed_generation != deployment.metadata.generation
            || status.updated_replicas != status.replicas
        {
            return Ok(false);
        }
        ready += status.ready_replicas.unwrap_or_default();
    }
    Ok(usize::try_from(ready)? == pods)
}

async fn deployments(client: &Client) -> Result<Vec<Deployment>> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), "default");
    Ok(api.list(&ListParams::default()).await?.items)
}

async fn make(client: &Client, options: &Options) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), "default");
    for number in 0..options.deployments {
        // The first ones take what does not divide.
        let replicas =
            options.pods / options.deployments + usize::from(number < options.pods % options.deployments);
        let name = format!("load-{number}");
        let deployment = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}}}]},
            }},
        }))?;
        api.create(&PostParams::default(), &deployment).await?;
    }
    Ok(())
}

async fn restart(client: &Client) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), "default");
    for deployment in deployments(client).await? {
        api.restart(&deployment.metadata.name.unwrap_or_default()).await?;
    }
    Ok(())
}

async fn scale_down(client: &Client) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), "default");
    for deployment in deployments(client).await? {
        let patch = kube::api::Patch::Merge(json!({"spec": {"replicas": 0}}));
        api.patch(&deployment.metadata.name.unwrap_or_default(), &kube::api::PatchParams::default(), &patch)
            .await?;
    }
    Ok(())
}

/// From starting the process to all roles being ready and answering, each time with nothing on disk.
async fn region(options: &Options) -> Result<Vec<Row>> {
    let mut took = Vec::new();
    let mut memory: f64 = 0.0;
    for _ in 0..options.starts {
        let begin = Instant::now();
        let mut process =
            Process::start_release("up", StoreChoice::Embedded, &[("telemetry.log", "warn")]).await?;
        took.push(begin.elapsed());
        memory = memory.max(resident_mib(process.pid()?)?);
        process.interrupt()?;
    }
    took.sort_unstable();
    eprintln!("region: {took:?}, {memory:.0} MiB");
    let longest = took.last().copied().context("at least one start")?;
    Ok(vec![Row::single("aro up", "cold to all roles ready, the longest of some starts", 1, longest, memory)])
}
