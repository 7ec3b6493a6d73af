use super::scripted::{layout, record, shard, target};
use crate::provisioning::target::Target;

#[test]
fn names_follow_from_the_records() {
    let target = target();
    assert_eq!(target.relative_domain, "c1.0ulz");
    assert_eq!(target.zone.name(), "aro.c1.0ulz.westus3.hcp.osadev.cloud");
    assert_eq!(target.zone.resource_group(), Some("arohcp-c1"));
    assert_eq!(target.load_balancer().name(), "c1-abcde");
    assert_eq!(target.vnet.name(), "v");
    assert_eq!(target.issuer_path, format!("11111111-1111-1111-1111-111111111111/{}", target.id));
    assert!(target.issuer.ends_with(&target.issuer_path), "{}", target.issuer);
    assert_eq!(target.shared_ingress, layout().management[0].shared_ingress);
    assert_eq!(target.identity_secret("ingress"), format!("uamsi-{}-ingress", target.id));
    assert!(!format!("{target:?}").contains("secret=1"), "the identity URL is a capability");
}

#[test]
fn what_names_nothing_usable_is_named() {
    let mut wrong = record();
    wrong.cluster.azure.as_mut().unwrap().subnet_resource_id = Some("nowhere".to_owned());
    let bad = Target::of(&wrong, &shard(), &layout()).unwrap_err();
    assert_eq!(bad.member, "azure.subnet_resource_id");
    let mut other = shard();
    other.shard.azure_shard.as_mut().unwrap().aks_management_cluster_resource_id = Some(
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/x".to_owned(),
    );
    let bad = Target::of(&record(), &other, &layout()).unwrap_err();
    assert_eq!(bad.member, "azure_shard.aks_management_cluster_resource_id");
}
