//! The engine on a cluster. The core scenarios run on a real API server as well.

mod core;
mod deletion;
mod drift;
mod executor;
mod load;
mod records;
mod requests;
mod restart;
mod strategies;

use std::sync::Arc;

use anyhow::Result;
use aro_crds::work::v1::{
    DeleteOption, DeletePropagationPolicy, FeedbackRule, FeedbackType, JsonPath, ManifestConfigOption,
    ResourceIdentifier, UpdateStrategy, UpdateStrategyType,
};
use aro_maestro_e2e::world::{World, on_ours, on_real};
use aro_work_engine::Work;
use serde_json::Value;

/// A work of these manifests.
fn work(name: &str, generation: i64, manifests: Vec<Value>) -> Work {
    Work { name: name.to_owned(), generation, manifests: Arc::new(manifests), ..Work::default() }
}

/// Settings for a configmap.
fn config(namespace: &str, name: &str) -> ManifestConfigOption {
    ManifestConfigOption {
        resource_identifier: ResourceIdentifier {
            group: String::new(),
            resource: "configmaps".to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        },
        ..ManifestConfigOption::default()
    }
}

/// Report `.data.a` of a configmap under the name `a`.
fn reporting(namespace: &str, name: &str) -> ManifestConfigOption {
    let path = JsonPath { name: "a".to_owned(), version: String::new(), path: ".data.a".to_owned() };
    let rule = FeedbackRule { kind: FeedbackType::JsonPaths, json_paths: vec![path] };
    ManifestConfigOption { feedback_rules: vec![rule], ..config(namespace, name) }
}

/// A strategy for a configmap.
fn strategy(namespace: &str, name: &str, kind: UpdateStrategyType) -> ManifestConfigOption {
    let strategy = UpdateStrategy { kind, server_side_apply: None };
    ManifestConfigOption { update_strategy: Some(strategy), ..reporting(namespace, name) }
}

fn orphaning() -> DeleteOption {
    DeleteOption { propagation_policy: DeletePropagationPolicy::Orphan, ..DeleteOption::default() }
}

/// What every cluster must bear.
async fn everything(world: &World) -> Result<()> {
    core::objects_come_and_are_reported_once(world).await?;
    core::a_definition_and_its_objects_come_in_one_work(world).await?;
    core::one_bad_manifest_does_not_stop_the_others(world).await?;
    core::ocm_632_rapid_edits_leave_nothing_behind(world).await?;
    core::an_object_of_two_works_stays_until_both_are_gone(world).await?;
    drift::what_others_change_or_delete_is_repaired_and_reported(world).await?;
    deletion::a_work_is_gone_when_all_of_it_is(world).await?;
    deletion::orphans_stay(world).await?;
    deletion::works_nobody_heard_of_are_gone_too(world).await?;
    strategies::each_strategy_does_what_it_says(world).await?;
    records::a_record_that_somebody_deletes_takes_nothing_with_it(world).await?;
    records::records_nobody_asks_for_are_evicted_if_that_is_wanted(world).await?;
    records::what_was_brought_but_not_noted_goes_with_its_work(world).await?;
    records::a_complete_work_is_left_alone(world).await?;
    restart::after_a_restart_nothing_is_written_and_nothing_told(world).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn works_on_our_api_server() -> Result<()> {
    on_ours(everything).await
}

#[tokio::test(flavor = "multi_thread")]
async fn works_on_a_real_api_server() -> Result<()> {
    on_real(everything).await
}
