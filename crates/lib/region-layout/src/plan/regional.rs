//! What the clusters of a region share: its zones, vault, databases, broker, the storage of OIDC documents and the way to it.

use aro_arm::ResourceId;
use aro_cloud::api_version::{COSMOS, EVENT_GRID, POSTGRESQL};
use aro_cloud::resources::RecordData;
use serde_json::{Value, json};

use super::global::{Global, front_door_part, record};
use super::{Key, Plan, Spec};

/// Items that others depend on.
pub(super) struct Regional {
    pub service_zone: Key,
    pub cluster_zone: Key,
    pub vault: Key,
    pub oidc_storage: Key,
}

pub(super) fn add(plan: &mut Plan, global: &Global) -> Regional {
    let (layout, parents) = (plan.layout.regional.clone(), plan.layout.global.clone());
    let group = plan.add(Spec::Group(layout.group.clone()), &[]);
    let mut zone = |child: &ResourceId, parent: &ResourceId, parent_key: Key| {
        let key = plan.add(Spec::Zone(child.clone()), &[group]);
        let delegation = Spec::Delegation { parent: parent.clone(), child: child.clone() };
        plan.add(delegation, &[key, parent_key]);
        key
    };
    let service_zone = zone(&layout.service_zone, &parents.service_zone, global.service_zone);
    let cluster_zone = zone(&layout.cluster_zone, &parents.cluster_zone, global.cluster_zone);
    let vault = plan.add(Spec::Vault(layout.vault.clone()), &[group]);
    let storage = Spec::Storage { id: layout.oidc_storage.clone(), sku: "Standard_ZRS" };
    let oidc_storage = plan.add(storage, &[group]);
    plan.add(Spec::Website(layout.oidc_storage.clone()), &[oidc_storage]);
    for spec in [
        cosmos(plan, &layout.cosmos),
        event_grid(plan, &layout.event_grid),
        postgresql(plan, &layout.clusters_service_database, "17", "Standard_D8s_v3", 128),
        postgresql(plan, &layout.maestro_database, "15", "Standard_D2s_v3", 32),
    ] {
        plan.add(spec, &[group]);
    }
    front_door(plan, global, oidc_storage);
    Regional { service_zone, cluster_zone, vault, oidc_storage }
}

fn cosmos(plan: &Plan, id: &ResourceId) -> Spec {
    let location = plan.location();
    let properties = json!({
        "databaseAccountOfferType": "Standard",
        "consistencyPolicy": { "defaultConsistencyLevel": "Session" },
        "locations": [{ "locationName": location, "failoverPriority": 0 }],
        "backupPolicy": {
            "type": "Continuous", "continuousModeProperties": { "tier": "Continuous7Days" },
        },
        "disableLocalAuth": true,
        "minimalTlsVersion": "Tls12",
        "enablePerRegionPerPartitionAutoscale": true,
    });
    resource(
        id,
        COSMOS,
        json!({ "location": location, "kind": "GlobalDocumentDB", "properties": properties }),
    )
}

fn event_grid(plan: &Plan, id: &ResourceId) -> Spec {
    let properties = json!({
        "topicSpacesConfiguration": {
            "state": "Enabled",
            "maximumSessionExpiryInHours": 1,
            "maximumClientSessionsPerAuthenticationName": 6,
            "clientAuthentication": {
                "alternativeAuthenticationNameSources": ["ClientCertificateDns"],
            },
        },
    });
    let sku = json!({ "name": "Standard", "capacity": 1 });
    resource(id, EVENT_GRID, json!({ "location": plan.location(), "sku": sku, "properties": properties }))
}

fn postgresql(plan: &Plan, id: &ResourceId, version: &str, sku: &str, gigabytes: u32) -> Spec {
    let properties = json!({
        "version": version,
        "storage": { "storageSizeGB": gigabytes },
        "backup": { "backupRetentionDays": 7, "geoRedundantBackup": "Disabled" },
        "authConfig": { "activeDirectoryAuth": "Enabled", "passwordAuth": "Disabled" },
    });
    let sku = json!({ "name": sku, "tier": "GeneralPurpose" });
    resource(id, POSTGRESQL, json!({ "location": plan.location(), "sku": sku, "properties": properties }))
}

fn resource(id: &ResourceId, version: &'static str, body: Value) -> Spec {
    Spec::Resource { id: id.clone(), version, body }
}

/// The region's host before the website: a name, a domain, and a route to the origin.
fn front_door(plan: &mut Plan, global: &Global, oidc_storage: Key) {
    let layout = plan.layout.clone();
    let (region, endpoint) = (layout.params.subdomain.clone(), layout.global.front_door.name().to_owned());
    let target = RecordData::Cname(layout.front_door_host());
    let set = record(&region, target);
    plan.add(Spec::Records { zone: layout.global.issuer_zone.clone(), set }, &[global.issuer_zone]);
    let profile = global.front_door.profile;
    let domain = json!({ "hostName": layout.issuer_host(), "tlsSettings": {
        "certificateType": "ManagedCertificate", "minimumTlsVersion": "TLS12",
    } });
    let domain = front_door_part(plan, &[("customDomains", &region)], domain);
    let domain_id = domain.target().clone();
    let domain = plan.add(domain, &[profile]);
    let group = json!({ "loadBalancingSettings": {
        "sampleSize": 4, "successfulSamplesRequired": 2, "additionalLatencyInMilliseconds": 50,
    } });
    let group = front_door_part(plan, &[("originGroups", &region)], group);
    let group_id = group.target().clone();
    let group = plan.add(group, &[profile]);
    let host = layout.oidc_website().trim_start_matches("https://").to_owned();
    let origin = json!({
        "hostName": host, "originHostHeader": host, "httpsPort": 443, "enabledState": "Enabled",
        "sharedPrivateLinkResource": {
            "privateLink": { "id": layout.regional.oidc_storage },
            "groupId": "web",
            "privateLinkLocation": layout.params.location,
        },
    });
    let origin = front_door_part(plan, &[("originGroups", &region), ("origins", &region)], origin);
    let origin = plan.add(origin, &[group, oidc_storage]);
    let route = json!({
        "customDomains": [{ "id": domain_id }],
        "originGroup": { "id": group_id },
        "patternsToMatch": ["/*"],
        "supportedProtocols": ["Https"],
        "forwardingProtocol": "HttpsOnly",
        "enabledState": "Enabled",
    });
    let route = front_door_part(plan, &[("afdEndpoints", &endpoint), ("routes", &region)], route);
    plan.add(route, &[global.front_door.endpoint, domain, origin]);
}
