//! Deployments and replica sets, as users meet them: through kubectl.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::kubelet::KubeletOptions;
use super::world::{World, on_ours, on_real};
use crate::support::Kubectl;

/// A kubectl in a namespace of its own.
struct Desk {
    kubectl: Kubectl,
    namespace: String,
    pods: Api<Pod>,
    sets: Api<ReplicaSet>,
    deployments: Api<Deployment>,
}

impl Desk {
    async fn new(world: &World, kubectl: Kubectl, prefix: &str) -> Result<Self> {
        let namespace = world.namespace(prefix).await?;
        let (pods, sets, deployments) = (world.api(&namespace), world.api(&namespace), world.api(&namespace));
        Ok(Self { kubectl, namespace, pods, sets, deployments })
    }

    async fn k(&self, line: &str) -> Result<String> {
        self.kubectl.ok(&format!("-n {} {line}", self.namespace)).await
    }

    async fn shows(&self, line: &str, wanted: &str) -> Result<String> {
        self.kubectl.shows(&format!("-n {} {line}", self.namespace), wanted).await
    }

    /// How many pods there are that are not on their way out.
    async fn count(&self) -> Result<usize> {
        let pods = self.pods.list(&ListParams::default()).await?;
        Ok(pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count())
    }

    /// Sizes of all replica sets by the image they are for.
    async fn sizes(&self) -> Result<BTreeMap<String, i32>> {
        let sets = self.sets.list(&ListParams::default()).await?;
        let size = |set: ReplicaSet| {
            let spec = set.spec.clone().unwrap_or_default();
            let containers = spec.template.and_then(|template| template.spec).map(|spec| spec.containers);
            let image = containers.and_then(|all| all.first().and_then(|one| one.image.clone()));
            (image.unwrap_or_default(), spec.replicas.unwrap_or(1))
        };
        let count = sets.items.len();
        let sizes: BTreeMap<String, i32> = sets.into_iter().map(size).collect();
        ensure!(sizes.len() == count, "there is one set per template: {count} sets, {sizes:?}");
        Ok(sizes)
    }

    async fn reason(&self, name: &str, kind: &str) -> Result<String> {
        let status = self.deployments.get(name).await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition.type_ == kind);
        Ok(found.and_then(|found| found.reason).unwrap_or_default())
    }

    async fn until_reason(&self, name: &str, kind: &str, reason: &str) -> Result<()> {
        wait::until(&format!("{kind} to be {reason}"), || async {
            Ok((self.reason(name, kind).await? == reason).then_some(()))
        })
        .await
    }
}

/// What people do with kubectl, from the first rollout to the end.
async fn a_deployment_lives(world: &World) -> Result<()> {
    for (turn, kubectl) in world.kubectls()?.into_iter().enumerate() {
        let desk = Desk::new(world, kubectl, &format!("life{turn}")).await?;
        desk.k("create deployment web --image=one --replicas=3").await?;
        desk.shows("rollout status deployment/web --timeout=30s", "successfully rolled out").await?;
        desk.shows("get deployment web", "3/3").await?;
        desk.k("set image deployment/web one=two").await?;
        desk.shows("rollout status deployment/web --timeout=30s", "successfully rolled out").await?;
        ensure!(desk.sizes().await? == BTreeMap::from([("one".into(), 0), ("two".into(), 3)]));
        desk.shows("rollout history deployment/web", "2").await?;
        desk.shows("rollout history deployment/web --revision=1", "one").await?;
        desk.k("scale deployment/web --replicas=5").await?;
        desk.shows("rollout status deployment/web --timeout=30s", "successfully rolled out").await?;
        ensure!(desk.count().await? == 5);
        desk.k("rollout undo deployment/web").await?;
        desk.shows("rollout status deployment/web --timeout=30s", "successfully rolled out").await?;
        ensure!(desk.sizes().await? == BTreeMap::from([("one".into(), 5), ("two".into(), 0)]));
        let web = desk.deployments.get("web").await?;
        ensure!(web.annotations().get("deployment.kubernetes.io/revision").map(String::as_str) == Some("3"));
        desk.k("rollout restart deployment/web").await?;
        desk.shows("rollout status deployment/web --timeout=30s", "successfully rolled out").await?;
        desk.k("rollout pause deployment/web").await?;
        desk.until_reason("web", "Progressing", "DeploymentPaused").await?;
        desk.k("set image deployment/web one=three").await?;
        desk.k("scale deployment/web --replicas=2").await?;
        wait::until("two pods", || async { Ok((desk.count().await? == 2).then_some(())) }).await?;
        ensure!(desk.sets.list(&ListParams::default()).await?.items.len() == 3, "a pause makes no set");
        desk.k("rollout resume deployment/web").await?;
        desk.shows("rollout status deployment/web --timeout=30s", "successfully rolled out").await?;
        desk.until_reason("web", "Progressing", "NewReplicaSetAvailable").await?;
        desk.until_reason("web", "Available", "MinimumReplicasAvailable").await?;
        desk.shows("describe deployment web", "ScalingReplicaSet").await?;
        desk.k("wait --for=condition=Available deployment/web --timeout=10s").await?;
        desk.k("delete deployment web").await?;
        wait::until("everything to go", || async { Ok((desk.count().await? == 0).then_some(())) }).await?;
    }
    Ok(())
}

/// A rollout that cannot go on stops where it may, says so, and is repaired by going back.
async fn a_broken_image_stops_at_the_limit(world: &World) -> Result<()> {
    let desk = Desk::new(world, world.kubectl()?, "broken").await?;
    desk.k("create deployment web --image=good --replicas=4").await?;
    let patch = json!({"spec": {"progressDeadlineSeconds": 2, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}});
    desk.deployments.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
    desk.k("rollout status deployment/web --timeout=30s").await?;
    desk.k("set image deployment/web good=broken").await?;
    desk.until_reason("web", "Progressing", "ProgressDeadlineExceeded").await?;
    ensure!(
        desk.sizes().await? == BTreeMap::from([("good".into(), 3), ("broken".into(), 2)]),
        "{:?}",
        desk.sizes().await?
    );
    let status = desk.deployments.get("web").await?.status.context("a status")?;
    ensure!(status.available_replicas == Some(3) && status.unavailable_replicas == Some(2), "{status:?}");
    let said = desk.kubectl.run(&format!("-n {} rollout status deployment/web", desk.namespace)).await?;
    ensure!(!said.ok && said.err.contains("exceeded its progress deadline"), "{said:?}");
    desk.k("rollout undo deployment/web").await?;
    desk.shows("rollout status deployment/web --timeout=30s", "successfully rolled out").await?;
    ensure!(desk.sizes().await? == BTreeMap::from([("good".into(), 4), ("broken".into(), 0)]));
    Ok(())
}

/// A rollout under way is scaled: both templates grow, and it ends with the new size.
async fn it_can_be_scaled_while_it_rolls(world: &World) -> Result<()> {
    let desk = Desk::new(world, world.kubectl()?, "scaled").await?;
    desk.k("create deployment web --image=old --replicas=8").await?;
    desk.k("rollout status deployment/web --timeout=30s").await?;
    desk.k("set image deployment/web old=broken").await?;
    let stuck = BTreeMap::from([("old".into(), 6), ("broken".into(), 4)]);
    wait::until("the rollout to be stuck", || async { Ok((desk.sizes().await? == stuck).then_some(())) })
        .await?;
    desk.k("scale deployment/web --replicas=16").await?;
    let both = BTreeMap::from([("old".into(), 12), ("broken".into(), 8)]);
    wait::until("both to have their share", || async { Ok((desk.sizes().await? == both).then_some(())) })
        .await
        .with_context(|| "twenty in all")?;
    desk.k("set image deployment/web old=new").await?;
    desk.k("rollout status deployment/web --timeout=30s").await?;
    let done = BTreeMap::from([("old".into(), 0), ("broken".into(), 0), ("new".into(), 16)]);
    ensure!(desk.sizes().await? == done, "{:?}", desk.sizes().await?);
    Ok(())
}

/// Equal labels in two namespaces do not mix, and a template that comes back finds its set again.
async fn sets_are_told_apart(world: &World) -> Result<()> {
    let one = Desk::new(world, world.kubectl()?, "apart").await?;
    let two = Desk::new(world, world.kubectl()?, "apart").await?;
    for (desk, replicas) in [(&one, 2), (&two, 3)] {
        desk.k(&format!("create deployment web --image=a --replicas={replicas}")).await?;
    }
    for desk in [&one, &two] {
        desk.k("rollout status deployment/web --timeout=30s").await?;
    }
    ensure!((one.count().await?, two.count().await?) == (2, 3));
    for image in ["b", "a", "b", "a", "c", "b", "a"] {
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": image}]}}}});
        one.deployments.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await?;
    }
    one.k("rollout status deployment/web --timeout=30s").await?;
    wait::until("only the last template to have pods", || async {
        Ok((one.sizes().await?.into_iter().all(|(image, size)| size == if image == "a" { 2 } else { 0 }))
            .then_some(()))
    })
    .await?;
    wait::until("two pods", || async { Ok((one.count().await? == 2).then_some(())) }).await
}

/// Controllers that start anew in the middle of a rollout take it up where it was.
async fn a_rollout_survives_a_restart(world: &World) -> Result<()> {
    let desk = Desk::new(world, world.kubectl()?, "restart").await?;
    desk.k("create deployment web --image=a --replicas=20").await?;
    desk.k("rollout status deployment/web --timeout=30s").await?;
    desk.k("set image deployment/web a=b").await?;
    for turn in 0..3 {
        wait::until("the rollout to be under way", || async {
            Ok(desk.sizes().await?.get("b").is_some_and(|size| *size > turn * 5).then_some(()))
        })
        .await?;
        world.stop_controllers().await?;
        world.start_controllers().await;
    }
    desk.k("rollout status deployment/web --timeout=30s").await?;
    ensure!(desk.sizes().await? == BTreeMap::from([("a".into(), 0), ("b".into(), 20)]));
    wait::until("twenty pods", || async { Ok((desk.count().await? == 20).then_some(())) }).await
}

/// Pods are adopted and released by their labels; a size, a failure and the chosen victims are as upstream.
async fn replica_sets_own_by_label(world: &World) -> Result<()> {
    let desk = Desk::new(world, world.kubectl()?, "owned").await?;
    let bare = json!({"metadata": {"name": "stray", "labels": {"app": "rs"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    desk.pods.create(&PostParams::default(), &serde_json::from_value(bare)?).await?;
    let set = json!({"metadata": {"name": "rs"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "rs"}},
        "template": {"metadata": {"labels": {"app": "rs"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}});
    let set = desk.sets.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
    let ready = |count: i32| {
        wait::until("ready replicas", {
            let sets = desk.sets.clone();
            move || {
                let sets = sets.clone();
                async move {
                    let status = sets.get("rs").await?.status.unwrap_or_default();
                    Ok((status.ready_replicas == Some(count) && status.replicas == count).then_some(status))
                }
            }
        })
    };
    let status = ready(3).await?;
    ensure!(status.fully_labeled_replicas == Some(3) && status.available_replicas == Some(3), "{status:?}");
    let stray = desk.pods.get("stray").await?;
    ensure!(stray.owner_references().iter().any(|owner| Some(&owner.uid) == set.uid().as_ref()), "adopted");
    let loose = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
    desk.pods.patch("stray", &PatchParams::default(), &loose).await?;
    wait::until("the stray to be released and replaced", || async {
        let stray = desk.pods.get("stray").await?;
        Ok((stray.owner_references().is_empty() && desk.count().await? == 4).then_some(()))
    })
    .await?;
    ready(3).await?;
    desk.k("delete pod stray").await?;
    let pods = desk.pods.list(&ListParams::default()).await?;
    let cheap = pods.items[1].name_any();
    desk.k(&format!("annotate pod {cheap} controller.kubernetes.io/pod-deletion-cost=-10")).await?;
    desk.k("scale rs rs --replicas=2").await?;
    wait::until("the cheap one to go", || async {
        Ok(desk.pods.get_opt(&cheap).await?.is_none().then_some(()))
    })
    .await?;
    ready(2).await?;
    let unknown = json!({"spec": {"replicas": 4, "template": {"spec": {"serviceAccountName": "nobody"}}}});
    desk.sets.patch("rs", &PatchParams::default(), &Patch::Merge(unknown)).await?;
    let failing = wait::until("a failure", || async {
        let status = desk.sets.get("rs").await?.status.unwrap_or_default();
        Ok(status.conditions.into_iter().flatten().find(|condition| condition.type_ == "ReplicaFailure"))
    })
    .await?;
    ensure!(failing.reason.as_deref() == Some("FailedCreate"), "{failing:?}");
    ensure!(failing.message.as_deref().is_some_and(|message| message.contains("nobody")), "{failing:?}");
    desk.k("create serviceaccount nobody").await?;
    let status = ready(4).await?;
    ensure!(status.conditions.is_none(), "{status:?}");
    Ok(())
}

async fn all(world: &World) -> Result<()> {
    let kubelet = world.kubelet(KubeletOptions::with_nodes(&["a", "b", "c"])).await?;
    a_deployment_lives(world).await.context("a deployment lives")?;
    a_broken_image_stops_at_the_limit(world).await.context("a broken image stops at the limit")?;
    it_can_be_scaled_while_it_rolls(world).await.context("it can be scaled while it rolls")?;
    sets_are_told_apart(world).await.context("sets are told apart")?;
    a_rollout_survives_a_restart(world).await.context("a rollout survives a restart")?;
    replica_sets_own_by_label(world).await.context("replica sets own by label")?;
    kubelet.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_on_ours() -> Result<()> {
    on_ours(all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_on_a_real_api_server() -> Result<()> {
    on_real(all).await
}
