//! Workload controllers, each scenario on our API server and on a real one.

mod budgets;
mod deployments;
mod jobs;
mod kubelet;
mod nodes;
mod services;
mod sleep;
mod stateful_sets;
mod world;

use anyhow::Result;
use aro_fixtures::wait;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use kubelet::KubeletOptions;
use world::{World, on_ours, on_real};

/// The harness itself: a pod without any controller runs, ends and goes.
async fn pods_run_and_go(world: &World) -> Result<()> {
    let kubelet = world.kubelet(KubeletOptions::with_nodes(&["first", "second"])).await?;
    let pods = world.api::<Pod>(&world.namespace("bare").await?);
    for (name, restart) in [("serves", "Always"), ("ends", "Never")] {
        let pod = json!({"metadata": {"name": name}, "spec": {"restartPolicy": restart, "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "c", "image": "x"}]}});
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    }
    for (name, phase) in [("serves", "Running"), ("ends", "Succeeded")] {
        wait::until(phase, || async {
            let pod = pods.get(name).await?;
            Ok((pod.status.and_then(|status| status.phase).as_deref() == Some(phase)).then_some(()))
        })
        .await?;
        pods.delete(name, &DeleteParams::default()).await?;
        wait::until("it to go", || async { Ok(pods.get_opt(name).await?.is_none().then_some(())) }).await?;
    }
    kubelet.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_run_on_ours() -> Result<()> {
    on_ours(pods_run_and_go).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_run_on_a_real_api_server() -> Result<()> {
    on_real(pods_run_and_go).await
}
