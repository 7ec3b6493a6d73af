//! Controllers written with `kube`, in this process and over the socket alike.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aro_fixtures::wait;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event as RecordedEvent;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::crd::CustomResourceExt as _;
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Finalizing, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{Controller, WatchStreamExt as _, reflector};
use kube::{Client, CustomResource, Resource as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::watching::Inside;

/// Wants some ConfigMaps.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "test.aro.dev", version = "v1", kind = "Bundle", namespaced, status = "BundleStatus")]
pub struct BundleSpec {
    parts: usize,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct BundleStatus {
    ready: usize,
}

fn map(name: &str, key: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..kube::api::ObjectMeta::default() },
        data: Some(BTreeMap::from([(key.to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

async fn install(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = Patch::Apply(Bundle::crd());
    definitions.patch(Bundle::crd_name(), &PatchParams::apply("tests").force(), &patch).await?;
    let established = await_condition(definitions, Bundle::crd_name(), conditions::is_crd_established());
    tokio::time::timeout(wait::DEADLINE, established).await??;
    let bundles: Api<Bundle> = Api::default_namespaced(client.clone());
    wait::until("the new type to be served", || async {
        Ok(bundles.list(&ListParams::default()).await.ok().map(|_| ()))
    })
    .await
}

/// Runs a test with a client without a socket, then with one over it.
async fn either_way(test: impl AsyncFn(Client) -> Result<()>) -> Result<()> {
    let inside = Inside::start(&[]).await?;
    test(inside.near()?).await.context("in this process")?;
    inside.stop().await?;
    let inside = Inside::start(&[]).await?;
    test(inside.far().await?).await.context("over the socket")?;
    inside.stop().await
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_created_read_changed_and_deleted() -> Result<()> {
    either_way(async |client: Client| {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let made = api.create(&PostParams::default(), &map("a", "x", "1")).await?;
        ensure!(made.uid().is_some() && made.creation_timestamp().is_some(), "{made:?}");
        let twice = api.create(&PostParams::default(), &map("a", "x", "1")).await;
        ensure!(twice.as_ref().is_err_and(|error| code(error) == 409), "{twice:?}");
        let mut changed = made.clone();
        changed.data = Some(BTreeMap::from([("x".to_owned(), "2".to_owned())]));
        let changed = api.replace("a", &PostParams::default(), &changed).await?;
        ensure!(changed.resource_version() != made.resource_version(), "a new version");
        let stale = api.replace("a", &PostParams::default(), &made).await;
        ensure!(stale.as_ref().is_err_and(|error| code(error) == 409), "{stale:?}");
        ensure!(api.get_opt("b").await?.is_none(), "nothing there");
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        api.create(&dry, &map("b", "x", "1")).await?;
        ensure!(api.get_opt("b").await?.is_none(), "a rehearsal writes nothing");
        let metadata = api.get_metadata("a").await?;
        ensure!(metadata.metadata.uid == made.metadata.uid, "{metadata:?}");
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        api.delete("a", &params).await?;
        wait::until("it to be gone", || async { Ok(api.get_opt("a").await?.is_none().then_some(())) })
            .await?;
        for name in ["p1", "p2", "p3"] {
            let mut labelled = map(name, "x", "1");
            labelled.metadata.labels = Some(BTreeMap::from([("page".to_owned(), "yes".to_owned())]));
            api.create(&PostParams::default(), &labelled).await?;
        }
        let page = ListParams::default().labels("page=yes").limit(2);
        let first = api.list(&page).await?;
        let token = first.metadata.continue_.clone().context("there is more")?;
        let rest = api.list(&page.clone().continue_token(&token)).await?;
        let names: Vec<String> = first.items.iter().chain(&rest.items).map(|map| map.name_any()).collect();
        ensure!(names == ["p1", "p2", "p3"], "{names:?}");
        api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("page=yes")).await?;
        ensure!(api.list(&ListParams::default().labels("page=yes")).await?.items.is_empty(), "all are gone");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn server_side_apply_tells_of_conflicts_and_can_be_forced() -> Result<()> {
    either_way(async |client: Client| {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let wanted = |value: &str| serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"x": value}});
        api.patch("s", &PatchParams::apply("first"), &Patch::Apply(wanted("1"))).await?;
        let conflict = api.patch("s", &PatchParams::apply("second"), &Patch::Apply(wanted("2"))).await;
        match conflict {
            Err(kube::Error::Api(status)) => {
                ensure!(status.code == 409 && status.message.contains(r#"conflict with "first": .data.x"#), "{status:?}");
            }
            other => bail!("{other:?}"),
        }
        let forced = api.patch("s", &PatchParams::apply("second").force(), &Patch::Apply(wanted("2"))).await?;
        ensure!(forced.data.as_ref().is_some_and(|data| data["x"] == "2"), "{forced:?}");
        let owners: Vec<_> = forced.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
        ensure!(owners == ["second"], "the first owns nothing any more: {owners:?}");
        ensure!(forced.managed_fields().iter().all(|entry| entry.time.is_some()), "{:?}", forced.managed_fields());
        let same = api.patch("s", &PatchParams::apply("second"), &Patch::Apply(wanted("2"))).await?;
        ensure!(same.resource_version() == forced.resource_version(), "nothing changes, nothing is written");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_restart_and_a_store_follows() -> Result<()> {
    let inside = Inside::start(&[("kube.watch_history", "20")]).await?;
    for (round, client) in [inside.near()?, inside.far().await?].into_iter().enumerate() {
        let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let config = watcher::Config::default().labels(&format!("round=r{round}"));
        // A server ends watches now and then, here after a second; and the long burst is more than its history holds.
        let config = watcher::Config { timeout: Some(1), ..config };
        let (store, writer) = reflector::store();
        let follow = reflector(writer, watcher(api.clone(), config)).default_backoff().applied_objects();
        let run = async move { follow.try_for_each(|_| async { Ok(()) }).await };
        #[allow(clippy::disallowed_methods, reason = "aborted below")]
        let task = tokio::spawn(run);
        store.wait_until_ready().await?;
        let mut made = 0;
        for burst in [5, 300, 5] {
            for _ in 0..burst {
                let mut new = map(&format!("r{round}-{made}"), "x", "1");
                new.metadata.labels = Some(BTreeMap::from([("round".to_owned(), format!("r{round}"))]));
                api.create(&PostParams::default(), &new).await?;
                made += 1;
            }
            wait::until("the store to hold everything", || async { Ok((store.len() == made).then_some(())) })
                .await?;
        }
        api.delete(&format!("r{round}-0"), &DeleteParams::default()).await?;
        wait::until("the store to forget", || async { Ok((store.len() == made - 1).then_some(())) }).await?;
        ensure!(!task.is_finished(), "it goes on");
        task.abort();
    }
    inside.stop().await
}

struct Context_ {
    client: Client,
    cleaned: AtomicUsize,
    recorder: Recorder,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("finalizing: {0}")]
    Finalizer(String),
}

async fn reconcile(bundle: Arc<Bundle>, context: Arc<Context_>) -> Result<Action, Problem> {
    let bundles: Api<Bundle> = Api::default_namespaced(context.client.clone());
    let done = finalizer(&bundles, "test.aro.dev/bundle", bundle, |event| async {
        match event {
            Finalizing::Apply(bundle) => make(&bundle, &context).await,
            Finalizing::Cleanup(_) => {
                context.cleaned.fetch_add(1, Ordering::Relaxed);
                Ok(Action::await_change())
            }
        }
    });
    done.await.map_err(|error| Problem::Finalizer(format!("{error:?}")))
}

async fn make(bundle: &Bundle, context: &Context_) -> Result<Action, Problem> {
    let maps: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
    let owner = bundle.controller_owner_ref(&());
    for part in 0..bundle.spec.parts {
        let name = format!("{}-{part}", bundle.name_any());
        let mut wanted = map(&name, "part", &part.to_string());
        wanted.metadata.owner_references = owner.clone().map(|owner| vec![owner]);
        maps.patch(&name, &PatchParams::apply("bundles").force(), &Patch::Apply(wanted)).await?;
    }
    let bundles: Api<Bundle> = Api::default_namespaced(context.client.clone());
    let ready = bundle.spec.parts;
    if bundle.status.as_ref().map(|status| status.ready) != Some(ready) {
        let status = serde_json::json!({"status": {"ready": ready}});
        bundles.patch_status(&bundle.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
        let event = Event {
            type_: EventType::Normal,
            reason: "Made".to_owned(),
            note: Some(format!("{ready} parts")),
            action: "Make".to_owned(),
            secondary: None,
        };
        context.recorder.publish(&event, &bundle.object_ref(&())).await?;
    }
    Ok(Action::await_change())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_converges_and_cleans_up() -> Result<()> {
    either_way(async |client: Client| {
        install(&client).await?;
        let bundles: Api<Bundle> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let recorder =
            Recorder::new(client.clone(), Reporter { controller: "bundles".to_owned(), instance: None });
        let context = Arc::new(Context_ { client: client.clone(), cleaned: AtomicUsize::new(0), recorder });
        let controller = Controller::new(bundles.clone(), watcher::Config::default())
            .owns(maps.clone(), watcher::Config::default())
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), context.clone())
            .for_each(|_| async {});
        #[allow(clippy::disallowed_methods, reason = "aborted below")]
        let task = tokio::spawn(controller);
        let count = || async {
            let found = maps.list(&ListParams::default()).await?;
            Ok::<_, anyhow::Error>(found.items.iter().filter(|map| map.name_any().starts_with("b-")).count())
        };
        bundles.create(&PostParams::default(), &Bundle::new("b", BundleSpec { parts: 3 })).await?;
        wait::until("three parts", || async { Ok((count().await? == 3).then_some(())) }).await?;
        wait::until("the status", || async {
            Ok(bundles.get("b").await?.status.filter(|status| status.ready == 3))
        })
        .await?;
        for name in ["b-0", "b-2"] {
            maps.delete(name, &DeleteParams::default()).await?;
        }
        wait::until("the parts to be back", || async { Ok((count().await? == 3).then_some(())) }).await?;
        let events: Api<RecordedEvent> = Api::default_namespaced(client.clone());
        let event = wait::until("an event", || async {
            Ok(events
                .list(&ListParams::default())
                .await?
                .items
                .into_iter()
                .find(|event| event.reason.as_deref() == Some("Made")))
        })
        .await?;
        ensure!(
            event.regarding.is_some_and(|about| about.name.as_deref() == Some("b")),
            "it is about the bundle"
        );
        bundles.delete("b", &DeleteParams::default()).await?;
        wait::until("the bundle to go", || async { Ok(bundles.get_opt("b").await?.is_none().then_some(())) })
            .await?;
        wait::until("its parts to be collected", || async { Ok((count().await? == 0).then_some(())) })
            .await?;
        ensure!(context.cleaned.load(Ordering::Relaxed) >= 1, "the finalizer ran");
        task.abort();
        Ok(())
    })
    .await
}
