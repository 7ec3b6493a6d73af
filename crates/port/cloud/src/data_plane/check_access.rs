//! Permission checks: what a principal may do on a resource.

use std::collections::BTreeMap;

use aro_arm::ResourceId;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::below;
use crate::api_version::CHECK_ACCESS;
use crate::credential::Scope;
use crate::error::{CloudError, Failure};
use crate::pipeline::{Outgoing, Pipeline};
use crate::retry::Repeat;

const AUDIENCE: &str = "https://authorization.azure.net";
const TARGET: &str = "CheckAccess";
/// A page holds 50 decisions.
const MAX_PAGES: usize = 20;

/// A client of permission checks. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct CheckAccess {
    pipeline: Pipeline,
    endpoint: Url,
}

/// A question.
#[derive(Debug, Clone)]
pub struct AccessRequest {
    /// The tenant of the resource; the token is taken there.
    pub tenant: String,
    /// The principal.
    pub subject: Subject,
    /// The resource.
    pub resource: ResourceId,
    /// Actions on it.
    pub actions: Vec<String>,
    /// Actions on the data in it.
    pub data_actions: Vec<String>,
}

/// A principal, as its token describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Subject {
    /// The object id.
    pub object_id: String,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_id: Option<String>,
    /// Where further groups are, if they are too many for a token.
    #[serde(rename = "_claim_names", skip_serializing_if = "Option::is_none")]
    pub claim_names: Option<BTreeMap<String, String>>,
}

/// What is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Decision {
    /// By a role.
    Allowed,
    /// No role permits it.
    NotAllowed,
    /// A deny assignment forbids it.
    Denied,
}

/// The decision on one action.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessDecision {
    /// The action.
    pub action_id: String,
    /// The decision.
    pub access_decision: Decision,
    /// Whether the action is one on data.
    #[serde(default)]
    pub is_data_action: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    value: Vec<AccessDecision>,
    next_link: Option<String>,
}

impl CheckAccess {
    pub(crate) fn new(pipeline: Pipeline, endpoint: Url) -> Self {
        Self { pipeline, endpoint }
    }

    /// Decides on every action. An answer that leaves an action out is an error: silence is no permission.
    pub async fn check(&self, request: &AccessRequest) -> Result<Vec<AccessDecision>, CloudError> {
        let failed = |why| CloudError::new(&Method::POST, TARGET, "", Failure::Protocol(why));
        let path = ["providers", "Microsoft.Authorization", "checkAccess"];
        let mut url =
            below(&self.endpoint, &path).ok_or_else(|| failed("the endpoint cannot have a path"))?;
        url.query_pairs_mut().append_pair("api-version", CHECK_ACCESS);
        let mut out = Outgoing::new(Method::POST, url, TARGET)
            .with_scope(Scope::new(AUDIENCE).in_tenant(&request.tenant))
            .with_json(&body(request))
            .map_err(|_| failed("the request cannot be JSON"))?;
        // It only reads.
        out.repeat = Repeat::Always;
        let mut decisions = Vec::new();
        for _ in 0..MAX_PAGES {
            let page: Page = self.pipeline.call(&out).await?;
            decisions.extend(page.value);
            let Some(next) = page.next_link.filter(|next| !next.is_empty()) else { break };
            let next = out.url.join(&next).ok().filter(|next| next.origin() == self.endpoint.origin());
            out.url = next.ok_or_else(|| failed("the link to the next page leads to another host"))?;
        }
        match is_complete(request, &decisions) {
            true => Ok(decisions),
            false => Err(failed("an action has no decision")),
        }
    }
}

fn is_complete(request: &AccessRequest, decisions: &[AccessDecision]) -> bool {
    let decided = |action: &String, data: bool| {
        decisions.iter().any(|of| of.is_data_action == data && of.action_id.eq_ignore_ascii_case(action))
    };
    request.actions.iter().all(|action| decided(action, false))
        && request.data_actions.iter().all(|action| decided(action, true))
}

fn body(request: &AccessRequest) -> Value {
    let actions = request.actions.iter().map(|action| json!({ "Id": action, "Attributes": {} }));
    let data_actions = request
        .data_actions
        .iter()
        .map(|action| json!({ "Id": action, "IsDataAction": true, "Attributes": {} }));
    let actions: Value = actions.chain(data_actions).collect();
    json!({
        "Subject": { "Attributes": request.subject },
        "Actions": actions,
        "Resource": { "Id": request.resource, "Attributes": {} },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_needs_a_decision() {
        let request = AccessRequest {
            tenant: "t".to_owned(),
            subject: Subject { object_id: "o".to_owned(), ..Subject::default() },
            resource: ResourceId::of_subscription("s"),
            actions: vec!["Microsoft.Network/virtualNetworks/read".to_owned()],
            data_actions: vec!["Microsoft.KeyVault/vaults/keys/read".to_owned()],
        };
        let decision = |action: &str, is_data_action| AccessDecision {
            action_id: action.to_owned(),
            access_decision: Decision::Allowed,
            is_data_action,
        };
        let control = decision("microsoft.network/virtualnetworks/read", false);
        let data = decision("Microsoft.KeyVault/vaults/keys/read", true);
        assert!(is_complete(&request, &[control.clone(), data]));
        assert!(!is_complete(&request, &[control, decision("Microsoft.KeyVault/vaults/keys/read", false)]));
        assert_eq!(body(&request)["Subject"], json!({"Attributes": {"ObjectId": "o"}}));
    }
}
