//! `certificates.hypershift.openshift.io`: approving and revoking client certificates of hosted control planes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::v1beta1::Reference;
use crate::schema::conditions;

/// Nothing: the object approves the request of the same name.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "certificates.hypershift.openshift.io",
    version = "v1alpha1",
    kind = "CertificateSigningRequestApproval",
    plural = "certificatesigningrequestapprovals",
    singular = "certificatesigningrequestapproval",
    shortname = "csra",
    shortname = "csras",
    namespaced,
    doc = "Approves the CertificateSigningRequest of the same name for the control plane in this namespace.",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct CertificateSigningRequestApprovalSpec {}

/// What is revoked.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "certificates.hypershift.openshift.io",
    version = "v1alpha1",
    kind = "CertificateRevocationRequest",
    plural = "certificaterevocationrequests",
    singular = "certificaterevocationrequest",
    shortname = "crr",
    shortname = "crrs",
    namespaced,
    status = "CertificateRevocationRequestStatus",
    doc = "Revokes every certificate of a signer of the control plane in this namespace.",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRevocationRequestSpec {
    /// The signer.
    pub signer_class: SignerClass,
}

/// The signers whose certificates can be revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SignerClass {
    /// Of customers.
    CustomerBreakGlass,
    /// Of site reliability engineers.
    SreBreakGlass,
}

/// How far a revocation is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRevocationRequestStatus {
    /// What is true of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Certificates issued before this time are revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_timestamp: Option<Time>,
    /// The secret with the signer that is no longer trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_signer: Option<Reference>,
}
