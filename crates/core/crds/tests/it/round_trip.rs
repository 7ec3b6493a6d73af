//! Objects as an API server gives them, through the types and back.

use aro_crds::cluster::v1::{ManagedCluster, ManagedClusterSpec};
use aro_crds::work::v1::{
    AppliedManifestWork, ManifestWork, ManifestWorkSpec, ServerSideApplyConfig, UpdateStrategyType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads and writes; what comes out must be what went in.
fn there_and_back<T: Serialize + DeserializeOwned>(object: Value) -> T {
    let read: T = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
    read
}

fn condition(kind: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": "Done", "message": "", "observedGeneration": 3,
        "lastTransitionTime": "2026-01-02T03:04:05Z"
    })
}

#[test]
fn a_work_with_everything() {
    let work: ManifestWork = there_and_back(json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": { "name": "first", "namespace": "mgmt-1", "generation": 3 },
        "spec": {
            "workload": { "manifests": [
                { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "b" }, "data": { "k": "v" } },
                { "apiVersion": "example.com/v1", "kind": "Any", "metadata": { "name": "c" }, "spec": { "deep": [1, null, { "x": 1.5 }] } }
            ] },
            "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": { "orphaningRules": [
                    { "group": "", "resource": "configmaps", "name": "a", "namespace": "b" }
                ] },
                "ttlSecondsAfterFinished": 0
            },
            "executor": { "subject": { "type": "ServiceAccount", "serviceAccount": { "namespace": "n", "name": "s" } } },
            "manifestConfigs": [{
                "resourceIdentifier": { "group": "apps", "resource": "deployments", "name": "d", "namespace": "b" },
                "feedbackRules": [
                    { "type": "WellKnownStatus" },
                    { "type": "JSONPaths", "jsonPaths": [{ "name": "r", "path": ".replicas", "version": "v1" }] }
                ],
                "feedbackScrapeType": "Watch",
                "updateStrategy": { "type": "ServerSideApply", "serverSideApply": {
                    "force": true, "fieldManager": "work-agent-other",
                    "ignoreFields": [{ "condition": "OnSpokeChange", "jsonPaths": [".spec.replicas"] }]
                } },
                "conditionRules": [{
                    "condition": "Complete", "type": "CEL", "celExpressions": ["object.status.done"], "message": "done"
                }]
            }]
        },
        "status": {
            "conditions": [condition("Applied"), condition("Available")],
            "resourceStatus": { "manifests": [{
                "resourceMeta": {
                    "ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
                    "name": "a", "namespace": "b"
                },
                "statusFeedback": { "values": [
                    { "name": "r", "fieldValue": { "type": "Integer", "integer": 3 } },
                    { "name": "j", "fieldValue": { "type": "JsonRaw", "jsonRaw": "{}" } }
                ] },
                "conditions": [condition("Applied")]
            }] }
        }
    }));
    let strategy = work.spec.manifest_configs[0].update_strategy.as_ref().unwrap();
    assert_eq!(strategy.kind, UpdateStrategyType::ServerSideApply);
}

#[test]
fn what_was_left_out_gets_its_default() {
    let spec: ManifestWorkSpec = serde_json::from_value(json!({
        "manifestConfigs": [{
            "resourceIdentifier": { "resource": "configmaps", "name": "a" },
            "updateStrategy": { "serverSideApply": {} }
        }]
    }))
    .unwrap();
    let strategy = spec.manifest_configs[0].update_strategy.clone().unwrap();
    assert_eq!(strategy.kind, UpdateStrategyType::Update);
    assert_eq!(strategy.server_side_apply, Some(ServerSideApplyConfig::default()));
    assert_eq!(
        serde_json::from_value::<ManagedClusterSpec>(json!({})).unwrap(),
        ManagedClusterSpec::default()
    );
    assert_eq!(ManagedClusterSpec::default().lease_duration_seconds, 60);
}

#[test]
fn what_an_agent_applied() {
    there_and_back::<AppliedManifestWork>(json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "metadata": { "name": "hash-first" },
        "spec": { "hubHash": "hash", "agentID": "agent", "manifestWorkName": "first" },
        "status": {
            "appliedResources": [{
                "group": "", "version": "v1", "resource": "configmaps", "name": "a", "namespace": "b", "uid": "u"
            }],
            "evictionStartTime": "2026-01-02T03:04:05Z"
        }
    }));
}

#[test]
fn a_managed_cluster() {
    let cluster: ManagedCluster = there_and_back(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": { "name": "mgmt-1", "labels": { "a": "b" } },
        "spec": {
            "hubAcceptsClient": true,
            "leaseDurationSeconds": 60,
            "managedClusterClientConfigs": [{ "url": "https://mgmt-1.example.com", "caBundle": "Y2E=" }],
            "taints": [
                { "key": "example.com/a", "effect": "NoSelect", "timeAdded": null },
                { "key": "b", "value": "c", "effect": "NoSelectIfNew", "timeAdded": "2026-01-02T03:04:05Z" }
            ]
        },
        "status": {
            "conditions": [condition("HubAcceptedManagedCluster")],
            "capacity": { "cpu": "8", "memory": "32Gi" },
            "allocatable": { "cpu": "7500m" },
            "version": { "kubernetes": "v1.36.0" },
            "clusterClaims": [{ "name": "id.k8s.io", "value": "mgmt-1" }],
            "managedNamespaces": [{ "name": "n", "clusterSet": "s", "conditions": [condition("Ready")] }]
        }
    }));
    assert_eq!(cluster.spec.managed_cluster_client_configs[0].ca_bundle.as_ref().unwrap().0, b"ca");
}
