//! Resources of a provider behind ARM, which is a small server here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_azure_local::AzureLocalConfig;
use aro_cloud::Precondition;
use aro_cloud::resources::ListedResource;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode, Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::world::World;

const VERSION: &str = "2026-10-01";

/// What the provider knows: paths of resources, and those whose deletion it has accepted.
#[derive(Default)]
struct Known {
    resources: Vec<String>,
    deleting: Vec<String>,
}

type Shared = Arc<Mutex<Known>>;

async fn provide(State(known): State<Shared>, method: Method, uri: Uri, body: String) -> Response {
    let mut known = known.lock();
    let path = uri.path().to_owned();
    let exists = known.resources.contains(&path);
    match method {
        Method::PUT => {
            if !exists {
                known.resources.push(path);
            }
            let mut shown: Value = serde_json::from_str(&body).unwrap_or_default();
            shown["properties"]["provisioningState"] = json!("Succeeded");
            (if exists { StatusCode::OK } else { StatusCode::CREATED }, axum::Json(shown)).into_response()
        }
        Method::DELETE if exists => {
            known.deleting.push(path);
            StatusCode::ACCEPTED.into_response()
        }
        Method::DELETE => StatusCode::NO_CONTENT.into_response(),
        _ if exists => (StatusCode::OK, axum::Json(json!({"location": "westus3"}))).into_response(),
        _ => {
            (StatusCode::NOT_FOUND, axum::Json(json!({"error": {"code": "ResourceNotFound", "message": ""}})))
                .into_response()
        }
    }
}

async fn provider() -> (SocketAddr, Shared, JoinSet<()>) {
    let known = Shared::default();
    let router = Router::new().fallback(provide).with_state(known.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, known, tasks)
}

async fn listed(world: &World) -> Vec<String> {
    let path = format!("/subscriptions/{}/resources", world.subscription());
    let found: Vec<ListedResource> = world.arm.list(&path, "2024-11-01", &[]).await.unwrap();
    found.into_iter().map(|resource| resource.id.to_string()).collect()
}

async fn until(what: &str, world: &World, ready: impl Fn(&[String]) -> bool) {
    let waiting = async {
        while !ready(&listed(world).await) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_other_providers_are_listed_until_their_provider_deleted_them() {
    let (address, known, _tasks) = provider().await;
    let config = AzureLocalConfig {
        resource_providers: vec![format!("Microsoft.RedHatOpenShift=http://{address}")],
        ..AzureLocalConfig::default()
    };
    let world = World::with(config).await;
    let group = world.group("g").await;
    let id = format!("{group}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/c");
    let id = ResourceId::parse(&id).unwrap();
    let body = json!({"location": "westus3", "tags": {"a": "b"}, "properties": {}});
    world.arm.put(&id, VERSION, &body, &Precondition::None).await.unwrap();
    assert_eq!(listed(&world).await, [id.to_string()]);

    // The deletion of the group reaches the provider and waits for it.
    let (deleting, arm) = (world.subscription(), world.arm.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { arm.delete_resource_group(&deleting, "g").await });
    let accepted = async {
        while known.lock().deleting.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), accepted).await.expect("the provider gets the deletion");
    assert_eq!(listed(&world).await, [id.to_string()], "listed until it is gone");
    known.lock().resources.clear();
    until("the record goes", &world, <[String]>::is_empty).await;
    let deleted = tokio::time::timeout(Duration::from_secs(20), tasks.join_next()).await;
    deleted.expect("the group goes").unwrap().unwrap().unwrap();
    world.stop().await;
}
