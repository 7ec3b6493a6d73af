//! From a PUT through ARM to the hosted cluster on the management cluster, searches of Clusters Service, its event feed.
//!
//! The region is `aro up` with everything in it; a stand-in makes hosted clusters available, so that operations end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_cloud::Precondition;
use aro_crds::hypershift::v1beta1::HostedCluster;
use aro_fixtures::TestClient;
use aro_hcp_e2e::{Cluster, HcpRegion};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::load::Outcome;
use crate::report::{self, Row, resident_mib};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Clusters that are made one after the other.
    #[arg(long, default_value_t = 20)]
    alone: usize,
    /// Clusters that are made at once.
    #[arg(long, default_value_t = 100)]
    at_once: usize,
    /// Records that are searched.
    #[arg(long, default_value_t = 10_000)]
    records: usize,
    /// Followers of the event feed.
    #[arg(long, default_value_t = 10)]
    followers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { alone: 20, at_once: 100, records: 10_000, followers: 10 }
    }
}

const VERSION: &str = "2026-10-01";
const SUBJECT: &str = "clusters-service";
const CLUSTERS: &str = "/api/aro_hcp/v1alpha1/clusters";
/// One creation, at most.
const DEADLINE: Duration = Duration::from_mins(2);

pub async fn run(options: Options) -> Result<()> {
    let settings = [("telemetry.log", "warn"), ("clusters_service.shard_capacity", "100000")];
    let region = HcpRegion::start_release(&settings).await?;
    let pid = region.process().pid()?;
    let mut rows = Vec::new();
    let mut record = |what: &str, outcome: &Outcome| -> Result<()> {
        eprintln!("{what}: p50 {:.2} ms, p99 {:.2} ms", outcome.percentile(0.5), outcome.percentile(0.99));
        rows.push(Row::new(SUBJECT, what, outcome, resident_mib(pid)?));
        Ok(())
    };
    let arrivals = Arrivals::watch(&region).await?;
    let alone = prepare(&region, "alone", options.alone).await?;
    let one = arrivals.create(&region, &alone, 1).await?;
    record("PUT to hosted cluster on the management cluster, alone", &one.hosted)?;
    record("PUT to Succeeded with the stand-in, alone", &one.succeeded)?;
    let many = prepare(&region, "many", options.at_once).await?;
    let all = arrivals.create(&region, &many, options.at_once).await?;
    record("PUT to hosted cluster on the management cluster, at once", &all.hosted)?;
    record("PUT to Succeeded with the stand-in, at once", &all.succeeded)?;

    let api = region.http("clusters-service")?;
    record("POST cluster without provisioning", &fill(&api, options.records).await?)?;
    record("search by subscription and resource group", &search(&api, options.records).await?)?;
    record("event to every follower of the feed", &events(&region, options.followers).await?)?;
    report::print("Clusters Service, whole chain in one process", &rows);
    Ok(())
}

async fn prepare(region: &HcpRegion, prefix: &str, count: usize) -> Result<Vec<Cluster>> {
    let customer = region.customer().await?;
    let made: Vec<Cluster> = stream::iter(0..count)
        .map(|number| {
            let customer = &customer;
            async move { customer.prepare(&format!("{prefix}-{number}")).await }
        })
        .buffer_unordered(8)
        .try_collect()
        .await?;
    Ok(made)
}

/// When hosted clusters appeared on the management cluster, by name.
#[derive(Clone)]
struct Arrivals {
    seen: Arc<Mutex<HashMap<String, Instant>>>,
    changed: Arc<Notify>,
}

struct Creations {
    hosted: Outcome,
    succeeded: Outcome,
}

impl Arrivals {
    #[allow(clippy::disallowed_methods, reason = "the task ends with the process of the benchmark")]
    async fn watch(region: &HcpRegion) -> Result<Self> {
        let arrivals = Self { seen: Arc::default(), changed: Arc::new(Notify::new()) };
        let api: Api<HostedCluster> = Api::all(region.kube("mgmt-1").await?);
        let own = arrivals.clone();
        tokio::spawn(async move {
            let mut objects = Box::pin(watcher(api, watcher::Config::default()).applied_objects());
            while let Some(object) = objects.next().await {
                let Ok(object) = object else { continue };
                own.seen.lock().entry(object.name_any()).or_insert_with(Instant::now);
                own.changed.notify_waiters();
            }
        });
        Ok(arrivals)
    }

    async fn of(&self, name: &str) -> Instant {
        loop {
            let changed = self.changed.notified();
            if let Some(at) = self.seen.lock().get(name) {
                return *at;
            }
            changed.await;
        }
    }

    async fn create(&self, region: &HcpRegion, clusters: &[Cluster], at_once: usize) -> Result<Creations> {
        let customer = region.customer().await?;
        let began = Instant::now();
        let done: Vec<(Duration, Duration)> = stream::iter(clusters)
            .map(|cluster| {
                let customer = &customer;
                async move {
                    let sent = Instant::now();
                    let put = async {
                        let made = customer
                            .arm
                            .put(&cluster.id, VERSION, &cluster.body, &Precondition::None)
                            .await?;
                        let state = made["properties"]["provisioningState"].as_str();
                        ensure!(state == Some("Succeeded"), "{made}");
                        Ok(sent.elapsed())
                    };
                    let hosted = async { anyhow::Ok(self.of(cluster.id.name()).await.duration_since(sent)) };
                    let both = tokio::time::timeout(DEADLINE, futures::future::try_join(hosted, put)).await;
                    both.context("a creation ends")?
                }
            })
            .buffer_unordered(at_once)
            .try_collect()
            .await?;
        let took = began.elapsed();
        let outcome = |pick: fn(&(Duration, Duration)) -> Duration| Outcome {
            took,
            latencies: sorted(done.iter().map(pick).collect()),
        };
        Ok(Creations { hosted: outcome(|both| both.0), succeeded: outcome(|both| both.1) })
    }
}

fn sorted(durations: Vec<Duration>) -> Vec<u32> {
    let micros = durations.into_iter().map(|one| u32::try_from(one.as_micros()).unwrap_or(u32::MAX));
    let mut micros: Vec<u32> = micros.collect();
    micros.sort_unstable();
    micros
}

/// A record that nothing is provisioned for.
fn body(number: usize) -> Value {
    let subscription = format!("00000000-0000-0000-0000-{:012}", number % 1000);
    let id = |kind: &str, name: &str| {
        format!("/subscriptions/{subscription}/resourceGroups/infra/providers/{kind}/{name}-{number}")
    };
    json!({
        "kind": "Cluster", "name": format!("record-{number}"),
        "region": {"kind": "CloudRegion", "id": "westus3"}, "cloud_provider": {"kind": "CloudProvider", "id": "azure"},
        "product": {"kind": "Product", "id": "aro"}, "hypershift": {"enabled": true}, "ccs": {"kind": "CCS", "enabled": true},
        "version": {"kind": "Version", "id": "openshift-v4.20.8", "channel_group": "stable"},
        "network": {"type": "OVNKubernetes", "pod_cidr": "10.128.0.0/14", "service_cidr": "172.30.0.0/16",
                    "machine_cidr": "10.0.0.0/16", "host_prefix": 23},
        "api": {"listening": "external"}, "properties": {"provisioner_noop_provision": "true", "provisioner_noop_deprovision": "true"},
        "azure": {
            "tenant_id": "00000000-0000-0000-0000-00000000000a", "subscription_id": subscription,
            "resource_group_name": format!("group-{number}"), "resource_name": format!("record-{number}"),
            "managed_resource_group_name": format!("managed-{number}"),
            "subnet_resource_id": format!("{}/subnets/nodes", id("Microsoft.Network/virtualNetworks", "vnet")),
            "network_security_group_resource_id": id("Microsoft.Network/networkSecurityGroups", "nsg"),
            "nodes_outbound_connectivity": {"outbound_type": "load_balancer"},
            "operators_authentication": {"managed_identities": {
                "managed_identities_data_plane_identity_url": "https://identity.example.com/x",
                "control_plane_operators_managed_identities": operators(&id, "cp", &[
                    "cluster-api-azure", "control-plane", "cloud-controller-manager", "ingress", "disk-csi-driver",
                    "file-csi-driver", "image-registry", "cloud-network-config", "kms",
                ]),
                "data_plane_operators_managed_identities":
                    operators(&id, "dp", &["disk-csi-driver", "file-csi-driver", "image-registry"]),
                "service_managed_identity":
                    {"resource_id": id("Microsoft.ManagedIdentity/userAssignedIdentities", "service")},
            }},
            "etcd_encryption": {"data_encryption": {"key_management_mode": "customer_managed", "customer_managed": {
                "encryption_type": "kms",
                "kms": {"visibility": "public", "active_key": {"key_vault_name": "kv", "key_name": "k", "key_version": "v"}},
            }}},
        },
    })
}

fn operators(id: &impl Fn(&str, &str) -> String, prefix: &str, names: &[&str]) -> Value {
    let kind = "Microsoft.ManagedIdentity/userAssignedIdentities";
    let of =
        |name: &&str| ((*name).to_owned(), json!({"resource_id": id(kind, &format!("{prefix}-{name}"))}));
    Value::Object(names.iter().map(of).collect())
}

async fn fill(api: &TestClient, records: usize) -> Result<Outcome> {
    let began = Instant::now();
    let latencies: Vec<Duration> = stream::iter(0..records)
        .map(|number| async move {
            let sent = Instant::now();
            api.post(CLUSTERS, Some(&body(number))).await?.expect(202)?;
            anyhow::Ok(sent.elapsed())
        })
        .buffer_unordered(32)
        .try_collect()
        .await?;
    Ok(Outcome { took: began.elapsed(), latencies: sorted(latencies) })
}

async fn search(api: &TestClient, records: usize) -> Result<Outcome> {
    let began = Instant::now();
    let mut latencies = Vec::new();
    for number in (0..records).step_by((records / 1000).max(1)) {
        let query = format!(
            "azure.subscription_id%20%3D%20%2700000000-0000-0000-0000-{:012}%27%20and%20azure.resource_group_name%20%3D%20%27group-{number}%27",
            number % 1000
        );
        let sent = Instant::now();
        let found = api.get(&format!("{CLUSTERS}?search={query}")).await?.expect(200)?;
        latencies.push(sent.elapsed());
        ensure!(found.json()["total"] == 1, "{}", found.json());
    }
    Ok(Outcome { took: began.elapsed(), latencies: sorted(latencies) })
}

/// From the POST of a cluster to its event at each follower.
async fn events(region: &HcpRegion, followers: usize) -> Result<Outcome> {
    const POSTS: usize = 50;
    let api = region.http("clusters-service")?;
    let head = api.get("/api/aro/v1/events").await?.expect(200)?.json();
    let head = head["cursor"].as_str().context("the feed has a cursor")?.to_owned();
    let sent: Arc<Mutex<HashMap<String, Instant>>> = Arc::default();
    let began = Instant::now();
    let follow = |_| {
        let (api, sent, mut cursor) = (api.clone(), sent.clone(), head.clone());
        async move {
            let mut seen = HashMap::new();
            while seen.len() < POSTS {
                let path = format!("/api/aro/v1/events?after={cursor}&timeout=10");
                let page = api.get(&path).await?.expect(200)?.json();
                let now = Instant::now();
                for item in page["items"].as_array().into_iter().flatten() {
                    let name = item["object"]["name"].as_str().unwrap_or_default().to_owned();
                    if let Some(at) = sent.lock().get(&name) {
                        seen.entry(name).or_insert_with(|| now.duration_since(*at));
                    }
                }
                page["cursor"].as_str().context("a cursor")?.clone_into(&mut cursor);
            }
            anyhow::Ok(seen.into_values().collect::<Vec<Duration>>())
        }
    };
    let posts = async {
        for number in 1_000_000..1_000_000 + POSTS {
            let body = body(number);
            let name = body["name"].as_str().unwrap_or_default().to_owned();
            sent.lock().insert(name, Instant::now());
            api.post(CLUSTERS, Some(&body)).await?.expect(202)?;
        }
        anyhow::Ok(())
    };
    let followed = futures::future::try_join_all((0..followers).map(follow));
    let (followed, ()) = futures::future::try_join(followed, posts).await?;
    Ok(Outcome { took: began.elapsed(), latencies: sorted(followed.into_iter().flatten().collect()) })
}
