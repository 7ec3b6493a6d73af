//! What nodes may do, and how a machine becomes one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Caller, World};

const NULL: Value = Value::Null;
const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn node(name: &str) -> Caller {
    Caller::named(&format!("system:node:{name}"), &["system:nodes"])
}

fn pod(name: &str, node: &str, secret: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x",
        "envFrom": [{"secretRef": {"name": secret}}, {"configMapRef": {"name": secret}}]}]}})
}

async fn world() -> World {
    let world = World::new().await;
    let admin = Caller::admin();
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    world.until(account, "the default account", |account| account["metadata"]["name"] == "default").await;
    for name in ["a", "b"] {
        world.done(&node(name), "POST", NODES, &json!({"metadata": {"name": name}})).await;
        world.done(&admin, "POST", SECRETS, &json!({"metadata": {"name": name}})).await;
        world.done(&admin, "POST", MAPS, &json!({"metadata": {"name": name}})).await;
        world.done(&admin, "POST", PODS, &pod(&format!("on-{name}"), name, name)).await;
    }
    world
}

async fn refused(world: &World, caller: &Caller, method: &str, path: &str, body: &Value, why: &str) {
    let (code, status) = world.call(caller, method, path, body).await;
    assert_eq!(code, 403, "{method} {path}: {status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.ends_with(why), "{method} {path}: {message}");
}

#[tokio::test]
async fn a_node_reads_what_its_pods_need_and_nothing_else() {
    let world = world().await;
    let a = node("a");
    let stranger = "no relationship found between node 'a' and this object";
    for collection in [SECRETS, MAPS] {
        world.done(&a, "GET", &format!("{collection}/a"), &NULL).await;
        world.done(&a, "GET", &format!("{collection}?fieldSelector=metadata.name%3Da"), &NULL).await;
        refused(&world, &a, "GET", &format!("{collection}/b"), &NULL, stranger).await;
        refused(&world, &a, "GET", collection, &NULL, "No Object name found").await;
        refused(
            &world,
            &a,
            "DELETE",
            &format!("{collection}/a"),
            &NULL,
            "can only read resources of this type",
        )
        .await;
    }
    world.done(&a, "GET", &format!("{PODS}/on-a"), &NULL).await;
    refused(&world, &a, "GET", &format!("{PODS}/on-b"), &NULL, stranger).await;
    let mine = world.done(&a, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Da", &NULL).await;
    assert_eq!(mine["items"].as_array().map(Vec::len), Some(1));
    let all = "can only list/watch pods with spec.nodeName field selector";
    refused(&world, &a, "GET", "/api/v1/pods", &NULL, all).await;
    refused(&world, &a, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Db", &NULL, all).await;
    world.done(&a, "GET", "/api/v1/services", &NULL).await;
    world.done(&a, "GET", "/apis/node.k8s.io/v1/runtimeclasses", &NULL).await;
    refused(&world, &a, "GET", "/apis/apps/v1/deployments", &NULL, "at the cluster scope").await;
    // When the pod is gone, so is the reason to read.
    world.done(&Caller::admin(), "DELETE", &format!("{PODS}/on-a?gracePeriodSeconds=0"), &NULL).await;
    refused(&world, &a, "GET", &format!("{SECRETS}/a"), &NULL, stranger).await;
    // The name alone does not make a user a node.
    assert_eq!(
        world.call(&Caller::named("system:node:b", &[]), "GET", &format!("{SECRETS}/b"), &NULL).await.0,
        403
    );
    world.end().await;
}

#[tokio::test]
async fn a_node_reads_the_volumes_of_its_pods_and_their_secrets() {
    let world = world().await;
    let admin = Caller::admin();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"});
    world.done(&admin, "POST", claims, &json!({"metadata": {"name": "c"}, "spec": spec})).await;
    let volume = json!({"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": "default", "name": "c"},
        "csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"namespace": "default", "name": "mount"}}}});
    world.done(&admin, "POST", "/api/v1/persistentvolumes", &volume).await;
    world.done(&admin, "POST", SECRETS, &json!({"metadata": {"name": "mount"}})).await;
    let mut user = pod("user", "a", "a");
    user["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    world.done(&admin, "POST", PODS, &user).await;
    for path in [&format!("{claims}/c"), "/api/v1/persistentvolumes/v", &format!("{SECRETS}/mount")] {
        world.done(&node("a"), "GET", path, &NULL).await;
        refused(
            &world,
            &node("b"),
            "GET",
            path,
            &NULL,
            "no relationship found between node 'b' and this object",
        )
        .await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_node_writes_about_itself_and_its_pods_only() {
    let world = world().await;
    let a = node("a");
    world.done(&a, "GET", &format!("{NODES}/a"), &NULL).await;
    refused(
        &world,
        &a,
        "GET",
        &format!("{NODES}/b"),
        &NULL,
        "node 'a' cannot read 'b', only its own Node object",
    )
    .await;
    refused(&world, &a, "GET", NODES, &NULL, "node 'a' cannot read all nodes, only its own Node object")
        .await;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    world.done(&a, "PATCH", &format!("{NODES}/a/status"), &ready).await;
    let other = "node \"a\" is not allowed to modify node \"b\"";
    refused(&world, &a, "PATCH", &format!("{NODES}/b/status"), &ready, other).await;
    refused(
        &world,
        &a,
        "POST",
        NODES,
        &json!({"metadata": {"name": "c"}}),
        "node \"a\" is not allowed to modify node \"c\"",
    )
    .await;
    let label = |name: &str| json!({"metadata": {"labels": {name: "x"}}});
    world.done(&a, "PATCH", &format!("{NODES}/a"), &label("example.com/x")).await;
    let restricted = "is not allowed to modify labels: node-restriction.kubernetes.io/x";
    refused(
        &world,
        &a,
        "PATCH",
        &format!("{NODES}/a"),
        &label("node-restriction.kubernetes.io/x"),
        restricted,
    )
    .await;
    let untainted = json!({"spec": {"taints": []}});
    refused(
        &world,
        &a,
        "PATCH",
        &format!("{NODES}/a"),
        &untainted,
        "node \"a\" is not allowed to modify taints",
    )
    .await;
    assert_eq!(world.call(&a, "DELETE", &format!("{NODES}/a"), &NULL).await.0, 403);

    let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {"holderIdentity": name}});
    world.done(&a, "POST", LEASES, &lease("a")).await;
    world.done(&a, "PATCH", &format!("{LEASES}/a"), &json!({"spec": {"leaseDurationSeconds": 40}})).await;
    world.done(&a, "GET", &format!("{LEASES}/a"), &NULL).await;
    let own = "can only access node lease with the same name as the requesting node";
    refused(&world, &a, "POST", LEASES, &lease("b"), own).await;
    refused(&world, &a, "GET", &format!("{LEASES}/b"), &NULL, own).await;
    let elsewhere = LEASES.replace("kube-node-lease", "default");
    refused(&world, &a, "POST", &elsewhere, &lease("a"), "in the \"kube-node-lease\" system namespace").await;
    world.done(&a, "DELETE", &format!("{LEASES}/a"), &NULL).await;

    let running = json!({"status": {"phase": "Running"}});
    world.done(&a, "PATCH", &format!("{PODS}/on-a/status"), &running).await;
    let not_here = "can only update pod status for pods with spec.nodeName set to itself";
    refused(&world, &a, "PATCH", &format!("{PODS}/on-b/status"), &running, not_here).await;
    refused(
        &world,
        &a,
        "PATCH",
        &format!("{PODS}/on-a/status"),
        &label("x"),
        "cannot update labels through pod status",
    )
    .await;
    refused(
        &world,
        &a,
        "DELETE",
        &format!("{PODS}/on-b"),
        &NULL,
        "node \"a\" can only delete pods with spec.nodeName set to itself",
    )
    .await;
    let eviction =
        |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    refused(
        &world,
        &a,
        "POST",
        &format!("{PODS}/on-b/eviction"),
        &eviction("on-b"),
        "evict pods with spec.nodeName set to itself",
    )
    .await;
    refused(&world, &a, "POST", PODS, &pod("mine", "a", "b"), "node \"a\" can only create mirror pods").await;
    world.done(&a, "DELETE", &format!("{PODS}/on-a?gracePeriodSeconds=0"), &NULL).await;
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "on-a"}});
    world.done(&a, "POST", "/api/v1/namespaces/default/events", &event).await;
    world.end().await;
}

#[tokio::test]
async fn a_node_creates_mirror_pods_of_its_own() {
    let world = world().await;
    let own = world.done(&node("a"), "GET", &format!("{NODES}/a"), &NULL).await;
    let mirror = |uid: &Value| {
        json!({"metadata": {"name": "static-a", "annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid, "controller": true}]},
            "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "x"}]}})
    };
    let (code, status) = world.call(&node("a"), "POST", PODS, &mirror(&json!("other"))).await;
    assert_eq!(code, 403);
    assert!(status["message"].as_str().unwrap().contains("UID mismatch"), "{status}");
    world.done(&node("a"), "POST", PODS, &mirror(&own["metadata"]["uid"])).await;
    world.end().await;
}

#[tokio::test]
async fn a_node_gets_tokens_for_pods_on_it_only() {
    let world = world().await;
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let admin = Caller::admin();
    let uid = |pod: Value| pod["metadata"]["uid"].clone();
    let (on_a, on_b) = (
        uid(world.done(&admin, "GET", &format!("{PODS}/on-a"), &NULL).await),
        uid(world.done(&admin, "GET", &format!("{PODS}/on-b"), &NULL).await),
    );
    let request = |pod: &str, uid: &Value, audiences: &Value| json!({"spec": {"audiences": audiences, "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}}});
    let none = json!([]);
    world.done(&node("a"), "POST", path, &request("on-a", &on_a, &none)).await;
    let elsewhere = "node requested token bound to a pod scheduled on a different node";
    refused(&world, &node("a"), "POST", path, &request("on-b", &on_b, &none), elsewhere).await;
    refused(
        &world,
        &node("a"),
        "POST",
        path,
        &json!({"spec": {}}),
        "node requested token not bound to a pod",
    )
    .await;
    refused(
        &world,
        &node("a"),
        "POST",
        path,
        &request("on-a", &json!(""), &none),
        "a pod binding without a uid",
    )
    .await;
    let vault = request("on-a", &on_a, &json!(["vault"]));
    refused(
        &world,
        &node("a"),
        "POST",
        path,
        &vault,
        "is not authorized to request tokens for this audience",
    )
    .await;
    world.end().await;
}

async fn bind(world: &World, name: &str, group: &str, role: &str) {
    let binding = json!({"metadata": {"name": name},
        "subjects": [{"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}});
    world
        .done(&Caller::admin(), "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding)
        .await;
}

/// A request for a certificate, in the form of its API.
fn signing_request(object: &str, node: &str) -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("system:node:{node}"));
    let request = STANDARD.encode(params.serialize_request(&key).unwrap().pem().unwrap());
    json!({"metadata": {"name": object}, "spec": {"request": request,
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": ["digital signature", "client auth"]}})
}

#[tokio::test]
async fn a_machine_with_a_bootstrap_token_becomes_a_node() {
    let world = world().await;
    let admin = Caller::admin();
    let csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    // What installers set up, as upstream's do: a new cluster admits no node by itself.
    bind(&world, "bootstrap", "system:bootstrappers", "system:node-bootstrapper").await;
    bind(
        &world,
        "approve",
        "system:bootstrappers",
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    )
    .await;
    bind(
        &world,
        "rotate",
        "system:nodes",
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    )
    .await;
    let encode = |text: &str| STANDARD.encode(text);
    let token = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "data": {
        "token-id": encode("abcdef"), "token-secret": encode("0123456789abcdef"), "usage-bootstrap-authentication": encode("true")}});
    world.done(&admin, "POST", "/api/v1/namespaces/kube-system/secrets", &token).await;

    let machine = Caller::with_token("abcdef.0123456789abcdef");
    assert_eq!(world.call(&machine, "POST", NODES, &json!({"metadata": {"name": "c"}})).await.0, 403);
    world.done(&machine, "POST", csrs, &signing_request("first", "c")).await;
    let read = |csr: &Value| csr["status"]["certificate"].is_string();
    let signed = world.until(&format!("{csrs}/first"), "a certificate", read).await;
    world.done(&machine, "GET", &format!("{csrs}/first"), &NULL).await;
    let pem = STANDARD.decode(signed["status"]["certificate"].as_str().unwrap()).unwrap();
    let subject = aro_pki::Subject::of_certificate(pem::parse(pem).unwrap().contents()).unwrap();
    let organizations: Vec<&str> = subject.organizations.iter().map(String::as_str).collect();
    let c = Caller::named(&subject.common_name, &organizations);

    world
        .done(
            &c,
            "POST",
            NODES,
            &json!({"metadata": {"name": "c", "labels": {"kubernetes.io/hostname": "c"}}}),
        )
        .await;
    world
        .done(&c, "POST", LEASES, &json!({"metadata": {"name": "c"}, "spec": {"holderIdentity": "c"}}))
        .await;
    world.done(&c, "PATCH", &format!("{LEASES}/c"), &json!({"spec": {"leaseDurationSeconds": 40}})).await;
    world.done(&c, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dc", &NULL).await;
    assert_eq!(world.call(&c, "GET", &format!("{SECRETS}/a"), &NULL).await.0, 403);
    // It renews its own certificate, and no other.
    world.done(&c, "POST", csrs, &signing_request("second", "c")).await;
    world.until(&format!("{csrs}/second"), "a certificate", read).await;
    let other = "can only create a node CSR with CN=system:node:c";
    refused(&world, &c, "POST", csrs, &signing_request("third", "a"), other).await;
    world.end().await;
}
