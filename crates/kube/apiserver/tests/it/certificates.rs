//! Certificate signing requests: who may ask, approve and sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Caller, World, grant, grant_rule};

const NULL: Value = Value::Null;

fn request_of(organization: &str, name: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, organization);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    STANDARD.encode(params.serialize_request(&key).unwrap().pem().unwrap())
}

const CSRS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

#[tokio::test]
async fn an_approved_request_is_signed_and_carries_who_asked() {
    let world = World::new().await;
    let csr = json!({"metadata": {"name": "c"}, "spec": {"request": request_of("team", "alice"),
        "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], "username": "another user"}});
    let created = world.done(&Caller::admin(), "POST", CSRS, &csr).await;
    assert_eq!(created["spec"]["username"], "kubernetes-admin");
    let mut approved = created.clone();
    approved["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "Fine"}]});
    world.done(&Caller::admin(), "PUT", &format!("{CSRS}/c/approval"), &approved).await;
    let signed = world
        .until(&format!("{CSRS}/c"), "a certificate", |csr| csr["status"]["certificate"].is_string())
        .await;
    let pem = STANDARD.decode(signed["status"]["certificate"].as_str().unwrap()).unwrap();
    let der = pem::parse(pem).unwrap();
    let subject = aro_pki::Subject::of_certificate(der.contents()).unwrap();
    assert_eq!(subject, aro_pki::Subject::new("alice", ["team"]));
    world.end().await;
}

#[tokio::test]
async fn approving_needs_the_signers_permission_too() {
    let world = World::new().await;
    let csr = json!({"metadata": {"name": "c"}, "spec": {"request": request_of("team", "alice"),
        "signerName": "example.com/mine", "usages": ["client auth"]}});
    let mut approved = world.done(&Caller::admin(), "POST", CSRS, &csr).await;
    approved["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "Fine"}]});
    grant(&world, "eve", &["update"], "certificates.k8s.io", &["certificatesigningrequests/approval"]).await;
    let eve = Caller::named("eve", &[]);
    let (code, status) = world.call(&eve, "PUT", &format!("{CSRS}/c/approval"), &approved).await;
    assert_eq!(code, 403);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("user not permitted to approve requests with signerName \"example.com/mine\"")
    );
    grant(&world, "eve", &["approve"], "certificates.k8s.io", &["signers"]).await;
    world.done(&eve, "PUT", &format!("{CSRS}/c/approval"), &approved).await;
    world.end().await;
}

#[tokio::test]
async fn a_bootstrapping_node_gets_its_certificate_without_a_human() {
    let world = World::new().await;
    let binding = json!({"metadata": {"name": "nodes"}, "subjects": [{"kind": "Group", "name": "system:bootstrappers", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:certificates.k8s.io:certificatesigningrequests:nodeclient"}});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    world.done(&Caller::admin(), "POST", bindings, &binding).await;
    grant(
        &world,
        "system:bootstrap:abcdef",
        &["create", "get"],
        "certificates.k8s.io",
        &["certificatesigningrequests"],
    )
    .await;
    let node = Caller::named("system:bootstrap:abcdef", &["system:bootstrappers"]);
    let csr = |name: &str, organization: &str| {
        json!({"metadata": {"name": name}, "spec": {"request": request_of(organization, "system:node:n1"),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": ["client auth", "digital signature"]}})
    };
    world.done(&node, "POST", CSRS, &csr("n1", "system:nodes")).await;
    world.until(&format!("{CSRS}/n1"), "a certificate", |csr| csr["status"]["certificate"].is_string()).await;
    // A request that is no node's is left alone.
    world.done(&node, "POST", CSRS, &csr("other", "system:masters")).await;
    world.done(&node, "POST", CSRS, &csr("n2", "system:nodes")).await;
    world.until(&format!("{CSRS}/n2"), "a certificate", |csr| csr["status"]["certificate"].is_string()).await;
    let other = world.done(&Caller::admin(), "GET", &format!("{CSRS}/other"), &NULL).await;
    assert!(other["status"]["conditions"].is_null());
    world.end().await;
}

const MINE: &str = "example.com/mine";
const THEIRS: &str = "example.com/theirs";

/// A request for `MINE`, and eve, who may write its subresources but decides and signs for `THEIRS` only.
async fn request_of_mine(world: &World) -> (Value, Caller) {
    let csr = json!({"metadata": {"name": "c"}, "spec": {"request": request_of("team", "alice"),
        "signerName": MINE, "usages": ["client auth"]}});
    let csr = world.done(&Caller::admin(), "POST", CSRS, &csr).await;
    let subresources = ["certificatesigningrequests/approval", "certificatesigningrequests/status"];
    grant(world, "eve", &["update", "patch"], "certificates.k8s.io", &subresources).await;
    let signer = json!({"verbs": ["approve", "sign"], "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"], "resourceNames": [THEIRS]});
    grant_rule(world, "eve", signer).await;
    (csr, Caller::named("eve", &[]))
}

fn with_condition(csr: &Value, kind: &str) -> Value {
    let mut csr = csr.clone();
    csr["status"]["conditions"] = json!([{"type": kind, "status": "True", "reason": "Because"}]);
    csr
}

#[tokio::test]
async fn signer_named_in_the_body_does_not_authorize_an_approval_for_the_stored_signer() {
    let world = World::new().await;
    let (csr, eve) = request_of_mine(&world).await;
    let mut approved = with_condition(&csr, "Approved");
    approved["spec"]["signerName"] = json!(THEIRS);
    let (code, status) = world.call(&eve, "PUT", &format!("{CSRS}/c/approval"), &approved).await;
    assert_eq!(code, 403, "{status}");
    assert_eq!(
        status["message"],
        "certificatesigningrequests.certificates.k8s.io \"c\" is forbidden: user not permitted to approve requests with signerName \"example.com/mine\""
    );
    let mut signed = csr.clone();
    signed["spec"]["signerName"] = json!(THEIRS);
    signed["status"]["certificate"] = json!(STANDARD.encode("certificate"));
    let (code, status) = world.call(&eve, "PUT", &format!("{CSRS}/c/status"), &signed).await;
    assert_eq!(code, 403, "{status}");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("not permitted to sign requests with signerName \"example.com/mine\""),
        "{message}"
    );
    world.end().await;
}

#[tokio::test]
async fn status_cannot_approve_deny_or_take_back_a_decision() {
    let world = World::new().await;
    let admin = Caller::admin();
    let (csr, eve) = request_of_mine(&world).await;
    let status = format!("{CSRS}/c/status");
    for decision in ["Approved", "Denied"] {
        for caller in [&admin, &eve] {
            let (code, answer) = world.call(caller, "PUT", &status, &with_condition(&csr, decision)).await;
            assert_eq!(code, 422, "{answer}");
            assert_eq!(
                answer["message"],
                format!(
                    "CertificateSigningRequest.certificates.k8s.io \"c\" is invalid: status.conditions: Forbidden: updates may not add a condition of type {decision:?}"
                )
            );
        }
    }
    // A write that changes nothing needs no permission to sign.
    world.done(&eve, "PUT", &status, &csr).await;
    let approved = with_condition(&csr, "Approved");
    let approved = world.done(&admin, "PUT", &format!("{CSRS}/c/approval"), &approved).await;
    let mut taken_back = approved.clone();
    taken_back["status"]["conditions"] = json!([]);
    for path in [status.clone(), format!("{CSRS}/c/approval")] {
        let (code, answer) = world.call(&admin, "PUT", &path, &taken_back).await;
        assert_eq!(code, 422, "{answer}");
        assert!(
            answer["message"].as_str().unwrap().contains("may not remove a condition of type \"Approved\"")
        );
    }
    // What was decided stays as it was, and a signer may report that it failed.
    let reworded = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Other"},
        {"type": "Failed", "status": "True", "reason": "SignerFailed"}]}});
    assert_eq!(world.call(&eve, "PATCH", &status, &reworded).await.0, 403);
    let failed = world.done(&admin, "PATCH", &status, &reworded).await;
    assert_eq!(failed["status"]["conditions"][0], approved["status"]["conditions"][0]);
    assert_eq!(failed["status"]["conditions"][1]["type"], "Failed");
    world.end().await;
}

#[tokio::test]
async fn certificate_is_written_once_and_only_through_status() {
    let world = World::new().await;
    let admin = Caller::admin();
    request_of_mine(&world).await;
    let certificate = |text: &str| json!({"status": {"certificate": STANDARD.encode(text)}});
    let answer = world.done(&admin, "PATCH", &format!("{CSRS}/c/approval"), &certificate("one")).await;
    assert!(answer["status"]["certificate"].is_null(), "{answer}");
    let status = format!("{CSRS}/c/status");
    world.done(&admin, "PATCH", &status, &certificate("one")).await;
    let (code, answer) = world.call(&admin, "PATCH", &status, &certificate("two")).await;
    assert_eq!(code, 422, "{answer}");
    assert!(
        answer["message"].as_str().unwrap().contains("updates may not modify existing certificate content")
    );
    world.end().await;
}

#[tokio::test]
async fn no_client_certificate_is_requested_for_the_group_that_roles_cannot_restrict() {
    let world = World::new().await;
    let csr = |name: &str, request: String, signer: &str| json!({"metadata": {"name": name}, "spec": {"request": request, "signerName": signer, "usages": ["client auth"]}});
    let masters = || request_of("system:masters", "eve");
    let client = "kubernetes.io/kube-apiserver-client";
    let (code, status) = world.call(&Caller::admin(), "POST", CSRS, &csr("m", masters(), client)).await;
    assert_eq!(code, 403, "{status}");
    assert_eq!(
        status["message"],
        "certificatesigningrequests.certificates.k8s.io \"m\" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    // Other signers have their own idea of groups.
    world.done(&Caller::admin(), "POST", CSRS, &csr("m", masters(), MINE)).await;
    let unreadable =
        STANDARD.encode("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n");
    let (code, status) = world.call(&Caller::admin(), "POST", CSRS, &csr("u", unreadable, client)).await;
    assert_eq!(code, 403, "{status}");
    world.end().await;
}
