use std::net::SocketAddr;

use anyhow::{Result, ensure};
use aro_fixtures::wait;
use aro_runtime::{Fault, Scope, TaskKind};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::server::{Kubectl, Server, ways};
use crate::support::{Caller, World};

/// Greets, sends back everything, and when there is no more says how much it was: only then, so that half-closing shows.
async fn echo(scope: &Scope, greeting: &'static str) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let inside = scope.clone();
    scope.spawn(TaskKind::Helper, "echo", async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            inside.spawn(TaskKind::Helper, "echoed", async move {
                let (mut from, mut to) = stream.split();
                let _ = to.write_all(greeting.as_bytes()).await;
                let count = tokio::io::copy(&mut from, &mut to).await.unwrap_or(0);
                let _ = to.write_all(format!("|{count}").as_bytes()).await;
                Ok::<_, Fault>(())
            });
        }
        Ok::<_, Fault>(())
    });
    Ok(port)
}

/// Sends everything, ends its half, and returns what came back.
async fn exchange(port: u16, bytes: &[u8]) -> Result<Vec<u8>> {
    let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    let (mut from, mut to) = stream.into_split();
    let mut got = Vec::new();
    let sending = async {
        to.write_all(bytes).await?;
        to.shutdown().await
    };
    let (sent, read) =
        tokio::time::timeout(wait::DEADLINE, async { tokio::join!(sending, from.read_to_end(&mut got)) })
            .await?;
    sent?;
    read?;
    Ok(got)
}

fn expected(greeting: &str, bytes: &[u8]) -> Vec<u8> {
    [greeting.as_bytes(), bytes, format!("|{}", bytes.len()).as_bytes()].concat()
}

#[tokio::test]
async fn kubectl_forwards_several_ports_many_connections_and_much_data() -> Result<()> {
    let server = Server::start().await?;
    server.pod("p", &["a"], Some("n")).await?;
    let (web, other) = (echo(&server.scope, "web ").await?, echo(&server.scope, "other ").await?);
    server.node.ports.lock().extend([(80, web), (81, other)]);
    let much: Vec<u8> = (0..10_u32 << 20).map(|index| (index % 251) as u8).collect();
    for kubectl in ways(&server.kubeconfig) {
        let about = format!("{} websockets {}", kubectl.program.display(), kubectl.websockets);
        let mut forward = kubectl.forward("p", &[80, 81]).await?;
        let (web, other) = (forward.local[0], forward.local[1]);
        assert_eq!(exchange(web, b"hello").await?, expected("web ", b"hello"), "{about}");
        assert_eq!(exchange(other, b"").await?, expected("other ", b""), "{about}");
        let texts: Vec<String> = (0..40).map(|number| format!("request {number}")).collect();
        let all = texts.iter().map(|text| exchange(web, text.as_bytes()));
        for (got, text) in try_join_all(all).await?.into_iter().zip(&texts) {
            assert_eq!(got, expected("web ", text.as_bytes()), "{about}");
        }
        ensure!(
            exchange(web, &much).await? == expected("web ", &much),
            "10 MiB were changed on the way: {about}"
        );
        // A connection is open when the client is killed: nothing stays.
        let mut open = TcpStream::connect(("127.0.0.1", web)).await?;
        open.read_exact(&mut [0; 4]).await?;
        assert_eq!(server.node.open(), 1, "{about}");
        forward.child.kill().await?;
        wait::until("the connection to be let go", || async { Ok((server.node.open() == 0).then_some(())) })
            .await?;
    }
    server.end().await
}

#[tokio::test]
async fn kubectl_is_told_about_ports_nobody_listens_on_and_pods_that_are_not_there() -> Result<()> {
    let server = Server::start().await?;
    server.pod("p", &["a"], Some("n")).await?;
    server.pod("far", &["a"], Some("elsewhere")).await?;
    for kubectl in ways(&server.kubeconfig) {
        let kubectl = Kubectl { verbosity: 8, ..kubectl };
        let forward = kubectl.forward("p", &[82]).await?;
        assert_eq!(exchange(forward.local[0], b"").await.unwrap_or_default(), b"");
        let output = tokio::time::timeout(wait::DEADLINE, forward.child.wait_with_output()).await??;
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(err.contains("error forwarding port 82 to pod p, uid "), "{err}");
        assert!(err.contains("port 82 is closed"), "{err}");
        let protocol = if kubectl.websockets { "tunneling connection" } else { "Upgrade: SPDY/3.1" };
        assert!(err.contains(protocol), "{err}");
        let (code, _, err) = kubectl.run(&["port-forward", "pod/far", ":80"]).await?;
        assert_ne!(code, 0);
        assert!(err.contains("has no kubelet in this process, so its ports cannot be forwarded"), "{err}");
    }
    server.end().await
}

#[tokio::test]
async fn a_pod_that_goes_away_ends_its_connections_and_a_cluster_that_stops_ends_all() -> Result<()> {
    let server = Server::start().await?;
    server.pod("p", &["a"], Some("n")).await?;
    for kubectl in ways(&server.kubeconfig) {
        let pod = Scope::root("pod");
        let port = echo(&pod, "x").await?;
        server.node.ports.lock().insert(80, port);
        let forward = kubectl.forward("p", &[80]).await?;
        let mut stream = TcpStream::connect(("127.0.0.1", forward.local[0])).await?;
        stream.read_exact(&mut [0; 1]).await?;
        pod.close(std::time::Duration::from_secs(1)).await?;
        let read = tokio::time::timeout(wait::DEADLINE, stream.read(&mut [0; 1])).await?;
        assert_eq!(read.unwrap_or(0), 0);
    }
    let Some(kubectl) = ways(&server.kubeconfig).pop() else { return server.end().await };
    let port = echo(&server.scope, "x").await?;
    server.node.ports.lock().insert(80, port);
    let mut forward = kubectl.forward("p", &[80]).await?;
    let mut stream = TcpStream::connect(("127.0.0.1", forward.local[0])).await?;
    stream.read_exact(&mut [0; 1]).await?;
    server.clusters.stop("one")?;
    tokio::time::timeout(wait::DEADLINE, forward.child.wait()).await??;
    wait::until("the connection to be let go", || async { Ok((server.node.open() == 0).then_some(())) })
        .await?;
    server.end().await
}

#[tokio::test]
async fn kube_rs_forwards_over_channels() -> Result<()> {
    let server = Server::start().await?;
    server.pod("p", &["a"], Some("n")).await?;
    let (web, other) = (echo(&server.scope, "web ").await?, echo(&server.scope, "other ").await?);
    server.node.ports.lock().extend([(80, web), (81, other)]);
    let pods: kube::Api<Pod> = kube::Api::default_namespaced(server.client().await?);
    let mut forward = pods.portforward("p", &[80, 81, 82]).await?;
    let (mut web, mut other) = (forward.take_stream(80).unwrap(), forward.take_stream(81).unwrap());
    let error = forward.take_error(82).unwrap();
    let mut got = vec![0; 9];
    web.write_all(b"hello").await?;
    web.read_exact(&mut got).await?;
    assert_eq!(got, b"web hello");
    other.read_exact(&mut got[..6]).await?;
    assert_eq!(&got[..6], b"other ");
    let error = tokio::time::timeout(wait::DEADLINE, error).await?.unwrap_or_default();
    assert!(error.starts_with("error forwarding port 82 to pod p, uid "), "{error}");
    let much = vec![7; 10 << 20];
    let (mut from, mut to) = tokio::io::split(web);
    let mut back = vec![0; much.len()];
    let both = async { tokio::try_join!(to.write_all(&much), from.read_exact(&mut back)) };
    tokio::time::timeout(wait::DEADLINE, both).await??;
    assert_eq!(back, much);
    drop((from, to, other));
    forward.abort();
    wait::until("the connections to be let go", || async { Ok((server.node.open() == 0).then_some(())) })
        .await?;
    server.end().await
}

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn forwarding_needs_the_permission_to_create_and_another_protocol() {
    let world = World::new().await;
    let (admin, eve) = (Caller::admin(), Caller::named("eve", &[]));
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}});
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    world.until(account, "the account of pods", |account| account["metadata"]["name"] == "default").await;
    world.done(&admin, "POST", PODS, &pod).await;
    let rule =
        |verbs: &[&str]| json!([{"verbs": verbs, "apiGroups": [""], "resources": ["pods/portforward"]}]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    world.done(&admin, "POST", roles, &json!({"metadata": {"name": "r"}, "rules": rule(&["get"])})).await;
    let binding = json!({"metadata": {"name": "b"}, "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}});
    world.done(&admin, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let path = format!("{PODS}/p/portforward");
    for method in ["GET", "POST"] {
        let (code, status) = world.call(&eve, method, &path, &Value::Null).await;
        assert_eq!(code, 403, "{status}");
        let expected = "cannot create resource \"pods/portforward\"";
        assert!(status["message"].as_str().unwrap().contains(expected), "{status}");
    }
    world.done(&admin, "PATCH", &format!("{roles}/r"), &json!({"rules": rule(&["get", "create"])})).await;
    assert_eq!(world.call(&eve, "GET", &path, &Value::Null).await.0, 503);
    world.cluster.nodes.add("n", std::sync::Arc::new(crate::server::FakeNode::default()));
    let (code, status) = world.call(&eve, "GET", &path, &Value::Null).await;
    assert_eq!((code, status["message"].as_str()), (400, Some("Upgrade request required")));
    assert_eq!(world.call(&admin, "PUT", &path, &Value::Null).await.0, 405);
    world.end().await;
}

#[tokio::test]
async fn what_is_not_possible_says_what_to_do_instead() {
    let world = World::new().await;
    for (path, expected) in [
        ("/api/v1/namespaces/default/pods/p/exec?command=sh", "pods/exec: containers are not OS processes"),
        ("/api/v1/namespaces/default/pods/p/attach", "`kubectl logs --follow`"),
        ("/api/v1/namespaces/default/pods/p/proxy", "`kubectl port-forward`"),
        ("/api/v1/namespaces/default/services/s/proxy", "`kubectl port-forward`"),
        ("/api/v1/nodes/n/proxy", "nodes/proxy"),
    ] {
        let (code, status) = world.call(&Caller::admin(), "GET", path, &Value::Null).await;
        assert_eq!((code, status["reason"].as_str()), (501, Some("NotImplemented")), "{path}");
        assert!(status["message"].as_str().unwrap().contains(expected), "{status}");
    }
    world.end().await;
}
