//! Containers that really run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, ensure};
use aro_fixtures::wait;
use aro_kube_kubelet::ContainerSpec;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret, ServiceAccount};
use kube::Client;
use kube::api::{Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::AuthInfo;
use serde_json::{Value, json};

use super::image::{IMAGE, PORT, REFUSED_ACCOUNT, TestImages};
use super::server::{Place, Server, condition};

fn read(given: &ContainerSpec, path: &str) -> Result<String> {
    let file = given.locate(path.as_ref()).with_context(|| format!("{path} is there"))?;
    std::fs::read_to_string(file).with_context(|| format!("read {path}"))
}

pub async fn a_container_gets_its_files_and_variables(server: &Server) -> Result<()> {
    let images = TestImages::default();
    let node = server.kubelet("files", &images).await;
    let place = server.namespace("files").await?;
    place
        .make::<Secret>(json!({"metadata": {"name": "s"}, "stringData": {"password": "one", "other": "x"}}))
        .await?;
    place
        .make::<ConfigMap>(
            json!({"metadata": {"name": "m"}, "data": {"MODE": "fast", "config.toml": "a = 1"}}),
        )
        .await?;
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let spec = json!({
        "volumes": [
            {"name": "secret", "secret": {"secretName": "s", "items": [{"key": "password", "path": "deep/pw", "mode": 0o400}]}},
            {"name": "all", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
                {"configMap": {"name": "m"}},
                {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]}},
            {"name": "scratch", "emptyDir": {}},
        ],
        "containers": [{"name": "c", "image": IMAGE, "command": ["run"], "args": ["--mode=$(MODE)", "$$(MODE)", "$(NOBODY)"],
            "env": [
                {"name": "POD", "valueFrom": field("metadata.name")},
                {"name": "NODE", "valueFrom": field("spec.nodeName")},
                {"name": "ADDRESS", "valueFrom": field("status.podIP")},
                {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
                {"name": "BOTH", "value": "$(MODE) on $(NODE)"},
            ],
            "envFrom": [{"configMapRef": {"name": "m"}}],
            "volumeMounts": [
                {"name": "secret", "mountPath": "/etc/secret", "readOnly": true},
                {"name": "all", "mountPath": "/var/run/all"},
                {"name": "scratch", "mountPath": "/tmp/scratch"},
            ],
        }],
    });
    place.pod("reader", &node, &json!({}), spec).await?;
    let pod = place.until_ready("reader").await?;
    ensure!(pod["metadata"]["annotations"].get("aro.dev/simulated").is_none(), "it is real: {pod:#}");
    let given = images.of("reader").given().context("it was started")?;
    ensure!(given.args == ["run", "--mode=fast", "$(MODE)", "$(NOBODY)"], "{:?}", given.args);
    let address = pod["status"]["podIP"].as_str().unwrap_or_default();
    for (name, value) in [
        ("POD", "reader"),
        ("NODE", "files"),
        ("ADDRESS", address),
        ("PASSWORD", "one"),
        ("MODE", "fast"),
        ("BOTH", "fast on files"),
    ] {
        ensure!(given.env.get(name).map(String::as_str) == Some(value), "{name} in {:?}", given.env);
    }
    ensure!(read(&given, "/etc/secret/deep/pw")? == "one");
    ensure!(read(&given, "/etc/secret/other").is_err(), "only what was asked for");
    ensure!(
        read(&given, "/var/run/all/config.toml")? == "a = 1"
            && read(&given, "/var/run/all/name")? == "reader"
    );
    let scratch = given.locate("/tmp/scratch/mine".as_ref()).context("a scratch directory")?;
    std::fs::write(&scratch, "x")?;

    // The token is the account's.
    let mut config = server.config.clone();
    config.auth_info =
        AuthInfo { token: Some(read(&given, "/var/run/all/token")?.into()), ..AuthInfo::default() };
    let me = Api::<SelfSubjectReview>::all(Client::try_from(config)?)
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await?;
    let user = me.status.and_then(|status| status.user_info).context("a user")?;
    ensure!(user.username == Some(format!("system:serviceaccount:{}:default", place.namespace)), "{user:?}");
    let bound =
        user.extra.iter().flatten().any(|(key, value)| key.ends_with("/pod-name") && *value == ["reader"]);
    ensure!(bound, "it is good for this pod only: {:?}", user.extra);

    // What changes is seen in files, and only there.
    let patch = Patch::Merge(json!({"stringData": {"password": "two"}}));
    place.api::<Secret>().patch("s", &PatchParams::default(), &patch).await?;
    wait::until("the file to change", || async {
        Ok((read(&given, "/etc/secret/deep/pw")? == "two").then_some(()))
    })
    .await?;
    ensure!(images.of("reader").count() == 1, "it was not started again");
    place.api::<Pod>().delete("reader", &DeleteParams::default()).await?;
    place.until_gone("reader").await?;
    wait::until("its files to go", || async { Ok(server.pod_dirs("files").is_empty().then_some(())) })
        .await?;
    node.stop().await
}

/// The messages of the warnings about a pod.
async fn warnings(place: &Place, pod: &str) -> Result<Vec<String>> {
    let selector = format!("involvedObject.name={pod},type=Warning");
    let events = place.api::<Event>().list(&ListParams::default().fields(&selector)).await?;
    Ok(events.items.into_iter().filter_map(|event| event.message).collect())
}

pub async fn pod_that_may_not_run_an_image_gets_an_error_and_never_a_container(
    server: &Server,
) -> Result<()> {
    let images = TestImages::default();
    let node = server.kubelet("refused", &images).await;
    let place = server.namespace("refused").await?;
    place.make::<ServiceAccount>(json!({"metadata": {"name": REFUSED_ACCOUNT}})).await?;
    let spec = json!({
        "serviceAccountName": REFUSED_ACCOUNT,
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "containers": [{"name": "c", "image": IMAGE}],
    });
    place.pod("tenant", &node, &json!({}), spec).await?;
    let waiting = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
    let pod =
        place.until("tenant", "refused", |pod| waiting(pod)["reason"] == "CreateContainerError").await?;
    let message = waiting(&pod)["message"].as_str().unwrap_or_default().to_owned();
    ensure!(message == format!("image \"{IMAGE}\" is refused: not for {}", place.namespace), "{message}");
    wait::until("an event about it", || async {
        let told = warnings(&place, "tenant").await?;
        Ok(told.iter().any(|told| told.contains("is refused")).then_some(()))
    })
    .await?;
    ensure!(images.of("tenant").count() == 0, "it was never started");
    ensure!(server.pod_dirs("refused").is_empty(), "nothing was made for it on the node");
    node.stop().await
}

pub async fn host_path_that_is_not_allowed_is_not_mounted(server: &Server) -> Result<()> {
    let images = TestImages::default();
    let node = server.kubelet("hostpath", &images).await;
    let place = server.namespace("hostpath").await?;
    let spec = json!({
        "volumes": [{"name": "etc", "hostPath": {"path": "/etc"}}],
        "containers": [{"name": "c", "image": IMAGE, "volumeMounts": [{"name": "etc", "mountPath": "/host"}]}],
    });
    place.pod("nosy", &node, &json!({}), spec).await?;
    wait::until("an event about the host path", || async {
        let told = warnings(&place, "nosy").await?;
        Ok(told.iter().any(|told| told.contains("is not among the host paths")).then_some(()))
    })
    .await?;
    ensure!(images.of("nosy").count() == 0, "it was never started");
    node.stop().await
}

pub async fn probes_are_asked_and_believed(server: &Server) -> Result<()> {
    let images = TestImages::default();
    let node = server.kubelet("probed", &images).await;
    let place = server.namespace("probed").await?;
    let probe =
        json!({"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 1, "failureThreshold": 1});
    let spec = |kind: &str| {
        let mut container =
            json!({"name": "c", "image": IMAGE, "ports": [{"name": "http", "containerPort": PORT}]});
        container[kind] = probe.clone();
        json!({"containers": [container]})
    };
    images.of("asked").unwell.store(true, Ordering::Relaxed);
    place.pod("asked", &node, &json!({}), spec("readinessProbe")).await?;
    place.pod("alive", &node, &json!({}), spec("livenessProbe")).await?;
    place.pod("fails", &node, &json!({}), json!({"containers": [{"name": "c", "image": IMAGE}]})).await?;
    let restarts =
        |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap_or_default();
    place
        .until("asked", "running, not ready", |pod| {
            pod["status"]["phase"] == "Running" && condition(pod, "Ready") == "False"
        })
        .await?;
    images.of("asked").unwell.store(false, Ordering::Relaxed);
    let ready = place.until_ready("asked").await?;
    ensure!(restarts(&ready) == 0, "readiness restarts nothing: {ready:#}");
    images.of("asked").unwell.store(true, Ordering::Relaxed);
    place.until("asked", "not ready again", |pod| condition(pod, "Ready") == "False").await?;

    place.until_ready("alive").await?;
    images.of("alive").unwell.store(true, Ordering::Relaxed);
    let killed = place.until("alive", "killed", |pod| restarts(pod) >= 1).await?;
    let last = &killed["status"]["containerStatuses"][0]["lastState"]["terminated"];
    ensure!(last["exitCode"] == 137, "{killed:#}");
    images.of("alive").unwell.store(false, Ordering::Relaxed);
    place.until_ready("alive").await?;

    place.until_ready("fails").await?;
    images.of("fails").fail.notify_one();
    let failed = place
        .until("fails", "started again", |pod| restarts(pod) == 1 && condition(pod, "Ready") == "True")
        .await?;
    let last = &failed["status"]["containerStatuses"][0]["lastState"]["terminated"];
    ensure!(
        last["exitCode"] == 1
            && last["message"].as_str().is_some_and(|why| why.contains("the test wants it to fail")),
        "{failed:#}"
    );
    node.stop().await
}

pub async fn containers_have_time_to_stop_and_no_more(server: &Server) -> Result<()> {
    let images = TestImages::default();
    let node = server.kubelet("stopping", &images).await;
    let place = server.namespace("stopping").await?;
    let pods = place.api::<Pod>();
    let spec = |grace: i64| json!({"terminationGracePeriodSeconds": grace, "containers": [{"name": "c", "image": IMAGE}]});
    for (name, grace) in [("patient", 600), ("hasty", 1), ("evicted", 600)] {
        images.of(name).slow.store(true, Ordering::Relaxed);
        place.pod(name, &node, &json!({}), spec(grace)).await?;
        place.until_ready(name).await?;
    }
    pods.delete("patient", &DeleteParams::default()).await?;
    pods.evict("evicted", &EvictParams::default()).await?;
    for name in ["patient", "evicted"] {
        let control = images.of(name);
        wait::until("the container to be told", || async {
            Ok(control.told.load(Ordering::Relaxed).then_some(()))
        })
        .await?;
        ensure!(
            pods.get(name).await?.metadata.deletion_timestamp.is_some(),
            "{name} waits for its container"
        );
        control.released.notify_one();
        place.until_gone(name).await?;
        ensure!(control.stopped.load(Ordering::Relaxed), "{name} ended by itself");
    }
    pods.delete("hasty", &DeleteParams::default()).await?;
    place.until_gone("hasty").await?;
    let hasty = images.of("hasty");
    ensure!(hasty.told.load(Ordering::Relaxed) && !hasty.stopped.load(Ordering::Relaxed), "it was cut off");
    // Somebody loses patience.
    for (name, grace) in [("forced", 0), ("shortened", 1)] {
        images.of(name).slow.store(true, Ordering::Relaxed);
        place.pod(name, &node, &json!({}), spec(600)).await?;
        place.until_ready(name).await?;
        pods.delete(name, &DeleteParams::default()).await?;
        let control = images.of(name);
        wait::until("the container to be told", || async {
            Ok(control.told.load(Ordering::Relaxed).then_some(()))
        })
        .await?;
        pods.delete(name, &DeleteParams::default().grace_period(grace)).await?;
        place.until_gone(name).await?;
        wait::until("the container to be cut off", || async {
            Ok((Arc::strong_count(&control) == 2).then_some(()))
        })
        .await?;
        ensure!(!control.stopped.load(Ordering::Relaxed), "it did not end by itself");
    }
    // A shorter grace period counts from when it is told.
    place.pod("hurried", &node, &json!({}), spec(600)).await?;
    images.of("hurried").slow.store(true, Ordering::Relaxed);
    place.until_ready("hurried").await?;
    pods.delete("hurried", &DeleteParams::default().grace_period(1)).await?;
    place.until_gone("hurried").await?;
    wait::until("all files to go", || async { Ok(server.pod_dirs("stopping").is_empty().then_some(())) })
        .await?;
    node.stop().await
}
