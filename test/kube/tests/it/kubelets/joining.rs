//! A machine that has nothing but a bootstrap token becomes a node, with a node's rights and no more.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_base::Secret as Hidden;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod, Secret};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::image::{IMAGE, TestImages};
use super::server::Server;

const TOKEN: (&str, &str) = ("abcdef", "0123456789abcdef");

/// What whoever sets up a cluster that lets machines join has to make. None of it is there by default.
async fn let_machines_join(client: &Client) -> Result<()> {
    let (id, secret) = TOKEN;
    let token = json!({"metadata": {"name": format!("bootstrap-token-{id}")}, "type": "bootstrap.kubernetes.io/token",
        "stringData": {"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true"}});
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
    secrets.create(&PostParams::default(), &serde_json::from_value(token)?).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for (name, role) in [
        ("may-ask", "system:node-bootstrapper"),
        ("are-approved", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"),
    ] {
        let binding = json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers"}]});
        bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
    }
    Ok(())
}

pub async fn a_machine_with_a_token_becomes_a_node(server: &Server) -> Result<()> {
    let token = Hidden::new(format!("{}.{}", TOKEN.0, TOKEN.1));
    let limit = Duration::from_secs(30);
    let refused = aro_kube_kubelet::join(&server.config, &token, "joined", limit).await;
    ensure!(refused.is_err(), "nobody knows the token yet");
    let_machines_join(&server.client).await?;
    let wrong = Hidden::new(format!("{}.{}", TOKEN.0, "fedcba9876543210"));
    ensure!(
        aro_kube_kubelet::join(&server.config, &wrong, "joined", limit).await.is_err(),
        "that is not the token"
    );

    let joined = aro_kube_kubelet::join(&server.config, &token, "joined", limit).await?;
    let as_node = Client::try_from(joined)?;
    let images = TestImages::default();
    let node = server.kubelet_as(as_node.clone(), "joined", &images).await;
    let registered = Api::<NodeObject>::all(server.client.clone()).get("joined").await?;
    let ready = registered.status.and_then(|status| status.conditions).into_iter().flatten();
    ensure!({ ready }.any(|one| one.type_ == "Ready" && one.status == "True"), "it says that it is ready");

    let place = server.namespace("joined").await?;
    let secret = |name: &str| json!({"metadata": {"name": name}, "stringData": {"k": name}});
    for name in ["mine", "others"] {
        place.make::<Secret>(secret(name)).await?;
    }
    let other = server.kubelet("not-joined", &TestImages::default()).await;
    let with = |secret: &str, image: &str| {
        json!({"volumes": [{"name": "v", "secret": {"secretName": secret}}],
            "containers": [{"name": "c", "image": image, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]})
    };
    place.pod("pretends", &node, &json!({"exitCode": 1, "failures": 1}), with("mine", "x")).await?;
    place.pod("real", &node, &json!({}), with("mine", IMAGE)).await?;
    place.pod("elsewhere", &other, &json!({}), with("others", "x")).await?;
    for name in ["pretends", "real", "elsewhere"] {
        place.until_ready(name).await?;
    }
    let given = images.of("real").given().context("it was started")?;
    let file = given.locate("/v/k".as_ref()).context("its secret")?;
    ensure!(std::fs::read_to_string(file)? == "mine");

    // It is a node, and not more.
    let secrets: Api<Secret> = Api::namespaced(as_node.clone(), &place.namespace);
    ensure!(secrets.get("mine").await?.name_any() == "mine");
    ensure!(
        forbidden(secrets.get("others").await),
        "the secrets of other nodes' pods are none of its business"
    );
    let pods: Api<Pod> = Api::all(as_node.clone());
    ensure!(forbidden(pods.list(&ListParams::default()).await), "nor are other nodes' pods");
    ensure!(pods.list(&ListParams::default().fields("spec.nodeName=joined")).await?.items.len() == 2);
    let nodes: Api<NodeObject> = Api::all(as_node);
    ensure!(forbidden(nodes.delete("not-joined", &kube::api::DeleteParams::default()).await));

    place.api::<Pod>().delete("real", &kube::api::DeleteParams::default()).await?;
    place.until_gone("real").await?;
    node.stop().await?;
    other.stop().await
}

fn forbidden<T>(answer: Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
}
