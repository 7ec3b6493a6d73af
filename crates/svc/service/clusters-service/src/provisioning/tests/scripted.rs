//! A cloud and a Maestro that hold names only, and records of a cluster on a shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aro_base::{ManualClock, Secret, Timestamp};
use aro_control::saga::StepError;
use aro_decisions::Decisions;
use aro_ocm::{Cluster, ClusterId, ClusterState, NodePool, ShardId, names};
use aro_region_layout::{RegionConfig, RegionLayout};
use aro_runtime::Metrics;
use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use uuid::Uuid;

use crate::maestro::{PublishError, Publisher, Route, Trace};
use crate::manifests::{Bundle, Secrets};
use crate::provisioning::environment::Environment;
use crate::provisioning::infrastructure::{Checked, Egress, Identities, Infrastructure, Zone};
use crate::provisioning::target::Target;
use crate::records::{
    ClusterObserved, ClusterRecord, Provisioned, Record as _, Records, ResolvedIdentity, ShardRecord,
    TraceContext, cluster_partition,
};
use crate::versions::Catalogue;

pub(super) const CLUSTER: &str = "2qrppk0otds3rdmdcojqcqkqq8f0s591";
const TENANT: &str = "11111111-1111-1111-1111-111111111111";
const SUBSCRIPTION: &str = "22222222-2222-2222-2222-222222222222";

/// The names of what exists, and errors that the next calls meet.
#[derive(Default)]
pub(super) struct World {
    pub(super) exist: Mutex<BTreeSet<String>>,
    pub(super) errors: Mutex<Vec<(&'static str, StepError)>>,
    pub(super) checks: Mutex<Option<StepError>>,
    pub(super) puts: Mutex<Vec<Bundle>>,
    /// Bundles whose deletion was requested and that are still there: the management cluster takes its time.
    pub(super) leaving: Mutex<BTreeSet<Uuid>>,
    /// Deletions of bundles take effect at once.
    pub(super) prompt: bool,
}

impl World {
    pub(super) fn prompt() -> Arc<Self> {
        Arc::new(Self { prompt: true, ..Self::default() })
    }

    fn make(&self, what: &str) -> Result<String, StepError> {
        self.meet(what)?;
        self.exist.lock().insert(what.to_owned());
        Ok(what.to_owned())
    }

    fn remove(&self, what: &'static str) -> Result<(), StepError> {
        self.meet(what)?;
        self.exist.lock().remove(what);
        Ok(())
    }

    fn meet(&self, what: &str) -> Result<(), StepError> {
        let mut errors = self.errors.lock();
        match errors.iter().position(|(name, _)| *name == what) {
            Some(at) => Err(errors.remove(at).1),
            None => Ok(()),
        }
    }

    /// The management cluster removes what is leaving.
    pub(super) fn settle(&self) {
        let gone = std::mem::take(&mut *self.leaving.lock());
        self.exist.lock().retain(|name| !gone.iter().any(|id| *name == format!("bundle {id}")));
    }
}

#[async_trait]
impl Infrastructure for World {
    async fn check(&self, _: &Target) -> Vec<Checked> {
        let failure = self.checks.lock().clone();
        vec![
            Checked { name: "network-inflight", failure },
            Checked { name: "resource-group-inflight", failure: None },
        ]
    }

    async fn check_pool(&self, _: &Target, _: &NodePool) -> Result<(), StepError> {
        self.meet("pool")
    }

    async fn ensure_group(&self, _: &Target) -> Result<String, StepError> {
        self.make("group")
    }

    async fn ensure_identities(&self, target: &Target) -> Result<Identities, StepError> {
        self.make("identities")?;
        let resolved = |operator: &String| ResolvedIdentity {
            client_id: format!("client-{operator}"),
            principal_id: format!("principal-{operator}"),
            secret: Some(target.identity_secret(operator)),
            renew_after: None,
        };
        Ok(target.control_plane.keys().map(|operator| (operator.clone(), resolved(operator))).collect())
    }

    async fn ensure_issuer(&self, target: &Target) -> Result<String, StepError> {
        self.make("issuer")?;
        Ok(target.issuer.clone())
    }

    async fn ensure_pull_secret(&self, _: &Target) -> Result<String, StepError> {
        self.make("pull-secret")
    }

    async fn ensure_certificates(&self, target: &Target) -> Result<BTreeMap<String, String>, StepError> {
        self.make("certificates")?;
        Ok(BTreeMap::from([("api".to_owned(), target.api_certificate())]))
    }

    async fn ensure_records(&self, _: &Target) -> Result<String, StepError> {
        self.make("records")?;
        Ok("192.0.2.1".to_owned())
    }

    async fn ensure_roles(&self, _: &Target, _: &Identities) -> Result<Vec<String>, StepError> {
        self.meet("roles")?;
        Ok(vec!["role".to_owned()])
    }

    async fn ensure_egress(&self, target: &Target) -> Result<Egress, StepError> {
        self.meet("egress")?;
        Ok(Egress {
            load_balancer: target.load_balancer().to_string(),
            address_id: target.egress_address().to_string(),
            address: "203.0.113.9".to_owned(),
        })
    }

    async fn ensure_zone(&self, target: &Target) -> Result<Zone, StepError> {
        self.make("records")?;
        Ok(Zone { id: target.zone.to_string(), name_servers: vec!["ns1".to_owned()] })
    }

    async fn ensure_nsg(&self, _: &Target) -> Result<(), StepError> {
        self.meet("nsg")
    }

    async fn ensure_federation(&self, _: &Target) -> Result<(), StepError> {
        self.make("federation").map(drop)
    }

    async fn secrets(&self, _: &Target) -> Result<Secrets, StepError> {
        Ok(Secrets {
            pull_secret: Secret::new("{}".to_owned()),
            ssh_key: "ssh".to_owned(),
            service_account_key: Secret::new("key".to_owned()),
        })
    }

    async fn delete_group(&self, _: &Target) -> Result<(), StepError> {
        self.remove("group")
    }

    async fn delete_identities(&self, _: &Target) -> Result<(), StepError> {
        self.remove("identities")
    }

    async fn delete_issuer(&self, _: &Target) -> Result<(), StepError> {
        self.remove("issuer")
    }

    async fn delete_pull_secret(&self, _: &Target) -> Result<(), StepError> {
        self.remove("pull-secret")
    }

    async fn delete_certificates(&self, _: &Target) -> Result<(), StepError> {
        self.remove("certificates")
    }

    async fn delete_records(&self, _: &Target) -> Result<(), StepError> {
        self.remove("records")
    }

    async fn delete_federation(&self, _: &Target) -> Result<(), StepError> {
        self.remove("federation")
    }
}

#[async_trait]
impl Publisher for World {
    async fn put(&self, _: &Route, bundle: &Bundle, _: &Trace) -> Result<bool, PublishError> {
        self.exist.lock().insert(format!("bundle {}", bundle.id));
        let mut puts = self.puts.lock();
        let same = puts.iter().rev().find(|known| known.id == bundle.id) == Some(bundle);
        if !same {
            puts.push(bundle.clone());
        }
        Ok(!same)
    }

    async fn delete(&self, _: &Route, id: Uuid, _: &Trace) -> Result<(), PublishError> {
        if self.exist.lock().contains(&format!("bundle {id}")) {
            self.leaving.lock().insert(id);
        }
        if self.prompt {
            self.settle();
        }
        Ok(())
    }

    async fn is_gone(&self, _: &Route, id: Uuid) -> Result<bool, PublishError> {
        Ok(!self.exist.lock().contains(&format!("bundle {id}")))
    }

    fn forget(&self, id: Uuid) {
        self.puts.lock().retain(|bundle| bundle.id != id);
    }
}

/// Records, clock and environment around a world.
pub(super) struct Site {
    pub(super) environment: Arc<Environment>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) world: Arc<World>,
    pub(super) directory: tempfile::TempDir,
}

pub(super) fn layout() -> RegionLayout {
    RegionLayout::new(RegionConfig::default().params(Uuid::from_u128(7), vec!["1".to_owned()]))
}

pub(super) fn shard() -> ShardRecord {
    let layout = layout();
    let management = &layout.management[0];
    let shard = json!({
        "azure_shard": {
            "aks_management_cluster_resource_id": management.cluster,
            "public_dns_zone_resource_id": layout.regional.cluster_zone,
            "cx_secrets_key_vault_url": format!("https://{}.vault.azure.net/", management.vaults.clusters.name()),
            "cx_managed_identities_key_vault_url":
                format!("https://{}.vault.azure.net/", management.vaults.identities.name()),
            "cx_secrets_key_vault_managed_identity_client_id": "reader",
        },
        "maestro_config": {"consumer_name": "mgmt-1"},
    });
    ShardRecord {
        id: ShardId::new(Uuid::from_u128(1)),
        shard: serde_json::from_value(shard).unwrap(),
        capacity: None,
        trace: TraceContext::default(),
    }
}

pub(super) fn cluster() -> Cluster {
    let identity = |name: &str| json!({"resource_id": format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/infra/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}")});
    let network = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/infra/providers/Microsoft.Network");
    serde_json::from_value(json!({
        "id": CLUSTER,
        "name": "c1",
        "domain_prefix": "c1",
        "infra_id": "c1-abcde",
        "region": {"id": "westus3"},
        "dns": {"base_domain": format!("0ulz.{}", layout().regional.cluster_zone.name())},
        "version": {"id": "openshift-v4.20.8", "channel_group": "stable", "release_image": "quay.io/r@sha256:1"},
        "network": {"pod_cidr": "10.128.0.0/14", "service_cidr": "172.30.0.0/16", "machine_cidr": "10.0.0.0/16", "host_prefix": 23},
        "api": {"listening": "external", "cidr_block_access": {"allow": {"mode": "allow_list", "values": ["198.51.100.0/24"]}}},
        "ingresses": {"items": [{"default": true, "listening": "external"}]},
        "image_registry": {"state": "disabled"},
        "registry_config": {"image_digest_mirrors": [{"source": "quay.io/a", "mirrors": ["x.azurecr.io/a"]}]},
        "node_drain_grace_period": {"unit": "minutes", "value": 10},
        "autoscaler": {"max_node_provision_time": "15m", "max_pod_grace_period": 600, "pod_priority_threshold": -10, "resource_limits": {"max_nodes_total": 0}},
        "properties": {"hosted_cluster_single_replica": "true", "hosted_cluster_size_override": "small"},
        "azure": {
            "tenant_id": TENANT, "subscription_id": SUBSCRIPTION, "resource_group_name": "clusters",
            "resource_name": "c1", "managed_resource_group_name": "arohcp-c1",
            "subnet_resource_id": format!("{network}/virtualNetworks/v/subnets/nodes"),
            "network_security_group_resource_id": format!("{network}/networkSecurityGroups/n"),
            "operators_authentication": {"managed_identities": {
                "managed_identities_data_plane_identity_url": "https://identity.test/x?secret=1",
                "control_plane_operators_managed_identities": {"ingress": identity("cp-ingress"), "kms": identity("cp-kms")},
                "data_plane_operators_managed_identities": {"disk-csi-driver": identity("dp-disk")},
                "service_managed_identity": identity("service"),
            }},
            "etcd_encryption": {"data_encryption": {"key_management_mode": "customer_managed", "customer_managed": {
                "encryption_type": "kms", "kms": {"visibility": "private", "active_key": {
                    "key_vault_name": "kv", "key_name": "k", "key_version": "v"}}}}},
        },
    }))
    .unwrap()
}

pub(super) fn record() -> ClusterRecord {
    let mut record = ClusterRecord {
        id: ClusterId::parse(CLUSTER).unwrap(),
        cluster: cluster(),
        generation: 1,
        shard: shard().id,
        management_cluster: None,
        trace: TraceContext { correlation_id: Some("corr".to_owned()), ..TraceContext::default() },
        deletion: None,
        observed: ClusterObserved::default(),
        provisioning: Provisioned::default(),
    };
    record.set_state(ClusterState::Validating, "");
    record
}

pub(super) fn target() -> Target {
    Target::of(&record(), &shard(), &layout()).unwrap()
}

pub(super) fn route() -> Route {
    let source = names::Environment::parse("arohcpdev").unwrap().source_id(shard().id);
    Route { source, consumer: "mgmt-1".to_owned() }
}

impl Site {
    /// With the records of a cluster and its shard.
    pub(super) async fn start(world: Arc<World>) -> Self {
        let (store, directory) = crate::testing::store().await;
        let clock = ManualClock::at(Timestamp::from_second(1_900_000_000).unwrap());
        let metrics = Metrics::new();
        let records = Records::new(store.clone(), &metrics);
        let infrastructure: Arc<dyn Infrastructure> = world.clone();
        let environment = Environment {
            name: names::Environment::parse("arohcpdev").unwrap(),
            decisions: Decisions::new(&store, "clusters-service", clock.clone(), &metrics),
            clock: clock.clone(),
            infrastructure: Some(infrastructure),
            publisher: world.clone(),
            layout: Some(Arc::new(layout())),
            catalogue: Catalogue::embedded(),
            step_deadline: Duration::from_secs(5),
            check_deadline: Duration::from_secs(5),
            noop: false,
            subjects: Mutex::default(),
            parked: Mutex::default(),
            records,
        };
        let site = Self { environment: Arc::new(environment), clock, world, directory };
        site.put(&record()).await;
        let (records, shard) = (&site.environment.records, shard());
        let op = records.shards.create(shard.names(), &shard).unwrap();
        let partition = aro_store::PartitionKey::new(crate::records::SHARDS);
        records.store().write(records.shards.batch(&partition).with(op)).await.unwrap();
        site
    }

    pub(super) async fn put(&self, record: &ClusterRecord) {
        let records = &self.environment.records;
        let op = records.clusters.create(record.names(), record).unwrap();
        let batch = records.clusters.batch(&cluster_partition(&record.id)).with(op);
        records.store().write(batch).await.unwrap();
    }
}
