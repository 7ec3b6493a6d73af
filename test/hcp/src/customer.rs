//! A customer's side: account, network, identities and roles, made through the region's cloud.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use aro_arm::ResourceId;
use aro_arm::hcp::version::ApiVersion;
use aro_base::Secret;
use aro_cloud::resources::{GroupSpec, KeyVaultSpec, NsgSpec, PrincipalType, SubnetSpec, Tags, VnetSpec};
use aro_cloud::{ArmClient, Cloud, CloudConfig};
use aro_fixtures::{Names, cluster_body};
use aro_net::SystemResolve;
use aro_runtime::{Section as _, SystemClock};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;
use uuid::Uuid;

/// Calls at once.
const CONCURRENCY: usize = 16;
/// The region of everything.
pub const LOCATION: &str = "westus3";
/// The service that the integration subnet is delegated to.
const DELEGATION: &str = "Microsoft.RedHatOpenShift/hcpOpenShiftClusters";

/// Operators of the control plane, their roles, and where they need them.
const CONTROL_PLANE: [(&str, &str, &[Scope]); 9] = [
    ("cluster-api-azure", "88366f10-ed47-4cc0-9fab-c8a06148393e", &[Scope::Vnet]),
    ("control-plane", "fc0c873f-45e9-4d0d-a7d1-585aab30c6ed", &[Scope::Vnet, Scope::Nsg]),
    ("cloud-controller-manager", "a1f96423-95ce-4224-ab27-4e3dc72facd4", &[Scope::Vnet, Scope::Nsg]),
    ("ingress", "0336e1d3-7a87-462b-b6db-342b63f7802c", &[Scope::Vnet]),
    ("disk-csi-driver", "5b7237c5-45e1-49d6-bc18-a1f62f400748", &[]),
    ("file-csi-driver", "0d7aedc0-15fd-4a67-a412-efad370c947e", &[Scope::Vnet, Scope::Nsg]),
    ("image-registry", "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5", &[Scope::Vnet]),
    ("cloud-network-config", "be7a6435-15ae-4171-8f30-4a343eff9e8f", &[Scope::Vnet]),
    ("kms", "12338af0-0e69-4776-bea7-57ae8d297424", &[Scope::Vault]),
];
/// The same of the data plane.
const DATA_PLANE: [(&str, &str, &[Scope]); 3] = [
    ("disk-csi-driver", "5b7237c5-45e1-49d6-bc18-a1f62f400748", &[]),
    ("file-csi-driver", "0d7aedc0-15fd-4a67-a412-efad370c947e", &[Scope::Vnet, Scope::Nsg]),
    ("image-registry", "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5", &[Scope::Vnet]),
];
const SERVICE: &str = "c0ff367d-66d8-445e-917c-583feb0ef0d4";
const READER: &str = "acdd72a7-3385-48ef-bd42-f606fba81ae7";
const FEDERATED: &str = "ef318e2a-8334-4a05-9e4a-295a196c6a6e";

#[derive(Clone, Copy)]
enum Scope {
    Vnet,
    Nsg,
    Vault,
}

/// A customer with an account of the local cloud.
#[derive(Clone)]
pub struct Customer {
    /// ARM, as the customer.
    pub arm: ArmClient,
    /// The customer's tenant.
    pub tenant: Uuid,
    /// The subscription.
    pub subscription: String,
}

/// What a customer made for one cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The cluster.
    pub id: ResourceId,
    /// The body of a PUT.
    pub body: Value,
    names: Names,
    name: String,
}

impl Cluster {
    /// A resource of the customer for this cluster, by what is behind `providers/`.
    pub fn resource(&self, path: &str) -> Result<ResourceId> {
        resource(&self.names, path)
    }

    /// The security group.
    pub fn nsg(&self) -> Result<ResourceId> {
        self.resource(&format!("Microsoft.Network/networkSecurityGroups/nsg-{}", self.name))
    }

    /// The network.
    pub fn vnet(&self) -> Result<ResourceId> {
        self.resource(&format!("Microsoft.Network/virtualNetworks/vnet-{}", self.name))
    }

    /// An identity by the end of its name: `cp-kms`, `dp-disk-csi-driver`, `service`.
    pub fn identity(&self, name: &str) -> Result<ResourceId> {
        self.resource(&format!("Microsoft.ManagedIdentity/userAssignedIdentities/{}-{name}", self.name))
    }
}

fn resource(names: &Names, path: &str) -> Result<ResourceId> {
    let id = format!("/subscriptions/{}/resourceGroups/infra/providers/{path}", names.subscription);
    ResourceId::parse(&id).map_err(anyhow::Error::msg)
}

impl Customer {
    /// The customer of the cloud whose files are in a directory.
    pub async fn open(dir: &Path, azure_local: SocketAddr) -> Result<Self> {
        let account: Value = serde_json::from_slice(&std::fs::read(dir.join("customer.json"))?)?;
        let text = |name: &str| account[name].as_str().map(str::to_owned).with_context(|| name.to_owned());
        let config = CloudConfig {
            connect_to: Some(azure_local),
            ca_file: Some(dir.join("ca.pem")),
            requests_per_second: 10_000,
            ..CloudConfig::default()
        };
        let cloud = Cloud::new(&config.check()?, Arc::new(SystemResolve), SystemClock::shared())?;
        let tenant = text("tenantId")?;
        let credential = cloud.client_secret(&tenant, &text("clientId")?, Secret::new(text("clientSecret")?));
        let customer = Self {
            arm: cloud.arm(credential),
            tenant: tenant.parse()?,
            subscription: text("subscriptionId")?,
        };
        for group in ["infra", "clusters"] {
            let spec = GroupSpec { location: LOCATION.to_owned(), tags: Tags::default(), managed_by: None };
            customer.arm.ensure_resource_group(&customer.subscription, group, &spec).await?;
        }
        Ok(customer)
    }

    /// Makes everything that a cluster needs, and its body.
    pub async fn prepare(&self, name: &str) -> Result<Cluster> {
        let names = Names { subscription: self.subscription.clone(), group: "clusters".to_owned() };
        let mut body = cluster_body(&names, name, ApiVersion::V2026_10_01);
        body["location"] = LOCATION.into();
        let id = ResourceId::parse(&names.cluster(name)).map_err(anyhow::Error::msg)?;
        let cluster = Cluster { id, body, names, name: name.to_owned() };
        self.network(&cluster).await?;
        let vault = cluster.resource(&format!("Microsoft.KeyVault/vaults/kv-{name}"))?;
        let spec = KeyVaultSpec { location: LOCATION.to_owned(), tenant: self.tenant, tags: Tags::default() };
        self.arm.ensure_key_vault(&vault, &spec).await?;
        let place = |scope: &Scope| match scope {
            Scope::Vnet => cluster.vnet(),
            Scope::Nsg => cluster.nsg(),
            Scope::Vault => Ok(vault.clone()),
        };
        let mut assignments = Vec::new();
        let mut identities = vec![("service".to_owned(), SERVICE, vec![cluster.vnet()?, cluster.nsg()?])];
        for (prefix, operators) in [("cp", CONTROL_PLANE.as_slice()), ("dp", DATA_PLANE.as_slice())] {
            for (operator, role, scopes) in operators {
                let identity = cluster.identity(&format!("{prefix}-{operator}"))?;
                assignments.push((
                    "service".to_owned(),
                    if prefix == "cp" { READER } else { FEDERATED },
                    identity,
                ));
                let scopes: Result<Vec<ResourceId>> = scopes.iter().map(place).collect();
                identities.push((format!("{prefix}-{operator}"), role, scopes?));
            }
        }
        let made: Vec<(String, Uuid)> = stream::iter(identities.iter().map(|(name, ..)| name.clone()))
            .map(|name| {
                let id = cluster.identity(&name);
                async move {
                    let made = self.arm.ensure_identity(&id?, LOCATION, &Tags::default()).await?;
                    anyhow::Ok((name, made.properties.principal_id))
                }
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await?;
        for (name, role, scopes) in identities {
            assignments.extend(scopes.into_iter().map(|scope| (name.clone(), role, scope)));
        }
        stream::iter(assignments.into_iter().map(anyhow::Ok))
            .try_for_each_concurrent(CONCURRENCY, |(name, role, scope)| {
                let principal =
                    made.iter().find(|(known, _)| *known == name).map(|(_, principal)| *principal);
                async move {
                    let principal = principal.context("an identity has a principal")?;
                    let role: Uuid = role.parse()?;
                    let kind = PrincipalType::ServicePrincipal;
                    self.arm.ensure_role_assignment(&scope, &principal, kind, &role).await?;
                    Ok(())
                }
            })
            .await?;
        Ok(cluster)
    }

    async fn network(&self, cluster: &Cluster) -> Result<()> {
        let nsg = cluster.nsg()?;
        let spec = NsgSpec { location: LOCATION.to_owned(), rules: Vec::new(), tags: Tags::default() };
        self.arm.ensure_nsg(&nsg, &spec).await?;
        let vnet = cluster.vnet()?;
        let spec = VnetSpec {
            location: LOCATION.to_owned(),
            address_prefixes: vec!["10.0.0.0/16".to_owned()],
            tags: Tags::default(),
        };
        self.arm.ensure_vnet(&vnet, &spec).await?;
        let subnet =
            |name: &str| ResourceId::parse(&format!("{vnet}/subnets/{name}")).map_err(anyhow::Error::msg);
        let nodes = SubnetSpec {
            address_prefix: "10.0.0.0/24".to_owned(),
            nsg: Some(nsg),
            private_endpoint_policies: Some(false),
            ..SubnetSpec::default()
        };
        self.arm.ensure_subnet(&subnet("nodes")?, &nodes).await?;
        let integration = SubnetSpec {
            address_prefix: "10.0.1.0/24".to_owned(),
            delegation: Some(DELEGATION.to_owned()),
            ..SubnetSpec::default()
        };
        self.arm.ensure_subnet(&subnet("integration")?, &integration).await?;
        Ok(())
    }
}
