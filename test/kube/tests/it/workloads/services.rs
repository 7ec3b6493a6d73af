//! Services and what is behind them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::kubelet::KubeletOptions;
use super::world::{World, on_ours, on_real};

struct Desk {
    pods: Api<Pod>,
    services: Api<Service>,
    slices: Api<EndpointSlice>,
    endpoints: Api<Endpoints>,
}

impl Desk {
    async fn new(world: &World, prefix: &str) -> Result<Self> {
        let namespace = world.namespace(prefix).await?;
        Ok(Self {
            pods: world.api(&namespace),
            services: world.api(&namespace),
            slices: world.api(&namespace),
            endpoints: world.api(&namespace),
        })
    }

    async fn service(&self, name: &str, spec: Value) -> Result<()> {
        let service = json!({"metadata": {"name": name}, "spec": spec});
        self.services.create(&PostParams::default(), &serde_json::from_value(service)?).await?;
        Ok(())
    }

    async fn pod(&self, name: &str, behaviour: &str, port: i32) -> Result<()> {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "web"}, "annotations": {"test/behaviour": behaviour}},
            "spec": {"hostname": name, "subdomain": "peers", "terminationGracePeriodSeconds": 5, "containers": [
                {"name": "c", "image": "x", "ports": [{"name": "http", "containerPort": port}]}]},
        });
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        Ok(())
    }

    async fn slices_of(&self, service: &str) -> Result<Vec<EndpointSlice>> {
        let label = format!("kubernetes.io/service-name={service}");
        Ok(self.slices.list(&ListParams::default().labels(&label)).await?.items)
    }

    async fn until(
        &self,
        what: &str,
        service: &str,
        holds: impl Fn(&[EndpointSlice]) -> bool,
    ) -> Result<Vec<EndpointSlice>> {
        let found = wait::until(what, || async {
            let slices = self.slices_of(service).await?;
            Ok(holds(&slices).then_some(slices))
        })
        .await;
        match found {
            Ok(found) => Ok(found),
            Err(error) => Err(error.context(format!("{:#?}", self.slices_of(service).await?))),
        }
    }
}

fn endpoints(slices: &[EndpointSlice]) -> Vec<&Endpoint> {
    slices.iter().flat_map(|slice| slice.endpoints.iter().flatten()).collect()
}

fn ready(slices: &[EndpointSlice]) -> Vec<String> {
    let ready = endpoints(slices).into_iter().filter(|endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true)
    });
    let mut names: Vec<String> =
        ready.filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.clone()).collect();
    names.sort();
    names
}

/// Pods come, are not ready, go; a service follows.
async fn a_service_follows_its_pods(world: &World) -> Result<()> {
    let desk = Desk::new(world, "follow").await?;
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]});
    desk.service("web", spec).await?;
    let empty = desk.until("an empty slice", "web", |slices| slices.len() == 1).await?;
    ensure!(endpoints(&empty).is_empty() && empty[0].name_any().starts_with("web-"));
    for (name, behaviour, port) in
        [("a", "run", 80), ("b", "unready", 80), ("c", "linger", 8080), ("d", "stuck", 80)]
    {
        desk.pod(name, behaviour, port).await?;
    }
    let slices = desk
        .until("three endpoints, two of them ready", "web", |slices| {
            endpoints(slices).len() == 3 && ready(slices) == ["a", "c"]
        })
        .await?;
    ensure!(slices.len() == 2, "one slice for each port: {}", slices.len());
    let first = endpoints(&slices)[0];
    ensure!(first.zone.as_deref() == Some("zone-1") && first.node_name.is_some(), "{first:?}");
    ensure!(first.hostname.is_none(), "its domain is another service's");
    let old = wait::until("the old object", || async {
        let found = desk.endpoints.get_opt("web").await?;
        let count = |found: &Endpoints| {
            let subsets = found.subsets.iter().flatten();
            subsets.fold((0, 0), |(ready, not), subset| {
                let len = |list: &Option<Vec<_>>| list.as_ref().map_or(0, Vec::len);
                (ready + len(&subset.addresses), not + len(&subset.not_ready_addresses))
            })
        };
        Ok(found.filter(|found| count(found) == (2, 1)))
    })
    .await?;
    ensure!(old.labels()["endpoints.kubernetes.io/managed-by"] == "endpoint-controller");
    // One that is on its way out still serves those who are connected.
    desk.pods.delete("c", &DeleteParams::default()).await?;
    desk.until("it to be terminating", "web", |slices| {
        let going = endpoints(slices).into_iter().find(|endpoint| {
            endpoint.target_ref.as_ref().and_then(|target| target.name.as_deref()) == Some("c")
        });
        let conditions = going.and_then(|endpoint| endpoint.conditions.clone()).unwrap_or_default();
        (conditions.ready, conditions.serving, conditions.terminating)
            == (Some(false), Some(true), Some(true))
    })
    .await?;
    let gone = json!({"metadata": {"annotations": {"test/behaviour": null}}});
    desk.pods.patch("c", &PatchParams::default(), &Patch::Merge(gone)).await?;
    desk.until("it to be gone", "web", |slices| endpoints(slices).len() == 2 && slices.len() == 1).await?;
    // Somebody else's change is put right.
    let name = desk.slices_of("web").await?[0].name_any();
    desk.slices.delete(&name, &DeleteParams::default()).await?;
    desk.until("the slice to be back", "web", |slices| ready(slices) == ["a"]).await?;
    let other = json!({"metadata": {"labels": {"app": "other"}}});
    desk.pods.patch("a", &PatchParams::default(), &Patch::Merge(other)).await?;
    desk.until("nobody to be ready", "web", |slices| ready(slices).is_empty()).await?;
    desk.services.delete("web", &DeleteParams::default()).await?;
    desk.until("the slices to go", "web", <[EndpointSlice]>::is_empty).await?;
    wait::until("the old object to go", || async {
        Ok(desk.endpoints.get_opt("web").await?.is_none().then_some(()))
    })
    .await
}

/// Headless services have names for pods; those that want everybody get the unready ones, too.
async fn kinds_of_services(world: &World) -> Result<()> {
    let desk = Desk::new(world, "kinds").await?;
    let selector = json!({"app": "web"});
    desk.service(
        "peers",
        json!({"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": true}),
    )
    .await?;
    desk.service(
        "elsewhere",
        json!({"type": "ExternalName", "externalName": "example.org", "selector": selector}),
    )
    .await?;
    desk.service("bare", json!({"ports": [{"port": 80}]})).await?;
    desk.pod("a", "unready", 80).await?;
    let slices = desk.until("an endpoint", "peers", |slices| ready(slices) == ["a"]).await?;
    ensure!(slices[0].labels().contains_key("service.kubernetes.io/headless"));
    ensure!(endpoints(&slices)[0].hostname.as_deref() == Some("a"));
    for name in ["elsewhere", "bare"] {
        ensure!(desk.slices_of(name).await?.is_empty(), "{name} is left alone");
        ensure!(desk.endpoints.get_opt(name).await?.is_none());
    }
    Ok(())
}

/// Many pods are few writes: slices have at most a hundred endpoints, and changes are collected.
async fn many_pods(world: &World) -> Result<()> {
    let desk = Desk::new(world, "many").await?;
    desk.service("web", json!({"selector": {"app": "web"}, "ports": [{"port": 80}]})).await?;
    desk.until("a slice", "web", |slices| slices.len() == 1).await?;
    let names: Vec<String> = (0..130).map(|number| format!("p{number}")).collect();
    stream::iter(&names)
        .map(|name| desk.pod(name, "run", 80))
        .buffer_unordered(32)
        .try_collect::<()>()
        .await?;
    let slices = desk.until("all of them", "web", |slices| ready(slices).len() == 130).await?;
    ensure!(slices.iter().all(|slice| slice.endpoints.as_ref().is_none_or(|all| all.len() <= 100)));
    let writes: i64 = slices.iter().filter_map(|slice| slice.metadata.generation).sum();
    ensure!(writes < 100, "130 pods were {writes} writes");
    Ok(())
}

async fn services(world: &World) -> Result<()> {
    let kubelet = world.kubelet(KubeletOptions::with_nodes(&["one"])).await?;
    let nodes: Api<Node> = Api::all(world.client.clone());
    let zone = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "zone-1"}}});
    nodes.patch("one", &PatchParams::default(), &Patch::Merge(zone)).await?;
    a_service_follows_its_pods(world).await.context("a_service_follows_its_pods")?;
    kinds_of_services(world).await.context("kinds_of_services")?;
    many_pods(world).await.context("many_pods")?;
    kubelet.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn services_on_ours() -> Result<()> {
    on_ours(services).await
}

#[tokio::test(flavor = "multi_thread")]
async fn services_on_a_real_api_server() -> Result<()> {
    on_real(services).await
}

/// How long a new service waits for its endpoint, or a deleted pod for its endpoint to go.
async fn slowest_change_of_endpoints(desk: &Desk) -> Result<Duration> {
    desk.pod("a", "run", 80).await?;
    wait::until("the pod to run", || async {
        let pod = desk.pods.get("a").await?;
        Ok(pod.status.and_then(|status| status.pod_ip))
    })
    .await?;
    let began = Instant::now();
    desk.service("web", json!({"selector": {"app": "web"}, "ports": [{"port": 80}]})).await?;
    desk.until("the endpoint", "web", |slices| ready(slices) == ["a"]).await?;
    let new_service = began.elapsed();
    let began = Instant::now();
    desk.pods.delete("a", &DeleteParams::default()).await?;
    desk.until("the endpoint to go", "web", |slices| endpoints(slices).is_empty()).await?;
    let gone = began.elapsed();
    Ok(new_service.max(gone))
}

/// With thousands of services elsewhere, a new one is as quick as the first.
async fn a_slice_appears_within_a_second(world: &World, services: usize) -> Result<()> {
    let kubelet = world.kubelet(KubeletOptions::with_nodes(&["one"])).await?;
    let crowd = Desk::new(world, "crowd").await?;
    let names: Vec<String> = (0..services).map(|number| format!("s{number}")).collect();
    stream::iter(&names)
        .map(|name| crowd.service(name, json!({"clusterIP": "None", "selector": {"app": name}})))
        .buffer_unordered(64)
        .try_collect::<()>()
        .await?;
    wait::until("a slice for each", || async {
        Ok((crowd.slices.list_metadata(&ListParams::default()).await?.items.len() >= services).then_some(()))
    })
    .await?;
    // What the machine is busy with beside may make one of them late, not all.
    let mut took = Vec::new();
    while took.last().is_none_or(|took| *took >= Duration::from_secs(1)) {
        ensure!(took.len() < 5, "it took {took:?}");
        let desk = Desk::new(world, &format!("quick-{}", took.len())).await?;
        took.push(slowest_change_of_endpoints(&desk).await?);
    }
    kubelet.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slice_appears_within_a_second_with_3000_services_on_ours() -> Result<()> {
    on_ours(async |world: &World| a_slice_appears_within_a_second(world, 3000).await).await
}
