//! A cluster and callers of it.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{ManualClock, Timestamp};
use aro_kube_apiserver::identity::user::User;
use aro_kube_apiserver::{Cluster, ClusterService, Clusters};
use aro_runtime::Scope;
use aro_web::{BodyBudget, BodyLimits};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub struct World {
    pub clusters: Clusters,
    pub cluster: Arc<Cluster>,
    pub clock: Arc<ManualClock>,
    scope: Scope,
    _dir: tempfile::TempDir,
}

/// Limits of bodies that no test reaches by accident.
pub fn body_limits(max: usize) -> BodyLimits {
    BodyLimits { max, discard: 0, timeout: Duration::from_secs(20), budget: BodyBudget::of_bytes(64 << 20) }
}

/// A caller, and what they send with every request.
#[derive(Clone, Default)]
pub struct Caller {
    pub user: Option<User>,
    pub headers: Vec<(String, String)>,
}

impl Caller {
    pub fn admin() -> Self {
        Self { user: Some(User::admin()), headers: Vec::new() }
    }

    pub fn named(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned());
        Self { user: Some(User::authenticated(name, groups)), headers: Vec::new() }
    }

    pub fn with_token(token: &str) -> Self {
        Self { user: None, headers: vec![("authorization".to_owned(), format!("Bearer {token}"))] }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Lets a user do something in all namespaces.
pub async fn grant(world: &World, user: &str, verbs: &[&str], group: &str, resources: &[&str]) {
    grant_rule(world, user, json!({"verbs": verbs, "apiGroups": [group], "resources": resources})).await;
}

/// Lets a user do what a rule says.
pub async fn grant_rule(world: &World, user: &str, rule: Value) {
    let admin = Caller::admin();
    let words = |name: &str| {
        let list = rule[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        list.collect::<Vec<_>>().join("-").replace('/', "-")
    };
    let name = format!("{user}-{}-{}", words("verbs"), words("resources"));
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    world.done(&admin, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await;
    let binding = json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
    world.done(&admin, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
}

impl World {
    pub async fn new() -> Self {
        Self::with_history(1000).await
    }

    /// A cluster whose watches reach back by so many events.
    pub async fn with_history(history: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
        let clusters = Clusters::open(dir.path(), false, history, "kube.localhost", clock.clone()).unwrap();
        let scope = Scope::root("test");
        clusters.start_internal_controllers(&aro_control::ReconcileMetrics::default(), &scope);
        let cluster = clusters.create("one").await.unwrap();
        Self { clusters, cluster, clock, scope, _dir: dir }
    }

    pub async fn call(&self, caller: &Caller, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let service = ClusterService {
            cluster: self.cluster.clone(),
            peer: caller.user.clone().map(Arc::new),
            body: body_limits(1 << 20),
            observer: None,
        };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &caller.headers {
            // Whatever a client may send, also what is no ASCII.
            request = request.header(name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = if body.is_null() { Bytes::new() } else { serde_json::to_vec(body).unwrap().into() };
        if !caller.headers.iter().any(|(name, _)| name == "content-type") {
            request = request.header("content-type", content);
        }
        let request = request.body(Full::new(bytes)).unwrap();
        let answer = service.oneshot(request).await.unwrap();
        let code: StatusCode = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code.as_u16(), serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// A call that must go well.
    pub async fn done(&self, caller: &Caller, method: &str, path: &str, body: &Value) -> Value {
        let (code, answer) = self.call(caller, method, path, body).await;
        assert!((200..300).contains(&code), "{method} {path}: {code} {answer}");
        answer
    }

    /// Waits until an object is as it should be.
    pub async fn until(&self, path: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let (_, object) = self.call(&Caller::admin(), "GET", path, &Value::Null).await;
            if good(&object) {
                return object;
            }
            assert!(tokio::time::Instant::now() < deadline, "{what} did not come about: {object}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn end(self) {
        let closed = self.scope.close(Duration::from_secs(5)).await;
        self.clusters.close();
        closed.unwrap();
    }
}
