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

/// The scenarios of every cluster.
async fn everything(world: &World) -> Result<()> {
    core::objects_are_applied_and_reported_once(world).await?;
    core::definition_and_its_objects_are_applied_in_one_work(world).await?;
    core::invalid_manifest_does_not_block_the_others(world).await?;
    core::ocm_632_rapid_edits_leave_no_orphans(world).await?;
    core::object_of_two_works_stays_until_both_are_deleted(world).await?;
    drift::drift_is_repaired_and_reported(world).await?;
    deletion::work_is_deleted_once_all_its_objects_are(world).await?;
    deletion::orphaned_objects_stay(world).await?;
    deletion::deletion_of_an_unknown_work_is_reported(world).await?;
    strategies::each_update_strategy_is_honoured(world).await?;
    records::record_deleted_by_another_client_keeps_its_objects(world).await?;
    records::orphaned_records_are_evicted_if_configured(world).await?;
    records::applied_but_unrecorded_objects_are_deleted_with_their_work(world).await?;
    records::complete_work_is_not_reconciled_again(world).await?;
    restart::restart_writes_nothing_and_reports_nothing(world).await?;
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
