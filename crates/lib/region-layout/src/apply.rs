//! Makes a plan true.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_cloud::resources::{
    GroupSpec, KeyVaultSpec, PrincipalType, PublicIpSpec, RecordData, RecordSet, StorageAccountSpec, Tags,
};
use aro_cloud::{ArmClient, Blobs, Cloud, CloudError, SharedCredential, Update};
use tokio::time::Instant;
use uuid::Uuid;

use crate::layout::RegionLayout;
use crate::plan::{Item, Plan, Spec};
use crate::schedule;

/// Items under way at once.
const AT_ONCE: usize = 16;
/// How long resolvers keep the names of the service.
const ADDRESS_TTL: u32 = 300;

/// The container of a static website.
const WEB: &str = "$web";

/// A cloud, and who acts in it.
#[derive(Debug, Clone)]
pub struct Clients {
    /// The cloud.
    pub cloud: Cloud,
    /// A principal that owns the subscriptions of the layout.
    pub credential: SharedCredential,
}

/// A layout that exists.
#[derive(Debug, Clone)]
pub struct AppliedLayout {
    /// The names.
    pub layout: RegionLayout,
    /// The address of the shared ingress of each management cluster, by stamp.
    pub shared_ingress: BTreeMap<String, Ipv4Addr>,
    /// How many items there are.
    pub resources: usize,
    /// How many of them were created or changed.
    pub written: usize,
    /// How long it took.
    pub took: Duration,
}

/// Why a layout is not complete.
#[derive(Debug, thiserror::Error)]
#[error("lay out {target} ({failed} of {resources} resources failed)")]
pub struct ApplyError {
    /// The first resource that failed.
    pub target: String,
    /// How many failed; what depends on them was not tried.
    pub failed: usize,
    /// How many there are.
    pub resources: usize,
    /// Why it failed.
    #[source]
    pub source: CloudError,
}

/// What an item left behind.
#[derive(Debug, Clone, Copy, Default)]
struct Made {
    written: bool,
    principal: Option<Uuid>,
    address: Option<Ipv4Addr>,
}

/// Makes everything that is missing or different. Idempotent: a second run writes nothing.
pub async fn apply(plan: &Plan, clients: &Clients) -> Result<AppliedLayout, ApplyError> {
    let started = Instant::now();
    let arm = clients.cloud.arm(clients.credential.clone());
    let act = Act { layout: &plan.layout, arm, clients };
    let mut ended = schedule::run(plan.items(), AT_ONCE, |item, before| act.make(item, before)).await;
    let (failed, resources) = (ended.failed.len(), plan.items().len());
    if failed > 0 {
        let (key, source) = ended.failed.swap_remove(0);
        let target = plan.items().get(key.index()).map(|item| item.spec.target().to_string());
        return Err(ApplyError { target: target.unwrap_or_default(), failed, resources, source });
    }
    let made = || plan.items().iter().zip(&ended.done);
    let address = |id: &ResourceId| {
        let mut found = made().filter(|(item, _)| matches!(&item.spec, Spec::Address(own) if own == id));
        found.find_map(|(_, made)| made.as_ref()?.address)
    };
    let stamps = plan.layout.management.iter();
    Ok(AppliedLayout {
        shared_ingress: stamps
            .filter_map(|stamp| Some((stamp.stamp.clone(), address(&stamp.shared_ingress)?)))
            .collect(),
        layout: plan.layout.clone(),
        resources,
        written: ended.done.iter().flatten().filter(|made| made.written).count(),
        took: started.elapsed(),
    })
}

struct Act<'a> {
    layout: &'a RegionLayout,
    arm: ArmClient,
    clients: &'a Clients,
}

impl Act<'_> {
    async fn make(&self, item: &Item, before: Vec<Made>) -> Result<Made, CloudError> {
        let (arm, writes) = self.arm.counting_writes();
        let mut made = self.ensure(&arm, item, &before).await?;
        made.written |= writes.count() > 0;
        Ok(made)
    }

    async fn ensure(&self, arm: &ArmClient, item: &Item, before: &[Made]) -> Result<Made, CloudError> {
        let (location, tags) = (self.layout.params.location.clone(), Tags::new());
        let mut made = Made::default();
        match &item.spec {
            Spec::Group(id) => {
                let subscription = id.subscription().unwrap_or_default();
                let spec = GroupSpec { location, managed_by: None, tags };
                arm.ensure_resource_group(subscription, id.name(), &spec).await?;
            }
            Spec::Zone(id) => drop(arm.ensure_zone(id, &tags).await?),
            Spec::Delegation { parent, child } => arm.ensure_delegation(parent, child).await?,
            Spec::Records { zone, set } => arm.ensure_record_set(zone, set).await?,
            Spec::AddressRecord { zone, name, .. } => {
                let addresses = before.iter().filter_map(|made| made.address).collect();
                let (name, data) = ((*name).to_owned(), RecordData::A(addresses));
                let set = RecordSet { name, ttl: ADDRESS_TTL, data, metadata: tags };
                arm.ensure_record_set(zone, &set).await?;
            }
            Spec::Registry(id) => drop(arm.ensure_registry(id, &location, &tags).await?),
            Spec::Vault(id) => {
                let spec = KeyVaultSpec { location, tenant: self.layout.params.tenant, tags };
                arm.ensure_key_vault(id, &spec).await?;
            }
            Spec::Storage { id, sku } => {
                let sku = (*sku).to_owned();
                let spec = StorageAccountSpec { location, sku, shared_keys: false, tags };
                arm.ensure_storage_account(id, &spec).await?;
            }
            Spec::Container { account, name } => {
                made.written = self.blobs(account).await?.ensure_container(name).await?;
            }
            Spec::Website(account) => {
                let blobs = self.blobs(account).await?;
                made.written = blobs.ensure_container(WEB).await? | blobs.ensure_static_website().await?;
            }
            Spec::Identity(id) => {
                let identity = arm.ensure_identity(id, &location, &tags).await?;
                made.principal = Some(identity.properties.principal_id);
            }
            Spec::FederatedCredential { identity, name, spec } => {
                arm.ensure_federated_credential(identity, name, spec).await?;
            }
            Spec::Assignment { scope, role, .. } => {
                // The identity is the one predecessor that is a principal.
                for principal in before.iter().filter_map(|made| made.principal) {
                    let kind = PrincipalType::ServicePrincipal;
                    arm.ensure_role_assignment(scope, &principal, kind, &role.id).await?;
                }
            }
            Spec::Vnet(id, spec) => drop(arm.ensure_vnet(id, spec).await?),
            Spec::Subnet(id, spec) => drop(arm.ensure_subnet(id, spec).await?),
            Spec::Nsg(id, spec) => drop(arm.ensure_nsg(id, spec).await?),
            Spec::Address(id) => {
                let spec = PublicIpSpec { location, ..PublicIpSpec::default() };
                let address = arm.ensure_public_ip(id, &spec).await?.properties.ip_address;
                made.address = address.and_then(|text| text.parse().ok());
            }
            Spec::Resource { id, version, body } => {
                arm.ensure(id, version, body, Update::Overlay).await?;
            }
        }
        Ok(made)
    }

    async fn blobs(&self, account: &ResourceId) -> Result<Blobs, CloudError> {
        let url = self.arm.blob_endpoint(account).await?;
        Ok(self.clients.cloud.blobs(self.clients.credential.clone(), url))
    }
}
