//! What all regions of an environment share: parent zones, registries, Front Door, a vault.

use aro_arm::ResourceId;
use aro_cloud::api_version::{CDN, REGISTRY};
use aro_cloud::resources::{CaaRecord, RecordData, RecordSet, Tags};
use serde_json::{Value, json};

use super::roles::ACR_PULL;
use super::{Key, Plan, Spec};
use crate::layout::identity;

/// How long resolvers keep the records of parent zones.
const TTL: u32 = 3600;

/// Items that others depend on.
pub(super) struct Global {
    pub service_zone: Key,
    pub cluster_zone: Key,
    pub issuer_zone: Key,
    pub service_registry: Key,
    pub ocp_registry: Key,
    pub front_door: FrontDoor,
}

/// The parts of Front Door that a region adds to.
pub(super) struct FrontDoor {
    pub profile: Key,
    pub endpoint: Key,
}

pub(super) fn add(plan: &mut Plan) -> Global {
    let layout = plan.layout.global.clone();
    let group = plan.add(Spec::Group(layout.group.clone()), &[]);
    let service_zone = plan.add(Spec::Zone(layout.service_zone.clone()), &[group]);
    let cluster_zone = plan.add(Spec::Zone(layout.cluster_zone.clone()), &[group]);
    let issuer_zone = plan.add(Spec::Zone(layout.issuer_zone.clone()), &[group]);
    let delegation =
        Spec::Delegation { parent: layout.service_zone.clone(), child: layout.issuer_zone.clone() };
    plan.add(delegation, &[service_zone, issuer_zone]);
    for set in no_mail() {
        plan.add(Spec::Records { zone: layout.cluster_zone.clone(), set }, &[cluster_zone]);
    }
    let registries = [&layout.service_registry, &layout.ocp_registry].map(|registry| {
        let key = plan.add(Spec::Registry(registry.clone()), &[group]);
        let puller = identity(&layout.group, &format!("{}-pull-identity", registry.name()));
        let puller = plan.add(Spec::Identity(puller), &[group]);
        plan.assign(puller, ACR_PULL, (registry, key));
        key
    });
    let [service_registry, ocp_registry] = registries;
    plan.add(pull_scope(&layout.ocp_registry), &[ocp_registry]);
    plan.add(Spec::Vault(layout.vault.clone()), &[group]);
    let front_door = front_door(plan, group);
    Global { service_zone, cluster_zone, issuer_zone, service_registry, ocp_registry, front_door }
}

/// What the pull tokens of clusters may do. Azure brings this scope map with every registry; the local cloud does not.
fn pull_scope(registry: &ResourceId) -> Spec {
    let body = json!({ "properties": { "actions": ["repositories/*/content/read"] } });
    Spec::Resource { id: registry.child("scopeMaps", "_repositories_pull"), version: REGISTRY, body }
}

/// Hosted clusters' names receive no mail, and two authorities may issue certificates for them.
fn no_mail() -> Vec<RecordSet> {
    let text = |name: &str, text: &str| record(name, RecordData::Txt(vec![text.to_owned()]));
    let issuers = ["digicert.com", "microsoft.com"];
    vec![
        record("@", RecordData::Caa(issuers.map(CaaRecord::issue).to_vec())),
        text("@", "v=spf1 -all"),
        text("*._domainkey", "v=DKIM1; p="),
        text("_dmarc", "v=DMARC1; p=reject; sp=reject; adkim=s; aspf=s"),
    ]
}

pub(super) fn record(name: &str, data: RecordData) -> RecordSet {
    RecordSet { name: name.to_owned(), ttl: TTL, data, metadata: Tags::new() }
}

fn front_door(plan: &mut Plan, group: Key) -> FrontDoor {
    let id = plan.layout.global.front_door.clone();
    let name = id.name().to_owned();
    let body = json!({
        "location": "global",
        "sku": { "name": "Premium_AzureFrontDoor" },
        "identity": { "type": "SystemAssigned" },
        "properties": { "originResponseTimeoutSeconds": 60 },
    });
    let profile = plan.add(Spec::Resource { id: id.clone(), version: CDN, body }, &[group]);
    let body = json!({ "location": "global", "properties": { "enabledState": "Enabled" } });
    let endpoint = Spec::Resource { id: id.child("afdEndpoints", &name), version: CDN, body };
    let endpoint = plan.add(endpoint, &[profile]);
    FrontDoor { profile, endpoint }
}

/// A resource below Front Door's profile.
pub(super) fn front_door_part(plan: &Plan, pairs: &[(&str, &str)], properties: Value) -> Spec {
    let profile = plan.layout.global.front_door.clone();
    let id = pairs.iter().fold(profile, |id, (kind, name)| id.child(kind, name));
    Spec::Resource { id, version: CDN, body: json!({ "properties": properties }) }
}
