//! A management cluster: AKS with its network, vaults, the shared ingress, and its identities.

use aro_cloud::resources::{NsgSpec, SecurityRule, Tags};

use super::global::Global;
use super::roles::{
    ACR_PULL, BLOB_DATA_CONTRIBUTOR, CERTIFICATE_USER, CERTIFICATES_OFFICER, READER, SECRETS_OFFICER,
    SECRETS_USER,
};
use super::service::{Identities, cluster};
use super::{IMAGE_PULLER, Plan, Spec, Workload, workload};
use crate::layout::ManagementLayout;

/// Workloads without roles of their own here.
const OTHERS: [Workload; 4] = [
    workload("mgmt-agent", "mgmt-agent", "mgmt-agent"),
    workload("kube-applier", "kube-applier", "kube-applier"),
    workload("logs-mdsd", "logs", "logs-mdsd"),
    workload("prometheus", "prometheus", "prometheus"),
];

pub(super) fn add(plan: &mut Plan, global: &Global, service: &Identities, layout: &ManagementLayout) {
    let group = plan.add(Spec::Group(layout.group.clone()), &[]);
    let rules = [("allow-https", 120, 443), ("allow-api", 130, 6443)];
    let spec = NsgSpec {
        location: plan.location(),
        rules: rules.map(|(name, priority, port)| SecurityRule::allow_tcp(name, priority, port)).to_vec(),
        tags: Tags::new(),
    };
    let nsg = plan.add(Spec::Nsg(layout.nsg.clone(), spec), &[group]);
    let etcd = plan.add(Spec::Vault(layout.vaults.etcd.clone()), &[group]);
    let aks = cluster(plan, group, &layout.cluster, (&layout.vnet, &layout.nsg, nsg), etcd);
    plan.add(Spec::Address(layout.shared_ingress.clone()), &[group]);
    plan.assign(service.fleet, READER, (&layout.cluster, aks));

    let [clusters, identities, services] =
        [&layout.vaults.clusters, &layout.vaults.identities, &layout.vaults.services]
            .map(|vault| plan.add(Spec::Vault(vault.clone()), &[group]));
    for identity in [service.clusters_service, service.backend] {
        for role in [SECRETS_OFFICER, CERTIFICATES_OFFICER, CERTIFICATE_USER] {
            plan.assign(identity, role, (&layout.vaults.clusters, clusters));
            plan.assign(identity, role, (&layout.vaults.identities, identities));
        }
    }
    plan.assign(service.refresher, SECRETS_OFFICER, (&layout.vaults.identities, identities));

    let mut identity = |workload: &Workload| plan.workload_identity(group, &layout.cluster, workload);
    let agent = identity(&workload("maestro-consumer", "maestro", "maestro-agent"));
    let velero = identity(&workload("velero", "velero", "velero"));
    let puller = identity(&IMAGE_PULLER);
    for workload in &OTHERS {
        identity(workload);
    }
    for role in [SECRETS_USER, CERTIFICATE_USER] {
        plan.assign(agent, role, (&layout.vaults.services, services));
    }
    let registries = plan.layout.global.clone();
    plan.assign(puller, ACR_PULL, (&registries.service_registry, global.service_registry));
    plan.assign(puller, ACR_PULL, (&registries.ocp_registry, global.ocp_registry));
    let storage = Spec::Storage { id: layout.backups.clone(), sku: "Standard_ZRS" };
    let storage = plan.add(storage, &[group]);
    plan.add(Spec::Container { account: layout.backups.clone(), name: "backups" }, &[storage]);
    plan.assign(velero, BLOB_DATA_CONTRIBUTOR, (&layout.backups, storage));
}
