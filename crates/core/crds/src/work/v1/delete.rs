//! What becomes of applied objects when the work goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceIdentifier;

/// What becomes of the objects when the work is deleted, or done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOption {
    /// Whether the objects go with the work.
    #[serde(default)]
    #[schemars(extend("default" = "Foreground"))]
    pub propagation_policy: DeletePropagationPolicy,
    /// Which objects stay, with the policy `SelectivelyOrphan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphan>,
    /// How many seconds a work stays after it is complete; for ever, when it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// Whether objects go with the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletePropagationPolicy {
    /// They go first.
    #[default]
    Foreground,
    /// They stay.
    Orphan,
    /// Some stay: for moving an object from one work to another without deleting it in between.
    SelectivelyOrphan,
}

/// Objects that stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    /// Which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<ResourceIdentifier>,
}
