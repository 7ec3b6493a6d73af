//! The real process, killed while it works.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aro_fixtures::wait;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};

use crate::support::{client, region};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Asked {
    #[default]
    Nothing,
    Value(String),
    Deletion,
}

/// What became of one object, as far as its writer was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Known {
    /// Version and value. `None`: it is gone.
    told: Option<(u64, String)>,
    /// What was asked for and not answered.
    asked: Asked,
}

fn version(map: &ConfigMap) -> Result<u64> {
    map.resource_version().context("a version")?.parse().context("a number")
}

fn value(map: &ConfigMap) -> String {
    map.data.as_ref().and_then(|data| data.get("v")).cloned().unwrap_or_default()
}

fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..kube::api::ObjectMeta::default() },
        data: Some(BTreeMap::from([("v".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

/// Writes until it is not answered any more.
async fn storm(
    client: Client,
    writer: usize,
    round: usize,
    mut known: BTreeMap<String, Known>,
    answered: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
) -> BTreeMap<String, Known> {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    for step in 0_usize.. {
        let name = format!("w{writer}-{}", step * 7 % 13);
        let wanted = format!("{round}-{step}");
        let entry = known.entry(name.clone()).or_default();
        let gone = entry.told.is_none();
        let delete = !gone && step % 5 == 4;
        entry.asked = if delete { Asked::Deletion } else { Asked::Value(wanted.clone()) };
        let done = if gone {
            api.create(&PostParams::default(), &map(&name, &wanted)).await.map(Some)
        } else if delete {
            api.delete(&name, &DeleteParams::default()).await.map(|_| None)
        } else if step % 2 == 0 {
            let patch = serde_json::json!({"data": {"v": wanted}});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(Some)
        } else {
            api.replace(&name, &PostParams::default(), &map(&name, &wanted)).await.map(Some)
        };
        match done {
            Ok(Some(map)) => {
                let version = version(&map).unwrap_or_default();
                *entry = Known { told: Some((version, value(&map))), asked: Asked::Nothing };
            }
            Ok(None) => *entry = Known::default(),
            Err(_) if over.load(Ordering::Relaxed) => break,
            // The process is being killed; or it refused, which the check will show.
            Err(kube::Error::Api(status)) if status.code < 500 => break,
            Err(_) => break,
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
    known
}

fn check(cluster: &str, known: &mut Known, found: Option<&ConfigMap>, name: &str) -> Result<()> {
    let found = found.map(|map| Ok::<_, anyhow::Error>((version(map)?, value(map)))).transpose()?;
    let as_told = found == known.told;
    let as_asked = match &known.asked {
        Asked::Value(asked) => found.as_ref().is_some_and(|(_, value)| value == asked),
        Asked::Deletion => found.is_none(),
        Asked::Nothing => false,
    };
    ensure!(as_told || as_asked, "{cluster}: {name} is {found:?}; its writer knows {known:?}");
    *known = Known { told: found, asked: Asked::Nothing };
    Ok(())
}

const CLUSTERS: [&str; 3] = ["one", "two", "three"];

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_kill_9_and_versions_never_go_back() -> Result<()> {
    let mut region = region(&CLUSTERS).await?;
    let mut known: BTreeMap<(usize, usize), BTreeMap<String, Known>> = BTreeMap::new();
    let mut highest = [0_u64; 3];
    for round in 0..4 {
        let (answered, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let mut storms = Vec::new();
        for (index, cluster) in CLUSTERS.iter().enumerate() {
            for writer in 0..3 {
                let before = known.remove(&(index, writer)).unwrap_or_default();
                let client = client(&region, cluster).await?;
                let run = storm(client, writer, round, before, answered.clone(), over.clone());
                #[allow(clippy::disallowed_methods, reason = "joined below")]
                storms.push(((index, writer), tokio::spawn(run)));
            }
        }
        wait::until("writes to be answered", || async {
            Ok((answered.load(Ordering::Relaxed) >= 300).then_some(()))
        })
        .await?;
        region.kill()?;
        over.store(true, Ordering::Relaxed);
        for (place, storm) in storms {
            known.insert(place, storm.await?);
        }
        for ((index, _), known) in &known {
            let newest =
                known.values().filter_map(|known| known.told.as_ref()).map(|(version, _)| *version).max();
            highest[*index] = highest[*index].max(newest.unwrap_or_default());
        }
        region.start_again().await?;
        for (index, cluster) in CLUSTERS.iter().enumerate() {
            let api: Api<ConfigMap> = Api::namespaced(client(&region, cluster).await?, "default");
            let list = api.list(&ListParams::default()).await?;
            let now: u64 = list.metadata.resource_version.clone().context("a version")?.parse()?;
            ensure!(now >= highest[index], "{cluster} was at {} and is at {now}", highest[index]);
            let mut found: BTreeMap<String, &ConfigMap> = list
                .items
                .iter()
                .filter(|map| map.name_any().starts_with('w'))
                .map(|map| (map.name_any(), map))
                .collect();
            for writer in 0..3 {
                for (name, known) in known.get_mut(&(index, writer)).context("a writer")? {
                    check(cluster, known, found.remove(name), name)?;
                }
            }
            ensure!(found.is_empty(), "{cluster}: nobody wrote {:?}", found.keys());
            let fresh = api.create(&PostParams::default(), &map(&format!("fresh-{round}"), "x")).await?;
            ensure!(version(&fresh)? > now, "the next version is higher");
            carries_on(&api, highest[index], now, &fresh).await?;
            highest[index] = version(&fresh)?;
        }
    }
    Ok(())
}

/// A watch from before the kill goes on without a gap, or is told to list again.
async fn carries_on(api: &Api<ConfigMap>, last_seen: u64, listed: u64, fresh: &ConfigMap) -> Result<()> {
    for from in [last_seen, listed] {
        let mut events = api.watch(&WatchParams::default(), &from.to_string()).await?.boxed();
        loop {
            let event = tokio::time::timeout(wait::DEADLINE, events.try_next()).await??;
            match event {
                Some(WatchEvent::Error(status)) => {
                    ensure!(status.code == 410 && from < listed, "watching from {from}: {status:?}");
                    break;
                }
                Some(WatchEvent::Added(map)) if map.name_any() == fresh.name_any() => break,
                Some(_) if from < listed => {}
                other => bail!("watching from {from}: {other:?}"),
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_under_way_is_finished_after_kill_9() -> Result<()> {
    let mut region = region(&["one"]).await?;
    let first = client(&region, "one").await?;
    let namespaces: Api<Namespace> = Api::all(first.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("going".to_owned());
    namespaces.create(&PostParams::default(), &namespace).await?;
    let maps: Api<ConfigMap> = Api::namespaced(first, "going");
    let mut held = map("held", "x");
    held.metadata.finalizers = Some(vec!["test.aro.dev/hold".to_owned()]);
    maps.create(&PostParams::default(), &held).await?;
    namespaces.delete("going", &DeleteParams::default()).await?;
    region.kill()?;
    region.start_again().await?;
    let second = client(&region, "one").await?;
    let maps: Api<ConfigMap> = Api::namespaced(second.clone(), "going");
    let patch = serde_json::json!({"metadata": {"finalizers": null}});
    wait::until("the held object to be marked", || async {
        Ok(maps.get_opt("held").await?.filter(|map| map.metadata.deletion_timestamp.is_some()))
    })
    .await?;
    maps.patch("held", &PatchParams::default(), &Patch::Merge(patch)).await?;
    let namespaces: Api<Namespace> = Api::all(second);
    wait::until("the namespace to go", || async {
        Ok(namespaces.get_opt("going").await?.is_none().then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_data_is_refused_with_a_clear_message() -> Result<()> {
    let region = region(&["one"]).await?;
    let second = tokio::task::block_in_place(|| region.second("kube"))?;
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    ensure!(!second.status.success(), "it did not start");
    ensure!(said.contains("is in use by"), "{said}");
    // The first one goes on.
    let api: Api<ConfigMap> = Api::namespaced(client(&region, "one").await?, "default");
    tokio::time::timeout(Duration::from_secs(10), api.create(&PostParams::default(), &map("still", "here")))
        .await??;
    Ok(())
}
