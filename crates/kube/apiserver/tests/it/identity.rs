use aro_base::SignedDuration;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Caller, World, grant};

const NULL: Value = Value::Null;
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn nobody_may_do_what_no_role_allows_and_the_answer_says_what_was_missing() {
    let world = World::new().await;
    let (code, status) = world.call(&Caller::named("eve", &[]), "GET", PODS, &NULL).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "pods is forbidden: User \"eve\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\""
    );
    let (code, status) = world.call(&Caller::default(), "GET", "/api/v1/nodes/a", &NULL).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "nodes \"a\" is forbidden: User \"system:anonymous\" cannot get resource \"nodes\" in API group \"\" at the cluster scope"
    );
    world.done(&Caller::default(), "GET", "/version", &NULL).await;
    world.end().await;
}

#[tokio::test]
async fn a_role_counts_from_the_moment_it_is_bound_until_it_is_taken_away() {
    let world = World::new().await;
    let eve = Caller::named("eve", &[]);
    grant(&world, "eve", &["list"], "", &["pods"]).await;
    world.done(&eve, "GET", PODS, &NULL).await;
    assert_eq!(world.call(&eve, "DELETE", PODS, &NULL).await.0, 403);
    world
        .done(
            &Caller::admin(),
            "DELETE",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/eve-list-pods",
            &NULL,
        )
        .await;
    assert_eq!(world.call(&eve, "GET", PODS, &NULL).await.0, 403);
    world.end().await;
}

#[tokio::test]
async fn nobody_gives_away_what_they_do_not_have() {
    let world = World::new().await;
    let eve = Caller::named("eve", &["team"]);
    grant(
        &world,
        "eve",
        &["create", "update"],
        "rbac.authorization.k8s.io",
        &["clusterroles", "clusterrolebindings"],
    )
    .await;
    let role = |verbs: &[&str]| json!({"metadata": {"name": "mine"}, "rules": [{"verbs": verbs, "apiGroups": [""], "resources": ["secrets"]}]});
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let (code, status) = world.call(&eve, "POST", path, &role(&["get"])).await;
    assert_eq!(code, 403);
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"), "{message}");
    let binding = json!({"metadata": {"name": "mine"}, "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    assert_eq!(
        world.call(&eve, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.0,
        403
    );
    // What one has, one may give.
    grant(&world, "eve", &["get"], "", &["secrets"]).await;
    world.done(&eve, "POST", path, &role(&["get"])).await;
    world.end().await;
}

#[tokio::test]
async fn an_aggregated_role_follows_the_roles_it_is_made_of() {
    let world = World::new().await;
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let sum = json!({"metadata": {"name": "sum"}, "rules": [], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}});
    world.done(&Caller::admin(), "POST", path, &sum).await;
    let part = json!({"metadata": {"name": "part", "labels": {"part": "yes"}}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
    world.done(&Caller::admin(), "POST", path, &part).await;
    let rules = |object: &Value| object["rules"].as_array().map_or(0, Vec::len);
    world.until(&format!("{path}/sum"), "the rule of its part", |sum| rules(sum) == 1).await;
    world.done(&Caller::admin(), "DELETE", &format!("{path}/part"), &NULL).await;
    world.until(&format!("{path}/sum"), "no rule", |sum| rules(sum) == 0).await;
    world.end().await;
}

async fn token_of(world: &World, account: &str, body: &Value) -> String {
    let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
    let review = world.done(&Caller::admin(), "POST", &path, body).await;
    review["status"]["token"].as_str().unwrap().to_owned()
}

async fn whoami(world: &World, token: &str) -> (u16, Value) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    world
        .call(
            &Caller::with_token(token),
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            &review,
        )
        .await
}

#[tokio::test]
async fn a_token_names_its_account_until_it_expires_or_the_account_is_gone() {
    let world = World::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    world.done(&Caller::admin(), "POST", accounts, &json!({"metadata": {"name": "bob"}})).await;
    let token = token_of(&world, "bob", &json!({"spec": {"expirationSeconds": 600}})).await;
    let (code, review) = whoami(&world, &token).await;
    assert_eq!(code, 201);
    assert_eq!(review["status"]["userInfo"]["username"], "system:serviceaccount:default:bob");
    assert_eq!(
        review["status"]["userInfo"]["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    world.clock.advance(SignedDuration::from_secs(601));
    assert_eq!(whoami(&world, &token).await.0, 401);
    let token = token_of(&world, "bob", &json!({})).await;
    world.done(&Caller::admin(), "DELETE", &format!("{accounts}/bob"), &NULL).await;
    world.done(&Caller::admin(), "POST", accounts, &json!({"metadata": {"name": "bob"}})).await;
    // Another account of the same name is another user.
    assert_eq!(whoami(&world, &token).await.0, 401);
    let short = json!({"spec": {"expirationSeconds": 5}});
    let (code, _) = world.call(&Caller::admin(), "POST", &format!("{accounts}/bob/token"), &short).await;
    assert_eq!(code, 422);
    world.end().await;
}

#[tokio::test]
async fn a_token_bound_to_a_secret_ends_with_it_and_one_for_others_is_not_for_us() {
    let world = World::new().await;
    let admin = Caller::admin();
    world
        .done(
            &admin,
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            &json!({"metadata": {"name": "bob"}}),
        )
        .await;
    world
        .done(&admin, "POST", "/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}}))
        .await;
    let bound = json!({"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}}});
    let token = token_of(&world, "bob", &bound).await;
    assert_eq!(whoami(&world, &token).await.0, 201);
    world.done(&admin, "DELETE", "/api/v1/namespaces/default/secrets/s", &NULL).await;
    assert_eq!(whoami(&world, &token).await.0, 401);
    let token = token_of(&world, "bob", &json!({"spec": {"audiences": ["https://elsewhere"]}})).await;
    assert_eq!(whoami(&world, &token).await.0, 401);
    let review = json!({"spec": {"token": token, "audiences": ["https://elsewhere"]}});
    let review = world.done(&admin, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
    assert_eq!(review["status"]["authenticated"], true);
    world.end().await;
}

#[tokio::test]
async fn the_published_keys_verify_the_tokens() {
    let world = World::new().await;
    world
        .done(
            &Caller::admin(),
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            &json!({"metadata": {"name": "bob"}}),
        )
        .await;
    let token = token_of(&world, "bob", &json!({})).await;
    let keys = world.done(&Caller::admin(), "GET", "/openid/v1/jwks", &NULL).await;
    let set = aro_pki::jws::KeySet::from_json(keys.to_string().as_bytes()).unwrap();
    let payload = set.verify(&token).unwrap();
    let claims: Value = serde_json::from_slice(&payload).unwrap();
    let document = world.done(&Caller::admin(), "GET", "/.well-known/openid-configuration", &NULL).await;
    assert_eq!(claims["iss"], document["issuer"]);
    assert_eq!(claims["sub"], "system:serviceaccount:default:bob");
    world.end().await;
}

#[tokio::test]
async fn a_bootstrap_token_names_a_bootstrapper_until_it_expires() {
    let world = World::new().await;
    let encode = |text: &str| STANDARD.encode(text);
    let secret = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "data": {
        "token-id": encode("abcdef"), "token-secret": encode("0123456789abcdef"), "usage-bootstrap-authentication": encode("true"),
        "expiration": encode("2027-01-15T09:00:00Z"), "auth-extra-groups": encode("system:bootstrappers:workers")}});
    world.done(&Caller::admin(), "POST", "/api/v1/namespaces/kube-system/secrets", &secret).await;
    let (code, review) = whoami(&world, "abcdef.0123456789abcdef").await;
    assert_eq!(code, 201);
    assert_eq!(review["status"]["userInfo"]["username"], "system:bootstrap:abcdef");
    assert_eq!(review["status"]["userInfo"]["groups"][1], "system:bootstrappers:workers");
    assert_eq!(whoami(&world, "abcdef.0123456789abcdeX").await.0, 401);
    world.clock.advance(SignedDuration::from_hours(24));
    assert_eq!(whoami(&world, "abcdef.0123456789abcdef").await.0, 401);
    world.end().await;
}

#[tokio::test]
async fn speaking_for_others_needs_permission_for_each_of_them() {
    let world = World::new().await;
    let admin = Caller::admin().header("impersonate-user", "jane").header("impersonate-group", "devs");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = world.done(&admin, "POST", path, &review).await;
    assert_eq!(answer["status"]["userInfo"]["username"], "jane");
    assert_eq!(answer["status"]["userInfo"]["groups"], json!(["devs", "system:authenticated"]));
    let eve = Caller::named("eve", &[]).header("impersonate-user", "jane");
    let (code, status) = world.call(&eve, "POST", path, &review).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "users \"jane\" is forbidden: User \"eve\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
    );
    grant(&world, "eve", &["impersonate"], "", &["users"]).await;
    world.done(&eve, "POST", path, &review).await;
    assert_eq!(
        world.call(&eve.header("impersonate-group", "system:masters"), "POST", path, &review).await.0,
        403
    );
    world.end().await;
}
