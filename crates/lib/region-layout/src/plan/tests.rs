use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::layout::tests::layout;

fn regional_plan(stamps: &[&str]) -> Plan {
    plan(&layout(stamps))
}

/// The closest thing to an identity of an item: what it makes, and under which name.
fn name(item: &Item, plan: &Plan) -> String {
    let target = item.spec.target();
    match &item.spec {
        Spec::Records { set, .. } => format!("{target}/{}/{}", set.data.kind(), set.name),
        Spec::AddressRecord { name, .. } => format!("{target}/A/{name}"),
        Spec::Delegation { parent, .. } => format!("{parent} -> {target}"),
        Spec::Website(_) => format!("{target}/website"),
        Spec::Container { name, .. } => format!("{target}/{name}"),
        Spec::FederatedCredential { name, .. } => format!("{target}/{name}"),
        Spec::Assignment { identity, role, .. } => {
            format!("{target} {} {}", role.name, plan.items[identity.index()].spec.target())
        }
        _ => target.to_string(),
    }
}

#[test]
fn items_depend_on_earlier_ones_only_and_exist_once() {
    let plan = regional_plan(&["1", "2"]);
    let mut seen = HashSet::new();
    for (place, item) in plan.items().iter().enumerate() {
        assert!(item.after.iter().all(|key| key.index() < place), "{item:?}");
        let name = name(item, &plan).to_lowercase();
        assert!(seen.insert(name.clone()), "{name} twice");
    }
}

/// Every item before this one, over all dependencies.
fn before(plan: &Plan, item: &Item) -> HashSet<Key> {
    let mut all: HashSet<Key> = HashSet::new();
    let mut open = item.after.clone();
    while let Some(key) = open.pop() {
        if all.insert(key) {
            open.extend(&plan.items[key.index()].after);
        }
    }
    all
}

#[test]
fn a_resource_comes_after_its_group_and_an_assignment_after_its_scope() {
    let plan = regional_plan(&["1"]);
    for item in plan.items() {
        let before = before(&plan, item);
        let has =
            |wanted: &dyn Fn(&Spec) -> bool| before.iter().any(|key| wanted(&plan.items[key.index()].spec));
        let target = item.spec.target();
        if !matches!(item.spec, Spec::Group(_)) {
            let group = |spec: &Spec| matches!(spec, Spec::Group(id) if id.same_subscription(target) && id.same_resource_group(target));
            assert!(has(&group), "{item:?}");
        }
        if let Spec::Assignment { scope, identity, .. } = &item.spec {
            assert!(
                has(&|spec| spec.target() == scope && !matches!(spec, Spec::Assignment { .. })),
                "{item:?}"
            );
            assert!(matches!(plan.items[identity.index()].spec, Spec::Identity(_)), "{item:?}");
        }
        if let Spec::AddressRecord { address, .. } = &item.spec {
            assert!(matches!(plan.items[address.index()].spec, Spec::Address(_)), "{item:?}");
        }
        if let Some(parent) = target.parent() {
            assert!(has(&|spec| *spec.target() == parent), "{item:?}");
        }
    }
}

#[test]
fn each_management_cluster_adds_the_same_in_its_own_subscription() {
    let of_subscription = |plan: &Plan| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for item in plan.items() {
            *counts.entry(item.spec.target().subscription().unwrap_or_default().to_owned()).or_default() += 1;
        }
        counts
    };
    let (one, two) = (regional_plan(&["1"]), regional_plan(&["1", "2"]));
    let counts = of_subscription(&two);
    assert_eq!(counts.len(), 4);
    let stamps: Vec<usize> =
        two.layout.management.iter().map(|stamp| counts[&stamp.subscription.to_string()]).collect();
    assert_eq!(stamps[0], stamps[1]);
    let per_stamp = two.items().len() - one.items().len();
    assert!(per_stamp >= stamps[1], "roles in other scopes count, too");
}

#[test]
fn the_service_may_write_what_hosted_clusters_need_and_little_else() {
    let plan = regional_plan(&["1"]);
    let roles = |identity: &ResourceId| -> Vec<(&'static str, String)> {
        let mut found: Vec<_> = plan
            .items()
            .iter()
            .filter_map(|item| match &item.spec {
                Spec::Assignment { scope, identity: key, role }
                    if plan.items[key.index()].spec.target() == identity =>
                {
                    Some((role.name, scope.name().to_owned()))
                }
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found
    };
    let vault_roles =
        ["Key Vault Certificate User", "Key Vault Certificates Officer", "Key Vault Secrets Officer"];
    let mut expected = vec![
        (
            "Container Registry Contributor and Data Access Configuration Administrator",
            "arohcpocpdev".to_owned(),
        ),
        ("DNS Zone Contributor", "westus3.hcp.osadev.cloud".to_owned()),
    ];
    for role in vault_roles {
        expected.extend(["ah-dev-cx-usw3-1", "ah-dev-mi-usw3-1"].map(|vault| (role, vault.to_owned())));
    }
    expected.push(("Storage Blob Data Contributor", "arohcpdevoidcusw3".to_owned()));
    for identity in ["clusters-service", "backend"] {
        assert_eq!(roles(&plan.layout.service_identity(identity)), expected, "{identity}");
    }
    assert_eq!(roles(&plan.layout.service_identity("frontend")), []);
}

#[test]
fn every_workload_identity_trusts_one_service_account_of_its_own_cluster() {
    let plan = regional_plan(&["1", "2"]);
    let mut issuers: BTreeMap<String, HashSet<&str>> = BTreeMap::new();
    for item in plan.items() {
        if let Spec::FederatedCredential { identity, name, spec } = &item.spec {
            assert_eq!(*name, format!("{}-westus3-fedcred", identity.name()));
            let group = identity.resource_group().unwrap_or_default().to_owned();
            issuers.entry(group).or_default().insert(&spec.issuer);
        }
    }
    assert_eq!(issuers.len(), 3, "{issuers:?}");
    assert!(issuers.values().all(|of_group| of_group.len() == 1), "{issuers:?}");
    let all: HashSet<&&str> = issuers.values().flatten().collect();
    assert_eq!(all.len(), 3, "clusters have issuers of their own");
}

#[test]
fn the_same_params_give_the_same_plan() {
    assert_eq!(regional_plan(&["1", "2"]), regional_plan(&["1", "2"]));
}
