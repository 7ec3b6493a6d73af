//! Watching: every event once and in order, whoever watches and however.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aro_fixtures::wait;
use aro_harness::Stack;
use aro_kube_apiserver::identity::user::User;
use aro_kube_apiserver::{Cluster, ClusterService, Clusters};
use futures::{AsyncBufReadExt as _, StreamExt as _, stream};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

const MASTERS: &str = "system:masters";

/// A region in this process with one cluster, and ways to reach it.
pub struct Inside {
    stack: Stack,
    pub clusters: Clusters,
}

impl Inside {
    pub async fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let mut all = vec![("kube.clusters", "[\"one\"]")];
        all.extend_from_slice(settings);
        let stack = Stack::kube(&all).await?;
        let clusters = stack.app()?.clusters().context("embedded Kubernetes runs")?;
        let one = clusters.get("one").context("the cluster")?;
        furnished(&one).await?;
        Ok(Self { stack, clusters })
    }

    pub fn cluster(&self) -> Result<Arc<Cluster>> {
        self.clusters.get("one").context("the cluster")
    }

    /// A client without a socket.
    pub fn near(&self) -> Result<Client> {
        let user = User::authenticated("tester".to_owned(), vec![MASTERS.to_owned()]);
        Ok(aro_kube::of_service(ClusterService::in_process(self.cluster()?, user)))
    }

    /// A client over the socket.
    pub async fn far(&self) -> Result<Client> {
        Ok(aro_kube::of_kubeconfig(&self.kubeconfig()?, Some("one")).await?)
    }

    pub fn kubeconfig(&self) -> Result<PathBuf> {
        Ok(self.stack.app()?.data_dir().join("kube").join("kubeconfig.yaml"))
    }

    pub fn address(&self) -> Result<SocketAddr> {
        self.stack.app()?.addr("kube").context("it listens")
    }

    pub async fn stop(self) -> Result<()> {
        self.stack.stop().await
    }
}

/// A new cluster makes some objects by itself; tests that count begin after that.
async fn furnished(cluster: &Cluster) -> Result<()> {
    let maps = cluster.store.watch_cache("configmaps");
    wait::until("the default namespace to be furnished", || async {
        Ok(maps.get("default/kube-root-ca.crt").map(|_| ()))
    })
    .await
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    kind: String,
    name: String,
    version: u64,
}

fn seen(line: &str) -> Result<Seen> {
    let event: Value = serde_json::from_str(line)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &event["object"]["metadata"];
    let version = text(&metadata["resourceVersion"]).parse().unwrap_or_default();
    Ok(Seen { kind: text(&event["type"]), name: text(&metadata["name"]), version })
}

/// A watch, line by line.
async fn watch(
    client: &Client,
    query: &str,
) -> Result<impl futures::Stream<Item = std::io::Result<String>> + use<>> {
    let request =
        Request::get(format!("/api/v1/namespaces/default/configmaps?watch=1&{query}")).body(Vec::new())?;
    Ok(Box::pin(client.request_stream(request).await?).lines())
}

async fn version(client: &Client) -> Result<u64> {
    let request = Request::get("/api/v1/namespaces/default/configmaps?limit=1").body(Vec::new())?;
    let list: Value = client.request(request).await?;
    Ok(list["metadata"]["resourceVersion"].as_str().context("a version")?.parse()?)
}

async fn create(client: &Client, name: &str, shard: usize) -> Result<u64> {
    let body =
        json!({"metadata": {"name": name, "labels": {"shard": shard.to_string()}}, "data": {"k": "v"}});
    let request = Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&body)?)?;
    let made: Value = client.request(request).await?;
    Ok(made["metadata"]["resourceVersion"].as_str().context("a version")?.parse()?)
}

const OBJECTS: usize = 10_000;
const SHARDS: usize = 20;
const WATCHERS: usize = 200;

/// The name and version in an event, found without reading all of it: there are very many.
fn glance(line: &str) -> Result<(&str, u64)> {
    let between =
        |from: &str| line.split_once(from).and_then(|(_, rest)| rest.split_once('"')).map(|(found, _)| found);
    ensure!(line.starts_with("{\"type\":\"ADDED\""), "only additions happen here: {line}");
    let version = between("\"resourceVersion\":\"").context("a version")?.parse()?;
    Ok((between("\"name\":\"w").context("a name")?, version))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_watchers_see_ten_thousand_writes_each_once_and_in_order() -> Result<()> {
    let inside = Inside::start(&[]).await?;
    let (near, far) = (inside.near()?, inside.far().await?);
    let from = version(&near).await?;
    let mut watchers = Vec::new();
    for index in 0..WATCHERS {
        let client = if index % 2 == 0 { near.clone() } else { far.clone() };
        // One in five sees everything, the others one shard each.
        let shard = (index % 5 != 0).then_some(index % SHARDS);
        let selector = shard.map(|shard| format!("&labelSelector=shard%3D{shard}")).unwrap_or_default();
        let events = watch(&client, &format!("resourceVersion={from}{selector}")).await?;
        let run = async move {
            let wanted = if shard.is_some() { OBJECTS / SHARDS } else { OBJECTS };
            let mut events = Box::pin(events);
            let mut all = Vec::with_capacity(wanted);
            while all.len() < wanted {
                let line = tokio::time::timeout(Duration::from_mins(2), events.next()).await;
                let line = line.with_context(|| format!("watcher {index} saw {} of {wanted}", all.len()))?;
                let line =
                    line.with_context(|| format!("watcher {index}'s watch ended after {}", all.len()))??;
                let (name, version) = glance(&line)?;
                all.push((version, name.parse::<usize>()?));
            }
            ensure!(all.windows(2).all(|pair| pair[0].0 < pair[1].0), "watcher {index}: in order");
            all.sort_unstable_by_key(|(_, object)| *object);
            let objects = (0..OBJECTS).filter(|object| shard.is_none_or(|shard| object % SHARDS == shard));
            ensure!(all.iter().map(|(_, object)| *object).eq(objects), "watcher {index}: each once");
            Ok::<_, anyhow::Error>(all)
        };
        #[allow(clippy::disallowed_methods, reason = "joined below")]
        watchers.push(tokio::spawn(run));
    }
    let writes = stream::iter(0..OBJECTS).map(|object| {
        let near = near.clone();
        async move { create(&near, &format!("w{object}"), object % SHARDS).await }
    });
    let versions: Vec<Result<u64>> = writes.buffered(64).collect().await;
    let versions = versions.into_iter().collect::<Result<Vec<u64>>>()?;
    for watcher in watchers {
        for (version, object) in watcher.await?? {
            ensure!(
                versions[object] == version,
                "object {object} was written at {}, seen at {version}",
                versions[object]
            );
        }
    }
    inside.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_watcher_gets_410_and_recovers_with_a_list() -> Result<()> {
    let inside = Inside::start(&[("kube.watch_history", "50")]).await?;
    let near = inside.near()?;
    let from = version(&near).await?;
    let mut slow = Box::pin(watch(&near, &format!("resourceVersion={from}")).await?);
    for object in 0..1_000 {
        create(&near, &format!("o{object}"), 0).await?;
    }
    let mut last = from;
    loop {
        let line =
            tokio::time::timeout(wait::DEADLINE, slow.next()).await?.context("an error before the end")??;
        let event: Value = serde_json::from_str(&line)?;
        if event["type"] == "ERROR" {
            ensure!(event["object"]["code"] == 410 && event["object"]["reason"] == "Expired", "{event}");
            break;
        }
        last = seen(&line)?.version;
    }
    ensure!(slow.next().await.is_none(), "the watch is over after the error");
    ensure!(last < version(&near).await?, "it had fallen behind");
    let now = version(&near).await?;
    let mut again = Box::pin(watch(&near, &format!("resourceVersion={now}")).await?);
    let made = create(&near, "after", 0).await?;
    let line = tokio::time::timeout(wait::DEADLINE, again.next()).await?.context("an event")??;
    ensure!(
        seen(&line)? == Seen { kind: "ADDED".to_owned(), name: "after".to_owned(), version: made },
        "{line}"
    );
    // A list of a version that is gone says the same.
    let old = Request::get(format!("/api/v1/configmaps?resourceVersion={from}&resourceVersionMatch=Exact"))
        .body(Vec::new())?;
    match near.request::<Value>(old).await {
        Err(kube::Error::Api(status)) => {
            ensure!(status.code == 410 && status.reason == "Expired", "{status:?}");
        }
        other => bail!("{other:?}"),
    }
    inside.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bookmark_carries_a_quiet_watch_on() -> Result<()> {
    let inside = Inside::start(&[]).await?;
    let near = inside.near()?;
    for client in [near.clone(), inside.far().await?] {
        let from = version(&near).await?;
        // Nothing happens to what this one watches, much to everything else. However slowly that is done, the last word
        // of each watch lets the next one begin later.
        let writes = async {
            for object in 0..300 {
                create(&near, &format!("b{from}-{object}"), 0).await?;
            }
            anyhow::Ok(())
        };
        let watches = async {
            let mut marked = from;
            while marked < from + 300 {
                let query = format!(
                    "resourceVersion={marked}&allowWatchBookmarks=true&timeoutSeconds=1&labelSelector=shard%3Dnone"
                );
                let mut quiet = Box::pin(watch(&client, &query).await?);
                let mut last = None;
                while let Some(line) = quiet.next().await {
                    let seen = seen(&line?)?;
                    ensure!(seen.kind == "BOOKMARK", "{seen:?}");
                    last = Some(seen.version);
                }
                let last = last.context("a watch that ends says where it was")?;
                ensure!(last >= marked, "the bookmark went back from {marked} to {last}");
                marked = last;
            }
            Ok(marked)
        };
        let both = futures::future::try_join(writes, watches);
        let ((), marked) =
            tokio::time::timeout(wait::DEADLINE, both).await.context("no bookmark came far enough")??;
        let mut on = Box::pin(watch(&client, &format!("resourceVersion={marked}")).await?);
        let name = format!("after-{from}");
        create(&near, &name, 0).await?;
        let line = tokio::time::timeout(wait::DEADLINE, on.next()).await?.context("an event")??;
        ensure!(seen(&line)?.name == name, "{line}");
    }
    inside.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_starts_with_a_list_says_when_the_list_is_over() -> Result<()> {
    let inside = Inside::start(&[]).await?;
    let near = inside.near()?;
    for object in 0..5 {
        create(&near, &format!("i{object}"), 0).await?;
    }
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=shard%3D0";
    let mut events = Box::pin(watch(&near, query).await?);
    for object in 0..5 {
        let line = tokio::time::timeout(wait::DEADLINE, events.next()).await?.context("an event")??;
        ensure!(seen(&line)?.name == format!("i{object}"), "{line}");
    }
    let line = tokio::time::timeout(wait::DEADLINE, events.next()).await?.context("a bookmark")??;
    let mark: Value = serde_json::from_str(&line)?;
    ensure!(mark["type"] == "BOOKMARK", "{mark}");
    ensure!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true", "{mark}");
    inside.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_end_when_their_cluster_stops_or_is_deleted() -> Result<()> {
    let inside = Inside::start(&[]).await?;
    let user = User::authenticated("tester".to_owned(), vec![MASTERS.to_owned()]);
    for (name, delete) in [("stops", false), ("goes", true)] {
        let cluster = inside.clusters.ensure(name).await?;
        furnished(&cluster).await?;
        let client = aro_kube::of_service(ClusterService::in_process(cluster, user.clone()));
        let from = version(&client).await?;
        let mut events = Box::pin(watch(&client, &format!("resourceVersion={from}")).await?);
        create(&client, "last", 0).await?;
        let line = tokio::time::timeout(wait::DEADLINE, events.next()).await?.context("an event")??;
        ensure!(line.contains("\"last\""), "{line}");
        if delete {
            inside.clusters.delete(name).await?;
            ensure!(create(&client, "late", 0).await.is_err(), "a deleted cluster takes no writes");
        } else {
            inside.clusters.stop(name)?;
        }
        let end = tokio::time::timeout(wait::DEADLINE, events.next()).await?;
        ensure!(end.is_none(), "{end:?}");
    }
    ensure!(inside.clusters.names() == ["one"], "{:?}", inside.clusters.names());
    inside.stop().await
}
