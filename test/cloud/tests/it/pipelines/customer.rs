//! A customer's resources for a cluster, and the URL of its identities as Resource Manager hands it to a resource provider.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use aro_arm::ResourceId;
use aro_cloud::resources::{GroupSpec, NsgSpec, PrincipalType, SubnetSpec, Tags, VnetSpec};
use aro_cloud::{ArmClient, Cloud, Precondition};
use aro_cloud_e2e::Site;
use aro_region_layout::RegionLayout;
use aro_runtime::{Listener, Scope};
use aro_web::{ServeOptions, serve};
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use futures::future::try_join_all;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use uuid::Uuid;

/// Operators, their roles, and whether they need them on the network and on the security group.
const CONTROL_PLANE: [(&str, &str, bool, bool); 8] = [
    ("cluster-api-azure", "88366f10-ed47-4cc0-9fab-c8a06148393e", true, false),
    ("control-plane", "fc0c873f-45e9-4d0d-a7d1-585aab30c6ed", true, true),
    ("cloud-controller-manager", "a1f96423-95ce-4224-ab27-4e3dc72facd4", true, true),
    ("ingress", "0336e1d3-7a87-462b-b6db-342b63f7802c", true, false),
    ("disk-csi-driver", "5b7237c5-45e1-49d6-bc18-a1f62f400748", false, false),
    ("file-csi-driver", "0d7aedc0-15fd-4a67-a412-efad370c947e", true, true),
    ("image-registry", "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5", true, false),
    ("cloud-network-config", "be7a6435-15ae-4171-8f30-4a343eff9e8f", true, false),
];
const DATA_PLANE: [&str; 3] = ["disk-csi-driver", "file-csi-driver", "image-registry"];
const SERVICE: &str = "c0ff367d-66d8-445e-917c-583feb0ef0d4";
const FEDERATED: &str = "ef318e2a-8334-4a05-9e4a-295a196c6a6e";
/// The api-version of the resource provider's clusters.
const CLUSTERS: &str = "2024-06-10-preview";

/// A resource provider that keeps the URL of identities of the last request.
#[derive(Clone)]
pub struct Provider {
    pub address: SocketAddr,
    url: Arc<Mutex<Option<String>>>,
}

impl Provider {
    pub async fn start(scope: &Scope) -> Result<Self> {
        let url: Arc<Mutex<Option<String>>> = Arc::default();
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), "provider").await?;
        let (address, kept) = (listener.local_addr(), url.clone());
        let router = Router::new().fallback(move |request: Request| {
            let given = request
                .headers()
                .get("x-ms-identity-url")
                .and_then(|url| url.to_str().ok())
                .map(str::to_owned);
            if let Some(given) = given {
                *kept.lock() = Some(given);
            }
            async { (StatusCode::OK, axum::Json(json!({"properties": {}}))).into_response() }
        });
        serve(listener, router, scope, ServeOptions::named("provider"));
        Ok(Self { address, url })
    }
}

/// The customer.
pub struct Customer {
    pub arm: ArmClient,
    subscription: String,
    tenant: Uuid,
    provider: Provider,
}

/// What a customer made for a cluster.
pub struct Prepared {
    /// The cluster as Clusters Service gets it.
    pub body: Value,
    identities: ResourceId,
    name: String,
}

impl Prepared {
    pub fn identity(&self, name: &str) -> ResourceId {
        identity(&self.identities, &self.name, name)
    }
}

fn identity(group: &ResourceId, cluster: &str, name: &str) -> ResourceId {
    let (subscription, group) =
        (group.subscription().unwrap_or_default(), group.resource_group().unwrap_or_default());
    let pairs = [("userAssignedIdentities", format!("{cluster}-{name}"))];
    let pairs = pairs.each_ref().map(|(kind, name)| (*kind, name.as_str()));
    ResourceId::in_group(subscription, group, "Microsoft.ManagedIdentity", &pairs)
}

impl Customer {
    pub fn new(site: &Site, cloud: &Cloud, provider: Provider) -> Self {
        let arm = cloud.arm(site.customer(cloud));
        Self { arm, subscription: site.subscription(), tenant: site.account.tenant_id, provider }
    }

    /// Everything that a cluster needs.
    pub async fn prepare(&self, name: &str, layout: &RegionLayout) -> Result<Prepared> {
        self.prepare_without_roles(name, layout, "").await
    }

    /// The same, with one identity that has no roles.
    pub async fn prepare_without_roles(
        &self,
        name: &str,
        layout: &RegionLayout,
        bare: &str,
    ) -> Result<Prepared> {
        let location = &layout.params.location;
        let (infra, clusters) = (format!("infra-{name}"), format!("clusters-{name}"));
        for group in [&infra, &clusters] {
            let spec = GroupSpec { location: location.clone(), managed_by: None, tags: Tags::new() };
            self.arm.ensure_resource_group(&self.subscription, group, &spec).await?;
        }
        let network = |kind: &str, name: &str| {
            ResourceId::in_group(&self.subscription, &infra, "Microsoft.Network", &[(kind, name)])
        };
        let (nsg, vnet) = (network("networkSecurityGroups", "n"), network("virtualNetworks", "v"));
        let spec = NsgSpec { location: location.clone(), rules: Vec::new(), tags: Tags::new() };
        self.arm.ensure_nsg(&nsg, &spec).await?;
        let spec = VnetSpec {
            location: location.clone(),
            address_prefixes: vec!["10.0.0.0/16".to_owned()],
            tags: Tags::new(),
        };
        self.arm.ensure_vnet(&vnet, &spec).await?;
        let subnet = vnet.child("subnets", "nodes");
        let spec = SubnetSpec {
            address_prefix: "10.0.0.0/24".to_owned(),
            nsg: Some(nsg.clone()),
            ..SubnetSpec::default()
        };
        self.arm.ensure_subnet(&subnet, &spec).await?;
        let group = ResourceId::from_parts(Some(&self.subscription), Some(&infra), None, []);
        self.identities(name, &group, location, (&vnet, &nsg), bare).await?;
        let url = self.identity_url(&clusters, name, location).await?;
        let ids = |prefix: &str, operators: &[&str]| -> Value {
            let of = |operator: &&str| {
                let id = identity(&group, name, &format!("{prefix}-{operator}"));
                ((*operator).to_owned(), json!({"resource_id": id}))
            };
            operators.iter().map(of).collect()
        };
        let control_plane: Vec<&str> = CONTROL_PLANE.iter().map(|(operator, ..)| *operator).collect();
        let body = json!({
            "name": name, "domain_prefix": name, "region": {"id": location},
            "dns": {"base_domain": format!("0ulz.{}", layout.regional.cluster_zone.name())},
            "version": {"id": "openshift-v4.20.8"},
            "azure": {
                "tenant_id": self.tenant, "subscription_id": self.subscription, "resource_group_name": clusters,
                "resource_name": name, "managed_resource_group_name": format!("arohcp-{name}"),
                "subnet_resource_id": subnet, "network_security_group_resource_id": nsg,
                "operators_authentication": {"managed_identities": {
                    "managed_identities_data_plane_identity_url": url,
                    "control_plane_operators_managed_identities": ids("cp", &control_plane),
                    "data_plane_operators_managed_identities": ids("dp", &DATA_PLANE),
                    "service_managed_identity": {"resource_id": identity(&group, name, "service")},
                }},
            },
        });
        Ok(Prepared { body, identities: group, name: name.to_owned() })
    }

    async fn identities(
        &self,
        name: &str,
        group: &ResourceId,
        location: &str,
        (vnet, nsg): (&ResourceId, &ResourceId),
        bare: &str,
    ) -> Result<()> {
        let mut wanted: Vec<(String, Vec<(&str, ResourceId)>)> = Vec::new();
        for (operator, role, on_vnet, on_nsg) in CONTROL_PLANE {
            let scopes = [(on_vnet, vnet), (on_nsg, nsg)];
            let roles =
                scopes.into_iter().filter(|(needed, _)| *needed).map(|(_, scope)| (role, scope.clone()));
            wanted.push((format!("cp-{operator}"), roles.collect()));
        }
        wanted.extend(DATA_PLANE.map(|operator| (format!("dp-{operator}"), Vec::new())));
        let trusted =
            DATA_PLANE.map(|operator| (FEDERATED, identity(group, name, &format!("dp-{operator}"))));
        let service = [(SERVICE, vnet.clone()), (SERVICE, nsg.clone())].into_iter().chain(trusted).collect();
        let makes = wanted.into_iter().map(|identity| self.identity(name, group, location, identity, bare));
        try_join_all(makes).await?;
        self.identity(name, group, location, ("service".to_owned(), service), bare).await
    }

    async fn identity(
        &self,
        cluster: &str,
        group: &ResourceId,
        location: &str,
        (name, roles): (String, Vec<(&str, ResourceId)>),
        bare: &str,
    ) -> Result<()> {
        let made = self.arm.ensure_identity(&identity(group, cluster, &name), location, &Tags::new()).await?;
        if name == bare {
            return Ok(());
        }
        for (role, scope) in roles {
            let principal = made.properties.principal_id;
            let kind = PrincipalType::ServicePrincipal;
            self.arm.ensure_role_assignment(&scope, &principal, kind, &role.parse()?).await?;
        }
        Ok(())
    }

    /// What Resource Manager hands to the resource provider with the PUT of a cluster that uses the identities.
    async fn identity_url(&self, group: &str, name: &str, location: &str) -> Result<String> {
        let pairs = [("hcpOpenShiftClusters", name)];
        let id = ResourceId::in_group(&self.subscription, group, "Microsoft.RedHatOpenShift", &pairs);
        let body = json!({"location": location, "properties": {}});
        self.arm.put(&id, CLUSTERS, &body, &Precondition::None).await?;
        self.provider.url.lock().take().context("the provider got the URL of identities")
    }
}
