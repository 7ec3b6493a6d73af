//! Types that the service's own infrastructure consists of, as plain data: they are stored, listed and deleted, and do
//! nothing.

use crate::spec::{PLAIN, Placement, Quota, TypeSpec};

const fn tracked(
    namespace: &'static str,
    types: &'static [(&'static str, &'static str)],
    full: &'static str,
    versions: &'static [&'static str],
) -> TypeSpec {
    TypeSpec { namespace, types, full, versions, long_running: true, ..PLAIN }
}

const CDN: &[&str] = &["2023-05-01", "2024-02-01", "2025-04-15"];

/// A part of a Front Door profile.
const fn cdn_part(types: &'static [(&'static str, &'static str)], full: &'static str) -> TypeSpec {
    TypeSpec { placement: Placement::None, ..tracked("Microsoft.Cdn", types, full, CDN) }
}

/// The types.
pub const TYPES: &[TypeSpec] = &[
    tracked(
        "Microsoft.ContainerService",
        &[("managedClusters", "cluster")],
        "Microsoft.ContainerService/managedClusters",
        &["2024-05-01", "2024-09-01", "2025-05-01", "2025-10-01", "2026-04-02-preview"],
    ),
    tracked(
        "Microsoft.DBforPostgreSQL",
        &[("flexibleServers", "server")],
        "Microsoft.DBforPostgreSQL/flexibleServers",
        &["2023-12-01-preview", "2024-08-01", "2025-08-01"],
    ),
    tracked(
        "Microsoft.DocumentDB",
        &[("databaseAccounts", "account")],
        "Microsoft.DocumentDB/databaseAccounts",
        &["2024-05-15", "2024-11-15", "2025-04-15"],
    ),
    tracked(
        "Microsoft.EventGrid",
        &[("namespaces", "namespace")],
        "Microsoft.EventGrid/namespaces",
        &["2023-12-15-preview", "2024-12-15-preview", "2025-02-15"],
    ),
    TypeSpec {
        placement: Placement::Global,
        ..tracked("Microsoft.Cdn", &[("profiles", "profile")], "Microsoft.Cdn/profiles", CDN)
    },
    TypeSpec {
        placement: Placement::Global,
        ..tracked(
            "Microsoft.Cdn",
            &[("profiles", "profile"), ("afdEndpoints", "endpoint")],
            "Microsoft.Cdn/profiles/afdEndpoints",
            CDN,
        )
    },
    cdn_part(
        &[("profiles", "profile"), ("afdEndpoints", "endpoint"), ("routes", "route")],
        "Microsoft.Cdn/profiles/afdEndpoints/routes",
    ),
    cdn_part(&[("profiles", "profile"), ("customDomains", "domain")], "Microsoft.Cdn/profiles/customDomains"),
    cdn_part(&[("profiles", "profile"), ("originGroups", "group")], "Microsoft.Cdn/profiles/originGroups"),
    cdn_part(
        &[("profiles", "profile"), ("originGroups", "group"), ("origins", "origin")],
        "Microsoft.Cdn/profiles/originGroups/origins",
    ),
    TypeSpec {
        quota: Some(Quota {
            name: "StandardDiskCount",
            label: "Standard Disks",
            limit: 50_000,
            code: "OperationNotAllowed",
        }),
        ..tracked(
            "Microsoft.Compute",
            &[("disks", "disk")],
            "Microsoft.Compute/disks",
            &["2023-04-02", "2023-10-02", "2024-03-02", "2025-01-02"],
        )
    },
];
