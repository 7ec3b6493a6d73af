//! The names and ids of everything in a region.

use aro_arm::ResourceId;
use uuid::Uuid;

use crate::names::{LayoutParams, subscription_id};

/// A region in the cloud, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionLayout {
    /// What it follows from.
    pub params: LayoutParams,
    /// What all regions of the environment share.
    pub global: GlobalLayout,
    /// What the clusters of the region share.
    pub regional: RegionalLayout,
    /// The service cluster.
    pub service: ServiceLayout,
    /// The management clusters.
    pub management: Vec<ManagementLayout>,
}

/// What all regions of an environment share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalLayout {
    /// The subscription's name.
    pub subscription_name: String,
    /// The subscription.
    pub subscription: Uuid,
    /// The resource group.
    pub group: ResourceId,
    /// The parent zone of the service's own names.
    pub service_zone: ResourceId,
    /// The parent zone of the names of hosted clusters.
    pub cluster_zone: ResourceId,
    /// The zone of the token issuers of hosted clusters.
    pub issuer_zone: ResourceId,
    /// The registry of the service's images.
    pub service_registry: ResourceId,
    /// The registry of `OpenShift`'s payload.
    pub ocp_registry: ResourceId,
    /// The Front Door profile.
    pub front_door: ResourceId,
    /// The vault with credentials of registries.
    pub vault: ResourceId,
}

/// What the clusters of a region share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionalLayout {
    /// The subscription's name.
    pub subscription_name: String,
    /// The subscription, also that of the service cluster.
    pub subscription: Uuid,
    /// The resource group.
    pub group: ResourceId,
    /// The region's zone of the service's own names.
    pub service_zone: ResourceId,
    /// The region's zone of the names of hosted clusters.
    pub cluster_zone: ResourceId,
    /// The service's vault.
    pub vault: ResourceId,
    /// The storage account whose website holds the OIDC documents of hosted clusters.
    pub oidc_storage: ResourceId,
    /// The resource provider's database account.
    pub cosmos: ResourceId,
    /// The MQTT broker of Maestro.
    pub event_grid: ResourceId,
    /// The database server of Clusters Service.
    pub clusters_service_database: ResourceId,
    /// The database server of Maestro.
    pub maestro_database: ResourceId,
}

/// The service cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceLayout {
    /// The resource group.
    pub group: ResourceId,
    /// The AKS cluster.
    pub cluster: ResourceId,
    /// Its network.
    pub vnet: ResourceId,
    /// The security group of its nodes.
    pub nsg: ResourceId,
    /// The vault with the key of its etcd.
    pub etcd_vault: ResourceId,
    /// The address of the ingress for Azure Resource Manager.
    pub ingress: ResourceId,
    /// The address of the ingress for operators.
    pub ops_ingress: ResourceId,
}

/// A management cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementLayout {
    /// Its stamp.
    pub stamp: String,
    /// The subscription's name.
    pub subscription_name: String,
    /// The subscription.
    pub subscription: Uuid,
    /// The resource group.
    pub group: ResourceId,
    /// The AKS cluster.
    pub cluster: ResourceId,
    /// Its network.
    pub vnet: ResourceId,
    /// The security group of its nodes.
    pub nsg: ResourceId,
    /// Its vaults.
    pub vaults: ManagementVaults,
    /// The address of the ingress that hosted API servers share; the API records of clusters point to it.
    pub shared_ingress: ResourceId,
    /// The storage account of backups.
    pub backups: ResourceId,
}

/// The vaults of a management cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementVaults {
    /// Certificates of hosted clusters (`cx`).
    pub clusters: ResourceId,
    /// Credentials of managed identities (`mi`).
    pub identities: ResourceId,
    /// The management cluster's own services (`mg`).
    pub services: ResourceId,
    /// The key of its etcd (`me`).
    pub etcd: ResourceId,
}

impl RegionLayout {
    /// The layout of a region.
    pub fn new(params: LayoutParams) -> Self {
        Self {
            global: GlobalLayout::new(&params),
            regional: RegionalLayout::new(&params),
            service: ServiceLayout::new(&params),
            management: params.stamps.iter().map(|stamp| ManagementLayout::new(&params, stamp)).collect(),
            params,
        }
    }

    /// The subscriptions of the service, by name.
    pub fn subscriptions(&self) -> Vec<(&str, Uuid)> {
        let management = self.management.iter();
        [
            (self.global.subscription_name.as_str(), self.global.subscription),
            (self.regional.subscription_name.as_str(), self.regional.subscription),
        ]
        .into_iter()
        .chain(management.map(|stamp| (stamp.subscription_name.as_str(), stamp.subscription)))
        .collect()
    }

    /// The host of the token issuers of the region's hosted clusters.
    pub fn issuer_host(&self) -> String {
        format!("{}.{}", self.params.subdomain, self.global.issuer_zone.name())
    }

    /// The token issuer of a hosted cluster.
    pub fn issuer(&self, tenant: Uuid, cluster: &str) -> String {
        format!("https://{}/{tenant}/{cluster}", self.issuer_host())
    }

    /// The website with the OIDC documents: Front Door's origin.
    pub fn oidc_website(&self) -> String {
        format!("https://{}.web.core.windows.net", self.regional.oidc_storage.name())
    }

    /// The blob service of the storage account with the OIDC documents.
    pub fn oidc_blobs(&self) -> String {
        format!("https://{}.blob.core.windows.net", self.regional.oidc_storage.name())
    }

    /// The host name of Front Door's endpoint.
    pub fn front_door_host(&self) -> String {
        format!("{}.azurefd.net", self.global.front_door.name())
    }

    /// A user-assigned identity of the service cluster.
    pub fn service_identity(&self, name: &str) -> ResourceId {
        identity(&self.service.group, name)
    }
}

impl ManagementLayout {
    /// A user-assigned identity of the management cluster.
    pub fn identity(&self, name: &str) -> ResourceId {
        identity(&self.group, name)
    }
}

pub(crate) fn identity(group: &ResourceId, name: &str) -> ResourceId {
    in_group(group, "Microsoft.ManagedIdentity", "userAssignedIdentities", name)
}

/// A resource in a group.
pub(crate) fn in_group(group: &ResourceId, namespace: &str, kind: &str, name: &str) -> ResourceId {
    let (subscription, group) = (group.subscription(), group.resource_group());
    ResourceId::from_parts(subscription, group, Some(namespace), [(kind, name)])
}

fn group_of(subscription: Uuid, name: &str) -> ResourceId {
    ResourceId::from_parts(Some(&subscription.to_string()), Some(name), None, [])
}

fn vault(group: &ResourceId, name: &str) -> ResourceId {
    in_group(group, "Microsoft.KeyVault", "vaults", name)
}

fn network(group: &ResourceId, kind: &str, name: &str) -> ResourceId {
    in_group(group, "Microsoft.Network", kind, name)
}

fn aks(group: &ResourceId, name: &str) -> ResourceId {
    in_group(group, "Microsoft.ContainerService", "managedClusters", name)
}

impl GlobalLayout {
    fn new(params: &LayoutParams) -> Self {
        let LayoutParams { environment: env, service_zone, cluster_zone, .. } = params;
        let subscription_name = "hcp-global".to_owned();
        let subscription = subscription_id(params.tenant, &subscription_name);
        let group = group_of(subscription, "global-shared-resources");
        let zone = |name: &str| network(&group, "dnsZones", name);
        let registry = |name: &str| in_group(&group, "Microsoft.ContainerRegistry", "registries", name);
        Self {
            service_zone: zone(service_zone),
            cluster_zone: zone(cluster_zone),
            issuer_zone: zone(&format!("oic.{service_zone}")),
            service_registry: registry(&format!("arohcpsvc{env}")),
            ocp_registry: registry(&format!("arohcpocp{env}")),
            front_door: in_group(&group, "Microsoft.Cdn", "profiles", &format!("arohcp{env}")),
            vault: vault(&group, &format!("arohcp{env}-global")),
            subscription_name,
            subscription,
            group,
        }
    }
}

impl RegionalLayout {
    fn new(params: &LayoutParams) -> Self {
        let LayoutParams { environment: env, location, short_name: short, subdomain, .. } = params;
        let subscription_name = service_subscription(params);
        let subscription = subscription_id(params.tenant, &subscription_name);
        let group = group_of(subscription, &format!("{location}-shared-resources"));
        let zone = |parent: &str| network(&group, "dnsZones", &format!("{subdomain}.{parent}"));
        let server = |name: String| in_group(&group, "Microsoft.DBforPostgreSQL", "flexibleServers", &name);
        let storage = format!("arohcp{env}oidc{short}");
        let broker = format!("arohcp-{env}-maestro-{short}");
        let cosmos = format!("arohcp{env}-rp-{short}");
        Self {
            service_zone: zone(&params.service_zone),
            cluster_zone: zone(&params.cluster_zone),
            vault: vault(&group, &format!("arohcp{env}-svc-{short}")),
            oidc_storage: in_group(&group, "Microsoft.Storage", "storageAccounts", &storage),
            cosmos: in_group(&group, "Microsoft.DocumentDB", "databaseAccounts", &cosmos),
            event_grid: in_group(&group, "Microsoft.EventGrid", "namespaces", &broker),
            clusters_service_database: server(format!("arohcp-{env}-dbcs-{short}")),
            maestro_database: server(format!("arohcp-{env}-dbmaestro-{short}")),
            subscription_name,
            subscription,
            group,
        }
    }
}

fn service_subscription(params: &LayoutParams) -> String {
    format!("hcp-{}-svc-{}", params.environment, params.location)
}

impl ServiceLayout {
    fn new(params: &LayoutParams) -> Self {
        let LayoutParams { environment: env, location, short_name: short, .. } = params;
        let subscription = subscription_id(params.tenant, &service_subscription(params));
        let group = group_of(subscription, &format!("hcp-underlay-{env}-{location}-svc"));
        Self {
            cluster: aks(&group, &format!("{env}-{location}-svc-1")),
            vnet: network(&group, "virtualNetworks", "aks-net"),
            nsg: network(&group, "networkSecurityGroups", "svc-cluster-node-nsg"),
            etcd_vault: vault(&group, &format!("ah-{env}-se-{short}-1")),
            ingress: network(&group, "publicIPAddresses", "aro-hcp-istio-ingress"),
            ops_ingress: network(&group, "publicIPAddresses", "aro-hcp-ops-ingress"),
            group,
        }
    }
}

impl ManagementLayout {
    fn new(params: &LayoutParams, stamp: &str) -> Self {
        let LayoutParams { environment: env, location, short_name: short, .. } = params;
        let subscription_name = format!("hcp-{env}-mgmt-{location}-{stamp}");
        let subscription = subscription_id(params.tenant, &subscription_name);
        let group = group_of(subscription, &format!("hcp-underlay-{env}-{location}-mgmt-{stamp}"));
        let vault = |kind: &str| vault(&group, &format!("ah-{env}-{kind}-{short}-{stamp}"));
        let backups = format!("oadp{env}{short}{stamp}");
        Self {
            stamp: stamp.to_owned(),
            cluster: aks(&group, &format!("{env}-{location}-mgmt-{stamp}")),
            vnet: network(&group, "virtualNetworks", "aks-net"),
            nsg: network(&group, "networkSecurityGroups", "mgmt-cluster-node-nsg"),
            vaults: ManagementVaults {
                clusters: vault("cx"),
                identities: vault("mi"),
                services: vault("mg"),
                etcd: vault("me"),
            },
            shared_ingress: network(&group, "publicIPAddresses", "aro-hcp-shared-ingress"),
            backups: in_group(&group, "Microsoft.Storage", "storageAccounts", &backups),
            subscription_name,
            subscription,
            group,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::RegionConfig;

    pub(crate) fn layout(stamps: &[&str]) -> RegionLayout {
        let stamps = stamps.iter().map(|&stamp| stamp.to_owned()).collect();
        RegionLayout::new(RegionConfig::default().params(Uuid::from_u128(7), stamps))
    }

    #[test]
    fn names_are_those_of_the_service() {
        let layout = layout(&["1", "2"]);
        let names: Vec<&str> = layout.subscriptions().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["hcp-global", "hcp-dev-svc-westus3", "hcp-dev-mgmt-westus3-1", "hcp-dev-mgmt-westus3-2"]
        );
        let second = &layout.management[1];
        for (id, name) in [
            (&layout.global.group, "global-shared-resources"),
            (&layout.global.service_zone, "hcpsvc.osadev.cloud"),
            (&layout.global.cluster_zone, "hcp.osadev.cloud"),
            (&layout.global.issuer_zone, "oic.hcpsvc.osadev.cloud"),
            (&layout.global.service_registry, "arohcpsvcdev"),
            (&layout.global.ocp_registry, "arohcpocpdev"),
            (&layout.global.front_door, "arohcpdev"),
            (&layout.global.vault, "arohcpdev-global"),
            (&layout.regional.group, "westus3-shared-resources"),
            (&layout.regional.service_zone, "westus3.hcpsvc.osadev.cloud"),
            (&layout.regional.cluster_zone, "westus3.hcp.osadev.cloud"),
            (&layout.regional.vault, "arohcpdev-svc-usw3"),
            (&layout.regional.oidc_storage, "arohcpdevoidcusw3"),
            (&layout.regional.cosmos, "arohcpdev-rp-usw3"),
            (&layout.regional.event_grid, "arohcp-dev-maestro-usw3"),
            (&layout.regional.clusters_service_database, "arohcp-dev-dbcs-usw3"),
            (&layout.regional.maestro_database, "arohcp-dev-dbmaestro-usw3"),
            (&layout.service.group, "hcp-underlay-dev-westus3-svc"),
            (&layout.service.cluster, "dev-westus3-svc-1"),
            (&layout.service.etcd_vault, "ah-dev-se-usw3-1"),
            (&second.group, "hcp-underlay-dev-westus3-mgmt-2"),
            (&second.cluster, "dev-westus3-mgmt-2"),
            (&second.vaults.clusters, "ah-dev-cx-usw3-2"),
            (&second.vaults.identities, "ah-dev-mi-usw3-2"),
            (&second.vaults.services, "ah-dev-mg-usw3-2"),
            (&second.vaults.etcd, "ah-dev-me-usw3-2"),
            (&second.backups, "oadpdevusw32"),
        ] {
            assert_eq!(id.name(), name, "{id}");
        }
        assert_eq!(layout.issuer_host(), "westus3.oic.hcpsvc.osadev.cloud");
        assert_eq!(layout.oidc_website(), "https://arohcpdevoidcusw3.web.core.windows.net");
    }

    #[test]
    fn subscriptions_have_ids_of_their_own_that_follow_from_tenant_and_name() {
        let mut ids: Vec<Uuid> = layout(&["1", "2"]).subscriptions().into_iter().map(|(_, id)| id).collect();
        assert_eq!(layout(&["1"]).global.subscription, ids[0]);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4);
        let other = RegionLayout::new(RegionConfig::default().params(Uuid::from_u128(8), Vec::new()));
        assert!(!ids.contains(&other.global.subscription));
    }

    #[test]
    fn vaults_and_accounts_fit_azures_limits() {
        let mut params = RegionConfig::default().params(Uuid::nil(), vec!["99".to_owned()]);
        params.environment = "prod".to_owned();
        params.short_name = "abcd".to_owned();
        let layout = RegionLayout::new(params);
        let stamp = &layout.management[0];
        for id in [
            &layout.global.vault,
            &layout.regional.vault,
            &layout.regional.oidc_storage,
            &layout.service.etcd_vault,
            &stamp.vaults.clusters,
            &stamp.backups,
        ] {
            assert!((3..=24).contains(&id.name().len()), "{id}");
        }
    }
}
