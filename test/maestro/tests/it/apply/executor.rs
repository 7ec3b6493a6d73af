//! Works applied as another identity.

use anyhow::Result;
use aro_crds::work::v1::{ExecutorSubject, ExecutorSubjectType, ManifestWorkExecutor, ServiceAccountSubject};
use aro_maestro_e2e::agent::{Agent, is};
use aro_maestro_e2e::world::{World, config_map, on_ours, on_real};
use aro_work_engine::Work;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::work;

async fn make(world: &World, namespace: &str, object: Value) -> Result<()> {
    let (version, kind) =
        (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
    let api = world.objects(version, kind, namespace);
    api.create(&PostParams::default(), &serde_json::from_value(object.clone())?).await?;
    Ok(())
}

async fn executor_is_limited_to_its_permissions(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("executor").await?);
    let agent = Agent::start(world, &hub);
    let account = json!({"namespace": &namespace, "name": "worker", "kind": "ServiceAccount"});
    let role = |name: &str, rules: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": name, "namespace": &namespace}, "rules": rules})
    };
    let verbs = json!(["create", "update", "patch", "get", "delete"]);
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": verbs},
    ]);
    make(world, &namespace, role("may", rules.clone())).await?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "may", "namespace": &namespace}, "subjects": [account],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "may"}});
    make(world, &namespace, binding).await?;
    let executor = ManifestWorkExecutor {
        subject: Some(ExecutorSubject {
            kind: ExecutorSubjectType::ServiceAccount,
            service_account: Some(ServiceAccountSubject {
                namespace: namespace.clone(),
                name: "worker".to_owned(),
            }),
        }),
    };
    let secrets = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let manifests = vec![
        config_map(&namespace, "m", "1"),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": &namespace}}),
        role("same", rules),
        role("more", secrets),
    ];
    agent.put(Work { executor: Some(executor), ..work("w", 1, manifests) });
    let told = agent.wait_for("w", "what is denied", |told| is(told, "Applied", "False")).await?;
    let applied: Vec<&str> = told
        .status
        .resource_status
        .manifests
        .iter()
        .map(|manifest| manifest.conditions[0].status.as_str())
        .collect();
    assert_eq!(applied, ["True", "False", "True", "False"], "{told:#?}");
    let says = &told.status.resource_status.manifests[1].conditions[0].message;
    assert_eq!(
        *says,
        format!(
            "Failed to apply manifest: not allowed to apply the resource  secrets, {namespace} s, will try again in 1m0s"
        )
    );
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn executors_on_our_api_server() -> Result<()> {
    on_ours(executor_is_limited_to_its_permissions).await
}

#[tokio::test(flavor = "multi_thread")]
async fn executors_on_a_real_api_server() -> Result<()> {
    on_real(executor_is_limited_to_its_permissions).await
}
