//! The identities that operators of a cluster need.

use aro_ocm::{Code, Problem};
use aro_ocm::{
    ManagedIdentitiesRequirements, OperatorIdentityRequirement, Required, RoleDefinition, Root,
    ServiceAccount,
};

use super::call::Call;
use super::reply::{Failure, Reply};

/// Where an operator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    /// On the management cluster.
    Control,
    /// On the customer's nodes.
    Data,
}

/// An operator with an identity.
struct Operator {
    name: &'static str,
    /// The role its identity needs, and its definition.
    role: (&'static str, &'static str),
    required: Required,
    /// The namespace and the service accounts that use the identity on the nodes.
    accounts: Option<(&'static str, &'static [&'static str])>,
    control: bool,
}

/// The first minor version that has all of them.
const MIN_VERSION: &str = "4.19";

/// The names of the roles begin so, but for those of other services.
const SERVICE: &str = "Azure Red Hat OpenShift ";

const fn control(name: &'static str, role: &'static str, id: &'static str) -> Operator {
    Operator { name, role: (role, id), required: Required::Always, accounts: None, control: true }
}

const OPERATORS: [Operator; 9] = [
    control(
        "cluster-api-azure",
        "Hosted Control Planes Cluster API Provider",
        "88366f10-ed47-4cc0-9fab-c8a06148393e",
    ),
    control(
        "control-plane",
        "Hosted Control Planes Control Plane Operator",
        "fc0c873f-45e9-4d0d-a7d1-585aab30c6ed",
    ),
    control("cloud-controller-manager", "Cloud Controller Manager", "a1f96423-95ce-4224-ab27-4e3dc72facd4"),
    control("ingress", "Cluster Ingress Operator", "0336e1d3-7a87-462b-b6db-342b63f7802c"),
    Operator {
        accounts: Some((
            "openshift-cluster-csi-drivers",
            &["azure-disk-csi-driver-operator", "azure-disk-csi-driver-controller-sa"],
        )),
        ..control("disk-csi-driver", "Disk Storage Operator", "5b7237c5-45e1-49d6-bc18-a1f62f400748")
    },
    Operator {
        accounts: Some((
            "openshift-cluster-csi-drivers",
            &[
                "azure-file-csi-driver-operator",
                "azure-file-csi-driver-controller-sa",
                "azure-file-csi-driver-node-sa",
            ],
        )),
        ..control("file-csi-driver", "File Storage Operator", "0d7aedc0-15fd-4a67-a412-efad370c947e")
    },
    Operator {
        accounts: Some(("openshift-image-registry", &["cluster-image-registry-operator", "registry"])),
        ..control("image-registry", "Image Registry Operator", "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5")
    },
    control("cloud-network-config", "Network Operator", "be7a6435-15ae-4171-8f30-4a343eff9e8f"),
    Operator {
        required: Required::OnEnablement,
        ..control("kms", "Key Vault Crypto User", "12338af0-0e69-4776-bea7-57ae8d297424")
    },
];

impl Operator {
    fn is_on(&self, plane: Plane) -> bool {
        match plane {
            Plane::Control => self.control,
            Plane::Data => self.accounts.is_some(),
        }
    }

    fn shown(&self, plane: Plane) -> OperatorIdentityRequirement {
        let (role, id) = self.role;
        let name = if self.name == "kms" { role.to_owned() } else { format!("{SERVICE}{role}") };
        let accounts = self.accounts.filter(|_| plane == Plane::Data);
        OperatorIdentityRequirement {
            operator_name: Some(self.name.to_owned()),
            required: Some(self.required),
            min_openshift_version: Some(MIN_VERSION.to_owned()),
            max_openshift_version: None,
            role_definitions: Some(vec![RoleDefinition {
                name: Some(name),
                resource_id: Some(format!("/providers/Microsoft.Authorization/roleDefinitions/{id}")),
            }]),
            service_accounts: accounts.map(|(namespace, accounts)| {
                let account = |name: &&str| ServiceAccount {
                    name: Some((*name).to_owned()),
                    namespace: Some(namespace.to_owned()),
                };
                accounts.iter().map(account).collect()
            }),
        }
    }
}

/// Whether an operator of a plane has an identity.
pub(crate) fn is_known_operator(plane: Plane, name: &str) -> bool {
    OPERATORS.iter().any(|operator| operator.is_on(plane) && operator.name == name)
}

/// The operators of a plane that need an identity in every cluster, or in one with a customer's key.
pub(crate) fn required_operators(plane: Plane, with_kms: bool) -> impl Iterator<Item = &'static str> {
    let needed = move |operator: &&Operator| {
        operator.is_on(plane)
            && (operator.required == Required::Always || (with_kms && operator.name == "kms"))
    };
    OPERATORS.iter().filter(needed).map(|operator| operator.name)
}

/// `GET managed_identities_requirements?version=X.Y&required=always|on_enablement`.
pub(super) fn get(call: &Call<'_>) -> Result<Reply, Failure> {
    let mut problems = Vec::new();
    let required = call.query("required").map(|text| Required::of(text).ok_or(text));
    if let Some(Err(text)) = required {
        let shown = aro_ocm::shape::shortened(text);
        let reason = format!("'required' must be 'always' or 'on_enablement', not '{shown}'");
        problems.push(Problem::new(Code::UnsupportedValue, "required", reason));
    }
    let minor = |text: &str| -> Option<(u32, u32)> {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let version = call.query("version").map(|text| minor(text).ok_or(text));
    if let Some(Err(text)) = version {
        let reason = format!("'version' must be 'X.Y', not '{}'", aro_ocm::shape::shortened(text));
        problems.push(Problem::new(Code::InvalidValue, "version", reason));
    }
    if !problems.is_empty() {
        return Err(Failure::bad_request(problems));
    }
    let offered = version.and_then(Result::ok).is_none_or(|version| Some(version) >= minor(MIN_VERSION));
    let required = required.and_then(Result::ok);
    let of = |plane: Plane| {
        let wanted = |operator: &&Operator| {
            offered && operator.is_on(plane) && required.is_none_or(|required| operator.required == required)
        };
        OPERATORS.iter().filter(wanted).map(|operator| operator.shown(plane)).collect::<Vec<_>>()
    };
    Reply::ok(&ManagedIdentitiesRequirements {
        kind: Some("ManagedIdentitiesRequirements".to_owned()),
        id: None,
        href: Some(format!("{}/managed_identities_requirements", Root::AroHcp.path())),
        control_plane_operators_identities: Some(of(Plane::Control)),
        data_plane_operators_identities: Some(of(Plane::Data)),
    })
}
