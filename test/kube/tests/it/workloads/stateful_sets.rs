//! Stateful sets and their claims, as users meet them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::kubelet::KubeletOptions;
use super::world::{World, on_ours, on_real};
use crate::support::Kubectl;

/// One namespace and everything in it.
struct Desk {
    kubectl: Kubectl,
    namespace: String,
    pods: Api<Pod>,
    sets: Api<StatefulSet>,
    claims: Api<PersistentVolumeClaim>,
    volumes: Api<PersistentVolume>,
}

impl Desk {
    async fn new(world: &World, prefix: &str) -> Result<Self> {
        let namespace = world.namespace(prefix).await?;
        Ok(Self {
            kubectl: world.kubectl()?,
            pods: world.api(&namespace),
            sets: world.api(&namespace),
            claims: world.api(&namespace),
            volumes: Api::all(world.client.clone()),
            namespace,
        })
    }

    async fn k(&self, line: &str) -> Result<String> {
        self.kubectl.ok(&format!("-n {} {line}", self.namespace)).await
    }

    async fn shows(&self, line: &str, wanted: &str) -> Result<String> {
        self.kubectl.shows(&format!("-n {} {line}", self.namespace), wanted).await
    }

    async fn create(&self, replicas: i32, spec: Value) -> Result<()> {
        let mut set = json!({
            "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "serviceName": "peers", "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"terminationGracePeriodSeconds": 5, "containers": [{"name": "c", "image": "one"}]}}},
        });
        for (key, part) in spec.as_object().context("an object")? {
            set["spec"][key] = part.clone();
        }
        self.sets.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
        Ok(())
    }

    async fn patch(&self, spec: Value) -> Result<()> {
        self.sets.patch("web", &PatchParams::default(), &Patch::Strategic(json!({"spec": spec}))).await?;
        Ok(())
    }

    async fn image(&self, image: &str) -> Result<()> {
        self.patch(json!({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})).await
    }

    /// Image and uid of each pod, and whether it is ready, by name.
    async fn members(&self) -> Result<BTreeMap<String, Member>> {
        let pods = self.pods.list(&ListParams::default()).await?;
        Ok(pods.into_iter().map(|pod| (pod.name_any(), Member::of(&pod))).collect())
    }

    /// Waits until exactly these are there, ready, with these images.
    async fn until(&self, wanted: &[(&str, &str)]) -> Result<BTreeMap<String, Member>> {
        let what = format!("the pods to be {wanted:?}");
        let found = wait::until(&what, || async {
            let members = self.members().await?;
            let same = members.len() == wanted.len()
                && wanted.iter().all(|(name, image)| {
                    members.get(*name).is_some_and(|member| member.ready && member.image == *image)
                });
            Ok(same.then_some(members))
        })
        .await;
        match found {
            Ok(found) => Ok(found),
            Err(error) => Err(error.context(format!("{:?}", self.members().await?))),
        }
    }

    /// Waits until the set's status says this.
    async fn until_status(&self, what: &str, holds: impl Fn(&StatefulSet) -> bool) -> Result<StatefulSet> {
        wait::until(what, || async {
            let set = self.sets.get("web").await?;
            Ok(holds(&set).then_some(set))
        })
        .await
    }

    async fn bound(&self, claim: &str) -> Result<String> {
        wait::until(&format!("{claim} to be bound"), || async {
            let claim = self.claims.get_opt(claim).await?;
            let bound = claim.filter(|claim| {
                claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
            });
            Ok(bound.and_then(|claim| claim.spec?.volume_name))
        })
        .await
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    uid: String,
    image: String,
    ready: bool,
}

impl Member {
    fn of(pod: &Pod) -> Self {
        let image = pod.spec.as_ref().and_then(|spec| spec.containers.first()?.image.clone());
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let ready = pod.metadata.deletion_timestamp.is_none()
            && conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
        Self { uid: pod.uid().unwrap_or_default(), image: image.unwrap_or_default(), ready }
    }
}

fn with_claims() -> Value {
    json!({"volumeClaimTemplates": [{"metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]})
}

/// From none to three, down to one and up again: the claims stay, and so does what is in them.
async fn scaling_keeps_claims_and_data(world: &World) -> Result<()> {
    let desk = Desk::new(world, "data").await?;
    desk.create(0, with_claims()).await?;
    desk.until_status("nothing", |set| {
        set.status
            .as_ref()
            .is_some_and(|status| status.observed_generation == Some(1) && status.replicas == 0)
    })
    .await?;
    desk.k("scale sts/web --replicas=3").await?;
    let all = [("web-0", "one"), ("web-1", "one"), ("web-2", "one")];
    desk.until(&all).await?;
    desk.shows("rollout status sts/web --timeout=30s", "roll out complete").await?;
    desk.shows("get sts web", "3/3").await?;
    let volume = desk.bound("data-web-2").await?;
    let directory = world.volumes().join(&volume);
    ensure!(directory.is_dir(), "{} is there", directory.display());
    std::fs::write(directory.join("file"), "kept")?;
    let made = desk.pods.get("web-2").await?;
    let spec = made.spec.as_ref().context("a spec")?;
    ensure!(spec.hostname.as_deref() == Some("web-2") && spec.subdomain.as_deref() == Some("peers"));
    ensure!(made.labels()["apps.kubernetes.io/pod-index"] == "2");
    desk.k("scale sts/web --replicas=1").await?;
    desk.until(&all[..1]).await?;
    ensure!(desk.claims.list(&ListParams::default()).await?.items.len() == 3, "claims stay");
    desk.k("scale sts/web --replicas=3").await?;
    desk.until(&all).await?;
    ensure!(desk.bound("data-web-2").await? == volume, "it is the same volume");
    ensure!(std::fs::read_to_string(directory.join("file"))? == "kept");
    desk.shows("describe sts web", "SuccessfulCreate").await?;
    // A larger request makes the volume larger.
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    desk.claims.patch("data-web-2", &PatchParams::default(), &Patch::Merge(more)).await?;
    wait::until("the claim to have grown", || async {
        let status = desk.claims.get("data-web-2").await?.status.unwrap_or_default();
        Ok(status.capacity.and_then(|all| Some(all.get("storage")?.0 == "2Gi")).filter(|grown| *grown))
    })
    .await?;
    // A claim that is used is not deleted until nobody uses it; then its directory goes, too.
    desk.claims.delete("data-web-2", &DeleteParams::default()).await?;
    let claim = desk.claims.get("data-web-2").await.context("protected")?;
    ensure!(claim.metadata.deletion_timestamp.is_some());
    desk.k("delete sts web").await?;
    wait::until("the pods to go", || async { Ok(desk.members().await?.is_empty().then_some(())) }).await?;
    wait::until("the claim to go", || async {
        Ok(desk.claims.get_opt("data-web-2").await?.is_none().then_some(()))
    })
    .await?;
    wait::until("the volume to go", || async {
        Ok(desk.volumes.get_opt(&volume).await?.is_none().then_some(()))
    })
    .await?;
    ensure!(!directory.exists(), "the directory is gone");
    ensure!(desk.claims.list(&ListParams::default()).await?.items.len() == 2, "the others stay");
    Ok(())
}

/// What people do with `kubectl rollout`.
async fn rollouts_go_forth_and_back(world: &World) -> Result<()> {
    let desk = Desk::new(world, "rollout").await?;
    desk.create(2, json!({})).await?;
    let before = desk.until(&[("web-0", "one"), ("web-1", "one")]).await?;
    desk.image("two").await?;
    desk.shows("rollout status sts/web --timeout=30s", "roll out complete").await?;
    let after = desk.until(&[("web-0", "two"), ("web-1", "two")]).await?;
    ensure!(before["web-0"].uid != after["web-0"].uid);
    desk.shows("rollout history sts/web", "2").await?;
    desk.shows("rollout history sts/web --revision=1", "one").await?;
    desk.k("rollout undo sts/web").await?;
    desk.until(&[("web-0", "one"), ("web-1", "one")]).await?;
    let revisions: Api<ControllerRevision> = world.api(&desk.namespace);
    let revisions = revisions.list(&ListParams::default()).await?;
    let mut numbers: Vec<i64> = revisions.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    ensure!(numbers == [2, 3], "the first came back as the third: {numbers:?}");
    desk.k("rollout restart sts/web").await?;
    desk.shows("rollout status sts/web --timeout=30s", "roll out complete").await?;
    let set = desk
        .until_status("everything to be current", |set| {
            let status = set.status.clone().unwrap_or_default();
            status.current_revision == status.update_revision
                && (status.ready_replicas, status.available_replicas, status.updated_replicas)
                    == (Some(2), Some(2), Some(2))
        })
        .await?;
    ensure!(set.status.context("a status")?.observed_generation == set.metadata.generation);
    Ok(())
}

/// Below the partition nothing is updated, not even what is made anew.
async fn a_partition_holds(world: &World) -> Result<()> {
    let desk = Desk::new(world, "partition").await?;
    desk.create(3, json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}))
        .await?;
    desk.until(&[("web-0", "one"), ("web-1", "one"), ("web-2", "one")]).await?;
    desk.image("two").await?;
    let half = [("web-0", "one"), ("web-1", "one"), ("web-2", "two")];
    desk.until(&half).await?;
    desk.shows("rollout status sts/web --timeout=30s", "partitioned roll out complete: 1 new pods").await?;
    desk.k("delete pod web-0 web-2").await?;
    desk.until(&half).await?;
    desk.patch(json!({"updateStrategy": {"rollingUpdate": {"partition": 0}}})).await?;
    desk.until(&[("web-0", "two"), ("web-1", "two"), ("web-2", "two")]).await?;
    Ok(())
}

/// Upstream's set stays stuck here until somebody deletes the pod by hand.
async fn a_mended_template_gets_a_stuck_update_going(world: &World) -> Result<()> {
    let desk = Desk::new(world, "mended").await?;
    desk.create(2, json!({})).await?;
    desk.until(&[("web-0", "one"), ("web-1", "one")]).await?;
    desk.image("broken").await?;
    wait::until("the update to be stuck", || async {
        Ok(desk.members().await?.get("web-1").filter(|pod| pod.image == "broken").map(|_| ()))
    })
    .await?;
    desk.image("two").await?;
    desk.until(&[("web-0", "two"), ("web-1", "two")]).await?;
    Ok(())
}

/// A pod is replaced when it is really gone, even by controllers that never saw it going.
async fn a_restart_never_makes_two_of_one_ordinal(world: &World) -> Result<()> {
    let desk = Desk::new(world, "twice").await?;
    let template = json!({"metadata": {"labels": {"app": "web"}, "annotations": {"test/behaviour": "linger"}},
        "spec": {"containers": [{"name": "c", "image": "one"}]}});
    desk.create(4, json!({"podManagementPolicy": "Parallel", "template": template})).await?;
    let all = [("web-0", "one"), ("web-1", "one"), ("web-2", "one"), ("web-3", "one")];
    let before = desk.until(&all).await?;
    desk.pods.delete("web-1", &DeleteParams::default()).await?;
    for turn in 0..3 {
        world.stop_controllers().await?;
        // Something to do for those who start: when they have seen it, they have seen the pod that lingers, too.
        desk.patch(json!({"minReadySeconds": turn % 2, "replicas": 5 + turn})).await?;
        world.start_controllers().await;
        desk.until_status("the change to be seen", |set| {
            let status = set.status.clone().unwrap_or_default();
            status.observed_generation == set.metadata.generation && status.replicas == 5 + turn
        })
        .await?;
        let pods = desk.pods.list(&ListParams::default()).await?;
        let mut ordinals: Vec<_> =
            pods.iter().map(|pod| pod.labels()["apps.kubernetes.io/pod-index"].clone()).collect();
        ordinals.sort();
        ordinals.dedup();
        ensure!(ordinals.len() == pods.items.len(), "{ordinals:?}");
        let lingering = desk.pods.get("web-1").await?;
        ensure!(lingering.uid() == Some(before["web-1"].uid.clone()), "it is the old one");
    }
    let gone = json!({"metadata": {"annotations": {"test/behaviour": null}}});
    desk.pods.patch("web-1", &PatchParams::default(), &Patch::Merge(gone)).await?;
    wait::until("another to take its place", || async {
        let now = desk.members().await?;
        Ok(now.get("web-1").filter(|pod| pod.ready && pod.uid != before["web-1"].uid).map(|_| ()))
    })
    .await
}

/// Claims go with their pods and their set if the set says so.
async fn claims_go_if_the_set_says_so(world: &World) -> Result<()> {
    let desk = Desk::new(world, "retention").await?;
    let mut spec = with_claims();
    spec["podManagementPolicy"] = json!("Parallel");
    spec["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete", "whenDeleted": "Delete"});
    desk.create(3, spec).await?;
    desk.until(&[("web-0", "one"), ("web-1", "one"), ("web-2", "one")]).await?;
    desk.k("scale sts/web --replicas=1").await?;
    let claims = |count: usize| {
        let claims = desk.claims.clone();
        async move {
            wait::until(&format!("{count} claims"), || async {
                Ok((claims.list(&ListParams::default()).await?.items.len() == count).then_some(()))
            })
            .await
        }
    };
    claims(1).await?;
    desk.k("delete sts web").await?;
    claims(0).await
}

/// Volumes that are there are taken before new ones are made; a claim says when it lost its volume; nothing of a volume
/// that somebody crafted is removed.
async fn volumes_made_by_hand(world: &World) -> Result<()> {
    let desk = Desk::new(world, "byhand").await?;
    let outside = tempfile::tempdir()?;
    std::fs::write(outside.path().join("precious"), "data")?;
    let names = [format!("{}-free", desk.namespace), format!("{}-crafted", desk.namespace)];
    for (name, annotations) in
        names.iter().zip([json!({}), json!({"pv.kubernetes.io/provisioned-by": "aro.dev/local"})])
    {
        let volume = json!({
            "metadata": {"name": name, "labels": {"which": name}, "annotations": annotations},
            "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "hand",
                "persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": outside.path()}},
        });
        desk.volumes.create(&PostParams::default(), &serde_json::from_value(volume)?).await?;
        let claim = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
            "storageClassName": "hand", "selector": {"matchLabels": {"which": name}},
            "resources": {"requests": {"storage": "1Gi"}}}});
        desk.claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
        ensure!(desk.bound(name).await? == *name);
        desk.claims.delete(name, &DeleteParams::default()).await?;
        wait::until("the volume to be refused", || async {
            let status = desk.volumes.get(name).await?.status.unwrap_or_default();
            Ok((status.phase.as_deref() == Some("Failed")).then_some(()))
        })
        .await?;
        desk.volumes.delete(name, &DeleteParams::default()).await?;
        wait::until("the volume to go", || async {
            Ok(desk.volumes.get_opt(name).await?.is_none().then_some(()))
        })
        .await?;
        ensure!(outside.path().join("precious").exists(), "nothing of it was touched");
    }
    let claim = json!({"metadata": {"name": "lost"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    desk.claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
    let volume = desk.bound("lost").await?;
    desk.volumes.delete(&volume, &DeleteParams::default()).await?;
    ensure!(desk.volumes.get(&volume).await?.metadata.deletion_timestamp.is_some(), "it is protected");
    let unprotected = json!({"metadata": {"finalizers": null}});
    desk.volumes.patch(&volume, &PatchParams::default(), &Patch::Merge(unprotected)).await?;
    wait::until("the claim to be lost", || async {
        let status = desk.claims.get("lost").await?.status.unwrap_or_default();
        Ok((status.phase.as_deref() == Some("Lost")).then_some(()))
    })
    .await
}

async fn stateful_sets(world: &World) -> Result<()> {
    let kubelet = world.kubelet(KubeletOptions::with_nodes(&["one", "two"])).await?;
    scaling_keeps_claims_and_data(world).await.context("scaling_keeps_claims_and_data")?;
    rollouts_go_forth_and_back(world).await.context("rollouts_go_forth_and_back")?;
    a_partition_holds(world).await.context("a_partition_holds")?;
    a_mended_template_gets_a_stuck_update_going(world).await.context("a_mended_template")?;
    a_restart_never_makes_two_of_one_ordinal(world).await.context("a_restart")?;
    claims_go_if_the_set_says_so(world).await.context("claims_go_if_the_set_says_so")?;
    volumes_made_by_hand(world).await.context("volumes_made_by_hand")?;
    kubelet.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stateful_sets_on_ours() -> Result<()> {
    on_ours(stateful_sets).await
}

#[tokio::test(flavor = "multi_thread")]
async fn stateful_sets_on_a_real_api_server() -> Result<()> {
    on_real(stateful_sets).await
}
