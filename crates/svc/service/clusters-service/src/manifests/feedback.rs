//! Names of the values that are reported back. `maestro` reads what is asked for here.

/// Conditions of a HostedCluster that are reported.
pub(crate) const HOSTED_CLUSTER_CONDITIONS: [&str; 16] = [
    "Available",
    "Progressing",
    "Degraded",
    "ClusterVersionSucceeding",
    "ClusterVersionProgressing",
    "ClusterVersionAvailable",
    "ClusterVersionUpgradeable",
    "EtcdAvailable",
    "KubeAPIServerAvailable",
    "InfrastructureReady",
    "IgnitionEndpointAvailable",
    "ExternalDNSReachable",
    "ValidConfiguration",
    "ValidReleaseImage",
    "ReconciliationActive",
    "Simulated",
];

/// Conditions of a NodePool that are reported.
pub(crate) const NODE_POOL_CONDITIONS: [&str; 9] = [
    "Ready",
    "AllMachinesReady",
    "AllNodesHealthy",
    "UpdatingVersion",
    "UpdatingConfig",
    "ValidReleaseImage",
    "ValidPlatformImage",
    "ReachedIgnitionEndpoint",
    "AutoscalingEnabled",
];

/// Entries of the version history that are reported.
pub(crate) const HISTORY: usize = 3;

/// The members of a condition: name of the value, member.
pub(crate) const CONDITION_PARTS: [(&str, &str); 5] = [
    ("Status", "status"),
    ("Reason", "reason"),
    ("Message", "message"),
    ("LastTransitionTime", "lastTransitionTime"),
    ("ObservedGeneration", "observedGeneration"),
];

/// The members of an entry of the version history.
pub(crate) const HISTORY_PARTS: [(&str, &str); 5] = [
    ("Version", "version"),
    ("State", "state"),
    ("Image", "image"),
    ("StartedTime", "startedTime"),
    ("CompletionTime", "completionTime"),
];

/// The status of the object in a bundle.
pub(crate) const STATUS: &str = "status";
/// The generation of the object in a bundle.
pub(crate) const OBJECT_GENERATION: &str = "generation";
/// The generation of the record that an object was rendered from.
pub(crate) const RECORD_GENERATION: &str = "record-generation";

pub(crate) const ENDPOINT_HOST: &str = "ControlPlaneEndpoint-Host";
pub(crate) const ENDPOINT_PORT: &str = "ControlPlaneEndpoint-Port";
pub(crate) const REPLICAS: &str = "Replicas";
pub(crate) const POOL_VERSION: &str = "Version";
pub(crate) const SERVING_CERTIFICATE: &str = "ServingCertificate";

fn pair(name: impl Into<String>, path: impl Into<String>) -> (String, String) {
    (name.into(), path.into())
}

fn generations() -> Vec<(String, String)> {
    vec![
        pair(OBJECT_GENERATION, ".metadata.generation"),
        pair(RECORD_GENERATION, r".metadata.annotations.aro\.dev/generation"),
    ]
}

/// Of the object in a bundle: raw JSON and nothing else. Operators pass every value of it through `fromjson`.
pub(super) fn of_work() -> Vec<(String, String)> {
    vec![pair(STATUS, ".status")]
}

fn conditions<'a>(kinds: &'a [&'a str]) -> impl Iterator<Item = (String, String)> + 'a {
    kinds.iter().flat_map(|kind| {
        CONDITION_PARTS.map(|(part, member)| {
            pair(format!("{kind}-{part}"), format!(r#".status.conditions[?(@.type=="{kind}")].{member}"#))
        })
    })
}

/// Of a HostedCluster.
pub(super) fn of_hosted_cluster() -> Vec<(String, String)> {
    let mut paths = generations();
    paths.extend(conditions(&HOSTED_CLUSTER_CONDITIONS));
    for index in 0..HISTORY {
        paths.extend(HISTORY_PARTS.map(|(part, member)| {
            pair(
                format!("VersionHistory{index}-{part}"),
                format!(".status.version.history[{index}].{member}"),
            )
        }));
    }
    paths.push(pair(ENDPOINT_HOST, ".status.controlPlaneEndpoint.host"));
    paths.push(pair(ENDPOINT_PORT, ".status.controlPlaneEndpoint.port"));
    paths
}

/// Of the secret with the API server's certificate. Its key is not reported.
pub(super) fn of_serving_certificate() -> Vec<(String, String)> {
    vec![pair(SERVING_CERTIFICATE, r".data.tls\.crt")]
}

/// Of a NodePool.
pub(super) fn of_node_pool() -> Vec<(String, String)> {
    let mut paths = generations();
    paths.extend(conditions(&NODE_POOL_CONDITIONS));
    paths.push(pair(REPLICAS, ".status.replicas"));
    paths.push(pair(POOL_VERSION, ".status.version"));
    paths
}
