//! Which roles the operators of a cluster need, by minor version. The original advertises these and does not serve them.

use std::collections::BTreeSet;

use aro_arm::ResourceId;
use aro_arm::hcp::NAMESPACE;
use aro_arm_server::{Answer, Failure, paging};
use http::StatusCode;
use serde_json::{Value, json};

use super::versions::check_location;
use crate::shared::{Request, Shared};

const TYPE: &str = "Microsoft.RedHatOpenShift/locations/hcpOperatorIdentityRoleSets";

/// An operator, the role its identity needs, and where it runs.
struct Operator {
    name: &'static str,
    required: &'static str,
    role: &'static str,
    role_id: &'static str,
    data_plane: bool,
}

const fn always(name: &'static str, role: &'static str, role_id: &'static str, data_plane: bool) -> Operator {
    Operator { name, required: "Always", role, role_id, data_plane }
}

const OPERATORS: [Operator; 9] = [
    always(
        "cluster-api-azure",
        "Azure Red Hat OpenShift Hosted Control Planes Cluster API Provider",
        "88366f10-ed47-4cc0-9fab-c8a06148393e",
        false,
    ),
    always(
        "control-plane",
        "Azure Red Hat OpenShift Hosted Control Planes Control Plane Operator",
        "fc0c873f-45e9-4d0d-a7d1-585aab30c6ed",
        false,
    ),
    always(
        "cloud-controller-manager",
        "Azure Red Hat OpenShift Cloud Controller Manager",
        "a1f96423-95ce-4224-ab27-4e3dc72facd4",
        false,
    ),
    always(
        "ingress",
        "Azure Red Hat OpenShift Cluster Ingress Operator",
        "0336e1d3-7a87-462b-b6db-342b63f7802c",
        false,
    ),
    always(
        "disk-csi-driver",
        "Azure Red Hat OpenShift Disk Storage Operator",
        "5b7237c5-45e1-49d6-bc18-a1f62f400748",
        true,
    ),
    always(
        "file-csi-driver",
        "Azure Red Hat OpenShift File Storage Operator",
        "0d7aedc0-15fd-4a67-a412-efad370c947e",
        true,
    ),
    always(
        "image-registry",
        "Azure Red Hat OpenShift Image Registry Operator",
        "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5",
        true,
    ),
    always(
        "cloud-network-config",
        "Azure Red Hat OpenShift Network Operator",
        "be7a6435-15ae-4171-8f30-4a343eff9e8f",
        false,
    ),
    Operator {
        name: "kms",
        required: "OnEnablement",
        role: "Key Vault Crypto User",
        role_id: "12338af0-0e69-4776-bea7-57ae8d297424",
        data_plane: false,
    },
];

pub async fn list(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let minors = minors(shared, request).await?;
    let value: Vec<Value> = minors.iter().map(|minor| render(shared, request, minor)).collect();
    Ok(paging::whole(&value))
}

pub async fn get(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let name = request.matched.name("roleset");
    if !minors(shared, request).await?.contains(name) {
        return Err(Failure::NotFound(id(shared, request, name)));
    }
    Ok(Answer::json(StatusCode::OK, &render(shared, request, name)))
}

/// One set per minor version on offer.
async fn minors(shared: &Shared, request: &Request) -> Result<BTreeSet<String>, Failure> {
    check_location(shared, request)?;
    let releases = shared.catalogue.releases().await.map_err(Failure::Unavailable)?;
    Ok(releases.iter().filter_map(|release| Some(release.version.rsplit_once('.')?.0.to_owned())).collect())
}

fn render(shared: &Shared, request: &Request, minor: &str) -> Value {
    let of = |data_plane: bool| -> Vec<Value> {
        OPERATORS.iter().filter(|operator| !data_plane || operator.data_plane).map(Operator::render).collect()
    };
    aro_arm::json::sorted(json!({
        "id": id(shared, request, minor),
        "name": minor,
        "properties": { "controlPlaneOperators": of(false), "dataPlaneOperators": of(true) },
        "type": TYPE,
    }))
}

impl Operator {
    fn render(&self) -> Value {
        json!({
            "name": self.name,
            "required": self.required,
            "roleDefinitions": [{
                "name": self.role,
                "resourceId": format!("/providers/Microsoft.Authorization/roleDefinitions/{}", self.role_id),
            }],
        })
    }
}

fn id(shared: &Shared, request: &Request, name: &str) -> ResourceId {
    let pairs = [("locations", shared.location.as_str()), ("hcpOperatorIdentityRoleSets", name)];
    ResourceId::in_subscription(request.matched.subscription(), NAMESPACE, &pairs)
}
