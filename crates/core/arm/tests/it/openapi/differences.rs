//! Where the tables differ from the published documents on purpose.

/// A difference and its reason.
#[derive(Debug)]
pub struct Difference {
    pub resource: &'static str,
    pub path: &'static str,
    pub aspect: &'static str,
    #[allow(dead_code, reason = "for the reader")]
    pub reason: &'static str,
}

const fn cluster(path: &'static str, aspect: &'static str, reason: &'static str) -> Difference {
    Difference { resource: "HcpOpenShiftCluster", path, aspect, reason }
}

const fn pool(path: &'static str, aspect: &'static str, reason: &'static str) -> Difference {
    Difference { resource: "NodePool", path, aspect, reason }
}

const fn auth(path: &'static str, aspect: &'static str, reason: &'static str) -> Difference {
    Difference { resource: "ExternalAuth", path, aspect, reason }
}

const NAME: &str = "a name in the body is compared with the URL's instead of being ignored";
const LOCATION: &str = "the server knows its own region, so a body without one is accepted";
const SERVER_DEFAULT: &str = "the service fills it in, though the document names no default";
const OPERATORS: &str = "the service never changes the identities of running operators";
const CHANNEL: &str = "a change of the channel group after creation is rejected";
const CIDRS: &str =
    "the list of networks can be changed in every version; only the newest document states it";
const KEY: &str = "the document forgot that its parent is create-only";
const MODE: &str = "PlatformManaged was never offered, so it is no default and CustomerManaged must be sent";

pub const DIFFERENCES: &[Difference] = &[
    cluster("name", "access", NAME),
    cluster("location", "required", LOCATION),
    cluster("properties.api", "access", CIDRS),
    cluster(
        "properties.api.authorizedCidrs",
        "items",
        "an empty list would lock everybody out, and is refused",
    ),
    cluster("properties.autoscaling.maxNodeProvisionTimeSeconds", "default", SERVER_DEFAULT),
    cluster("properties.autoscaling.maxNodeProvisionTimeSeconds", "range", "zero is no time"),
    cluster("properties.autoscaling.maxNodesTotal", "default", SERVER_DEFAULT),
    cluster("properties.autoscaling.maxNodesTotal", "range", "a cluster has at most 500 nodes"),
    cluster("properties.autoscaling.maxPodGracePeriodSeconds", "default", SERVER_DEFAULT),
    cluster("properties.autoscaling.maxPodGracePeriodSeconds", "range", "zero is no time"),
    cluster("properties.autoscaling.podPriorityThreshold", "default", SERVER_DEFAULT),
    cluster("properties.etcd.dataEncryption.customerManaged.kms.activeKey.name", "access", KEY),
    cluster("properties.etcd.dataEncryption.customerManaged.kms.activeKey.vaultName", "access", KEY),
    cluster("properties.etcd.dataEncryption.customerManaged.kms.activeKey.version", "access", KEY),
    cluster("properties.etcd.dataEncryption.keyManagementMode", "default", MODE),
    cluster("properties.etcd.dataEncryption.keyManagementMode", "enum", MODE),
    cluster("properties.etcd.dataEncryption.keyManagementMode", "required", MODE),
    cluster("properties.ingress.type", "enum", "Disabled is not offered yet"),
    cluster("properties.network.hostPrefix", "range", "each node gets between 62 and 510 addresses"),
    cluster("properties.nodeDrainTimeoutMinutes", "default", SERVER_DEFAULT),
    cluster("properties.platform", "access", OPERATORS),
    cluster("properties.platform.operatorsAuthentication", "access", OPERATORS),
    cluster("properties.platform.operatorsAuthentication.userAssignedIdentities", "access", OPERATORS),
    cluster(
        "properties.platform.operatorsAuthentication.userAssignedIdentities.controlPlaneOperators",
        "access",
        OPERATORS,
    ),
    cluster(
        "properties.platform.operatorsAuthentication.userAssignedIdentities.dataPlaneOperators",
        "access",
        OPERATORS,
    ),
    cluster(
        "properties.platform.operatorsAuthentication.userAssignedIdentities.serviceManagedIdentity",
        "access",
        OPERATORS,
    ),
    cluster(
        "properties.platform.operatorsAuthentication.userAssignedIdentities.serviceManagedIdentity",
        "required",
        "the running service accepts a cluster without one",
    ),
    cluster(
        "properties.version",
        "access",
        "in the oldest version the id is create-only, and the channel group is fixed",
    ),
    cluster("properties.version.channelGroup", "access", CHANNEL),
    cluster("properties.version.channelGroup", "default", SERVER_DEFAULT),
    cluster("properties.version.id", "required", "a cluster has a version, whichever api-version makes it"),
    pool("name", "access", NAME),
    pool("location", "required", LOCATION),
    pool("properties.autoScaling.max", "default", SERVER_DEFAULT),
    pool("properties.autoScaling.min", "default", SERVER_DEFAULT),
    pool("properties.nodeDrainTimeoutMinutes", "range", "the cluster's limits hold for its pools"),
    pool("properties.platform.osDisk.sizeGiB", "range", "the largest size depends on the type of disk"),
    pool("properties.replicas", "default", SERVER_DEFAULT),
    pool("properties.version.channelGroup", "access", CHANNEL),
    pool("properties.version.channelGroup", "default", SERVER_DEFAULT),
    auth("name", "access", NAME),
    auth("properties.issuer.audiences[]", "length", "an empty audience would match no token"),
    auth("properties.claim.mappings.username.prefixPolicy", "default", SERVER_DEFAULT),
];
