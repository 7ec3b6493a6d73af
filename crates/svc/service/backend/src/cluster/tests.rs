//! Decisions about clusters, without a store and without Clusters Service.

use std::time::Duration;

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::operation::{Operation, Request};
use aro_arm::hcp::resource::{Context, Resource as _};
use aro_arm::hcp::service_provider::ServiceProviderCluster;
use aro_arm::hcp::version::ApiVersion;
use aro_arm::operation::ProvisioningState;
use aro_arm::{ResourceId, SystemData};
use aro_base::{ETag, Timestamp};
use aro_control::Outcome;
use aro_fixtures::{Names, cluster_body};
use aro_ocm::ClusterId;
use aro_rp_store::key_of;
use aro_store::Typed;
use serde_json::{Value, json};
use uuid::Uuid;

use super::observe::{Seen, Service};
use super::plan;
use crate::act::Act;
use crate::change::OperationSeen;
use crate::shared::Timing;

const GA: ApiVersion = ApiVersion::V2026_10_01;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn typed<T>(id: &ResourceId, value: T) -> Typed<T> {
    Typed {
        value,
        key: key_of(id),
        resource_id: id.to_string(),
        etag: ETag::new("e"),
        version: 1,
        modified: now(),
        expires: None,
    }
}

/// An accepted cluster with an operation, before anything was done.
fn accepted(request: Request) -> Seen {
    let names = Names { subscription: "aaaa".to_owned(), group: "g".to_owned() };
    let id = ResourceId::parse(&names.cluster("blue")).unwrap();
    let context = Context {
        id: &id,
        location: "uksouth",
        system_data: SystemData::default(),
        identity_url: Some("https://identity.example.com"),
        now: now(),
        new_uid: Uuid::from_u128(1),
        experimental: false,
        allow_data_plane_identities: false,
        preflight: false,
    };
    let mut cluster = Cluster::create(GA, &cluster_body(&names, "blue", GA), &context).unwrap();
    let operation_id =
        ResourceId::in_subscription("aaaa", "Microsoft.RedHatOpenShift", &[("hcpOperationStatuses", "op")]);
    let operation = Operation {
        tenant_id: "t".to_owned(),
        client_id: String::new(),
        request,
        external_id: id.clone(),
        internal_id: None,
        operation_id: operation_id.clone(),
        client_request_id: None,
        correlation_request_id: None,
        trace_parent: None,
        notification_uri: None,
        start_time: now(),
        last_transition_time: now(),
        status: match request {
            Request::Delete => ProvisioningState::Deleting,
            _ => ProvisioningState::Accepted,
        },
        error: None,
        system_admin_credential_request: None,
        credential: None,
    };
    cluster.service.active_operation_id = Some("op".to_owned());
    Seen {
        cluster: Some(typed(&id, cluster)),
        operation: Some(OperationSeen { stored: typed(&operation_id, operation), outbox: None }),
        provider: None,
        service: Service::Unnamed,
        checks: Vec::new(),
        tenant: "t".to_owned(),
        selected: Some(Release::new(4, 22, 10)),
        fresh_id: ClusterId::mint(now(), [7; 16]),
        has_children: false,
        claims: Vec::new(),
        latest_upgrade: None,
        noted: None,
        timing: Timing { create_grace: Duration::from_secs(15), update_deadline: Duration::from_hours(1) },
    }
}

/// The same after the id was stored.
fn named(request: Request, service: Service) -> Seen {
    let mut seen = accepted(request);
    let cluster = seen.cluster.as_mut().unwrap();
    cluster.value.hosting.pending_cluster_service_id = Some("c1".to_owned());
    let id = cluster.value.id.child("serviceProviderClusters", "default");
    let mut provider = ServiceProviderCluster::default();
    provider.spec.control_plane_version.desired_version = Some(Release::new(4, 22, 10));
    seen.provider = Some(typed(&id, provider));
    seen.service = service;
    seen
}

fn present(seen: &Seen, extra: &Value) -> Service {
    let cluster = &seen.cluster.as_ref().unwrap().value;
    let release = Release::new(4, 22, 10);
    let create = aro_peers::translate::cluster::Create { id: Some("c1"), tenant: "t", release: &release };
    let mut body = aro_peers::translate::cluster::create_body(cluster, &create);
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    let found: aro_ocm::Cluster = serde_json::from_value(body).unwrap();
    let value = serde_json::to_value(&found).unwrap();
    Service::Present(Box::new(found), value)
}

fn steps(seen: &Seen, at: Timestamp) -> (Vec<String>, Outcome) {
    let plan = plan(seen, at);
    (plan.acts.iter().map(ToString::to_string).collect(), plan.outcome)
}

fn at_once() -> Outcome {
    Outcome::RequeueAfter(Duration::ZERO)
}

#[test]
fn id_and_release_are_stored_before_anything_is_asked_for() {
    let (acts, outcome) = steps(&accepted(Request::Create), now());
    assert_eq!((acts, outcome), (vec!["record: id and release".to_owned()], at_once()));
    let (acts, outcome) = steps(&named(Request::Create, Service::Absent), now());
    assert_eq!((acts, outcome), (vec!["create the cluster in Clusters Service".to_owned()], at_once()));
}

#[test]
fn the_request_asks_for_the_stored_id() {
    let plan = plan(&named(Request::Create, Service::Absent), now());
    let Some(Act::Create(body)) = plan.acts.first() else { panic!("{plan}") };
    assert_eq!(body["id"], "c1");
    assert_eq!(body["version"]["id"], "openshift-v4.22.10");
}

#[test]
fn a_version_that_is_not_on_offer_fails_the_operation() {
    let mut seen = accepted(Request::Create);
    seen.selected = None;
    let (acts, outcome) = steps(&seen, now());
    assert_eq!((acts[0].as_str(), outcome), ("record: no release", Outcome::Settled));
}

#[test]
fn nothing_is_created_without_an_operation() {
    let mut seen = named(Request::Create, Service::Absent);
    seen.operation = None;
    assert_eq!(steps(&seen, now()), (Vec::new(), Outcome::Settled));
    let mut seen = accepted(Request::Create);
    seen.operation = None;
    assert_eq!(steps(&seen, now()), (Vec::new(), Outcome::Settled));
}

#[test]
fn a_waiting_operation_has_one_timer_its_deadline() {
    let mut seen = named(Request::Create, Service::Absent);
    seen.service = present(&seen, &json!({"state": "installing", "status": {"state": "installing"}}));
    let (acts, outcome) = steps(&seen, now());
    assert_eq!(acts[0], "record: observed state");
    assert!(acts.iter().any(|act| act.contains("[Clusters Service] installing")), "{acts:?}");
    assert_eq!(outcome, Outcome::Waiting { on: "Clusters Service", recheck: Some(Duration::from_hours(1)) });
}

#[test]
fn ready_alone_does_not_complete_a_create() {
    let mut seen = named(Request::Create, Service::Absent);
    seen.service = present(&seen, &json!({"state": "ready", "status": {"state": "ready"}}));
    let (acts, outcome) = steps(&seen, now());
    assert!(acts.iter().any(|act| act.contains("[HostedCluster] not reported yet")), "{acts:?}");
    assert!(matches!(outcome, Outcome::Waiting { .. }));
}

#[test]
fn a_deletion_comes_before_everything_else() {
    let mut seen = accepted(Request::Delete);
    seen.cluster.as_mut().unwrap().value.service.deletion_timestamp = Some(now());
    let (acts, _) = steps(&seen, now());
    assert_eq!(acts, ["record: cluster removed"], "nothing was asked for");

    let mut seen = named(Request::Delete, Service::Absent);
    seen.cluster.as_mut().unwrap().value.service.deletion_timestamp = Some(now());
    let (_, outcome) = steps(&seen, now());
    let grace = Some(Duration::from_secs(15));
    assert_eq!(outcome, Outcome::Waiting { on: "a create that may be under way", recheck: grace });
    let later = now().checked_add(aro_base::SignedDuration::from_secs(15)).unwrap();
    assert_eq!(steps(&seen, later).0, ["record: cluster removed"]);

    seen.service = present(&seen, &json!({"state": "installing", "status": {"state": "installing"}}));
    let (acts, _) = steps(&seen, later);
    assert_eq!(acts[..2], ["delete the cluster in Clusters Service", "record: deletion dispatched"]);
}

#[test]
fn children_go_before_their_cluster() {
    let mut seen = accepted(Request::Delete);
    seen.cluster.as_mut().unwrap().value.service.deletion_timestamp = Some(now());
    seen.has_children = true;
    let (acts, outcome) = steps(&seen, now());
    assert_eq!(acts[0], "enqueue the children");
    assert!(matches!(outcome, Outcome::Waiting { .. }));
}

#[test]
fn only_what_differs_is_named_and_a_failed_update_is_not_repeated_for_ever() {
    let mut seen = named(Request::Update, Service::Absent);
    seen.service = present(&seen, &json!({"state": "ready", "status": {"state": "ready"}}));
    let cluster = seen.cluster.as_mut().unwrap();
    cluster.value.service.cluster_service_id = Some("/api/aro_hcp/v1alpha1/clusters/c1".to_owned());
    cluster.value.properties.node_drain_timeout_minutes = 30;
    let (acts, _) = steps(&seen, now());
    assert_eq!(acts[0], "change node_drain_grace_period of the cluster");

    seen.operation = None;
    seen.cluster.as_mut().unwrap().value.service.provisioning_state = ProvisioningState::Failed;
    let (acts, outcome) = steps(&seen, now());
    assert!(!acts.iter().any(|act| act.starts_with("change")), "{acts:?}");
    assert_eq!(outcome, Outcome::Settled);
}

/// A ready cluster that runs a release.
fn running(seen: &Seen, release: &str) -> Service {
    let aro = json!({
        "conditions": [{"type": "Available", "status": "True"}],
        "version_history": [{"version": release, "state": "Completed"}],
        "control_plane_endpoint": {"host": "h", "port": 443},
        "serving_ca": "ca",
    });
    present(seen, &json!({"state": "ready", "status": {"state": "ready"}, "aro": aro}))
}

#[test]
fn a_higher_version_selects_its_release_and_asks_for_the_upgrade_once() {
    let mut seen = named(Request::Update, Service::Absent);
    let cluster = seen.cluster.as_mut().unwrap();
    cluster.value.service.cluster_service_id = Some("/api/aro_hcp/v1alpha1/clusters/c1".to_owned());
    seen.provider.as_mut().unwrap().value.spec.control_plane_version.desired_version =
        Some(Release::new(4, 21, 3));
    seen.service = running(&seen, "4.21.3");
    // First the release is selected and stored.
    let (acts, _) = steps(&seen, now());
    assert_eq!(acts[0], "record: observed state");
    // Then it is asked for, unless it was.
    seen.provider.as_mut().unwrap().value.spec.control_plane_version.desired_version =
        Some(Release::new(4, 22, 10));
    let (acts, _) = steps(&seen, now());
    assert_eq!(acts[0], "upgrade the cluster to 4.22.10");
    seen.latest_upgrade = Some("4.22.10".to_owned());
    let (acts, _) = steps(&seen, now());
    assert!(!acts.iter().any(|act| act.starts_with("upgrade")), "{acts:?}");
}

#[test]
fn an_older_release_is_never_selected() {
    let mut seen = named(Request::Update, Service::Absent);
    seen.selected = Some(Release::new(4, 22, 9));
    assert_eq!(
        super::update::desired_release(&seen, &seen.cluster.as_ref().unwrap().value),
        Some(Release::new(4, 22, 10))
    );
    let cluster = seen.cluster.as_mut().unwrap();
    cluster.value.hosting.experimental_features.control_plane_exact_version = Some("4.22.1".to_owned());
    assert_eq!(
        super::update::desired_release(&seen, &seen.cluster.as_ref().unwrap().value),
        Some(Release::new(4, 22, 1)),
        "but for a pin"
    );
}
