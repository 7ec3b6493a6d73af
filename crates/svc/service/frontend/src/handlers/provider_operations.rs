//! The provider's list of operations: what a role definition can allow.

use aro_arm_server::{Answer, paging};
use serde_json::{Value, json};

const PROVIDER: &str = "Azure Red Hat OpenShift";

/// Name below the provider, resource, operation, description.
const HCP: [(&str, &str, &str, &str); 15] = [
    (
        "register/action",
        "Azure Red Hat OpenShift",
        "Register",
        "Registers the subscription with the provider.",
    ),
    ("hcpOpenShiftClusters/read", CLUSTER, "Read", "Reads hosted control plane clusters."),
    ("hcpOpenShiftClusters/write", CLUSTER, "Write", "Creates or changes hosted control plane clusters."),
    ("hcpOpenShiftClusters/delete", CLUSTER, "Delete", "Deletes hosted control plane clusters."),
    (
        "hcpOpenShiftClusters/requestadmincredential/action",
        CLUSTER,
        "Request admin credential",
        "Issues a short-lived administrator credential for a cluster.",
    ),
    (
        "hcpOpenShiftClusters/revokecredentials/action",
        CLUSTER,
        "Revoke credentials",
        "Revokes all administrator credentials of a cluster.",
    ),
    ("hcpOpenShiftClusters/nodePools/read", NODE_POOL, "Read", "Reads node pools."),
    ("hcpOpenShiftClusters/nodePools/write", NODE_POOL, "Write", "Creates or changes node pools."),
    ("hcpOpenShiftClusters/nodePools/delete", NODE_POOL, "Delete", "Deletes node pools."),
    ("hcpOpenShiftClusters/externalAuths/read", EXTERNAL_AUTH, "Read", "Reads external authentications."),
    (
        "hcpOpenShiftClusters/externalAuths/write",
        EXTERNAL_AUTH,
        "Write",
        "Creates or changes external authentications.",
    ),
    (
        "hcpOpenShiftClusters/externalAuths/delete",
        EXTERNAL_AUTH,
        "Delete",
        "Deletes external authentications.",
    ),
    (
        "locations/hcpOpenShiftVersions/read",
        "OpenShift Container Platform Version(s)",
        "Read",
        "Reads the OpenShift versions on offer.",
    ),
    (
        "locations/hcpOperationResults/read",
        "Asynchronous Operation Result(s)",
        "Read",
        "Reads the result of an operation.",
    ),
    (
        "locations/hcpOperationStatuses/read",
        "Asynchronous Operation Status(es)",
        "Read",
        "Reads the status of an operation.",
    ),
];

const CLUSTER: &str = "Hosted Control Plane (HCP) OpenShift Cluster(s)";
const NODE_POOL: &str = "Node Pool(s)";
const EXTERNAL_AUTH: &str = "External Authentication Configuration(s)";

/// The namespace is shared with classic clusters, whose operations are listed here as well.
const CLASSIC: [(&str, &str, &str); 11] = [
    ("locations/operationresults/read", "locations/operationresults", "Read operation results"),
    ("locations/operationsstatus/read", "locations/operationsstatus", "Read operations status"),
    ("operations/read", "operations", "Read operations"),
    ("openShiftClusters/read", "openShiftClusters", "Read OpenShift cluster"),
    ("openShiftClusters/write", "openShiftClusters", "Write OpenShift cluster"),
    ("openShiftClusters/delete", "openShiftClusters", "Delete OpenShift cluster"),
    (
        "openShiftClusters/listCredentials/action",
        "openShiftClusters",
        "List credentials of an OpenShift cluster",
    ),
    (
        "openShiftClusters/listAdminCredentials/action",
        "openShiftClusters",
        "List admin credentials of an OpenShift cluster",
    ),
    ("openShiftClusters/detectors/read", "openShiftClusters", "Get OpenShift cluster detector"),
    (
        "locations/listPlatformWorkloadIdentityRoleSets/read",
        "locations/platformWorkloadIdentityRoleSets",
        "List platform workload identity role sets",
    ),
    ("locations/openshiftVersions/read", "locations/openshiftVersions", "List available OpenShift versions"),
];

pub fn list() -> Answer {
    let hcp = HCP.iter().map(|(name, resource, operation, description)| {
        json!({
            "display": {"description": description, "operation": operation, "provider": PROVIDER, "resource": resource},
            "isDataAction": false,
            "name": format!("{}/{name}", aro_arm::hcp::NAMESPACE),
        })
    });
    let classic = CLASSIC.iter().map(|(name, resource, operation)| {
        json!({
            "display": {"operation": operation, "provider": PROVIDER, "resource": resource},
            "isDataAction": false,
            "name": format!("{}/{name}", aro_arm::hcp::NAMESPACE),
            "origin": "user,system",
        })
    });
    let value: Vec<Value> = hcp.chain(classic).map(aro_arm::json::sorted).collect();
    paging::whole(&value)
}
