//! The paths of the local cloud, made from its types.

use std::collections::BTreeSet;
use std::sync::Arc;

use aro_arm_server::{ResourceType, Route, Versions};

use crate::deleted_vaults::VAULT;
use crate::spec::{Home, Inline, ItemAction, TypeSpec};
use crate::{skus, types};

/// What a path leads to.
#[derive(Debug, Clone, Copy)]
pub enum Endpoint {
    Subscriptions,
    Subscription,
    Tenants,
    Locations,
    Providers,
    Provider,
    Register,
    Unregister,
    Groups,
    Group,
    GroupResources,
    Resources,
    Item(&'static TypeSpec),
    List(&'static TypeSpec),
    Action(&'static TypeSpec, &'static ItemAction),
    ListInSubscription(&'static TypeSpec),
    InlineItem(&'static TypeSpec, &'static Inline),
    InlineList(&'static TypeSpec, &'static Inline),
    RecordSets,
    AtScope(&'static TypeSpec),
    ListAtScope(&'static TypeSpec),
    Permissions,
    CheckName(&'static TypeSpec),
    DeletedVaults,
    DeletedVault,
    PurgeVault,
    Skus,
    Usages(&'static str),
    Operation,
    OperationResult,
}

/// Versions of what belongs to no provider's type; any date up to the newest that clients send.
const RESOURCES: &[&str] = &[
    "2015-01-01",
    "2015-11-01",
    "2016-06-01",
    "2016-09-01",
    "2018-05-01",
    "2019-05-01",
    "2019-05-10",
    "2019-10-01",
    "2019-11-01",
    "2020-01-01",
    "2020-06-01",
    "2020-10-01",
    "2021-01-01",
    "2021-04-01",
    "2022-01-01",
    "2022-09-01",
    "2022-12-01",
    "2023-07-01",
    "2024-03-01",
    "2024-07-01",
    "2024-11-01",
    "2025-03-01",
    "2025-04-01",
];

type Routes = Vec<Route<Endpoint, ()>>;

/// Every route.
pub fn all() -> Routes {
    let mut routes = general();
    for spec in types::all() {
        match spec.home {
            Home::AnyScope => at_scope(spec, &mut routes),
            Home::Group => in_group(spec, &mut routes),
        }
    }
    let namespaces: BTreeSet<&'static str> = types::all().map(|spec| spec.namespace).collect();
    for namespace in namespaces {
        let mut versions: BTreeSet<&'static str> = types::all()
            .filter(|spec| spec.namespace == namespace)
            .flat_map(|spec| spec.versions)
            .copied()
            .collect();
        if namespace == "Microsoft.Compute" {
            versions.extend(skus::MACHINE_VERSIONS);
        }
        let versions = versions_of(namespace, "locations/operations", versions);
        let locations = &[("locations", "location")];
        for (word, endpoint) in
            [("operations", Endpoint::Operation), ("operationResults", Endpoint::OperationResult)]
        {
            let kind = ResourceType::in_subscription(&versions, locations, (word, "operation"));
            routes.extend(kind.in_any_subscription().item(endpoint, &["GET"]).routes());
        }
        let usages =
            format!("/subscriptions/{{subscription}}/providers/{namespace}/locations/{{location}}/usages");
        routes.push(Route::unchecked(usages, Endpoint::Usages(namespace), &["GET"]).versioned(&versions));
        if namespace == "Microsoft.Compute" {
            let skus = format!("/subscriptions/{{subscription}}/providers/{namespace}/skus");
            let versions = versions_of(namespace, "skus", skus::VERSIONS.iter().copied());
            routes.push(Route::unchecked(skus, Endpoint::Skus, &["GET"]).versioned(&versions));
        }
    }
    routes
}

fn versions_of(
    namespace: &'static str,
    kind: &'static str,
    versions: impl IntoIterator<Item = &'static str>,
) -> Arc<Versions<()>> {
    Arc::new(Versions::new(namespace, kind, versions.into_iter().map(|version| (version, ()))))
}

fn general() -> Routes {
    let versions = versions_of("Microsoft.Resources", "subscriptions", RESOURCES.iter().copied());
    let subscription = "/subscriptions/{subscription}";
    let group = format!("{subscription}/resourceGroups/{{group}}");
    let rows: [(String, Endpoint, &'static [&'static str]); 12] = [
        ("/subscriptions".to_owned(), Endpoint::Subscriptions, &["GET"]),
        ("/tenants".to_owned(), Endpoint::Tenants, &["GET"]),
        (subscription.to_owned(), Endpoint::Subscription, &["GET"]),
        (format!("{subscription}/locations"), Endpoint::Locations, &["GET"]),
        (format!("{subscription}/providers"), Endpoint::Providers, &["GET"]),
        (format!("{subscription}/providers/{{namespace}}"), Endpoint::Provider, &["GET"]),
        (format!("{subscription}/providers/{{namespace}}/register"), Endpoint::Register, &["POST"]),
        (format!("{subscription}/providers/{{namespace}}/unregister"), Endpoint::Unregister, &["POST"]),
        (format!("{subscription}/resourceGroups"), Endpoint::Groups, &["GET"]),
        (group.clone(), Endpoint::Group, &["GET", "HEAD", "PUT", "PATCH", "DELETE"]),
        (format!("{group}/resources"), Endpoint::GroupResources, &["GET"]),
        (format!("{subscription}/resources"), Endpoint::Resources, &["GET"]),
    ];
    let mut routes: Routes = rows
        .into_iter()
        .map(|(pattern, endpoint, methods)| Route::unchecked(pattern, endpoint, methods).versioned(&versions))
        .collect();
    let result = ResourceType::in_subscription(&versions, &[], ("operationResults", "operation"));
    routes.extend(result.in_any_subscription().item(Endpoint::OperationResult, &["GET"]).routes());
    routes
}

/// A type in a resource group: its instances, lists, children inside of it, and the check of names.
fn in_group(spec: &'static TypeSpec, routes: &mut Routes) {
    let kind = spec.full.split_once('/').map_or("", |(_, kind)| kind);
    let versions = versions_of(spec.namespace, kind, spec.versions.iter().copied());
    let Some((own, parents)) = spec.types.split_last() else { return };
    let mut kind = ResourceType::in_group(&versions, parents, *own)
        .in_any_subscription()
        .item(Endpoint::Item(spec), &["GET", "PUT", "PATCH", "DELETE"])
        .list(Endpoint::List(spec));
    for action in spec.actions {
        kind = kind.action(action.word, Endpoint::Action(spec, action));
    }
    if parents.is_empty() {
        kind = kind.list_in_subscription(Endpoint::ListInSubscription(spec));
    }
    routes.extend(kind.routes());
    for inline in spec.inline {
        let methods: &'static [&'static str] =
            if inline.writable { &["GET", "PUT", "DELETE"] } else { &["GET"] };
        let child = ResourceType::in_group(&versions, spec.types, (inline.member, "child"))
            .in_any_subscription()
            .item(Endpoint::InlineItem(spec, inline), methods)
            .list(Endpoint::InlineList(spec, inline));
        routes.extend(child.routes());
    }
    if spec.full == "Microsoft.Network/dnsZones" {
        let base = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/dnsZones/{zone}";
        for word in ["recordsets", "all"] {
            routes.push(
                Route::unchecked(format!("{base}/{word}"), Endpoint::RecordSets, &["GET"])
                    .versioned(&versions),
            );
        }
    }
    if spec.full == VAULT {
        deleted_vaults(&versions, routes);
    }
    if spec.naming.unique_everywhere.is_some() {
        let pattern =
            format!("/subscriptions/{{subscription}}/providers/{}/checkNameAvailability", spec.namespace);
        routes.push(Route::unchecked(pattern, Endpoint::CheckName(spec), &["POST"]).versioned(&versions));
    }
}

/// Key vaults after their deletion.
fn deleted_vaults(versions: &Arc<Versions<()>>, routes: &mut Routes) {
    let base = "/subscriptions/{subscription}/providers/Microsoft.KeyVault";
    let one = format!("{base}/locations/{{location}}/deletedVaults/{{vault}}");
    let rows: [(String, Endpoint, &'static [&'static str]); 3] = [
        (format!("{base}/deletedVaults"), Endpoint::DeletedVaults, &["GET"]),
        (format!("{one}/purge"), Endpoint::PurgeVault, &["POST"]),
        (one, Endpoint::DeletedVault, &["GET"]),
    ];
    routes.extend(rows.into_iter().map(|(pattern, endpoint, methods)| {
        Route::unchecked(pattern, endpoint, methods).versioned(versions)
    }));
}

/// A type below any scope.
fn at_scope(spec: &'static TypeSpec, routes: &mut Routes) {
    let versions = versions_of(spec.namespace, spec.word(), spec.versions.iter().copied());
    let base = format!("/providers/{}/{}", spec.namespace, spec.word());
    let item =
        Route::unchecked(format!("{base}/{{name}}"), Endpoint::AtScope(spec), &["GET", "PUT", "DELETE"]);
    let list = Route::unchecked(base, Endpoint::ListAtScope(spec), &["GET"]);
    routes.push(item.versioned(&versions).at_any_scope());
    routes.push(list.versioned(&versions).at_any_scope());
    if spec.full == "Microsoft.Authorization/roleAssignments" {
        let pattern = "/providers/Microsoft.Authorization/permissions";
        routes.push(
            Route::unchecked(pattern, Endpoint::Permissions, &["GET"]).versioned(&versions).at_any_scope(),
        );
    }
}
