//! Jobs: counted exactly, whatever happens.

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::kubelet::KubeletOptions;
use super::world::{World, on_ours, on_real};

struct Desk {
    jobs: Api<Job>,
    pods: Api<Pod>,
}

impl Desk {
    async fn new(world: &World) -> Result<Self> {
        let namespace = world.namespace("jobs").await?;
        Ok(Self { jobs: world.api(&namespace), pods: world.api(&namespace) })
    }

    async fn create(&self, name: &str, behaviour: &str, spec: Value) -> Result<Job> {
        let mut job = json!({"metadata": {"name": name}, "spec": {"template": {
            "metadata": {"annotations": {"test/behaviour": behaviour}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "x"}]}}}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            if key == "restartPolicy" {
                job["spec"]["template"]["spec"][key] = value.clone();
            } else {
                job["spec"][key] = value.clone();
            }
        }
        Ok(self.jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?)
    }

    async fn until(&self, name: &str, what: &str, reached: impl Fn(&JobStatus) -> bool) -> Result<JobStatus> {
        let waited = wait::until(what, || async {
            let status = self.jobs.get(name).await?.status.unwrap_or_default();
            Ok(reached(&status).then_some(status))
        });
        match waited.await {
            Ok(status) => Ok(status),
            Err(error) => Err(error.context(format!("{:#?}", self.jobs.get(name).await?.status))),
        }
    }

    async fn over(&self, name: &str, kind: &str) -> Result<JobStatus> {
        self.until(name, kind, |status| condition(status, kind).is_some()).await
    }

    async fn active_pods(&self) -> Result<usize> {
        Ok(self
            .pods
            .list(&ListParams::default())
            .await?
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .count())
    }
}

fn condition<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a str> {
    let found =
        status.conditions.iter().flatten().find(|known| known.type_ == kind && known.status == "True")?;
    found.reason.as_deref()
}

async fn completions_are_counted(world: &World) -> Result<()> {
    let desk = Desk::new(world).await?;
    desk.create("many", "", json!({"completions": 25, "parallelism": 10})).await?;
    let status = desk.over("many", "Complete").await?;
    ensure!(status.succeeded == Some(25) && status.failed.is_none() && status.active.is_none(), "{status:?}");
    ensure!(condition(&status, "SuccessCriteriaMet") == Some("CompletionsReached"), "{status:?}");
    ensure!(status.completion_time >= status.start_time && status.start_time.is_some(), "{status:?}");
    let pods = desk.pods.list(&ListParams::default()).await?;
    ensure!(pods.items.len() == 25 && pods.iter().all(|pod| pod.finalizers().is_empty()), "all let go");
    desk.create("indexed", "", json!({"completions": 12, "parallelism": 4, "completionMode": "Indexed"}))
        .await?;
    let status = desk.over("indexed", "Complete").await?;
    ensure!(
        status.completed_indexes.as_deref() == Some("0-11") && status.succeeded == Some(12),
        "{status:?}"
    );
    let label = ListParams::default().labels("batch.kubernetes.io/job-completion-index=7");
    let seventh = desk.pods.list(&label).await?.items.pop().context("the pod of index 7")?;
    ensure!(seventh.name_any().starts_with("indexed-7-"), "{}", seventh.name_any());
    desk.create("any", "", json!({"parallelism": 3})).await?;
    let status = desk.over("any", "Complete").await?;
    ensure!(status.succeeded >= Some(1), "{status:?}");
    let k = world.kubectl()?;
    k.shows(&format!("-n {} get job many", desk.jobs.namespace().context("a namespace")?), "25/25").await?;
    Ok(())
}

async fn failures_end_a_job(world: &World) -> Result<()> {
    let desk = Desk::new(world).await?;
    desk.create("fails", "fail", json!({"backoffLimit": 1})).await?;
    desk.create("at-once", "fail", json!({"backoffLimit": 0, "parallelism": 3, "completions": 3})).await?;
    desk.create("restarts", "fail", json!({"backoffLimit": 4, "restartPolicy": "OnFailure"})).await?;
    desk.create("late", "run", json!({"activeDeadlineSeconds": 1, "parallelism": 2})).await?;
    let rule = json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]});
    desk.create("fatal", "fail", json!({"backoffLimit": 5, "podFailurePolicy": rule})).await?;
    for (name, reason) in [
        ("at-once", "BackoffLimitExceeded"),
        ("restarts", "BackoffLimitExceeded"),
        ("late", "DeadlineExceeded"),
        ("fatal", "PodFailurePolicy"),
        ("fails", "BackoffLimitExceeded"),
    ] {
        let status = desk.over(name, "Failed").await?;
        ensure!(condition(&status, "Failed") == Some(reason), "{name}: {status:?}");
        ensure!(condition(&status, "FailureTarget") == Some(reason), "{name}: {status:?}");
        ensure!(status.active.is_none() && status.completion_time.is_none(), "{name}: {status:?}");
        if name == "fails" {
            ensure!(status.failed == Some(2), "one more try, after a pause: {status:?}");
        }
    }
    Ok(())
}

async fn jobs_pause_shrink_and_expire(world: &World) -> Result<()> {
    let desk = Desk::new(world).await?;
    desk.create("pausing", "run", json!({"completions": 4, "parallelism": 4})).await?;
    desk.until("pausing", "four at work", |status| status.active == Some(4) && status.ready == Some(4))
        .await?;
    let patch = async |spec: Value| {
        desk.jobs.patch("pausing", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await
    };
    patch(json!({"parallelism": 2})).await?;
    desk.until("pausing", "two at work", |status| status.active == Some(2) && status.failed.is_none())
        .await?;
    patch(json!({"suspend": true})).await?;
    let status = desk.until("pausing", "nobody at work", |status| status.active.is_none()).await?;
    ensure!(condition(&status, "Suspended") == Some("JobSuspended") && status.failed.is_none(), "{status:?}");
    patch(json!({"suspend": false})).await?;
    let status = desk.until("pausing", "two at work again", |status| status.ready == Some(2)).await?;
    ensure!(condition(&status, "Suspended").is_none() && status.start_time.is_some(), "{status:?}");
    let gone =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    desk.jobs.delete("pausing", &gone).await?;
    wait::until("the pods of a deleted job to go", || async {
        Ok((desk.active_pods().await? == 0).then_some(()))
    })
    .await?;
    wait::until("their finalizers to be removed", || async {
        Ok(desk.pods.list(&ListParams::default()).await?.items.is_empty().then_some(()))
    })
    .await?;
    desk.create("short-lived", "", json!({"ttlSecondsAfterFinished": 1})).await?;
    wait::until("it to expire", || async {
        Ok(desk.jobs.get_opt("short-lived").await?.is_none().then_some(()))
    })
    .await
}

/// Controllers that stop and start again and again lose no pod and count none twice.
async fn counts_survive_restarts(world: &World) -> Result<()> {
    let desk = Desk::new(world).await?;
    desk.create("restarted", "", json!({"completions": 60, "parallelism": 15})).await?;
    for turn in 1..=3 {
        desk.until("restarted", "some progress", |status| status.succeeded.unwrap_or(0) >= turn * 10).await?;
        world.stop_controllers().await?;
        world.start_controllers().await;
    }
    let status = desk.over("restarted", "Complete").await?;
    ensure!(status.succeeded == Some(60) && status.failed.is_none(), "{status:?}");
    let pods = desk.pods.list(&ListParams::default()).await?;
    ensure!(pods.items.len() == 60, "{} pods were made for 60 completions", pods.items.len());
    Ok(())
}

async fn all(world: &World) -> Result<()> {
    let kubelet = world.kubelet(KubeletOptions::with_nodes(&["a", "b"])).await?;
    completions_are_counted(world).await.context("completions are counted")?;
    failures_end_a_job(world).await.context("failures end a job")?;
    jobs_pause_shrink_and_expire(world).await.context("jobs pause, shrink and expire")?;
    counts_survive_restarts(world).await.context("counts survive restarts")?;
    kubelet.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_on_ours() -> Result<()> {
    on_ours(all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_on_a_real_api_server() -> Result<()> {
    on_real(all).await
}
