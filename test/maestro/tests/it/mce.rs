//! The work agent of the management cluster, alone and behind another agent.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use aro_crds::work::v1::{
    FeedbackRule, FeedbackType, JsonPath, ManifestConfigOption, ManifestWork, ManifestWorkStatus,
    ResourceIdentifier,
};
use aro_fixtures::wait;
use aro_maestro_e2e::agent::{Agent, value};
use aro_maestro_e2e::world::{World, config_map, on_ours, on_real};
use aro_mce::{Mce, MceConfig, McePorts};
use aro_runtime::{Metrics, Phase, Readiness, Role as _, Scope, Section as _, SystemClock, TaskKind};
use aro_work_engine::Work;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// The role, running.
struct Running(Scope);

impl Running {
    async fn start(world: &World, namespace: &str) -> Result<Self> {
        let config = MceConfig {
            namespace: namespace.to_owned(),
            hub_id: namespace.to_owned(),
            ..MceConfig::default()
        };
        let readiness = Readiness::new();
        let ports = McePorts {
            hub: world.client.clone(),
            hub_address: String::new(),
            spoke: world.client.clone(),
            clock: SystemClock::shared(),
            metrics: Metrics::new(),
            readiness: readiness.clone(),
        };
        let role = Mce::build(config.check()?, ports)?;
        let scope = world.scope.child(Phase::Roles, "mce");
        let inside = scope.clone();
        scope.spawn(TaskKind::Role, "mce", async move { role.run(inside).await });
        readiness.ready().await;
        Ok(Self(scope))
    }

    async fn stop(self) -> Result<()> {
        self.0.close(std::time::Duration::from_secs(10)).await.ok().context("the role ended in time")
    }
}

fn reporting(
    resource: &str,
    namespace: &str,
    name: &str,
    group: &str,
    paths: &[(&str, &str)],
) -> ManifestConfigOption {
    let path = |(name, path): &(&str, &str)| JsonPath {
        name: (*name).to_owned(),
        version: String::new(),
        path: (*path).to_owned(),
    };
    ManifestConfigOption {
        resource_identifier: ResourceIdentifier {
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        },
        feedback_rules: vec![FeedbackRule {
            kind: FeedbackType::JsonPaths,
            json_paths: paths.iter().map(path).collect(),
        }],
        ..ManifestConfigOption::default()
    }
}

fn manifest_work(
    namespace: &str,
    name: &str,
    manifests: &[Value],
    configs: &[ManifestConfigOption],
) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"workload": {"manifests": manifests}, "manifestConfigs": configs},
    })
}

fn has(status: Option<&ManifestWorkStatus>, kind: &str, word: &str) -> bool {
    status.is_some_and(|status| status.conditions.iter().any(|c| c.type_ == kind && c.status == word))
}

async fn settled(works: &Api<ManifestWork>, name: &str, generation: i64) -> Result<ManifestWork> {
    wait::until("the work is applied and available", || async {
        Ok(works.get_opt(name).await?.filter(|work| {
            let status = work.status.as_ref();
            let conditions = status.map(|status| status.conditions.clone()).unwrap_or_default();
            has(status, "Applied", "True")
                && has(status, "Available", "True")
                && conditions.iter().all(|condition| condition.observed_generation == Some(generation))
        }))
    })
    .await
}

async fn works_of_the_cluster_itself(world: &World) -> Result<()> {
    let (local, target) = (world.namespace("local-cluster").await?, world.namespace("target").await?);
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), &local);
    let maps = world.config_maps(&target);
    let mce = Running::start(world, &local).await?;
    let configs = [reporting("configmaps", &target, "m", "", &[("a", ".data.a")])];
    let first =
        manifest_work(&local, "w", &[config_map(&target, "m", "1"), config_map(&target, "n", "1")], &configs);
    works.create(&PostParams::default(), &serde_json::from_value(first)?).await?;
    let work = settled(&works, "w", 1).await?;
    assert_eq!(work.metadata.finalizers, Some(vec![FINALIZER.to_owned()]));
    let status = work.status.context("a status")?;
    assert_eq!(value(&status, 0, "a").and_then(|value| value.string).as_deref(), Some("1"));

    let patch = json!({"spec": {"workload": {"manifests": [config_map(&target, "m", "2")]}}});
    works.patch("w", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let work = settled(&works, "w", 2).await?;
    assert!(maps.get_opt("n").await?.is_none(), "what is no longer named is gone");
    mce.stop().await?;

    // A restart changes nothing.
    let mce = Running::start(world, &local).await?;
    let marker = manifest_work(&local, "marker", &[config_map(&target, "marker", "1")], &[]);
    works.create(&PostParams::default(), &serde_json::from_value(marker)?).await?;
    settled(&works, "marker", 1).await?;
    assert_eq!(works.get("w").await?.metadata.resource_version, work.metadata.resource_version);

    // One is deleted while the agent runs, one while it does not.
    works.delete("w", &DeleteParams::default()).await?;
    wait::until("the work is gone", || async { Ok(works.get_opt("w").await?.is_none().then_some(())) })
        .await?;
    assert!(maps.get_opt("m").await?.is_none());
    mce.stop().await?;
    works.delete("marker", &DeleteParams::default()).await?;
    assert!(maps.get_opt("marker").await?.is_some(), "it has no effect");
    let mce = Running::start(world, &local).await?;
    wait::until("the work is gone", || async { Ok(works.get_opt("marker").await?.is_none().then_some(())) })
        .await?;
    assert!(maps.get_opt("marker").await?.is_none());
    mce.stop().await
}

/// As Clusters Service does it: the bundle contains a ManifestWork, whose status is returned inside the bundle's status.
async fn nested_work_reports_its_feedback(world: &World) -> Result<()> {
    let (local, target) = (world.namespace("local-cluster").await?, world.namespace("target").await?);
    let maps = world.config_maps(&target);
    let (mce, maestro) = (Running::start(world, &local).await?, Agent::start(world, &world.word("maestro")));
    let inner_configs = [reporting("configmaps", &target, "hc", "", &[("Available-Status", ".data.a")])];
    let inner = manifest_work(&local, "inner", &[config_map(&target, "hc", "False")], &inner_configs);
    let outer_config = reporting(
        "manifestworks",
        &local,
        "inner",
        "work.open-cluster-management.io",
        &[("status", ".status")],
    );
    let put = |generation, inner: &Value| {
        maestro.put(Work {
            name: "bundle".to_owned(),
            generation,
            manifests: Arc::new(vec![inner.clone()]),
            configs: vec![outer_config.clone()],
            ..Work::default()
        });
    };
    put(1, &inner);
    let inside = |status: &ManifestWorkStatus| {
        let raw = value(status, 0, "status")?.json_raw?;
        let inner: Value = serde_json::from_str(&raw).ok()?;
        let values = &inner["resourceStatus"]["manifests"][0]["statusFeedback"]["values"][0];
        Some((values["name"].as_str()?.to_owned(), values["fieldValue"]["string"].as_str()?.to_owned()))
    };
    let expected = |text: &str| Some(("Available-Status".to_owned(), text.to_owned()));
    maestro.wait_for("bundle", "the inner value", |told| inside(&told.status) == expected("False")).await?;

    // A change of the innermost object is reported in the outer status.
    let mut ready = inner.clone();
    ready["spec"]["workload"]["manifests"][0]["data"]["a"] = json!("True");
    put(2, &ready);
    maestro
        .wait_for("bundle", "the new inner value", |told| {
            told.generation == 2 && inside(&told.status) == expected("True")
        })
        .await?;

    maestro.engine.delete("bundle");
    maestro.wait_deleted("bundle").await?;
    assert!(maps.get_opt("hc").await?.is_none(), "the inner objects went first");
    maestro.stop().await?;
    mce.stop().await
}

async fn both(world: &World) -> Result<()> {
    works_of_the_cluster_itself(world).await?;
    nested_work_reports_its_feedback(world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn mce_on_our_api_server() -> Result<()> {
    on_ours(both).await
}

#[tokio::test(flavor = "multi_thread")]
async fn mce_on_a_real_api_server() -> Result<()> {
    on_real(both).await
}
