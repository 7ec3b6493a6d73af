//! Disruption budgets, evictions, drains, and pods of nodes that are gone.

use anyhow::{Context, Result, bail, ensure};
use aro_fixtures::wait;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::kubelet::KubeletOptions;
use super::world::{World, on_ours, on_real};

struct Desk {
    pods: Api<Pod>,
    budgets: Api<PodDisruptionBudget>,
    namespace: String,
}

impl Desk {
    async fn new(world: &World) -> Result<Self> {
        let namespace = world.namespace("budgets").await?;
        Ok(Self { pods: world.api(&namespace), budgets: world.api(&namespace), namespace })
    }

    async fn pod(&self, name: &str, behaviour: &str) -> Result<()> {
        let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}, "annotations": {"test/behaviour": behaviour}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "x"}]}});
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        Ok(())
    }

    async fn budget(&self, mut spec: Value) -> Result<()> {
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
        let budget = json!({"metadata": {"name": "web"}, "spec": spec});
        self.budgets.create(&PostParams::default(), &serde_json::from_value(budget)?).await?;
        Ok(())
    }

    async fn until(
        &self,
        what: &str,
        reached: impl Fn(&PodDisruptionBudgetStatus) -> bool,
    ) -> Result<PodDisruptionBudgetStatus> {
        let waited = wait::until(what, || async {
            let budget = self.budgets.get("web").await?;
            let status = budget.status.unwrap_or_default();
            let current = status.observed_generation == budget.metadata.generation;
            Ok((current && reached(&status)).then_some(status))
        });
        match waited.await {
            Ok(status) => Ok(status),
            Err(error) => Err(error.context(format!("{:#?}", self.budgets.get("web").await?.status))),
        }
    }

    /// Leaves nothing that would stop others.
    async fn clear(&self) -> Result<()> {
        self.budgets.delete("web", &DeleteParams::default()).await?;
        self.pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        Ok(())
    }

    /// The code an eviction is answered with, and why it was refused.
    async fn evict(&self, name: &str) -> Result<(u16, String)> {
        let evicted =
            tokio::time::timeout(wait::DEADLINE, self.pods.evict(name, &EvictParams::default())).await;
        match evicted.with_context(|| format!("the eviction of {name} was not answered"))? {
            Ok(_) => Ok((201, String::new())),
            Err(kube::Error::Api(status)) => {
                let causes =
                    status.details.as_ref().map(|details| details.causes.clone()).unwrap_or_default();
                let why = causes.first().map(|cause| cause.message.clone());
                Ok((status.code, why.unwrap_or_else(|| status.message.clone())))
            }
            Err(error) => bail!(error),
        }
    }
}

/// Of many who want the last disruption, one gets it.
async fn evictions_share_a_budget(world: &World) -> Result<()> {
    let desk = Desk::new(world).await?;
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        desk.pod(name, "").await?;
    }
    desk.budget(json!({"minAvailable": 3})).await?;
    let status = desk.until("two may go", |status| status.disruptions_allowed == Some(2)).await?;
    ensure!(
        (status.current_healthy, status.desired_healthy, status.expected_pods) == (Some(5), Some(3), Some(5)),
        "{status:?}"
    );
    let conditions = status.conditions.context("conditions")?;
    ensure!(
        conditions[0].type_ == "DisruptionAllowed" && conditions[0].reason == "SufficientPods",
        "{conditions:?}"
    );
    let answers =
        join_all(names.map(|name| desk.evict(name))).await.into_iter().collect::<Result<Vec<_>>>()?;
    let gone = answers.iter().filter(|(code, _)| *code == 201).count();
    ensure!(gone == 2, "two of five: {answers:?}");
    ensure!(answers.iter().all(|(code, _)| matches!(code, 201 | 429)), "{answers:?}");
    let status = desk
        .until("none may go", |status| {
            status.disruptions_allowed == Some(0) && status.current_healthy == Some(3)
        })
        .await?;
    ensure!(status.conditions.context("conditions")?[0].reason == "InsufficientPods");
    let left = desk.pods.list(&ListParams::default()).await?;
    let left = left.iter().find(|pod| pod.metadata.deletion_timestamp.is_none()).context("a pod")?.name_any();
    let refused = desk.evict(&left).await?;
    ensure!(
        refused == (429, "The disruption budget web needs 3 healthy pods and has 3 currently".to_owned()),
        "{refused:?}"
    );
    desk.until("notes to be gone", |status| status.disrupted_pods.is_none()).await?;
    desk.clear().await
}

/// A pod that is not ready protects nobody: it goes if the rest is enough, or if the budget says so.
async fn unhealthy_pods_may_go(world: &World) -> Result<()> {
    let desk = Desk::new(world).await?;
    for (name, behaviour) in [("well", ""), ("ill", "unready"), ("worse", "unready")] {
        desk.pod(name, behaviour).await?;
    }
    let running = |name: &'static str| {
        let pods = desk.pods.clone();
        async move {
            wait::until("it to run", || async {
                let status = pods.get(name).await?.status.unwrap_or_default();
                Ok((status.phase.as_deref() == Some("Running")).then_some(()))
            })
            .await
        }
    };
    running("ill").await?;
    running("worse").await?;
    desk.budget(json!({"minAvailable": 2})).await?;
    desk.until("too few", |status| status.current_healthy == Some(1)).await?;
    ensure!(desk.evict("ill").await?.0 == 429, "the budget is not met");
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    desk.budgets.patch("web", &PatchParams::default(), &Patch::Merge(always)).await?;
    desk.until("the change to be seen", |_| true).await?;
    ensure!(desk.evict("ill").await?.0 == 201);
    ensure!(desk.evict("well").await?.0 == 429, "a healthy one is protected");
    let fewer = json!({"spec": {"unhealthyPodEvictionPolicy": null, "minAvailable": 1}});
    desk.budgets.patch("web", &PatchParams::default(), &Patch::Merge(fewer)).await?;
    desk.until("the budget to be met", |status| status.desired_healthy == Some(1)).await?;
    ensure!(desk.evict("worse").await?.0 == 201, "the rest is enough");
    desk.clear().await
}

/// `kubectl drain` waits for the budget, pod by pod.
async fn a_node_is_drained(world: &World) -> Result<()> {
    let desk = Desk::new(world).await?;
    let k = world.kubectl()?;
    let n = &desk.namespace;
    k.ok(&format!("-n {n} create deployment web --image=x --replicas=6")).await?;
    k.ok(&format!("-n {n} rollout status deployment/web --timeout=30s")).await?;
    desk.budget(json!({"maxUnavailable": "20%"})).await?;
    let status = desk.until("some may go", |status| status.disruptions_allowed.unwrap_or(0) > 0).await?;
    ensure!((status.expected_pods, status.desired_healthy) == (Some(6), Some(4)), "{status:?}");
    let drain = k.ok("drain drained --ignore-daemonsets --force --delete-emptydir-data --timeout=40s");
    tokio::pin!(drain);
    let fewest = loop {
        let pods = desk.pods.list(&ListParams::default()).await?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        ensure!(ready >= 4, "only {ready} of 6 are ready while four have to be");
        tokio::select! {
            drained = &mut drain => { drained?; break ready; }
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    };
    ensure!(fewest >= 4);
    k.ok(&format!("-n {n} rollout status deployment/web --timeout=30s")).await?;
    let there = desk.pods.list(&ListParams::default().fields("spec.nodeName=drained")).await?;
    ensure!(there.items.iter().all(|pod| pod.metadata.deletion_timestamp.is_some()), "nobody is left there");
    k.ok("uncordon drained").await?;
    Ok(())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_none()
        && conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Pods of a node that is gone follow it after a while.
async fn pods_follow_their_node(world: &World) -> Result<()> {
    let desk = Desk::new(world).await?;
    // Nobody else's pods get lost with it.
    let options = KubeletOptions { cordoned: true, ..KubeletOptions::with_nodes(&["lost"]) };
    let lost = world.kubelet(options).await?;
    let pod = json!({"metadata": {"name": "left"}, "spec": {"nodeName": "lost", "containers": [{"name": "c", "image": "x"}],
        "tolerations": [{"operator": "Exists"}]}});
    desk.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    wait::until("it to run", || async { Ok(is_ready(&desk.pods.get("left").await?).then_some(())) }).await?;
    lost.stop().await;
    Api::<Node>::all(world.client.clone()).delete("lost", &DeleteParams::default()).await?;
    // Longer than the quarantine, which is longer than tests usually wait.
    let deadline = Instant::now() + Duration::from_secs(75);
    while desk.pods.get_opt("left").await?.is_some() {
        ensure!(Instant::now() < deadline, "it is still there");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

async fn all(world: &World) -> Result<()> {
    let options = KubeletOptions::with_nodes(&["drained", "other"]);
    let kubelet = world.kubelet(options).await?;
    let rest = async {
        evictions_share_a_budget(world).await.context("evictions share a budget")?;
        unhealthy_pods_may_go(world).await.context("unhealthy pods may go")?;
        a_node_is_drained(world).await.context("a node is drained")
    };
    let gone = async { pods_follow_their_node(world).await.context("pods follow their node") };
    tokio::try_join!(rest, gone)?;
    kubelet.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_on_ours() -> Result<()> {
    on_ours(all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_on_a_real_api_server() -> Result<()> {
    on_real(all).await
}
