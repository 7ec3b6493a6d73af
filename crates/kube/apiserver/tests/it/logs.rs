use anyhow::Result;
use aro_fixtures::wait;
use aro_kube_node_api::{LogOptions, NodeError};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::server::{Kubectl, Server, kubectls};

fn all(server: &Server) -> Vec<Kubectl> {
    let kubeconfig = &server.kubeconfig;
    let kubectl =
        |program| Kubectl { program, kubeconfig: kubeconfig.clone(), websockets: true, verbosity: 0 };
    kubectls().into_iter().map(kubectl).collect()
}

#[tokio::test]
async fn kubectl_logs_passes_every_flag_on_and_prints_what_the_node_says() -> Result<()> {
    let server = Server::start().await?;
    server.pod("p", &["a"], Some("n")).await?;
    server.pod("q", &["a", "b"], Some("n")).await?;
    for kubectl in all(&server) {
        let (code, out, err) = kubectl.run(&["logs", "p"]).await?;
        assert_eq!((code, out.as_str()), (0, "line 0\nline 1\nline 2\n"), "{err}");
        for (flags, container, expected) in [
            (&["logs", "p"][..], "a", LogOptions::default()),
            (
                &["logs", "q", "-c", "b", "--previous"],
                "b",
                LogOptions { previous: true, ..LogOptions::default() },
            ),
            (&["logs", "q", "b", "--tail=5"], "b", LogOptions { tail: Some(5), ..LogOptions::default() }),
            (&["logs", "p", "--limit-bytes=9"], "a", LogOptions { limit: Some(9), ..LogOptions::default() }),
            (&["logs", "p", "--timestamps"], "a", LogOptions { timestamps: true, ..LogOptions::default() }),
            (
                &["logs", "p", "--since-time=2026-01-01T00:00:00Z", "--insecure-skip-tls-verify-backend"],
                "a",
                LogOptions { since: Some("2026-01-01T00:00:00Z".parse()?), ..LogOptions::default() },
            ),
        ] {
            let (code, _, err) = kubectl.run(flags).await?;
            assert_eq!(code, 0, "{flags:?}: {err}");
            let (_, asked, options) = server.node.asked.lock().last().cloned().unwrap();
            assert_eq!((asked.as_str(), &options), (container, &expected), "{flags:?}");
        }
        kubectl.run(&["logs", "p", "--since=1h"]).await?;
        let since = server.node.asked.lock().last().cloned().unwrap().2.since.unwrap();
        let ago = server.cluster.now().duration_since(since).as_secs();
        assert!((3600..3660).contains(&ago), "{ago}");
    }
    server.end().await
}

#[tokio::test]
async fn kubectl_logs_says_why_there_are_none() -> Result<()> {
    let server = Server::start().await?;
    server.pod("p", &["a"], Some("n")).await?;
    server.pod("far", &["a"], Some("elsewhere")).await?;
    server.pod("nowhere", &["a"], None).await?;
    for kubectl in all(&server) {
        for (arguments, expected) in [
            (&["logs", "p", "-c", "x"][..], "container x is not valid for pod p"),
            (&["logs", "none"], "pods \"none\" not found"),
            (
                &["logs", "far"],
                "node \"elsewhere\" of pod \"far\" has no kubelet in this process, so its logs cannot be fetched",
            ),
            (
                &["get", "--raw", "/api/v1/namespaces/default/pods/p/log?limitBytes=-5"],
                "limitBytes: Invalid value: -5: must be greater than 0",
            ),
        ] {
            let (code, _, err) = kubectl.run(arguments).await?;
            assert_ne!(code, 0, "{arguments:?}");
            assert!(err.contains(expected), "{arguments:?}: {err}");
        }
        let (code, out, err) = kubectl.run(&["logs", "nowhere"]).await?;
        assert_eq!((code, out.as_str()), (0, ""), "{err}");
        let waiting = "container \"a\" in pod \"p\" is waiting to start: ContainerCreating";
        *server.node.refusal.lock() = Some(NodeError::BadRequest(waiting.to_owned()));
        let (_, _, err) = kubectl.run(&["logs", "p"]).await?;
        assert!(err.contains(&format!("Error from server (BadRequest): {waiting}")), "{err}");
        *server.node.refusal.lock() = None;
    }
    server.end().await
}

#[tokio::test]
async fn a_followed_log_comes_as_it_is_written_and_ends_with_the_client_or_the_cluster() -> Result<()> {
    let server = Server::start().await?;
    server.pod("p", &["a"], Some("n")).await?;
    for kubectl in all(&server) {
        let mut child = kubectl.start(&["logs", "--follow", "p"])?;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in 0..3 {
            let read = tokio::time::timeout(wait::DEADLINE, lines.next_line()).await??;
            assert_eq!(read, Some(format!("line {line}")));
        }
        assert_eq!(server.node.open(), 1);
        child.kill().await?;
        wait::until("the log to be let go", || async { Ok((server.node.open() == 0).then_some(())) }).await?;
    }
    let Some(kubectl) = all(&server).pop() else { return server.end().await };
    let mut child = kubectl.start(&["logs", "--follow", "p"])?;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    tokio::time::timeout(wait::DEADLINE, lines.next_line()).await??;
    server.clusters.stop("one")?;
    tokio::time::timeout(wait::DEADLINE, child.wait()).await??;
    assert_eq!(server.node.open(), 0);
    server.end().await
}
