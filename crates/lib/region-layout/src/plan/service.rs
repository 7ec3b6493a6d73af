//! The service cluster: AKS with its network, vault and addresses, and the identities of the service.

use aro_arm::ResourceId;
use aro_cloud::api_version::AKS;
use aro_cloud::resources::{NsgSpec, SecurityRule, SubnetSpec, Tags, VnetSpec};
use serde_json::json;

use super::global::Global;
use super::regional::Regional;
use super::roles::{
    ACR_PULL, BLOB_DATA_CONTRIBUTOR, CERTIFICATE_USER, DNS_ZONE_CONTRIBUTOR, REGISTRY_TOKENS, SECRETS_USER,
};
use super::{IMAGE_PULLER, Key, Plan, Spec, Workload, workload};

/// The network plan of every cluster: nodes and pods.
const NETWORK: &str = "10.128.0.0/14";
const SUBNETS: [(&str, &str); 2] =
    [("ClusterSubnet-001", "10.128.8.0/21"), ("PodSubnet-001", "10.128.64.0/18")];

/// Identities that have roles on management clusters.
pub(super) struct Identities {
    pub clusters_service: Key,
    pub backend: Key,
    pub refresher: Key,
    pub fleet: Key,
}

/// Workloads without roles of their own here.
const OTHERS: [Workload; 7] = [
    workload("frontend", "aro-hcp", "frontend"),
    workload("aro-billing", "aro-hcp", "aro-billing"),
    workload("logs-mdsd", "logs", "logs-mdsd"),
    workload("prometheus", "prometheus", "prometheus"),
    workload("admin-api", "aro-hcp-admin-api", "admin-api"),
    workload("sessiongate", "sessiongate", "sessiongate"),
    workload("aro-hcp-exporter", "aro-hcp-exporter", "aro-hcp-exporter"),
];

pub(super) fn add(plan: &mut Plan, global: &Global, regional: &Regional) -> Identities {
    let (all, layout) = (plan.layout.clone(), plan.layout.service.clone());
    let group = plan.add(Spec::Group(layout.group.clone()), &[]);
    let nsg = plan.add(Spec::Nsg(layout.nsg.clone(), rules(plan)), &[group]);
    let vault = plan.add(Spec::Vault(layout.etcd_vault.clone()), &[group]);
    cluster(plan, group, &layout.cluster, (&layout.vnet, &layout.nsg, nsg), vault);
    let ingress = plan.add(Spec::Address(layout.ingress.clone()), &[group]);
    let ops = plan.add(Spec::Address(layout.ops_ingress.clone()), &[group]);
    for (name, address) in [("rp", ingress), ("admin", ops), ("sessiongate", ops)] {
        let zone = all.regional.service_zone.clone();
        plan.add(Spec::AddressRecord { zone, name, address }, &[address, regional.service_zone]);
    }
    let mut identity = |workload: &Workload| plan.workload_identity(group, &layout.cluster, workload);
    let service = Identities {
        clusters_service: identity(&workload("clusters-service", "clusters-service", "clusters-service")),
        backend: identity(&workload("backend", "aro-hcp", "backend")),
        refresher: identity(&workload(
            "msi-credential-refresher",
            "msi-credential-refresher",
            "msi-credential-refresher",
        )),
        fleet: identity(&workload("fleet", "fleet", "fleet")),
    };
    let maestro = identity(&workload("maestro-server", "maestro", "maestro"));
    let puller = identity(&IMAGE_PULLER);
    for workload in &OTHERS {
        identity(workload);
    }
    for role in [SECRETS_USER, CERTIFICATE_USER] {
        plan.assign(maestro, role, (&all.regional.vault, regional.vault));
    }
    plan.assign(puller, ACR_PULL, (&all.global.service_registry, global.service_registry));
    for identity in [service.clusters_service, service.backend] {
        plan.assign(identity, REGISTRY_TOKENS, (&all.global.ocp_registry, global.ocp_registry));
        plan.assign(identity, BLOB_DATA_CONTRIBUTOR, (&all.regional.oidc_storage, regional.oidc_storage));
        plan.assign(identity, DNS_ZONE_CONTRIBUTOR, (&all.regional.cluster_zone, regional.cluster_zone));
    }
    service
}

/// An AKS cluster with its network and its outbound address.
pub(super) fn cluster(
    plan: &mut Plan,
    group: Key,
    id: &ResourceId,
    (vnet, nsg_id, nsg): (&ResourceId, &ResourceId, Key),
    vault: Key,
) -> Key {
    let (location, tags) = (plan.location(), Tags::new());
    let spec = VnetSpec { location: location.clone(), address_prefixes: vec![NETWORK.to_owned()], tags };
    // Subnets are parts of the network: one after another.
    let mut last = plan.add(Spec::Vnet(vnet.clone(), spec), &[group]);
    for (name, prefix) in SUBNETS {
        let spec = SubnetSpec {
            address_prefix: prefix.to_owned(),
            nsg: Some(nsg_id.clone()),
            ..SubnetSpec::default()
        };
        last = plan.add(Spec::Subnet(vnet.child("subnets", name), spec), &[last, nsg]);
    }
    let outbound = crate::layout::in_group(
        id,
        "Microsoft.Network",
        "publicIPAddresses",
        &format!("{}-outbound-ip", id.name()),
    );
    let address = plan.add(Spec::Address(outbound.clone()), &[group]);
    let [nodes, pods] = SUBNETS.map(|(name, _)| vnet.child("subnets", name));
    let pool = json!({
        "name": "system", "mode": "System", "count": 1, "osSKU": "AzureLinux", "enableFIPS": true,
        "vnetSubnetID": nodes, "podSubnetID": pods,
    });
    let properties = json!({
        "kubernetesVersion": "1.35",
        "dnsPrefix": id.name(),
        "agentPoolProfiles": [pool],
        "oidcIssuerProfile": { "enabled": true },
        "securityProfile": { "workloadIdentity": { "enabled": true } },
        "networkProfile": {
            "networkPlugin": "azure",
            "loadBalancerProfile": { "outboundIPs": { "publicIPs": [{ "id": outbound }] } },
        },
    });
    let body =
        json!({ "location": location, "identity": { "type": "SystemAssigned" }, "properties": properties });
    plan.add(Spec::Resource { id: id.clone(), version: AKS, body }, &[last, address, vault])
}

/// HTTPS from Azure Resource Manager and from operators.
fn rules(plan: &Plan) -> NsgSpec {
    let rule = |name: &str, priority: u16, tag: &str| SecurityRule {
        source_address_prefix: tag.to_owned(),
        ..SecurityRule::allow_tcp(name, priority, 443)
    };
    NsgSpec {
        location: plan.location(),
        rules: vec![
            rule("rp-in-arm", 120, "AzureResourceManager"),
            rule("admin-in-geneva", 130, "GenevaActions"),
            rule("sre-in-ops", 140, "CorpNetSaw"),
        ],
        tags: Tags::new(),
    }
}
