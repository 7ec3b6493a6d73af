//! What `aro gen crds` prints is installed, and objects of our types live in it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use aro_base::Timestamp;
use aro_crds::cluster::v1::{ManagedCluster, ManagedClusterSpec, ManagedClusterStatus, Taint, TaintEffect};
use aro_crds::work::v1::{
    AppliedManifestWork, AppliedManifestWorkSpec, Manifest, ManifestConfigOption, ManifestWork,
    ManifestWorkSpec, ResourceIdentifier, UpdateStrategy,
};
use aro_fixtures::wait;
use aro_harness::{Build, aro_binary};
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::watching::Inside;

/// The documents that the program prints.
fn printed() -> Result<Vec<CustomResourceDefinition>> {
    let binary = aro_binary(Build::Debug)?;
    let output = Command::new(&binary).args(["gen", "crds"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let folder = tempfile::tempdir()?;
    let made = folder.path().join("deep").join("er");
    let status = Command::new(&binary).args(["gen", "crds", "--out"]).arg(&made).status()?;
    ensure!(status.success());
    let mut found = Vec::new();
    let documents: Vec<&str> = text.split("---\n").filter(|document| !document.is_empty()).collect();
    for document in &documents {
        let crd: CustomResourceDefinition = serde_saphyr::from_str(document)?;
        let name = crd.metadata.name.as_deref().context("a name")?;
        let file = std::fs::read_to_string(made.join(format!("{name}.yaml")))?;
        ensure!(file.trim() == document.trim(), "{name}: the file is not what is printed");
        found.push(crd);
    }
    ensure!(std::fs::read_dir(&made)?.count() == found.len());
    Ok(found)
}

async fn install(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in tokio::task::spawn_blocking(printed).await?? {
        let name = crd.metadata.name.clone().context("a name")?;
        definitions.create(&PostParams::default(), &crd).await?;
        let served = || async {
            let conditions = definitions.get(&name).await?.status.and_then(|status| status.conditions);
            let established = |found: &CustomResourceDefinitionCondition| {
                found.type_ == "Established" && found.status == "True"
            };
            Ok(conditions.unwrap_or_default().iter().any(established).then_some(()))
        };
        wait::until(&format!("{name} to be established"), served).await?;
        // As everywhere, requests find the new type a moment after it is called established.
        let path =
            format!("/apis/{}/{}/{}", crd.spec.group, crd.spec.versions[0].name, crd.spec.names.plural);
        let found = || async {
            match client.request::<Value>(Request::get(&path).body(Vec::new())?).await {
                Ok(_) => Ok(Some(())),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                Err(error) => Err(error.into()),
            }
        };
        wait::until(&format!("{name} to be served"), found).await?;
        let problems =
            definitions.get(&name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
        let structural = problems.iter().find(|found| found.type_ == "NonStructuralSchema");
        ensure!(structural.is_none(), "{structural:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_prints_can_be_installed_and_used() -> Result<()> {
    let inside = Inside::start(&[]).await?;
    let client = inside.near()?;
    install(&client).await?;
    works(&client).await?;
    clusters(&client).await?;
    inside.stop().await
}

async fn works(client: &Client) -> Result<()> {
    let works: Api<ManifestWork> = Api::namespaced(client.clone(), "default");
    let manifest =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "any": {"thing": [1]}});
    let mut spec = ManifestWorkSpec::default();
    spec.workload.manifests = vec![Manifest(manifest.clone())];
    spec.manifest_configs = vec![ManifestConfigOption {
        resource_identifier: ResourceIdentifier {
            resource: "configmaps".into(),
            name: "a".into(),
            ..Default::default()
        },
        update_strategy: Some(UpdateStrategy::default()),
        ..ManifestConfigOption::default()
    }];
    let made = works.create(&PostParams::default(), &ManifestWork::new("first", spec.clone())).await?;
    ensure!(made.spec == spec, "{:?}", made.spec);
    // Defaults are the server's, too.
    let bare = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "bare"}, "spec": {"deleteOption": {}}});
    let path = "/apis/work.open-cluster-management.io/v1/namespaces/default/manifestworks";
    let filled: Value = client.request(post(path, &bare)?).await?;
    ensure!(filled["spec"]["deleteOption"]["propagationPolicy"] == "Foreground", "{filled}");
    // And limits.
    let wrong = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "wrong"}, "spec": {"deleteOption": {"propagationPolicy": "Sometimes"}}});
    let refused = client.request::<Value>(post(path, &wrong)?).await;
    ensure!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 422), "{refused:?}");
    let applied: Api<AppliedManifestWork> = Api::all(client.clone());
    let spec = AppliedManifestWorkSpec {
        hub_hash: "h".into(),
        manifest_work_name: "first".into(),
        ..Default::default()
    };
    applied.create(&PostParams::default(), &AppliedManifestWork::new("h-first", spec)).await?;
    Ok(())
}

async fn clusters(client: &Client) -> Result<()> {
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    let taint =
        Taint { key: "a/b".into(), value: String::new(), effect: TaintEffect::NoSelect, time_added: None };
    let spec =
        ManagedClusterSpec { hub_accepts_client: true, taints: vec![taint], ..ManagedClusterSpec::default() };
    let made = clusters.create(&PostParams::default(), &ManagedCluster::new("mgmt-1", spec.clone())).await?;
    ensure!(made.spec == spec);
    let joined = Condition {
        type_: "ManagedClusterJoined".into(),
        status: "True".into(),
        reason: "Joined".into(),
        message: String::new(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        observed_generation: None,
    };
    let status = ManagedClusterStatus { conditions: vec![joined], ..ManagedClusterStatus::default() };
    let patch = Patch::Merge(json!({ "status": status }));
    let patched = clusters.patch_status("mgmt-1", &PatchParams::default(), &patch).await?;
    ensure!(patched.status.as_ref() == Some(&status), "{:?}", patched.status);
    // The columns.
    let request = Request::get("/apis/cluster.open-cluster-management.io/v1/managedclusters")
        .header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
        .body(Vec::new())?;
    let table: Value = client.request(request).await?;
    let names: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .context("columns")?
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    ensure!(
        names == ["Name", "Hub Accepted", "Managed Cluster URLs", "Joined", "Available", "Age"],
        "{names:?}"
    );
    let row = &table["rows"][0]["cells"];
    ensure!(row[0] == "mgmt-1" && row[1] == true && row[3] == "True", "{row}");
    Ok(())
}

fn post(path: &str, body: &Value) -> Result<Request<Vec<u8>>> {
    Ok(Request::post(path).header("content-type", "application/json").body(serde_json::to_vec(body)?)?)
}
