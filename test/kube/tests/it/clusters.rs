//! Clusters that come and go, who reaches which, and what nobody may see.

use anyhow::{Context, Result, bail, ensure};
use aro_fixtures::wait;
use aro_kube_apiserver::Clusters;
use aro_kube_apiserver::storage::{Change, Expect};
use aro_kube_e2e::client::Client as RawClient;
use aro_runtime::SystemClock;
use bytes::Bytes;
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::support::{client, kubeconfig, region, region_with};
use crate::watching::Inside;

/// Speaks to `host` with the certificate of cluster `of`.
fn raw(inside: &Inside, host: &str, authority_of: &str, of: &str) -> Result<RawClient> {
    let find = |name: &str| inside.clusters.get(name).with_context(|| format!("cluster {name}"));
    let (trusted, cluster) = (find(authority_of)?, find(of)?);
    let admin = cluster.keys.admin(cluster.now())?;
    let authority = trusted.keys.authority.certificate().to_owned();
    RawClient::new(inside.address()?, host, &authority, &admin.certificate, admin.key.expose())
}

fn get(path: &str) -> Result<Request<Bytes>> {
    Ok(Request::get(path)
        .header("host", "localhost")
        .header("accept", "application/json")
        .body(Bytes::new())?)
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_come_and_go_while_the_process_runs() -> Result<()> {
    let inside = Inside::start(&[]).await?;
    let (first, second) = tokio::join!(inside.clusters.ensure("late"), inside.clusters.ensure("late"));
    ensure!(std::sync::Arc::ptr_eq(&first?, &second?), "made once, whoever asks");
    ensure!(inside.clusters.create("late").await.is_err(), "there is one of that name");
    for wrong in ["", "Upper", "-dash", "a.b", "ü"] {
        ensure!(inside.clusters.create(wrong).await.is_err(), "{wrong} is no name");
    }
    let late = raw(&inside, "late.kube.localhost", "late", "late")?;
    let answer = late.call(get("/api/v1/namespaces/kube-system")?).await?;
    ensure!(answer.code == 200, "{answer:?}");
    // Chores are done there, too.
    wait::until("the namespace to be furnished", || async {
        let answer = late.call(get("/api/v1/namespaces/default/serviceaccounts/default")?).await?;
        Ok((answer.code == 200).then_some(()))
    })
    .await?;
    inside.clusters.delete("late").await?;
    ensure!(late_is_away(&late).await, "nobody answers to that name any more");
    ensure!(inside.clusters.delete("late").await.is_err(), "it is gone");
    let again = inside.clusters.ensure("late").await?;
    let other = raw(&inside, "late.kube.localhost", "late", "late")?;
    ensure!(other.call(get("/version")?).await?.code == 200, "another one of the same name answers");
    ensure!(late_is_away(&late).await, "and does not know the clients of the first one");
    drop(again);
    inside.stop().await
}

/// The clusters of a directory, without anything around them.
fn open(dir: &std::path::Path) -> Result<Clusters> {
    Ok(Clusters::open(dir, false, 100, "kube.localhost", SystemClock::shared())?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_cluster_stays_away_and_a_stopped_one_comes_back() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let clusters = open(dir.path())?;
    for name in ["stays", "stops", "goes"] {
        clusters.create(name).await?;
    }
    let keys = clusters.get("stays").context("it")?.keys.authority.certificate().to_owned();
    clusters.stop("stops")?;
    clusters.delete("goes").await?;
    ensure!(clusters.names() == ["stays"], "{:?}", clusters.names());
    clusters.close();
    drop(clusters);
    let clusters = open(dir.path())?;
    ensure!(clusters.names() == ["stays", "stops"], "{:?}", clusters.names());
    ensure!(
        clusters.get("stays").context("it")?.keys.authority.certificate() == keys,
        "its keys are the same"
    );
    let fresh = clusters.ensure("goes").await?;
    ensure!(fresh.store.version() < 300, "a new one begins at the beginning");
    clusters.close();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_was_left_half_filled_is_filled_at_the_next_start() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let clusters = open(dir.path())?;
    let cluster = clusters.create("half").await?;
    let before = cluster.store.watch_cache("clusterroles.rbac.authorization.k8s.io").len();
    for (watch_cache, key) in
        [("namespaces", "kube-public"), ("clusterroles.rbac.authorization.k8s.io", "view")]
    {
        let watch_cache = cluster.store.watch_cache(watch_cache);
        let version = watch_cache.get(key).context("it is there")?.version;
        let gone = cluster.store.commit(&watch_cache, key, Expect::Version(version), Change::Delete).await;
        ensure!(gone.is_ok(), "{gone:?}");
    }
    clusters.close();
    drop((clusters, cluster));
    let clusters = open(dir.path())?;
    let cluster = clusters.ensure("half").await?;
    ensure!(cluster.store.watch_cache("namespaces").get("kube-public").is_some(), "the namespace is back");
    ensure!(
        cluster.store.watch_cache("clusterroles.rbac.authorization.k8s.io").len() == before,
        "and the role"
    );
    clusters.close();
    Ok(())
}

async fn late_is_away(client: &RawClient) -> bool {
    let Ok(request) = get("/api/v1/namespaces") else { return false };
    match client.call(request).await {
        Err(_) => true,
        Ok(answer) => answer.code == 401,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_in_the_handshake_tells_the_cluster() -> Result<()> {
    let inside = Inside::start(&[("kube.clusters", "[\"one\", \"two\"]")]).await?;
    let two = aro_kube::of_kubeconfig(&inside.kubeconfig()?, Some("two")).await?;
    let mut marker = ConfigMap::default();
    marker.metadata.name = Some("marker".to_owned());
    Api::<ConfigMap>::namespaced(two, "default").create(&PostParams::default(), &marker).await?;
    let path = "/api/v1/namespaces/default/configmaps/marker";
    for (host, of, code) in [
        ("two.kube.localhost", "two", 200),
        ("TWO.kube.localhost", "two", 200),
        ("one.kube.localhost", "one", 404),
        // Names every API server has, and none at all, mean the first cluster.
        ("kubernetes.default.svc", "one", 404),
        ("localhost", "one", 404),
        ("127.0.0.1", "one", 404),
    ] {
        let answer = raw(&inside, host, of, of)?.call(get(path)?).await.with_context(|| host.to_owned())?;
        ensure!(answer.code == code, "{host}: {answer:?}");
    }
    ensure!(
        raw(&inside, "three.kube.localhost", "one", "one")?.call(get("/version")?).await.is_err(),
        "no such cluster"
    );
    // A certificate of one cluster is nothing in another.
    match raw(&inside, "two.kube.localhost", "two", "one")?.call(get("/api/v1/namespaces")?).await {
        Err(_) => {}
        Ok(answer) => ensure!(answer.code == 401, "{answer:?}"),
    }
    inside.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_what_upstream_gives_them() -> Result<()> {
    let region = region(&["one"]).await?;
    let mut config = Kubeconfig::read_from(kubeconfig(&region))?;
    for user in &mut config.auth_infos {
        user.auth_info = Some(kube::config::AuthInfo::default());
    }
    let anonymous =
        kube::Config::from_custom_kubeconfig(config.clone(), &KubeConfigOptions::default()).await?;
    let anonymous = kube::Client::try_from(anonymous)?;
    match Api::<Namespace>::all(anonymous.clone()).list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => {
            ensure!(status.code == 403 && status.reason == "Forbidden", "{status:?}");
            let wanted = r#"namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" at the cluster scope"#;
            ensure!(status.message == wanted, "{}", status.message);
        }
        other => bail!("{other:?}"),
    }
    for path in ["/version", "/healthz", "/readyz", "/livez"] {
        anonymous
            .request_text(Request::get(path).body(Vec::new())?)
            .await
            .with_context(|| path.to_owned())?;
    }
    for user in &mut config.auth_infos {
        let token: kube::config::AuthInfo =
            serde_json::from_value(serde_json::json!({"token": "no.such.token"}))?;
        user.auth_info = Some(token);
    }
    let wrong = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    match Api::<Namespace>::all(kube::Client::try_from(wrong)?).list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => {
            ensure!(
                status.code == 401 && status.message == "Unauthorized" && status.reason == "Unauthorized",
                "{status:?}"
            );
        }
        other => bail!("{other:?}"),
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_logged() -> Result<()> {
    let mut region = region_with(&["one"], &[("telemetry.log", "trace")]).await?;
    let admin = client(&region, "one").await?;
    let mut secret = Secret::default();
    secret.metadata.name = Some("s".to_owned());
    secret.string_data = Some([("password".to_owned(), "hunter2-plain-text".to_owned())].into());
    Api::<Secret>::namespaced(admin.clone(), "default").create(&PostParams::default(), &secret).await?;
    let account = wait::until("an account", || async {
        let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
            Api::namespaced(admin.clone(), "default");
        Ok(accounts.get_opt("default").await?)
    })
    .await?;
    let request =
        serde_json::json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let request =
        Request::post(path).header("content-type", "application/json").body(serde_json::to_vec(&request)?)?;
    let answer: serde_json::Value = admin.request(request).await?;
    let token = answer["status"]["token"].as_str().context("a token")?.to_owned();
    let mut config = Kubeconfig::read_from(kubeconfig(&region))?;
    for user in &mut config.auth_infos {
        user.auth_info = Some(serde_json::from_value(serde_json::json!({"token": token}))?);
    }
    let own = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let listed =
        Api::<Secret>::namespaced(kube::Client::try_from(own)?, "default").list(&ListParams::default()).await;
    ensure!(matches!(&listed, Err(kube::Error::Api(status)) if status.code == 403), "{listed:?}");
    region.interrupt()?;
    let log = region.log_text();
    ensure!(!log.is_empty() && account.metadata.name.is_some(), "something is logged");
    let signature = token.rsplit('.').next().context("a signature")?;
    for (what, text) in [
        ("the token", signature),
        ("a secret", "hunter2-plain-text"),
        ("a secret, encoded", "aHVudGVyMi1wbGFpbi10ZXh0"),
        ("a key", "PRIVATE KEY"),
        ("a key, encoded", "UFJJVkFURSBLRVk"),
    ] {
        let line = log.lines().find(|line| line.contains(text));
        ensure!(line.is_none(), "{what} is in the log: {line:?}");
    }
    Ok(())
}
