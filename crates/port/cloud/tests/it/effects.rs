//! Effects happen once, whatever is lost on the way: seeded runs with a fault in a third of all requests.

use std::sync::Arc;

use aro_arm::ResourceId;
use aro_base::{Class, Classify as _, Secret};
use aro_cloud::{ArmClient, CloudError, Precondition};
use serde_json::{Value, json};

use crate::model::{Dice, Style, World};

const SEEDS: u64 = 1000;
const API: &str = "2024-07-01";

fn id(name: &str) -> ResourceId {
    ResourceId::in_group("s", "g", "Microsoft.Network", &[("virtualNetworks", name)])
}

fn key(name: &str) -> String {
    id(name).to_lower()
}

pub fn style(seed: u64) -> Style {
    [Style::Immediate, Style::AsyncOperation, Style::Location, Style::ProvisioningState][seed as usize % 4]
}

fn client(world: &Arc<World>) -> ArmClient {
    let cloud = world.cloud();
    cloud.arm(cloud.client_secret("tenant", "client", Secret::new("secret".to_owned())))
}

/// What a controller does: tries again while the error's class allows it.
async fn until_done<T>(mut call: impl AsyncFnMut() -> Result<T, CloudError>) -> T {
    for _ in 0..200 {
        match call().await {
            Ok(done) => return done,
            Err(error) => {
                assert_ne!(error.class(), Class::Terminal, "{}", aro_base::chain(&error));
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            }
        }
    }
    panic!("it did not end");
}

#[tokio::test(start_paused = true)]
async fn ensure_changes_a_resource_once_and_delete_removes_it_once() {
    let wanted =
        json!({"location": "uksouth", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}});
    for seed in 0..SEEDS {
        let world = World::faulty(style(seed), seed);
        let arm = client(&world);
        let made: Value = until_done(async || arm.ensure_resource(&id("v"), API, &wanted).await).await;
        assert!(aro_cloud::covers(&made, &wanted), "seed {seed}: {made}");
        assert_eq!(world.model.lock().changes.get(&key("v")), Some(&1), "seed {seed}");
        until_done(async || arm.ensure_resource(&id("v"), API, &wanted).await).await;
        assert_eq!(
            world.model.lock().changes.get(&key("v")),
            Some(&1),
            "seed {seed}: no write for no difference"
        );
        assert_eq!(world.model.lock().writes, 1, "seed {seed}: what a lost reply did is not done again");
        until_done(async || arm.delete(&id("v"), API).await).await;
        assert!(!world.model.lock().resources.contains_key(&key("v")), "seed {seed}");
        assert_eq!(world.model.lock().changes.get(&key("v")), Some(&2), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_conditional_create_succeeds_only_if_this_call_created() {
    let (mut created, mut lost) = (0, 0);
    for seed in 0..SEEDS {
        let world = World::faulty(style(seed), seed);
        let arm = client(&world);
        let mine = json!({"location": "global", "properties": {"owner": "mine"}});
        let result = arm.put(&id("v"), API, &mine, &Precondition::Absent).await;
        let changes = world.model.lock().changes.get(&key("v")).copied().unwrap_or_default();
        assert!(changes <= 1 && world.model.lock().writes <= 1, "seed {seed}");
        match result {
            Ok(_) => {
                assert_eq!(changes, 1, "seed {seed}");
                created += 1;
            }
            Err(error) => {
                assert!(!error.is_changed(), "seed {seed}: its own write is not another's");
                lost += 1;
            }
        }
    }
    assert!(created > lost * 20, "{created} created, {lost} gave up");
}

#[tokio::test(start_paused = true)]
async fn a_conditional_create_never_takes_what_another_owner_has() {
    for seed in 0..SEEDS / 3 {
        let world = World::faulty(Style::Immediate, seed);
        let theirs = json!({"id": "/x", "etag": "\"0\"", "properties": {"owner": "theirs"}});
        world.model.lock().resources.insert(key("v"), theirs);
        let mine = json!({"location": "global", "properties": {"owner": "mine"}});
        let result = client(&world).put(&id("v"), API, &mine, &Precondition::Absent).await;
        assert!(result.is_err(), "seed {seed}");
        assert_eq!(world.model.lock().changes.get(&key("v")), None, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_on_a_version_happens_once_and_recognizes_itself() {
    for seed in 0..SEEDS {
        let world = World::faulty(style(seed), seed);
        let old = json!({"id": "/x", "etag": "\"0\"", "properties": {"p": 1}});
        world.model.lock().resources.insert(key("v"), old);
        let new = json!({"properties": {"p": 2}});
        let version = Precondition::Unchanged("\"0\"".to_owned());
        let result = client(&world).put(&id("v"), API, &new, &version).await;
        let changes = world.model.lock().changes.get(&key("v")).copied().unwrap_or_default();
        assert!(changes <= 1 && world.model.lock().writes <= 1, "seed {seed}");
        match result {
            Ok(_) => assert_eq!(changes, 1, "seed {seed}"),
            Err(error) => assert!(!error.is_changed(), "seed {seed}"),
        }
    }
}

/// The first attempt takes effect only after the client looked: the second breaks the precondition that the first fulfilled.
async fn put_with_a_late_effect(owner: &str) -> Result<Value, CloudError> {
    let world = World::faultless(Style::Immediate);
    let found = json!({"id": id("v"), "properties": {"owner": owner}});
    let replies = vec![
        (502, vec![], Value::Null),
        (404, vec![], Value::Null),
        (412, vec![], Value::Null),
        (200, vec![], found),
    ];
    world.model.lock().fixed.insert(key("v"), replies);
    let mine = json!({"properties": {"owner": "mine"}});
    let result = client(&world).put(&id("v"), API, &mine, &Precondition::Absent).await;
    let methods: Vec<_> =
        world.model.lock().seen.iter().skip(1).map(|seen| seen.method.to_string()).collect();
    assert_eq!(methods, ["PUT", "GET", "PUT", "GET"]);
    result
}

#[tokio::test(start_paused = true)]
async fn a_precondition_that_the_calls_own_lost_write_broke_is_success() {
    let found = put_with_a_late_effect("mine").await.unwrap();
    assert_eq!(found["properties"]["owner"], "mine");
}

#[tokio::test(start_paused = true)]
async fn a_precondition_that_another_writer_broke_after_a_lost_reply_is_an_error() {
    assert!(put_with_a_late_effect("theirs").await.unwrap_err().is_changed());
}

#[tokio::test(start_paused = true)]
async fn a_broken_precondition_without_a_lost_reply_is_an_error_at_once() {
    let world = World::faultless(Style::Immediate);
    let mine = json!({"properties": {"owner": "mine"}});
    let arm = client(&world);
    arm.put(&id("v"), API, &mine, &Precondition::Absent).await.unwrap();
    assert!(arm.put(&id("v"), API, &mine, &Precondition::Absent).await.unwrap_err().is_changed());
    assert_eq!(world.model.lock().count(http::Method::GET, "/v"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_action_happens_at_most_once_and_exactly_once_when_it_succeeds() {
    let (mut succeeded, mut failed_after) = (0, 0);
    for seed in 0..SEEDS {
        let world = World::faulty(Style::Immediate, seed);
        let result = client(&world).post(&id("v"), "generateCredentials", API, &json!({})).await;
        let actions = world.model.lock().actions;
        if let Ok(reply) = result {
            assert_eq!((actions, &reply["number"]), (1, &json!(1)), "seed {seed}");
            succeeded += 1;
        } else {
            assert!(actions <= 1, "seed {seed}");
            failed_after += actions;
        }
    }
    assert!(succeeded > SEEDS / 2 && failed_after > 0, "{succeeded} succeeded, {failed_after} replies lost");
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_action_survives_lost_replies() {
    let mut succeeded = 0;
    for seed in 0..SEEDS / 3 {
        let world = World::faulty(Style::Immediate, seed);
        let result = client(&world).post_idempotent(&id("v"), "listKeys", API, &Value::Null).await;
        succeeded += u64::from(result.is_ok());
    }
    assert!(succeeded > SEEDS / 3 * 95 / 100, "{succeeded}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_does_not_multiply_the_load() {
    let world = World::faultless(Style::Immediate);
    let config = aro_cloud::CloudConfig { requests_per_second: 10_000, ..aro_cloud::CloudConfig::default() };
    let cloud = world.cloud_with(config);
    let arm = cloud.arm(cloud.client_secret("tenant", "client", Secret::new("secret".to_owned())));
    world.model.lock().fixed.insert(key("v"), vec![(500, vec![], Value::Null)]);
    const CALLS: usize = 500;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let arm = arm.clone();
        calls.spawn(async move { arm.find::<Value>(&id("v"), API).await.is_err() });
    }
    assert!(calls.join_all().await.into_iter().all(|failed| failed));
    let sent = world.model.lock().count(http::Method::GET, "/v");
    // A fifth for the traffic, the reserve, and what a minute refills.
    assert!(sent > CALLS && sent <= CALLS + CALLS / 5 + 10 + 60, "{sent} requests for {CALLS} calls");
}

#[test]
fn dice_are_the_same_for_the_same_seed() {
    let rolls =
        |seed| (0..50).map(move |_| 0).scan(Dice(seed), |dice, _| Some(dice.roll(24))).collect::<Vec<_>>();
    assert_eq!(rolls(7), rolls(7));
    assert_ne!(rolls(7), rolls(8));
}
