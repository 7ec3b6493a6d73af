//! What a cluster is called in the cloud: every name and id follows from the records.

use std::collections::BTreeMap;

use aro_arm::ResourceId;
use aro_base::Secret;
use aro_cloud::resources::Tags;
use aro_ocm::{ClusterId, names};
use aro_region_layout::RegionLayout;
use url::Url;
use uuid::Uuid;

use crate::records::{ClusterRecord, ShardRecord};

/// The key of the tag that names the cluster.
const TAG: &str = "aro-cluster-id";

/// A record that names nothing usable in the cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{member}: {problem}")]
pub(crate) struct BadTarget {
    /// The member of the cluster or the shard.
    pub(crate) member: &'static str,
    /// What is wrong with it.
    pub(crate) problem: String,
}

/// A cluster in the cloud, by name.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) id: ClusterId,
    /// The customer's tenant.
    pub(crate) tenant: String,
    pub(crate) subscription: String,
    pub(crate) location: String,
    /// The resource group of the cluster's resource.
    pub(crate) customer_group: String,
    pub(crate) managed_group: String,
    /// The cluster's own id in Azure Resource Manager.
    pub(crate) arm_id: ResourceId,
    pub(crate) subnet: ResourceId,
    pub(crate) vnet: ResourceId,
    pub(crate) nsg: Option<ResourceId>,
    pub(crate) infra_id: String,
    pub(crate) domain_prefix: String,
    pub(crate) base_domain: String,
    /// The region's zone.
    pub(crate) regional_zone: ResourceId,
    /// The cluster's names relative to that zone, without the service: `<prefix>.<slug>`.
    pub(crate) relative_domain: String,
    /// The cluster's zone in the managed group.
    pub(crate) zone: ResourceId,
    /// Identities of operators of the control plane.
    pub(crate) control_plane: BTreeMap<String, ResourceId>,
    /// Identities of operators on the nodes.
    pub(crate) data_plane: BTreeMap<String, ResourceId>,
    /// The service's own identity in the customer's subscription.
    pub(crate) service: Option<ResourceId>,
    /// Where credentials of the identities come from. A capability: never shown.
    pub(crate) identity_url: Option<Secret<Url>>,
    pub(crate) certificates_vault: Url,
    pub(crate) identities_vault: Url,
    /// The identity by which the management cluster reads its vaults.
    pub(crate) vault_reader: String,
    /// The address of the management cluster's shared ingress.
    pub(crate) shared_ingress: ResourceId,
    pub(crate) issuer: String,
    /// The path of the issuer's documents.
    pub(crate) issuer_path: String,
    /// The tenant of the service.
    pub(crate) service_tenant: String,
    pub(crate) correlation_id: Option<String>,
}

fn bad(member: &'static str, problem: impl ToString) -> BadTarget {
    BadTarget { member, problem: problem.to_string() }
}

fn given<'a>(member: &'static str, text: Option<&'a String>) -> Result<&'a str, BadTarget> {
    text.map(String::as_str).filter(|text| !text.is_empty()).ok_or_else(|| bad(member, "is not set"))
}

fn parsed(member: &'static str, text: &str) -> Result<ResourceId, BadTarget> {
    ResourceId::parse(text).map_err(|error| bad(member, format!("`{text}`: {error}")))
}

fn url(member: &'static str, text: Option<&String>) -> Result<Url, BadTarget> {
    let text = given(member, text)?;
    Url::parse(text).map_err(|error| bad(member, format!("`{text}`: {error}")))
}

impl Target {
    /// The names of a cluster on a shard of a region.
    pub(crate) fn of(
        record: &ClusterRecord,
        shard: &ShardRecord,
        layout: &RegionLayout,
    ) -> Result<Self, BadTarget> {
        let azure = record.cluster.azure.clone().unwrap_or_default();
        let shard_azure = shard.shard.azure_shard.clone().unwrap_or_default();
        let subscription = given("azure.subscription_id", azure.subscription_id.as_ref())?;
        let managed_group =
            given("azure.managed_resource_group_name", azure.managed_resource_group_name.as_ref())?;
        let subnet = given("azure.subnet_resource_id", azure.subnet_resource_id.as_ref())?;
        let subnet = parsed("azure.subnet_resource_id", subnet)?;
        let vnet = subnet.parent().ok_or_else(|| bad("azure.subnet_resource_id", "is not a subnet"))?;
        let nsg = azure.network_security_group_resource_id.as_deref().filter(|nsg| !nsg.is_empty());
        let nsg = nsg.map(|nsg| parsed("azure.network_security_group_resource_id", nsg)).transpose()?;
        let arm_id = record.arm_id().ok_or_else(|| bad("azure.resource_name", "is not set"))?;
        let zone = given(
            "azure_shard.public_dns_zone_resource_id",
            shard_azure.public_dns_zone_resource_id.as_ref(),
        )?;
        let regional_zone = parsed("azure_shard.public_dns_zone_resource_id", zone)?;
        let (domain_prefix, base_domain) =
            (record.domain_prefix().to_owned(), record.base_domain().to_owned());
        let suffix = format!(".{}", regional_zone.name().to_ascii_lowercase());
        let slug = base_domain.to_ascii_lowercase();
        let slug = slug.strip_suffix(&suffix).ok_or_else(|| {
            bad("dns.base_domain", format!("`{base_domain}` is not below {}", regional_zone.name()))
        })?;
        let delegated = names::delegated_zone(&domain_prefix, &base_domain);
        let tenant = given("azure.tenant_id", azure.tenant_id.as_ref())?;
        let tenant_id: Uuid = tenant.parse().map_err(|error| bad("azure.tenant_id", error))?;
        let identities = azure.identities().cloned().unwrap_or_default();
        let control_plane = identities.control_plane_operators_managed_identities.unwrap_or_default();
        let control_plane =
            control_plane.into_iter().map(|(operator, identity)| (operator, identity.resource_id));
        let data_plane = identities.data_plane_operators_managed_identities.unwrap_or_default();
        let data_plane = data_plane.into_iter().map(|(operator, identity)| (operator, identity.resource_id));
        let service = identities.service_managed_identity.and_then(|identity| identity.resource_id);
        let identity_url =
            identities.managed_identities_data_plane_identity_url.filter(|url| !url.is_empty());
        let identity_url = identity_url.map(|text| Url::parse(&text).map(Secret::new)).transpose();
        let aks = given(
            "azure_shard.aks_management_cluster_resource_id",
            shard_azure.aks_management_cluster_resource_id.as_ref(),
        )?;
        let management = layout
            .management
            .iter()
            .find(|management| management.cluster.as_str().eq_ignore_ascii_case(aks))
            .ok_or_else(|| bad("azure_shard.aks_management_cluster_resource_id", "is not of this region"))?;
        let region = record.cluster.region.as_ref().and_then(|region| region.id.clone());
        let infra_id = record.cluster.infra_id.clone().filter(|id| !id.is_empty());
        Ok(Self {
            id: record.id.clone(),
            tenant: tenant.to_owned(),
            subscription: subscription.to_owned(),
            location: region.unwrap_or_else(|| layout.params.location.clone()),
            customer_group: given("azure.resource_group_name", azure.resource_group_name.as_ref())?
                .to_owned(),
            managed_group: managed_group.to_owned(),
            arm_id: parsed("azure.resource_name", &arm_id)?,
            vnet,
            subnet,
            nsg,
            infra_id: infra_id.unwrap_or_else(|| derived_infra_id(&record.id, &domain_prefix)),
            relative_domain: format!("{domain_prefix}.{slug}"),
            zone: ResourceId::in_group(
                subscription,
                managed_group,
                "Microsoft.Network",
                &[("dnsZones", &delegated)],
            ),
            regional_zone,
            domain_prefix,
            base_domain,
            control_plane: ids("azure.operators_authentication.control_plane", control_plane)?,
            data_plane: ids("azure.operators_authentication.data_plane", data_plane)?,
            service: service.map(|id| parsed("azure.operators_authentication.service", &id)).transpose()?,
            identity_url: identity_url
                .map_err(|error| bad("azure.operators_authentication.identity_url", error))?,
            certificates_vault: url(
                "azure_shard.cx_secrets_key_vault_url",
                shard_azure.cx_secrets_key_vault_url.as_ref(),
            )?,
            identities_vault: url(
                "azure_shard.cx_managed_identities_key_vault_url",
                shard_azure.cx_managed_identities_key_vault_url.as_ref(),
            )?,
            vault_reader: shard_azure.cx_secrets_key_vault_managed_identity_client_id.unwrap_or_default(),
            shared_ingress: management.shared_ingress.clone(),
            issuer: layout.issuer(tenant_id, record.id.as_str()),
            issuer_path: format!("{tenant_id}/{}", record.id),
            service_tenant: layout.params.tenant.to_string(),
            correlation_id: record.trace.correlation_id.clone(),
        })
    }

    /// A resource in the managed group.
    pub(crate) fn managed(&self, kind: &str, name: &str) -> ResourceId {
        ResourceId::in_group(&self.subscription, &self.managed_group, "Microsoft.Network", &[(kind, name)])
    }

    /// The managed group itself.
    pub(crate) fn managed_group_id(&self) -> ResourceId {
        ResourceId::from_parts(Some(&self.subscription), Some(&self.managed_group), None, [])
    }

    /// The address by which nodes reach the internet.
    pub(crate) fn egress_address(&self) -> ResourceId {
        self.managed("publicIPAddresses", &self.infra_id)
    }

    /// The load balancer of nodes, as HyperShift expects it.
    pub(crate) fn load_balancer(&self) -> ResourceId {
        self.managed("loadBalancers", &self.infra_id)
    }

    /// The security group that the service owns.
    pub(crate) fn managed_nsg(&self) -> ResourceId {
        self.managed("networkSecurityGroups", &format!("{}-nsg", self.infra_id))
    }

    /// The vault secret with the credential of an operator's identity.
    pub(crate) fn identity_secret(&self, operator: &str) -> String {
        names::identity_secret(&self.id, operator)
    }

    /// The vault secret with the keys that the cluster begins with.
    pub(crate) fn keys_secret(&self) -> String {
        format!("hcp-keys-{}", self.id)
    }

    /// The certificate of the API server in the vault.
    pub(crate) fn api_certificate(&self) -> String {
        format!("api-{}", self.id)
    }

    /// The certificate of the default ingress in the vault.
    pub(crate) fn ingress_certificate(&self) -> String {
        format!("ingress-{}", self.id)
    }

    /// The UUID by which the cluster reports itself.
    pub(crate) fn cluster_uuid(&self) -> String {
        Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("https://aro.dev/clusters/{}", self.id).as_bytes())
            .to_string()
    }

    /// The tags of everything that is made for the cluster.
    pub(crate) fn tags(&self) -> Tags {
        Tags::from([(TAG.to_owned(), self.id.to_string())])
    }
}

fn ids(
    member: &'static str,
    identities: impl Iterator<Item = (String, Option<String>)>,
) -> Result<BTreeMap<String, ResourceId>, BadTarget> {
    identities
        .filter_map(|(operator, id)| Some((operator, id?)))
        .map(|(operator, id)| Ok((operator, parsed(member, &id)?)))
        .collect()
}

/// For a record without one: the same at every pass.
fn derived_infra_id(id: &ClusterId, domain_prefix: &str) -> String {
    let bytes = Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_str().as_bytes()).into_bytes();
    names::infra_id(domain_prefix, [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]])
}
