//! The definitions of all resources of this crate.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;

use crate::cluster::v1::ManagedCluster;
use crate::hypershift::certificates::{CertificateRevocationRequest, CertificateSigningRequestApproval};
use crate::hypershift::v1beta1::{ControlPlaneComponent, HostedCluster, HostedControlPlane, NodePool};
use crate::schema::tidy;
use crate::secrets_store::{SecretProviderClass, SecretSync};
use crate::work::v1::{AppliedManifestWork, ManifestWork};

/// A definition cannot be written down.
#[derive(Debug, thiserror::Error)]
#[error("write the definition of {name}")]
pub struct DefinitionError {
    /// Which.
    pub name: String,
    #[source]
    source: serde_saphyr::ser::Error,
}

/// What installs one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition(CustomResourceDefinition);

impl Definition {
    /// `plural.group`: the name of the object in a cluster.
    pub fn name(&self) -> &str {
        self.0.metadata.name.as_deref().unwrap_or_default()
    }

    /// The object itself.
    pub fn object(&self) -> &CustomResourceDefinition {
        &self.0
    }

    /// One YAML document, without a separator.
    pub fn yaml(&self) -> Result<String, DefinitionError> {
        serde_saphyr::to_string(&self.0)
            .map_err(|source| DefinitionError { name: self.name().to_owned(), source })
    }
}

/// Members of hosted clusters and control planes that are `null` while they are not known.
const NULLABLE: &[&str] = &[
    "status.version.availableUpdates",
    "status.version.history.completionTime",
    "status.versionStatus.availableUpdates",
    "status.versionStatus.history.completionTime",
    "status.controlPlaneVersion.history.completionTime",
];

/// Every resource, in the order of their names.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        Definition(tidy(ManifestWork::crd(), &[])),
        Definition(tidy(AppliedManifestWork::crd(), &[])),
        Definition(tidy(ManagedCluster::crd(), &["spec.taints.timeAdded"])),
        Definition(tidy(HostedCluster::crd(), NULLABLE)),
        Definition(tidy(HostedControlPlane::crd(), NULLABLE)),
        Definition(tidy(NodePool::crd(), &[])),
        Definition(tidy(ControlPlaneComponent::crd(), &[])),
        Definition(tidy(CertificateSigningRequestApproval::crd(), &[])),
        Definition(tidy(CertificateRevocationRequest::crd(), &[])),
        Definition(tidy(SecretProviderClass::crd(), &[])),
        Definition(tidy(SecretSync::crd(), &[])),
    ];
    all.sort_by(|a, b| a.name().cmp(b.name()));
    all
}
