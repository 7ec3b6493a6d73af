//! The real OCM SDK walks the API: bodies made by its own marshallers, answers read by its own types.

use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use crate::peers;
use crate::region::{Region, cluster};

#[tokio::test(flavor = "multi_thread")]
async fn the_go_sdk_round_trips_every_object_and_reads_every_error() {
    let Some(binaries) = peers::binaries() else { return };
    let region = Region::noop().await;
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, body: serde_json::Value| {
        let path = dir.path().join(name);
        std::fs::write(&path, body.to_string()).expect("written");
        path
    };
    let mut body = cluster("one", "rg");
    body["id"] = json!("2qrppk0otds3rdmdcojqcqkqq8f0s591");
    let pool = json!({
        "kind": "NodePool", "id": "np1",
        "version": {"kind": "Version", "id": "openshift-v4.20.8", "channel_group": "stable"},
        "subnet": "", "availability_zone": "", "auto_repair": true, "labels": {"a": "b"},
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "replicas": 2,
        "azure_node_pool": {"resource_name": "np1", "vm_size": "Standard_D8s_v3",
            "encryption_at_host": {"state": "disabled"},
            "os_disk": {"size_gibibytes": 64, "storage_account_type": "Premium_LRS", "persistence": "persistent"}},
    });
    let auth = json!({
        "kind": "ExternalAuth", "id": "entra",
        "issuer": {"url": "https://login.example.com/t/v2.0", "ca": "", "audiences": ["a1"]},
        "clients": [{"id": "a1", "component": {"name": "console", "namespace": "openshift-console"},
                     "extra_scopes": [], "type": "confidential"}],
        "claim": {"mappings": {"username": {"claim": "sub", "prefix": "p-", "prefix_policy": "Prefix"},
                               "groups": {"claim": "groups", "prefix": ""}},
                  "validation_rules": [{"claim": "c", "required_value": "v"}]},
    });
    let output = Command::new(binaries.join("ocm-client"))
        .arg(region.url())
        .args([file("cluster.json", body), file("pool.json", pool), file("auth.json", auth)])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the client runs");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.ends_with("done\n"), "{said}");
    region.stop().await;
}
