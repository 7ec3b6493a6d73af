//! The HostedCluster.

use aro_ocm::{AllowMode, Cluster, KmsVisibility, ListeningMethod, names, property};
use serde_json::{Map, Value, json};

use super::objects::{API_CERTIFICATE, PULL_SECRET, SIGNING_KEY, SSH_KEY};
use super::work::{Part, work_bundle};
use super::{Bundle, ClusterInput, Facts, RELEASE_VERSION, feedback, objects, oidc_provider, version_number};

/// Sources of the platform's images, mirrored to the registry of the region.
const PLATFORM_SOURCES: [&str; 4] =
    ["ocp-release", "ocp-release-nightly", "ocp-v4.0-art-dev", "ocp-v5.0-art-dev"];
const PLATFORM_REPOSITORY: &str = "openshift-release-dev";

/// Operators and the members of the HostedCluster with their identities.
const CONTROL_PLANE_OPERATORS: [(&str, &str); 8] = [
    ("cloud-controller-manager", "cloudProvider"),
    ("cluster-api-azure", "nodePoolManagement"),
    ("control-plane", "controlPlaneOperator"),
    ("image-registry", "imageRegistry"),
    ("ingress", "ingress"),
    ("cloud-network-config", "network"),
    ("disk-csi-driver", "disk"),
    ("file-csi-driver", "file"),
];
const DATA_PLANE_OPERATORS: [(&str, &str); 3] = [
    ("image-registry", "imageRegistryMSIClientID"),
    ("disk-csi-driver", "diskMSIClientID"),
    ("file-csi-driver", "fileMSIClientID"),
];

pub(super) fn bundle(input: &ClusterInput<'_>) -> Bundle {
    let cx = &input.cx;
    let mut parts = objects::parts(input);
    let authorities = oidc_provider::authorities(input.external_auths, &cx.namespace());
    parts.extend(authorities.into_iter().map(|map| Part::owned("configmaps", map)));
    parts.push(Part::reported("hostedclusters", manifest(input), &feedback::of_hosted_cluster()));
    work_bundle(cx, names::cluster_work(cx.id), input.generation, parts, None)
}

fn manifest(input: &ClusterInput<'_>) -> Value {
    let cx = &input.cx;
    let mut annotations = cx.annotations(input.generation);
    annotations.insert(RELEASE_VERSION.to_owned(), version_number(input.cluster.version.as_ref()));
    let properties = input.cluster.properties.as_ref();
    let copied = [
        (property::SIZE_OVERRIDE, "hypershift.openshift.io/cluster-size-override"),
        (property::CONTROL_PLANE_OPERATOR_IMAGE, "hypershift.openshift.io/control-plane-operator-image"),
    ];
    for (property, annotation) in copied {
        if let Some(value) = properties.and_then(|all| all.get(property)).filter(|value| !value.is_empty()) {
            annotations.insert(annotation.to_owned(), value.clone());
        }
    }
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {
            "name": cx.domain_prefix,
            "namespace": cx.namespace(),
            "labels": cx.labels(),
            "annotations": annotations,
        },
        "spec": spec(input),
    })
}

fn spec(input: &ClusterInput<'_>) -> Value {
    let (cluster, facts, prefix) = (input.cluster, input.facts, input.cx.domain_prefix);
    let single = cluster.has_property(property::SINGLE_REPLICA);
    let policy = if single { "SingleReplica" } else { "HighlyAvailable" };
    let mut spec = json!({
        "release": { "image": facts.release_image },
        "channel": channel(cluster),
        "clusterID": facts.cluster_uuid,
        "infraID": facts.infra_id,
        "issuerURL": facts.issuer,
        "fips": cluster.fips.unwrap_or_default(),
        "kubeAPIServerDNSName": names::api_host(prefix, &facts.base_domain),
        "dns": { "baseDomain": names::delegated_zone(prefix, &facts.base_domain), "baseDomainPrefix": "" },
        "pullSecret": { "name": PULL_SECRET },
        "sshKey": { "name": SSH_KEY },
        "serviceAccountSigningKey": { "name": SIGNING_KEY },
        "controllerAvailabilityPolicy": policy,
        "infrastructureAvailabilityPolicy": policy,
        "olmCatalogPlacement": "management",
        "etcd": {
            "managementType": "Managed",
            "managed": { "storage": { "type": "PersistentVolume", "persistentVolume": { "size": "8Gi" } } },
        },
        "networking": networking(cluster, facts),
        "services": services(prefix, &facts.base_domain),
        "platform": { "type": "Azure", "azure": platform(input) },
        "imageContentSources": image_sources(cluster, &facts.ocp_registry),
        "autoscaling": autoscaling(cluster),
    });
    if let Some(encryption) = secret_encryption(cluster, facts) {
        spec["secretEncryption"] = encryption;
    }
    let registry = cluster.image_registry.as_ref().and_then(|registry| registry.state);
    if registry == Some(aro_ocm::Switch::Disabled) {
        spec["capabilities"] = json!({ "disabled": ["ImageRegistry"] });
    }
    let configuration = configuration(input);
    if !configuration.is_empty() {
        spec["configuration"] = Value::Object(configuration);
    }
    spec
}

/// `stable-4.20`: the channel group and the minor version.
fn channel(cluster: &Cluster) -> String {
    let version = cluster.version.clone().unwrap_or_default();
    let group =
        version.channel_group.filter(|group| !group.is_empty()).unwrap_or_else(|| "stable".to_owned());
    let id = version.id.or(version.raw_id).unwrap_or_default();
    let number = id.strip_prefix("openshift-v").unwrap_or(&id);
    let minor: Vec<&str> = number.split('.').take(2).collect();
    format!("{group}-{}", minor.join("."))
}

fn networking(cluster: &Cluster, facts: &Facts) -> Value {
    let network = cluster.network.clone().unwrap_or_default();
    let text = |text: Option<String>, default: &str| text.unwrap_or_else(|| default.to_owned());
    let mut value = json!({
        "networkType": text(network.r#type, "OVNKubernetes"),
        "clusterNetwork": [{
            "cidr": text(network.pod_cidr, "10.128.0.0/14"),
            "hostPrefix": network.host_prefix.unwrap_or(23),
        }],
        "serviceNetwork": [{ "cidr": text(network.service_cidr, "172.30.0.0/16") }],
        "machineNetwork": [{ "cidr": text(network.machine_cidr, "10.0.0.0/16") }],
    });
    if let Some(allowed) = allowed_cidrs(cluster, facts) {
        value["apiServer"] = json!({ "allowedCIDRBlocks": allowed });
    }
    value
}

/// The addresses that may reach the API server: the customer's and the service's own; `None` if all may.
pub(super) fn allowed_cidrs(cluster: &Cluster, facts: &Facts) -> Option<Vec<String>> {
    let access = cluster.api.as_ref()?.cidr_block_access.as_ref()?.allow.as_ref()?;
    if access.mode != Some(AllowMode::AllowList) {
        return None;
    }
    let mut allowed = access.values.clone().unwrap_or_default();
    let internal = facts.internal_cidrs.iter().filter(|cidr| !allowed.contains(cidr));
    let internal: Vec<String> = internal.cloned().collect();
    allowed.extend(internal);
    Some(allowed)
}

fn services(prefix: &str, base_domain: &str) -> Value {
    let [api, oauth, konnectivity, ignition] = names::ingress_hosts(prefix, base_domain);
    let route = |service: &str, host: String| {
        json!({
            "service": service,
            "servicePublishingStrategy": { "type": "Route", "route": { "hostname": host } },
        })
    };
    json!([
        route("APIServer", api),
        route("OAuthServer", oauth),
        route("Konnectivity", konnectivity),
        route("Ignition", ignition),
    ])
}

fn platform(input: &ClusterInput<'_>) -> Value {
    let (azure, facts) = (input.cluster.azure.clone().unwrap_or_default(), input.facts);
    let mut control_plane = Map::new();
    let vault = json!({ "name": facts.identities_vault, "tenantID": facts.vault_tenant });
    control_plane.insert("managedIdentitiesKeyVault".to_owned(), vault);
    for (operator, member) in CONTROL_PLANE_OPERATORS {
        if let Some(identity) = identity(facts, operator) {
            control_plane.insert(member.to_owned(), identity);
        }
    }
    let mut data_plane = Map::new();
    for (operator, member) in DATA_PLANE_OPERATORS {
        if let Some(client_id) = facts.data_plane.get(operator) {
            data_plane.insert(member.to_owned(), json!(client_id));
        }
    }
    let mut value = json!({
        "cloud": "AzurePublicCloud",
        "location": facts.location,
        "resourceGroup": azure.managed_resource_group_name,
        "vnetID": facts.vnet_id,
        "subnetID": azure.subnet_resource_id,
        "subscriptionID": azure.subscription_id,
        "securityGroupID": azure.network_security_group_resource_id,
        "tenantID": azure.tenant_id,
        "topology": match input.cluster.api.as_ref().and_then(|api| api.listening) {
            Some(ListeningMethod::Internal) => "Private",
            _ => "Public",
        },
        "azureAuthenticationConfig": {
            "azureAuthenticationConfigType": "ManagedIdentities",
            "managedIdentities": { "controlPlane": control_plane, "dataPlane": data_plane },
        },
    });
    let registry = azure.container_registry.and_then(|registry| registry.credentials?.managed_identity);
    if let Some(resource_id) = registry.and_then(|identity| identity.resource_id) {
        value["containerRegistry"] = json!({
            "credentials": { "type": "ManagedIdentity", "managedIdentity": { "resourceID": resource_id } },
        });
    }
    value
}

fn identity(facts: &Facts, operator: &str) -> Option<Value> {
    let identity = facts.control_plane.get(operator)?;
    Some(json!({
        "clientID": identity.client_id,
        "credentialsSecretName": identity.secret,
        "objectEncoding": "utf-8",
    }))
}

fn secret_encryption(cluster: &Cluster, facts: &Facts) -> Option<Value> {
    let kms = cluster.azure.as_ref()?.kms()?;
    let key = kms.active_key.clone().unwrap_or_default();
    let access = if kms.visibility == Some(KmsVisibility::Private) { "Private" } else { "Public" };
    let mut azure = json!({
        "activeKey": {
            "keyVaultName": key.key_vault_name,
            "keyName": key.key_name,
            "keyVersion": key.key_version,
        },
        "keyVaultAccess": access,
    });
    if let Some(identity) = identity(facts, "kms") {
        azure["kms"] = identity;
    }
    Some(json!({ "type": "kms", "kms": { "provider": "Azure", "azure": azure } }))
}

/// The customer's mirrors, then those of the platform.
fn image_sources(cluster: &Cluster, registry: &str) -> Value {
    let config = cluster.registry_config.clone().unwrap_or_default();
    let mirrors = config.image_digest_mirrors.into_iter().flatten();
    let mirrors = mirrors.map(|mirror| json!({ "source": mirror.source, "mirrors": mirror.mirrors }));
    let platform = PLATFORM_SOURCES.map(|name| {
        json!({
            "source": format!("quay.io/{PLATFORM_REPOSITORY}/{name}"),
            "mirrors": [format!("{registry}/{PLATFORM_REPOSITORY}/{name}")],
        })
    });
    mirrors.chain(platform).collect()
}

fn autoscaling(cluster: &Cluster) -> Value {
    let autoscaler = cluster.autoscaler.clone().unwrap_or_default();
    let mut value = json!({
        "maxPodGracePeriod": autoscaler.max_pod_grace_period.unwrap_or(600),
        "maxNodeProvisionTime": autoscaler.max_node_provision_time.as_deref().unwrap_or("15m"),
        "podPriorityThreshold": autoscaler.pod_priority_threshold.unwrap_or(-10),
    });
    // Zero is no limit, which HyperShift writes by leaving the member out.
    let limit =
        autoscaler.resource_limits.and_then(|limits| limits.max_nodes_total).filter(|limit| *limit > 0);
    if let Some(limit) = limit {
        value["maxNodesTotal"] = json!(limit);
    }
    value
}

fn configuration(input: &ClusterInput<'_>) -> Map<String, Value> {
    let mut configuration = Map::new();
    if input.facts.api_certificate.is_some() {
        let host = names::api_host(input.cx.domain_prefix, &input.facts.base_domain);
        let certificate = json!({ "names": [host], "servingCertificate": { "name": API_CERTIFICATE } });
        let serving = json!({ "servingCerts": { "namedCertificates": [certificate] } });
        configuration.insert("apiServer".to_owned(), serving);
    }
    if let Some(authentication) = oidc_provider::authentication(input.external_auths) {
        configuration.insert("authentication".to_owned(), authentication);
    }
    configuration
}
