//! A region as operators start it: a work as Clusters Service sends it passes through all of it, and the commands of the
//! operations guide work.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use aro_fixtures::{TestClient, wait};
use aro_harness::{Process, StoreChoice};
use aro_maestro_e2e::chain::Source;
use aro_maestro_e2e::pki::Pki;
use serde_json::{Value, json};

/// A ManifestWork for `local-cluster` whose own manifests belong to the work agent there.
fn work(value: &str) -> Value {
    let labels = json!({"api.openshift.com/id": "abc"});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "inner", "namespace": "default"}, "data": {"phase": value},
    });
    let inner = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "abc-cluster", "namespace": "local-cluster", "labels": labels},
        "spec": {
            "workload": {"manifests": [map]},
            "manifestConfigs": [{
                "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "inner", "namespace": "default"},
                "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "Available-Status", "path": ".data.phase"}]}],
            }],
        },
    });
    json!({
        "manifests": [inner],
        "manifestConfigs": [{
            "resourceIdentifier": {
                "group": "work.open-cluster-management.io", "resource": "manifestworks",
                "name": "abc-cluster", "namespace": "local-cluster",
            },
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "status", "path": ".status"}]}],
            "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": true, "fieldManager": "work-agent"}},
        }],
    })
}

/// `.status.resourceStatus[].statusFeedback.values[].fieldValue.jsonRaw | fromjson | .resourceStatus.manifests[].statusFeedback`
fn inner_feedback(bundle: &Value) -> Vec<Value> {
    let each = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for manifest in each(&bundle["status"]["resourceStatus"]) {
        for value in each(&manifest["statusFeedback"]["values"]) {
            let raw = value["fieldValue"]["jsonRaw"].as_str().unwrap_or("null");
            let status: Value = serde_json::from_str(raw).unwrap_or_default();
            for manifest in each(&status["resourceStatus"]["manifests"]) {
                found.push(manifest["statusFeedback"].clone());
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn work_for_local_cluster_is_applied_and_its_feedback_reported() -> Result<()> {
    let settings = [("maestro.debug_grpc_listen", "127.0.0.1:0")];
    let region = Process::start_with(StoreChoice::Embedded, &settings).await?;
    let at =
        |name: &str| -> Result<SocketAddr> { region.addr(name).with_context(|| format!("{name} listens")) };
    // A certificate of the region's authority of sources; in Azure the key vault issues it.
    let pki = Pki::of_authority(&region.data_dir().join("region/sources"))?;
    let source = Source::new("clusters-service", at("maestro-grpc")?, pki.identity("clusters-service")?)?;
    let rest = TestClient::new(format!("http://{}", at("maestro")?));

    let id = source.create("mgmt-1", "abc", &work("True")).await?;
    let shown = |value: &'static str| {
        let (rest, id) = (rest.clone(), id.clone());
        wait::until("the inner feedback in the outer status", move || {
            let (rest, id) = (rest.clone(), id.clone());
            async move {
                let bundle = rest.get(&format!("/api/maestro/v1/resource-bundles/{id}")).await?.json();
                let wanted = json!({"values": [
                    {"name": "Available-Status", "fieldValue": {"type": "String", "string": value}}
                ]});
                Ok((inner_feedback(&bundle) == [wanted]).then_some(()))
            }
        })
    };
    shown("True").await?;

    let search = "payload->'metadata'->'labels'->>'api.openshift.com/id'='abc'";
    let search: String = search.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02x}"));
    let found =
        rest.get(&format!("/api/maestro/v1/resource-bundles?search={search}")).await?.expect(200)?.json();
    ensure!(found["total"] == 1 && found["items"][0]["id"] == id, "{found:#}");

    let kubeconfig = region.data_dir().join("kube/kubeconfig.yaml");
    let kubectl = |words: &[&str]| -> Result<String> {
        let output = Command::new("kubectl").arg("--kubeconfig").arg(&kubeconfig).args(words).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    let works = [
        "--context",
        "mgmt-1",
        "get",
        "manifestwork",
        "-l",
        "api.openshift.com/id=abc",
        "-n",
        "local-cluster",
    ];
    ensure!(kubectl(&works)?.contains("abc-cluster"));
    let log =
        ["--context", "mgmt-1", "logs", "-n", "maestro", "deployment/maestro-agent", "-c", "maestro-agent"];
    kubectl(&log)?;

    // Changes of the innermost object, and then of the spec, are reported.
    source.update("mgmt-1", "abc", 1, &work("False")).await?;
    shown("False").await?;
    source.delete("mgmt-1", "abc").await?;
    wait::until("the bundle to be gone", || async {
        let reply = rest.get(&format!("/api/maestro/v1/resource-bundles/{id}")).await?;
        Ok((reply.status == 404).then_some(()))
    })
    .await?;
    let left = kubectl(&[
        "--context",
        "mgmt-1",
        "get",
        "configmap",
        "inner",
        "-n",
        "default",
        "--ignore-not-found",
    ])?;
    ensure!(left.is_empty(), "{left}");
    Ok(())
}
