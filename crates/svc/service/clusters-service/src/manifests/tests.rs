use std::collections::BTreeMap;

use aro_base::Secret;
use aro_ocm::{Cluster, ClusterId, ExternalAuth, NodePool, NodePoolId, names::Environment};
use serde_json::{Value, json};

use super::*;

const SOURCE: &str = "arohcpdev-00000000-0000-0000-0000-000000000001";

fn cluster() -> Cluster {
    serde_json::from_value(json!({
        "name": "my-cluster",
        "version": {"id": "openshift-v4.20.8", "channel_group": "candidate"},
        "network": {"type": "OVNKubernetes", "pod_cidr": "10.128.0.0/14", "service_cidr": "172.30.0.0/16", "machine_cidr": "10.0.0.0/16", "host_prefix": 23},
        "api": {"listening": "external", "cidr_block_access": {"allow": {"mode": "allow_list", "values": ["198.51.100.0/24", "203.0.113.9/32"]}}},
        "ingresses": {"items": [{"default": true, "listening": "internal"}]},
        "image_registry": {"state": "disabled"},
        "registry_config": {"image_digest_mirrors": [{"source": "quay.io/a", "mirrors": ["x.azurecr.io/a"]}]},
        "autoscaler": {"max_node_provision_time": "7.5m", "max_pod_grace_period": 600, "pod_priority_threshold": -10, "resource_limits": {"max_nodes_total": 12}},
        "properties": {"hosted_cluster_single_replica": "true", "hosted_cluster_size_override": "small"},
        "azure": {
            "tenant_id": "t", "subscription_id": "s", "managed_resource_group_name": "mrg",
            "subnet_resource_id": "/subnet", "network_security_group_resource_id": "/nsg",
            "etcd_encryption": {"data_encryption": {"key_management_mode": "customer_managed", "customer_managed": {
                "encryption_type": "kms", "kms": {"visibility": "private", "active_key": {"key_vault_name": "kv", "key_name": "k", "key_version": "v"}}}}},
        },
    }))
    .unwrap()
}

fn facts() -> Facts {
    let identity =
        |name: &str| IdentityFacts { client_id: format!("{name}-client"), secret: format!("uamsi-{name}") };
    Facts {
        base_domain: "0ulz.uksouth.example".to_owned(),
        infra_id: "c1-abcde".to_owned(),
        cluster_uuid: "uuid".to_owned(),
        issuer: "https://issuer/t/c".to_owned(),
        location: "uksouth".to_owned(),
        release_image: "quay.io/openshift-release-dev/ocp-release@sha256:1".to_owned(),
        vnet_id: "/vnet".to_owned(),
        identities_vault: "mi".to_owned(),
        certificates_vault: "cx".to_owned(),
        vault_tenant: "service-tenant".to_owned(),
        vault_reader_client_id: "reader".to_owned(),
        control_plane: BTreeMap::from(
            ["ingress", "kms", "cluster-api-azure"].map(|name| (name.to_owned(), identity(name))),
        ),
        data_plane: BTreeMap::from([("disk-csi-driver".to_owned(), "disk-client".to_owned())]),
        ocp_registry: "ocp.azurecr.io".to_owned(),
        internal_cidrs: vec!["203.0.113.9/32".to_owned(), "203.0.113.10/32".to_owned()],
        api_certificate: Some("api-c".to_owned()),
        ingress_certificate: None,
    }
}

struct Fixture {
    environment: Environment,
    id: ClusterId,
    cluster: Cluster,
    facts: Facts,
    secrets: Secrets,
    auths: Vec<ExternalAuth>,
}

fn fixture() -> Fixture {
    Fixture {
        environment: Environment::parse("arohcpdev").unwrap(),
        id: ClusterId::parse("2qrppk0otds3rdmdcojqcqkqq8f0s591").unwrap(),
        cluster: cluster(),
        facts: facts(),
        secrets: Secrets {
            pull_secret: Secret::new("{\"auths\":{}}".to_owned()),
            ssh_key: "ecdsa-sha2-nistp256 AAAA aro".to_owned(),
            service_account_key: Secret::new("PEM".to_owned()),
        },
        auths: Vec::new(),
    }
}

impl Fixture {
    fn cx(&self) -> Context<'_> {
        Context {
            environment: &self.environment,
            source_id: SOURCE,
            id: &self.id,
            name: "my-cluster",
            domain_prefix: "c1",
            arm_id: "/subscriptions/s/resourceGroups/g/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/my-cluster",
            correlation_id: Some("corr"),
            traceparent: None,
        }
    }

    fn bundles(&self) -> Vec<Bundle> {
        cluster_bundles(&ClusterInput {
            cx: self.cx(),
            cluster: &self.cluster,
            generation: 3,
            external_auths: &self.auths,
            facts: &self.facts,
            secrets: &self.secrets,
        })
    }

    fn hosted_cluster(&self) -> Value {
        object(&self.bundles()[1], "HostedCluster")
    }
}

fn manifests(bundle: &Bundle) -> Vec<Value> {
    bundle.manifest["spec"]["workload"]["manifests"].as_array().unwrap().clone()
}

fn object(bundle: &Bundle, kind: &str) -> Value {
    manifests(bundle).into_iter().find(|manifest| manifest["kind"] == kind).unwrap()
}

#[test]
fn bundles_hold_one_object_each_with_stable_ids_and_labels() {
    let fixture = fixture();
    let bundles = fixture.bundles();
    let id = fixture.id.as_str();
    let names: Vec<&str> = bundles.iter().map(|bundle| bundle.object.as_str()).collect();
    assert_eq!(names, [format!("{id}-00-hcp-namespaces"), id.to_owned(), format!("{id}-00-managed-cluster")]);
    assert_eq!(bundles, fixture.bundles(), "the same records give the same bytes");
    let ids = cluster_bundle_ids(SOURCE, &fixture.id);
    for bundle in &bundles {
        assert!(ids.contains(&(bundle.object.clone(), bundle.id)), "{}", bundle.object);
        assert_eq!(bundle.labels["api.openshift.com/id"], id);
        assert_eq!(bundle.labels["api.openshift.com/name"], "my-cluster");
        assert_eq!(bundle.labels["api.openshift.com/environment"], "arohcpdev");
    }
    assert_eq!(bundles[0].labels["containsNamespaces"], "true");
    assert_eq!(bundles[1].manifest["metadata"]["namespace"], "local-cluster");
    let paths = &bundles[1].config.feedback_rules[0].json_paths;
    assert_eq!((paths[0].name.as_str(), paths[0].path.as_str()), ("status", ".status"));
    assert_eq!(bundles[2].manifest["metadata"]["name"], id);
}

#[test]
fn bundles_are_accepted_by_maestro() {
    let fixture = fixture();
    for bundle in fixture.bundles() {
        let spec = aro_bundle::ManifestBundle {
            manifests: std::sync::Arc::new(vec![bundle.manifest.clone()]),
            manifest_configs: vec![bundle.config.clone()],
            ..aro_bundle::ManifestBundle::default()
        };
        assert_eq!(aro_bundle::validate(&spec), [], "{}", bundle.object);
        let Some(inner) = bundle.manifest.pointer("/spec/workload/manifests") else { continue };
        let inner: Vec<Value> = inner.as_array().unwrap().clone();
        let inner =
            aro_bundle::ManifestBundle { manifests: inner.into(), ..aro_bundle::ManifestBundle::default() };
        assert_eq!(aro_bundle::validate(&inner), [], "inside of {}", bundle.object);
    }
}

#[test]
fn the_shared_namespace_outlives_the_cluster() {
    let work = fixture().bundles().remove(0).manifest;
    let names: Vec<Value> = work["spec"]["workload"]["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["metadata"]["name"].clone())
        .collect();
    let id = fixture().id;
    assert_eq!(
        names,
        [
            json!(format!("ocm-arohcpdev-{id}")),
            json!(format!("klusterlet-{id}")),
            json!("open-cluster-management-policies")
        ]
    );
    assert_eq!(
        work["spec"]["deleteOption"]["selectivelyOrphans"]["orphaningRules"][0]["name"],
        "open-cluster-management-policies"
    );
    assert_eq!(work["spec"]["manifestConfigs"][2]["updateStrategy"]["type"], "CreateOnly");
}

#[test]
fn a_hosted_cluster_holds_what_the_resource_provider_verifies() {
    let hosted = fixture().hosted_cluster();
    assert_eq!(hosted["metadata"]["name"], "c1");
    assert_eq!(hosted["metadata"]["namespace"], format!("ocm-arohcpdev-{}", fixture().id));
    let annotations = &hosted["metadata"]["annotations"];
    assert_eq!(annotations["hypershift.openshift.io/cluster-size-override"], "small");
    assert_eq!(annotations["aro.dev/generation"], "3");
    assert_eq!(annotations["aro.dev/release-version"], "4.20.8");
    assert_eq!(annotations["aro.dev/correlation-id"], "corr");
    assert!(
        annotations["azure.microsoft.com/hcp-cluster-azure-resource-id"]
            .as_str()
            .unwrap()
            .ends_with("/my-cluster")
    );
    let spec = &hosted["spec"];
    let expected = json!({
        "allowedCIDRBlocks": ["198.51.100.0/24", "203.0.113.9/32", "203.0.113.10/32"],
    });
    assert_eq!(spec["networking"]["apiServer"], expected);
    assert_eq!(spec["controllerAvailabilityPolicy"], "SingleReplica");
    assert_eq!(spec["infrastructureAvailabilityPolicy"], "SingleReplica");
    assert_eq!(
        spec["autoscaling"],
        json!({"maxNodesTotal": 12, "maxPodGracePeriod": 600, "maxNodeProvisionTime": "7.5m", "podPriorityThreshold": -10})
    );
    let sources: Vec<&str> = spec["imageContentSources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["source"].as_str().unwrap())
        .collect();
    assert_eq!(
        sources,
        [
            "quay.io/a",
            "quay.io/openshift-release-dev/ocp-release",
            "quay.io/openshift-release-dev/ocp-release-nightly",
            "quay.io/openshift-release-dev/ocp-v4.0-art-dev",
            "quay.io/openshift-release-dev/ocp-v5.0-art-dev",
        ]
    );
    assert_eq!(
        spec["secretEncryption"],
        json!({"type": "kms", "kms": {"provider": "Azure", "azure": {
            "activeKey": {"keyVaultName": "kv", "keyName": "k", "keyVersion": "v"}, "keyVaultAccess": "Private",
            "kms": {"clientID": "kms-client", "credentialsSecretName": "uamsi-kms", "objectEncoding": "utf-8"},
        }}})
    );
    assert_eq!(spec["kubeAPIServerDNSName"], "api.c1.0ulz.uksouth.example");
    assert_eq!(spec["dns"]["baseDomain"], "aro.c1.0ulz.uksouth.example");
    assert_eq!((&spec["channel"], &spec["infraID"]), (&json!("candidate-4.20"), &json!("c1-abcde")));
    assert_eq!(spec["capabilities"], json!({"disabled": ["ImageRegistry"]}));
    let azure = &spec["platform"]["azure"];
    assert_eq!(
        (&azure["resourceGroup"], &azure["vnetID"], &azure["securityGroupID"]),
        (&json!("mrg"), &json!("/vnet"), &json!("/nsg"))
    );
    let identities = &azure["azureAuthenticationConfig"]["managedIdentities"];
    assert_eq!(identities["controlPlane"]["nodePoolManagement"]["clientID"], "cluster-api-azure-client");
    assert_eq!(
        identities["controlPlane"]["managedIdentitiesKeyVault"],
        json!({"name": "mi", "tenantID": "service-tenant"})
    );
    assert_eq!(identities["dataPlane"], json!({"diskMSIClientID": "disk-client"}));
    let hosts: Vec<&str> = spec["services"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["servicePublishingStrategy"]["route"]["hostname"].as_str().unwrap())
        .collect();
    assert_eq!(hosts[2], "konnectivity-server.c1.0ulz.uksouth.example");
}

#[test]
fn the_number_of_a_version_has_neither_prefix_nor_channel() {
    for (id, group, number) in [
        ("openshift-v4.20.8", "stable", "4.20.8"),
        ("openshift-v4.20.8-candidate", "candidate", "4.20.8"),
        ("openshift-v4.21.0-rc.1", "stable", "4.21.0-rc.1"),
        ("4.20.8", "", "4.20.8"),
    ] {
        let version = serde_json::from_value(json!({"id": id, "channel_group": group})).unwrap();
        assert_eq!(version_number(Some(&version)), number, "{id}");
    }
}

#[test]
fn an_open_api_server_has_no_allow_list_and_a_pool_limit_of_zero_is_none() {
    let mut fixture = fixture();
    fixture.cluster.api.as_mut().unwrap().cidr_block_access = None;
    fixture.cluster.autoscaler.as_mut().unwrap().resource_limits.as_mut().unwrap().max_nodes_total = Some(0);
    fixture.cluster.properties = None;
    let spec = fixture.hosted_cluster()["spec"].clone();
    assert!(spec["networking"].get("apiServer").is_none());
    assert!(spec["autoscaling"].get("maxNodesTotal").is_none());
    assert_eq!(spec["controllerAvailabilityPolicy"], "HighlyAvailable");
}

#[test]
fn secrets_and_certificates_are_beside_the_hosted_cluster() {
    let fixture = fixture();
    let bundle = fixture.bundles().remove(1);
    let named: Vec<String> = manifests(&bundle)
        .iter()
        .map(|one| format!("{} {}", one["kind"].as_str().unwrap(), one["metadata"]["name"].as_str().unwrap()))
        .collect();
    let id = &fixture.id;
    assert_eq!(
        named,
        [
            "Secret pull-secret".to_owned(),
            "Secret ssh-key".to_owned(),
            "Secret service-account-signing-key".to_owned(),
            "SecretProviderClass cluster-api-cert".to_owned(),
            "SecretSync cluster-api-cert".to_owned(),
            format!("ConfigMap default-ingress-config-{id}"),
            "Secret kube-apiserver-tls-cert".to_owned(),
            "HostedCluster c1".to_owned(),
        ]
    );
    let all = manifests(&bundle);
    assert_eq!(
        all[5]["data"],
        json!({"disable-certificates": "true", "endpoint-publishing-strategy": "internal"})
    );
    assert!(all[6].get("data").is_none(), "the API server's certificate is only reported");
    assert_eq!(bundle.manifest["spec"]["manifestConfigs"][6]["updateStrategy"]["type"], "ReadOnly");
    let objects = all[3]["spec"]["parameters"]["objects"].as_str().unwrap();
    assert!(
        objects.starts_with("array:\n- |\n  objectName: api-c\n  objectType: cert\n  objectAlias: tls.crt\n"),
        "{objects}"
    );
}

#[test]
fn feedback_is_asked_for_as_scalars_by_paths_that_parse() {
    let bundle = fixture().bundles().remove(1);
    let configs = bundle.manifest["spec"]["manifestConfigs"].as_array().unwrap();
    let paths = configs.last().unwrap()["feedbackRules"][0]["jsonPaths"].as_array().unwrap().clone();
    let path = |name: &str| paths.iter().find(|path| path["name"] == name).unwrap()["path"].clone();
    assert_eq!(path("Available-Status"), r#".status.conditions[?(@.type=="Available")].status"#);
    assert_eq!(path("VersionHistory0-State"), ".status.version.history[0].state");
    assert_eq!(path("record-generation"), r".metadata.annotations.aro\.dev/generation");
    let names: std::collections::BTreeSet<&str> =
        paths.iter().map(|path| path["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), paths.len(), "a name is reported once");
}

#[test]
fn external_auths_become_identity_providers() {
    let mut fixture = fixture();
    let auth = json!({
        "id": "entra",
        "issuer": {"url": "https://login", "audiences": ["a"], "ca": "PEM"},
        "clients": [{"id": "a", "component": {"name": "console", "namespace": "openshift-console"}, "extra_scopes": ["s"]}],
        "claim": {"mappings": {"username": {"claim": "sub", "prefix": "p-", "prefix_policy": "Prefix"}, "groups": {"claim": "groups", "prefix": ""}},
                  "validation_rules": [{"claim": "c", "required_value": "v"}]},
    });
    fixture.auths = vec![serde_json::from_value(auth).unwrap()];
    let hosted = fixture.hosted_cluster();
    assert_eq!(
        hosted["spec"]["configuration"]["authentication"],
        json!({"type": "OIDC", "oidcProviders": [{
            "name": "entra",
            "issuer": {"issuerURL": "https://login", "audiences": ["a"], "issuerCertificateAuthority": {"name": "oidc-ca-entra"}},
            "oidcClients": [{"clientID": "a", "componentName": "console", "componentNamespace": "openshift-console", "extraScopes": ["s"]}],
            "claimMappings": {
                "username": {"claim": "sub", "prefixPolicy": "Prefix", "prefix": {"prefixString": "p-"}},
                "groups": {"claim": "groups", "prefix": ""},
            },
            "claimValidationRules": [{"type": "RequiredClaim", "requiredClaim": {"claim": "c", "requiredValue": "v"}}],
        }]})
    );
    let authorities = manifests(&fixture.bundles()[1]);
    assert!(authorities.iter().any(|one| one["metadata"]["name"] == "oidc-ca-entra"));
}

fn node_pool(pool: Value) -> Value {
    let fixture = fixture();
    let (pool_id, pool): (_, NodePool) =
        (NodePoolId::parse("np1").unwrap(), serde_json::from_value(pool).unwrap());
    let bundle = pool_bundle(&PoolInput {
        cx: fixture.cx(),
        pool_id: &pool_id,
        pool: &pool,
        generation: 2,
        release_image: "quay.io/r@sha256:1",
        cluster_subnet: "/cluster-subnet",
        cluster_drain_minutes: 10.0,
        arm_id: "/pool",
    });
    assert_eq!(bundle.object, format!("{}-np1", fixture.id));
    assert_eq!(bundle.id, pool_bundle_id(SOURCE, &fixture.id, &pool_id));
    object(&bundle, "NodePool")
}

#[test]
fn a_node_pool_has_the_members_of_the_original() {
    let pool = node_pool(json!({
        "auto_repair": true, "replicas": 2, "labels": {"a": "b"},
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
        "node_drain_grace_period": {"unit": "minutes", "value": 90},
        "availability_zone": "1",
        "azure_node_pool": {"vm_size": "Standard_D8s_v3", "encryption_at_host": {"state": "disabled"},
            "os_disk": {"size_gibibytes": 64, "storage_account_type": "Premium_LRS", "persistence": "persistent"}},
    }));
    assert_eq!(pool["metadata"]["name"], "c1-np1");
    assert_eq!(
        pool["spec"],
        json!({
            "clusterName": "c1", "replicas": 2, "release": {"image": "quay.io/r@sha256:1"},
            "nodeDrainTimeout": "1h30m0s", "nodeLabels": {"a": "b"},
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            "management": {"autoRepair": true, "upgradeType": "Replace", "replace": {
                "strategy": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
            "platform": {"type": "Azure", "azure": {
                "vmSize": "Standard_D8s_v3", "subnetID": "/cluster-subnet", "availabilityZone": "1", "encryptionAtHost": "Disabled",
                "diagnostics": {"storageAccountType": "Managed"},
                "image": {"type": "AzureMarketplace", "azureMarketplace": {"imageGeneration": "Gen2"}},
                "osDisk": {"sizeGiB": 64, "diskStorageAccountType": "Premium_LRS", "persistence": "Persistent"},
            }},
        })
    );
}

#[test]
fn a_drain_timeout_of_zero_is_left_out_and_a_missing_one_is_the_clusters() {
    let zero = node_pool(json!({"replicas": 0, "node_drain_grace_period": {"unit": "minutes", "value": 0}}));
    assert!(zero["spec"].get("nodeDrainTimeout").is_none());
    let inherited = node_pool(json!({"autoscaling": {"min_replica": 1, "max_replica": 5}}));
    assert_eq!(inherited["spec"]["nodeDrainTimeout"], "10m0s");
    assert_eq!(inherited["spec"]["autoScaling"], json!({"min": 1, "max": 5}));
    assert!(inherited["spec"].get("replicas").is_none());
}
