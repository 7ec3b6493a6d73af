//! Containers that pretend, by script.

use anyhow::{Result, ensure};
use aro_fixtures::wait;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret};
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use super::image::{IMAGE, TestImages};
use super::server::{Place, Server, condition};

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn waits_for(pod: &Value, reason: &str) -> bool {
    container(pod)["state"]["waiting"]["reason"] == reason
}

pub async fn pods_go_through_the_states_their_scripts_tell(server: &Server) -> Result<()> {
    let node = server.kubelet("scripted", &TestImages::default()).await;
    let place = server.namespace("scripts").await?;
    let none = || json!({});
    let never = || json!({"restartPolicy": "Never"});
    let on_failure = || json!({"restartPolicy": "OnFailure"});
    for (name, script, spec) in [
        ("plain", json!({}), none()),
        ("starts-late", json!({"startDelay": "1h"}), none()),
        ("ready-late", json!({"readyDelay": "1h"}), none()),
        ("a-little-late", json!({"startDelay": "30ms", "readyDelay": "30ms"}), none()),
        ("never-ready", json!({"neverReady": true}), none()),
        ("crashes", json!({"exitCode": 3}), none()),
        ("recovers", json!({"exitCode": 3, "failures": 2}), none()),
        ("ends", json!({"runFor": "30ms"}), never()),
        ("fails", json!({"exitCode": 4}), never()),
        ("tries", json!({"exitCode": 4, "failures": 2}), on_failure()),
        ("no-image", json!({"pullError": true}), none()),
        ("no-script", json!({"startDelay": 5}), none()),
        ("limited", json!({}), json!({"activeDeadlineSeconds": 1})),
    ] {
        place.pod(name, &node, &script, spec).await?;
    }
    for name in ["plain", "a-little-late"] {
        let pod = place.until_ready(name).await?;
        ensure!(pod["status"]["phase"] == "Running" && container(&pod)["restartCount"] == 0, "{pod:#}");
        ensure!(pod["metadata"]["annotations"]["aro.dev/simulated"] == "true", "{pod:#}");
        ensure!(pod["status"]["podIP"].as_str().is_some_and(|address| address.starts_with("10.")), "{pod:#}");
    }
    place.until("starts-late", "waiting", |pod| waits_for(pod, "ContainerCreating")).await?;
    for name in ["ready-late", "never-ready"] {
        place
            .until(name, "running, not ready", |pod| {
                container(pod)["state"]["running"].is_object() && condition(pod, "Ready") == "False"
            })
            .await?;
    }
    let loops = |pod: &Value| {
        waits_for(pod, "CrashLoopBackOff")
            && container(pod)["restartCount"].as_i64() >= Some(3)
            && container(pod)["lastState"]["terminated"]["exitCode"] == 3
    };
    place.until("crashes", "in a crash loop", loops).await?;
    let recovered = place.until_ready("recovers").await?;
    ensure!(container(&recovered)["restartCount"] == 2, "{recovered:#}");
    for (name, phase, restarts, code) in
        [("ends", "Succeeded", 0, 0), ("fails", "Failed", 0, 4), ("tries", "Succeeded", 2, 0)]
    {
        let pod = place.until(name, phase, |pod| pod["status"]["phase"] == phase).await?;
        ensure!(container(&pod)["restartCount"] == restarts, "{pod:#}");
        ensure!(container(&pod)["state"]["terminated"]["exitCode"] == code, "{pod:#}");
    }
    place.until("no-image", "without its image", |pod| waits_for(pod, "ImagePullBackOff")).await?;
    let refused =
        place.until("no-script", "refused", |pod| waits_for(pod, "CreateContainerConfigError")).await?;
    let why = container(&refused)["state"]["waiting"]["message"].as_str().unwrap_or_default();
    ensure!(why.starts_with("the annotation aro.dev/simulate is no script: "), "{why}");
    let limited = place.until("limited", "over", |pod| pod["status"]["phase"] == "Failed").await?;
    ensure!(limited["status"]["reason"] == "DeadlineExceeded", "{limited:#}");
    // All of them go when they are told to, whatever they are doing.
    let pods = place.api::<Pod>();
    pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    wait::until("all pods to go", || async {
        Ok(pods.list(&ListParams::default()).await?.items.is_empty().then_some(()))
    })
    .await?;
    node.stop().await
}

pub async fn what_runs_first_and_what_runs_beside(server: &Server) -> Result<()> {
    let node = server.kubelet("initial", &TestImages::default()).await;
    let place = server.namespace("initial").await?;
    let one = |name: &str| json!({"name": name, "image": "x"});
    let beside = json!({"name": "beside", "image": "x", "restartPolicy": "Always"});
    let two = json!({"initContainers": [one("first"), one("second")]});
    place.pod("stuck", &node, &json!({"simulate.aro.dev/second": {"runFor": "1h"}}), two.clone()).await?;
    place
        .pod("passes", &node, &json!({"simulate.aro.dev/first": {"exitCode": 1, "failures": 2}}), two.clone())
        .await?;
    let mut fails = two;
    fails["restartPolicy"] = json!("Never");
    place.pod("fails", &node, &json!({"simulate.aro.dev/first": {"exitCode": 1}}), fails).await?;
    let job = json!({"initContainers": [beside], "restartPolicy": "Never"});
    place.pod("job", &node, &json!({"simulate.aro.dev/c": {"runFor": "50ms"}}), job).await?;

    let init = |pod: &Value, index: usize| pod["status"]["initContainerStatuses"][index].clone();
    let stuck =
        place.until("stuck", "at its second", |pod| init(pod, 1)["state"]["running"].is_object()).await?;
    ensure!(stuck["status"]["phase"] == "Pending" && waits_for(&stuck, "PodInitializing"), "{stuck:#}");
    ensure!(condition(&stuck, "Initialized") == "False", "{stuck:#}");
    ensure!(init(&stuck, 0)["state"]["terminated"]["reason"] == "Completed", "{stuck:#}");
    let passes = place.until_ready("passes").await?;
    ensure!(init(&passes, 0)["restartCount"] == 2 && init(&passes, 1)["restartCount"] == 0, "{passes:#}");
    let failed = place.until("fails", "failed", |pod| pod["status"]["phase"] == "Failed").await?;
    ensure!(init(&failed, 1)["state"]["waiting"].is_object(), "the second never ran: {failed:#}");
    let done = place.until("job", "done", |pod| pod["status"]["phase"] == "Succeeded").await?;
    ensure!(init(&done, 0)["state"]["terminated"].is_object(), "what ran beside it has ended, too: {done:#}");
    node.stop().await
}

/// Whether something was told about a pod.
async fn event(place: &Place, pod: &str, reason: &str, message: &str) -> Result<()> {
    let events = place.api::<Event>();
    let about = ListParams::default().fields(&format!("involvedObject.name={pod}"));
    wait::until(&format!("an event {reason} about {pod}"), || async {
        let told = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.message.as_deref().is_some_and(|text| text.contains(message))
        };
        Ok(events.list(&about).await?.items.iter().any(told).then_some(()))
    })
    .await
}

pub async fn what_pods_refer_to_may_come_late(server: &Server) -> Result<()> {
    let images = TestImages::default();
    let node = server.kubelet("late", &images).await;
    let place = server.namespace("late").await?;
    for (kind, image) in [("pretends", "x"), ("real", IMAGE)] {
        let (variable, volume) = (format!("{kind}-env"), format!("{kind}-volume"));
        let env = json!([{"name": "X", "valueFrom": {"secretKeyRef": {"name": variable, "key": "k"}}}]);
        let spec = json!({"containers": [{"name": "c", "image": image, "env": env}]});
        place.pod(&variable, &node, &json!({}), spec).await?;
        let spec = json!({"volumes": [{"name": "v", "configMap": {"name": volume}}],
            "containers": [{"name": "c", "image": image, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]});
        place.pod(&volume, &node, &json!({}), spec).await?;
        let waiting = place
            .until(&variable, "without its secret", |pod| waits_for(pod, "CreateContainerConfigError"))
            .await?;
        let why = container(&waiting)["state"]["waiting"]["message"].as_str().unwrap_or_default();
        ensure!(why == format!("secret \"{variable}\" not found"), "{why}");
        place.until(&volume, "without its volume", |pod| waits_for(pod, "ContainerCreating")).await?;
        event(&place, &volume, "FailedMount", &format!("configmap \"{volume}\" not found")).await?;
        place.make::<Secret>(json!({"metadata": {"name": variable}, "stringData": {"k": "v"}})).await?;
        place.make::<ConfigMap>(json!({"metadata": {"name": volume}, "data": {"k": "v"}})).await?;
        for name in [&variable, &volume] {
            place.until_ready(name).await?;
        }
    }
    let given = images.of("real-env").given();
    ensure!(
        given.is_some_and(|given| given.env.get("X").map(String::as_str) == Some("v")),
        "it has its variable"
    );
    node.stop().await
}

pub async fn a_restart_leaves_pretending_pods_alone_and_starts_real_ones_again(
    server: &Server,
) -> Result<()> {
    let images = TestImages::default();
    let node = server.kubelet("restarted", &images).await;
    let place = server.namespace("restarted").await?;
    let real = json!({"containers": [{"name": "c", "image": IMAGE}]});
    place.pod("pretends", &node, &json!({}), json!({})).await?;
    place.pod("crashed", &node, &json!({"exitCode": 1, "failures": 1}), json!({})).await?;
    place.pod("done", &node, &json!({}), json!({"restartPolicy": "Never"})).await?;
    place.pod("real", &node, &json!({}), real).await?;
    for name in ["pretends", "crashed", "real"] {
        place.until_ready(name).await?;
    }
    place.until("done", "done", |pod| pod["status"]["phase"] == "Succeeded").await?;
    let pods = place.api::<Pod>();
    let look = async || -> Result<Vec<Value>> {
        let mut found = Vec::new();
        for name in ["pretends", "crashed", "done"] {
            found.push(serde_json::to_value(pods.get(name).await?)?);
        }
        Ok(found)
    };
    let before = look().await?;
    node.stop().await?;
    ensure!(
        images.of("real").stopped.load(std::sync::atomic::Ordering::Relaxed),
        "what really ran has ended"
    );
    // One that went while nobody watched.
    let gone = place.pod("gone", &node, &json!({}), json!({})).await?;
    pods.delete("gone", &DeleteParams::default().grace_period(0)).await?;
    ensure!(gone.metadata.uid.is_some());

    let node = server.kubelet("restarted", &images).await;
    let again = place
        .until("real", "started again", |pod| {
            container(pod)["restartCount"] == 1 && condition(pod, "Ready") == "True"
        })
        .await?;
    ensure!(container(&again)["lastState"]["terminated"]["reason"] == "Unknown", "{again:#}");
    ensure!(images.of("real").count() == 2);
    // It has looked at everything by the time a new pod runs.
    place.pod("new", &node, &json!({}), json!({})).await?;
    place.until_ready("new").await?;
    let after = look().await?;
    ensure!(after == before, "pods that pretend were touched: {before:#?} {after:#?}");
    node.stop().await
}
