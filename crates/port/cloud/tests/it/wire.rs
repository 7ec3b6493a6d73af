//! The same over sockets and TLS.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_base::{Class, Classify as _, Secret};
use aro_cloud::{Cloud, CloudConfig, Failure, MAX_BODY, TransportError};
use aro_net::SystemResolve;
use aro_runtime::{Period, Section as _, SystemClock};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::effects::style;
use crate::model::{Style, World};
use crate::server::{Server, silent};

const SEEDS: u64 = 60;

fn id(name: &str) -> ResourceId {
    ResourceId::in_group("s", "g", "Microsoft.Network", &[("virtualNetworks", name)])
}

#[tokio::test]
async fn every_cloud_host_is_dialled_at_one_address_under_its_own_name() {
    let world = World::faultless(Style::Immediate);
    let server = Server::start(world.clone()).await;
    let wanted = json!({"location": "uksouth"});
    server.arm().ensure_resource(&id("v"), "1", &wanted).await.unwrap();
    let cloud = server.cloud();
    let credential = cloud.client_secret("tenant", "client", Secret::new("secret".to_owned()));
    let blobs = cloud.blobs(credential, "https://acct.blob.core.windows.net".parse().unwrap());
    blobs.put("$web", "t/c/openid/v1/jwks", "application/json", Bytes::from_static(b"{}")).await.unwrap();
    assert!(blobs.find("$web", "t/c/openid/v1/jwks").await.unwrap().is_some());
    blobs.delete("$web", "t/c/openid/v1/jwks").await.unwrap();
    assert_eq!(blobs.find("$web", "t/c/openid/v1/jwks").await.unwrap(), None);
    let model = world.model.lock();
    let hosts: std::collections::BTreeSet<&str> = model.seen.iter().map(|seen| seen.host.as_str()).collect();
    assert_eq!(
        hosts.into_iter().collect::<Vec<_>>(),
        ["acct.blob.core.windows.net", "login.microsoftonline.com", "management.azure.com"]
    );
}

#[tokio::test]
async fn effects_happen_once_over_real_connections_that_break() {
    for seed in 0..SEEDS {
        let world = World::faulty(style(seed), seed);
        let server = Server::start(world.clone()).await;
        let arm = server.arm();
        let wanted = json!({"location": "uksouth", "properties": {"p": 1}});
        let mut tries = 0;
        while let Err(error) = arm.ensure_resource(&id("v"), "1", &wanted).await {
            assert_ne!(error.class(), Class::Terminal, "seed {seed}: {}", aro_base::chain(&error));
            tries += 1;
            assert!(tries < 50, "seed {seed}: {}", aro_base::chain(&error));
        }
        assert_eq!(world.model.lock().changes.get(&id("v").to_lower()), Some(&1), "seed {seed}");
        let _ = arm.post(&id("v"), "act", "1", &json!({})).await;
        assert!(world.model.lock().actions <= 1, "seed {seed}");
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let (world, other) = (World::faultless(Style::Immediate), World::faultless(Style::Immediate));
    let (server, stranger) = (Server::start(world.clone()).await, Server::start(other).await);
    let config = CloudConfig {
        ca_file: Some(stranger.ca_file.clone()),
        deadline: Period::millis(500),
        ..server.config()
    };
    let cloud = Cloud::new(&config.check().unwrap(), Arc::new(SystemResolve), SystemClock::shared()).unwrap();
    let arm = cloud.arm(cloud.client_secret("tenant", "client", Secret::new("secret".to_owned())));
    let error = arm.get::<Value>(&id("v"), "1").await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Credential(_)), "{error:?}");
    assert!(world.model.lock().seen.is_empty());
}

#[tokio::test]
async fn a_server_that_never_answers_costs_the_deadline_and_not_more() {
    let (address, _tasks) = silent().await;
    let server = Server::start(World::faultless(Style::Immediate)).await;
    let config = CloudConfig { connect_to: Some(address), deadline: Period::millis(300), ..server.config() };
    let cloud = Cloud::new(&config.check().unwrap(), Arc::new(SystemResolve), SystemClock::shared()).unwrap();
    let arm = cloud.arm(cloud.client_secret("tenant", "client", Secret::new("secret".to_owned())));
    let id = id("v");
    let call = arm.get::<Value>(&id, "1");
    let error = tokio::time::timeout(Duration::from_secs(10), call).await.expect("it ends").unwrap_err();
    assert_eq!(error.class(), Class::Retry, "{error:?}");
}

#[tokio::test]
async fn a_reply_that_is_too_large_is_cut_off() {
    let world = World::faultless(Style::Immediate);
    let server = Server::start(world.clone()).await;
    let large = json!({"id": id("v"), "padding": "x".repeat(MAX_BODY)});
    world.model.lock().resources.insert(id("v").to_lower(), large);
    let error = server.arm().get::<Value>(&id("v"), "1").await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Transport(TransportError::TooLarge { .. })), "{error:?}");
    assert_eq!(error.class(), Class::Terminal);
}

#[tokio::test]
async fn connections_are_kept_for_the_next_request() {
    let world = World::faultless(Style::Immediate);
    let server = Server::start(world.clone()).await;
    let arm = server.arm();
    world.model.lock().resources.insert(id("v").to_lower(), json!({"id": id("v")}));
    for _ in 0..20 {
        arm.get::<Value>(&id("v"), "1").await.unwrap();
    }
    assert_eq!(world.model.lock().tokens, 1, "one token serves them all");
    // One to the token endpoint, one to Resource Manager.
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}
