//! On whose behalf objects are applied.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::SUBDOMAIN;

/// Who must be allowed what the work asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkExecutor {
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ExecutorSubject>,
}

/// A subject on the managed cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorSubject {
    /// What they are.
    #[serde(rename = "type")]
    pub kind: ExecutorSubjectType,
    /// Which service account; needed when they are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountSubject>,
}

/// The kind of a subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExecutorSubjectType {
    /// A service account.
    #[default]
    ServiceAccount,
}

/// A service account on the managed cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountSubject {
    /// Its namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub name: String,
}
