//! How single objects of a work are treated, and what is reported of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one object is treated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestConfigOption {
    /// Which object.
    pub resource_identifier: ResourceIdentifier,
    /// What to report of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,
    /// How the agent learns of changes that it reports.
    #[serde(default)]
    #[schemars(extend("default" = "Poll"))]
    pub feedback_scrape_type: FeedbackScrapeType,
    /// How it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Which conditions of the work follow from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub condition_rules: Vec<ConditionRule>,
}

/// Names one object of a work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceIdentifier {
    /// Its API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Its resource: the plural word in paths.
    pub resource: String,
    /// Its name.
    pub name: String,
    /// Its namespace; empty when it has none.
    #[serde(default)]
    pub namespace: String,
}

/// What to report of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackRule {
    /// What, in general.
    #[serde(rename = "type")]
    pub kind: FeedbackType,
    /// Which members, with the type `JSONPaths`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub json_paths: Vec<JsonPath>,
}

/// What to report, in general.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeedbackType {
    /// What everybody wants to know of an object of this kind.
    #[default]
    WellKnownStatus,
    /// Members by path.
    #[serde(rename = "JSONPaths")]
    JsonPaths,
}

/// How the agent learns of changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeedbackScrapeType {
    /// It looks from time to time.
    #[default]
    Poll,
    /// It watches.
    Watch,
}

/// A member of an object's status, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JsonPath {
    /// Under which name it is reported.
    pub name: String,
    /// In which version of the object the path is meant; the newest one, when it is not set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The path, below `status`. It leads to a single value.
    pub path: String,
}

/// How an object is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct UpdateStrategy {
    /// In which way.
    #[serde(rename = "type", default)]
    #[schemars(extend("default" = "Update"))]
    pub kind: UpdateStrategyType,
    /// Details of the way `ServerSideApply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyConfig>,
}

/// A way of writing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategyType {
    /// The agent makes it as the work says, again and again.
    #[default]
    Update,
    /// The agent makes it once and leaves it alone then.
    CreateOnly,
    /// The agent applies it and owns what it set.
    ServerSideApply,
    /// The agent only reports.
    ReadOnly,
}

/// Details of applying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApplyConfig {
    /// Whether to take members away from their owners.
    #[serde(default)]
    pub force: bool,
    /// Under which name. It begins with `work-agent`.
    #[serde(default = "field_manager")]
    #[schemars(regex(pattern = "^work-agent"))]
    pub field_manager: String,
    /// Members that are left as they are found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub ignore_fields: Vec<IgnoreField>,
}

impl Default for ServerSideApplyConfig {
    fn default() -> Self {
        Self { force: false, field_manager: field_manager(), ignore_fields: Vec::new() }
    }
}

fn field_manager() -> String {
    "work-agent".to_owned()
}

/// Members that are left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["condition"]))]
pub struct IgnoreField {
    /// When.
    #[serde(default)]
    #[schemars(extend("default" = "OnSpokePresent"))]
    pub condition: IgnoreFieldCondition,
    /// By expressions of `jq`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
    /// By JSON paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<String>,
    /// By JSON pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
}

/// When members are left alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IgnoreFieldCondition {
    /// As soon as the object is there.
    #[default]
    OnSpokePresent,
    /// As soon as they change there.
    OnSpokeChange,
}

/// A condition of the work that follows from an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.type != 'CEL' || self.condition != \"\"",
    "message": "a rule in CEL needs the name of a condition"
}]))]
pub struct ConditionRule {
    /// Which condition. With `Complete` the object is written no more once it is so.
    pub condition: String,
    /// How it is found out.
    #[serde(rename = "type")]
    pub kind: ConditionRuleType,
    /// What must all be true, with the type `CEL`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
    /// The condition's message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// An expression for the message; it sees `object` and `result`, and wins when it gives one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message_expression: String,
}

/// How a condition is found out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionRuleType {
    /// As is known of objects of this kind.
    #[default]
    WellKnownConditions,
    /// By expressions.
    #[serde(rename = "CEL")]
    Cel,
}
