//! Paths that do not exist, writes that create, and the headers that name a caller.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Caller, World, grant};

const NULL: Value = Value::Null;
const MISSING: &str = "the server could not find the requested resource";
const WRONG_METHOD: &str = "the server does not allow this method on the requested resource";

async fn refused(world: &World, method: &str, path: &str, code: u16, message: &str) {
    let (got, status) = world.call(&Caller::admin(), method, path, &NULL).await;
    assert_eq!((got, status["message"].as_str()), (code, Some(message)), "{method} {path}: {status}");
}

#[tokio::test]
async fn right_to_a_namespace_does_not_reach_cluster_scoped_objects_through_its_path() {
    let world = World::new().await;
    let admin = Caller::admin();
    for name in ["a", "b"] {
        world.done(&admin, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
    }
    // Eve may do everything inside of `a`.
    let binding = json!({"metadata": {"name": "eve"}, "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings";
    world.done(&admin, "POST", bindings, &binding).await;
    let eve = Caller::named("eve", &[]);
    let (code, status) = world.call(&eve, "DELETE", "/api/v1/namespaces/a/namespaces/b", &NULL).await;
    assert_eq!((code, status["message"].as_str()), (404, Some(MISSING)));
    let b = world.done(&admin, "GET", "/api/v1/namespaces/b", &NULL).await;
    assert!(b["metadata"]["deletionTimestamp"].is_null(), "{b}");
    for (method, path) in [
        ("GET", "/api/v1/namespaces/a/namespaces"),
        ("GET", "/api/v1/namespaces/a/namespaces/a"),
        ("PUT", "/api/v1/namespaces/a/namespaces/b/finalize"),
        ("GET", "/api/v1/watch/namespaces/a/namespaces"),
        ("GET", "/api/v1/namespaces/a/nodes/x"),
        ("POST", "/api/v1/namespaces/a/nodes"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/clusterroles"),
        ("DELETE", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/clusterroles/admin"),
    ] {
        refused(&world, method, path, 404, MISSING).await;
        let (code, status) = world.call(&eve, method, path, &NULL).await;
        assert_eq!((code, status["message"].as_str()), (404, Some(MISSING)), "{method} {path}");
    }
    world.end().await;
}

#[tokio::test]
async fn objects_of_namespaces_have_no_name_and_no_writes_across_all_namespaces() {
    let world = World::new().await;
    for (method, path) in [
        ("GET", "/api/v1/pods/x"),
        ("DELETE", "/api/v1/pods/x"),
        ("GET", "/apis/apps/v1/deployments/x/scale"),
        ("POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews"),
        ("GET", "/api/v1/namespaces/default/pods/x/status/more"),
        ("GET", "/api/v1/namespaces/default/status/more"),
    ] {
        refused(&world, method, path, 404, MISSING).await;
    }
    let maps = "/api/v1/namespaces/default/configmaps";
    world.done(&Caller::admin(), "POST", maps, &json!({"metadata": {"name": "stays"}})).await;
    for (method, path) in
        [("DELETE", "/api/v1/configmaps"), ("POST", "/api/v1/configmaps"), ("PATCH", "/api/v1/configmaps")]
    {
        refused(&world, method, path, 405, WRONG_METHOD).await;
    }
    world.done(&Caller::admin(), "GET", &format!("{maps}/stays"), &NULL).await;
    world.end().await;
}

#[tokio::test]
async fn apply_that_creates_requires_create_permission() {
    let world = World::new().await;
    grant(&world, "eve", &["patch"], "", &["configmaps"]).await;
    let eve = Caller::named("eve", &[]).header("content-type", "application/apply-patch+yaml");
    let path = "/api/v1/namespaces/default/configmaps/c?fieldManager=eve";
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}});
    for path in [path.to_owned(), format!("{path}&dryRun=All")] {
        let (code, status) = world.call(&eve, "PATCH", &path, &config).await;
        assert_eq!(code, 403, "{status}");
        assert_eq!(
            status["message"],
            "configmaps \"c\" is forbidden: User \"eve\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
        );
    }
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(world.call(&Caller::admin(), "GET", &format!("{maps}/c"), &NULL).await.0, 404);
    // One that exists needs no more than the right to patch.
    world.done(&Caller::admin(), "POST", maps, &json!({"metadata": {"name": "c"}})).await;
    world.done(&eve, "PATCH", path, &config).await;
    world.done(&Caller::admin(), "DELETE", &format!("{maps}/c"), &NULL).await;
    grant(&world, "eve", &["create"], "", &["configmaps"]).await;
    world.done(&eve, "PATCH", path, &config).await;
    world.end().await;
}

#[tokio::test]
async fn update_that_creates_requires_create_permission() {
    let world = World::new().await;
    grant(&world, "eve", &["update"], "coordination.k8s.io", &["leases"]).await;
    let eve = Caller::named("eve", &[]);
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "eve"}});
    let (code, status) = world.call(&eve, "PUT", path, &lease).await;
    assert_eq!(code, 403, "{status}");
    assert_eq!(
        status["message"],
        "leases.coordination.k8s.io \"l\" is forbidden: User \"eve\" cannot create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"default\""
    );
    grant(&world, "eve", &["create"], "coordination.k8s.io", &["leases"]).await;
    world.done(&eve, "PUT", path, &lease).await;
    world.end().await;
}

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn whoami(world: &World, caller: &Caller) -> (u16, Value) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let (code, answer) = world.call(caller, "POST", REVIEWS, &review).await;
    let user = answer.pointer("/status/userInfo").cloned();
    (code, user.unwrap_or(answer))
}

#[tokio::test]
async fn identity_header_that_cannot_be_read_is_refused_and_never_ignored() {
    let world = World::new().await;
    let jane = || Caller::admin().header("impersonate-user", "jane");
    for caller in [
        Caller::admin().header("impersonate-user", "jürgen"),
        Caller::admin().header("impersonate-group", "grüße"),
        jane().header("impersonate-user", "jürgen"),
        jane().header("impersonate-group", "grüße"),
        jane().header("impersonate-uid", "ü"),
        jane().header("impersonate-extra-scopes", "ü"),
        jane().header("impersonate-extra-%ff", "x"),
    ] {
        let (code, answer) = whoami(&world, &caller).await;
        assert_eq!((code, answer["reason"].as_str()), (400, Some("BadRequest")), "{:?}", caller.headers);
    }
    world.end().await;
}

#[tokio::test]
async fn impersonation_without_a_user_is_refused() {
    let world = World::new().await;
    for (name, value) in [
        ("impersonate-group", "devs"),
        ("impersonate-group", ""),
        ("impersonate-uid", "1"),
        ("impersonate-extra-scopes", "view"),
    ] {
        for caller in [Caller::admin(), Caller::admin().header("impersonate-user", "")] {
            let (code, answer) = whoami(&world, &caller.header(name, value)).await;
            assert_eq!(code, 400, "{name}: {answer}");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn impersonated_user_has_what_the_headers_name_and_nothing_else() {
    let world = World::new().await;
    let caller = Caller::admin()
        .header("impersonate-user", "jane")
        .header("impersonate-user", "bob")
        .header("impersonate-uid", "1")
        .header("impersonate-extra-acme.com%2fproject", "p")
        .header("impersonate-extra-%41b", "q");
    let expected = json!({"username": "jane", "uid": "1", "groups": ["system:authenticated"],
        "extra": {"acme.com/project": ["p"], "Ab": ["q"]}});
    assert_eq!(whoami(&world, &caller).await, (201, expected));
    // The group of unauthenticated callers is not joined with that of authenticated ones.
    let caller = Caller::admin()
        .header("impersonate-user", "jane")
        .header("impersonate-group", "system:unauthenticated");
    assert_eq!(whoami(&world, &caller).await.0, 403);
    // A name with too many parts is no account's, and has no groups of accounts.
    let caller = Caller::admin().header("impersonate-user", "system:serviceaccount:a:b:c");
    let expected = json!({"username": "system:serviceaccount:a:b:c", "groups": ["system:authenticated"]});
    assert_eq!(whoami(&world, &caller).await, (201, expected));
    let eve = Caller::named("eve", &[]).header("impersonate-user", "system:serviceaccount:a:b:c");
    grant(&world, "eve", &["impersonate"], "", &["serviceaccounts"]).await;
    assert_eq!(whoami(&world, &eve).await.0, 403);
    world.end().await;
}

async fn token(world: &World, audiences: &[&str]) -> String {
    let path = "/api/v1/namespaces/default/serviceaccounts/bob/token";
    let request = json!({"spec": {"audiences": audiences}});
    let answer = world.done(&Caller::admin(), "POST", path, &request).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

async fn bob(world: &World) {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    world.done(&Caller::admin(), "POST", accounts, &json!({"metadata": {"name": "bob"}})).await;
}

#[tokio::test]
async fn credentials_that_are_not_accepted_do_not_make_an_anonymous_or_another_caller() {
    let world = World::new().await;
    bob(&world).await;
    let good = format!("Bearer {}", token(&world, &[]).await);
    let with = |values: &[&str]| {
        values.iter().fold(Caller::default(), |caller, value| caller.header("authorization", value))
    };
    for (values, code) in [
        (&[good.as_str()][..], 201),
        // The first one counts, as upstream.
        (&[good.as_str(), "Bearer nonsense"][..], 201),
        (&["Bearer nonsense", good.as_str()][..], 401),
        (&["Bearer grüße"][..], 401),
        // No token at all: anonymous.
        (&["Basic abc", good.as_str()][..], 403),
        (&["Bearer"][..], 403),
    ] {
        let (got, answer) = whoami(&world, &with(values)).await;
        assert_eq!(got, code, "{values:?}: {answer}");
    }
    // No proxy authenticates for this server.
    let proxied = Caller::default().header("x-remote-user", "eve").header("x-remote-group", "system:masters");
    assert_eq!(whoami(&world, &proxied).await.0, 403);
    let proxied = Caller::named("eve", &[]).header("x-remote-user", "kubernetes-admin");
    assert_eq!(whoami(&world, &proxied).await.1["username"], "eve");
    world.end().await;
}

const OURS: &str = "https://kubernetes.default.svc.cluster.local";

async fn review(world: &World, token: &str, audiences: &[&str]) -> Value {
    let review = json!({"spec": {"token": token, "audiences": audiences}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    world.done(&Caller::admin(), "POST", path, &review).await["status"].clone()
}

#[tokio::test]
async fn token_review_does_not_vouch_for_a_token_of_other_audiences() {
    let world = World::new().await;
    bob(&world).await;
    let own = token(&world, &[]).await;
    let other = token(&world, &["other"]).await;
    let both = token(&world, &["x", "other", OURS]).await;
    for (name, token, requested, audiences) in [
        ("own", &own, &[][..], &[OURS][..]),
        ("own", &own, &["other"], &[]),
        ("own", &own, &["other", OURS], &[OURS]),
        ("other", &other, &[], &[]),
        ("other", &other, &[OURS], &[]),
        ("other", &other, &[OURS, "other", "y"], &["other"]),
        ("both", &both, &[], &[OURS]),
        ("both", &both, &[OURS, "other", "y", "x"], &[OURS, "other", "x"]),
        ("both", &both, &["y"], &[]),
    ] {
        let status = review(&world, token, requested).await;
        if audiences.is_empty() {
            assert!(status["authenticated"].is_null(), "{name} for {requested:?}: {status}");
            assert!(status["audiences"].is_null(), "{name} for {requested:?}: {status}");
            assert_eq!(status["user"], json!({}));
        } else {
            assert_eq!(status["authenticated"], true, "{name} for {requested:?}: {status}");
            assert_eq!(status["audiences"], json!(audiences), "{name} for {requested:?}");
        }
    }
    assert_eq!(
        review(&world, &own, &["y"]).await["error"],
        format!(
            "[invalid bearer token, token audiences [\"{OURS}\"] is invalid for the target audiences [\"y\"]]"
        )
    );
    assert_eq!(review(&world, "nonsense", &["y"]).await["error"], "invalid bearer token");
    world.end().await;
}

#[tokio::test]
async fn token_review_of_a_bootstrap_token_is_for_this_server_only() {
    let world = World::new().await;
    let encode = |text: &str| STANDARD.encode(text);
    let secret = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "data": {
        "token-id": encode("abcdef"), "token-secret": encode("0123456789abcdef"), "usage-bootstrap-authentication": encode("true")}});
    world.done(&Caller::admin(), "POST", "/api/v1/namespaces/kube-system/secrets", &secret).await;
    let token = "abcdef.0123456789abcdef";
    let status = review(&world, token, &["y", OURS]).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!([OURS])));
    let status = review(&world, token, &["y"]).await;
    assert!(status["authenticated"].is_null(), "{status}");
    world.end().await;
}
