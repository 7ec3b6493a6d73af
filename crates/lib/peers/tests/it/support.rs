//! Resources as a frontend stores them.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::resource::{Context, Resource};
use aro_arm::hcp::version::ApiVersion;
use aro_arm::{ResourceId, SystemData};
use aro_base::Timestamp;
use aro_fixtures::{Names, cluster_body, external_auth_body, node_pool_body};
use serde_json::Value;
use uuid::Uuid;

pub const GA: ApiVersion = ApiVersion::V2026_10_01;
pub const TENANT: &str = "11111111-2222-3333-4444-555555555555";

pub fn names() -> Names {
    Names { subscription: "AAAAAAAA-0000-0000-0000-000000000001".to_owned(), group: "rg-Test".to_owned() }
}

fn context(id: &ResourceId) -> Context<'_> {
    Context {
        id,
        location: "uksouth",
        system_data: SystemData::default(),
        identity_url: Some("https://identity.example.com/c"),
        now: Timestamp::from_second(1_800_000_000).unwrap(),
        new_uid: Uuid::from_u128(1),
        experimental: true,
        allow_data_plane_identities: false,
        preflight: false,
    }
}

fn create<T: Resource>(id: &str, body: &Value) -> T {
    let id = ResourceId::parse(id).unwrap();
    T::create(GA, body, &context(&id)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The cluster of the fixtures with changes to its body.
pub fn cluster(change: impl FnOnce(&mut Value)) -> Cluster {
    let mut body = cluster_body(&names(), "Blue", GA);
    change(&mut body);
    create(&names().cluster("Blue"), &body)
}

pub fn node_pool(change: impl FnOnce(&mut Value)) -> NodePool {
    let mut body = node_pool_body(GA);
    change(&mut body);
    create(&names().node_pool("Blue", "Np-1"), &body)
}

pub fn external_auth(change: impl FnOnce(&mut Value)) -> ExternalAuth {
    let mut body = external_auth_body(GA);
    change(&mut body);
    create(&names().external_auth("Blue", "Entra"), &body)
}

pub fn release() -> Release {
    Release::new(4, 22, 10)
}
