//! ARM's preflight of a deployment: would these resources be accepted?
//!
//! Always 200; the verdict is in the body. What cannot be judged yet (unresolved template expressions, other
//! providers' types, unknown versions) is skipped: a preflight must never refuse what a PUT would take.

use aro_arm::hcp::NAMESPACE;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::resource::{Context, Resource};
use aro_arm::hcp::version::ApiVersion;
use aro_arm::{ArmError, Code, FieldError, ResourceId, SystemData};
use aro_arm_server::{Answer, Failure};
use aro_rp_store::Write;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::kind::cluster_claims;
use crate::claims;
use crate::shared::{Request, Shared};

#[derive(Serialize)]
struct Verdict {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ArmError>,
    status: &'static str,
}

pub async fn handle(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let Some(resources) =
        request.json().ok().and_then(|body| body.get("resources").and_then(Value::as_array).cloned())
    else {
        let error = ArmError::new(
            Code::InvalidRequestContent,
            "The request content was invalid and could not be deserialized: expected an object with an array 'resources'",
        );
        return Ok(Answer::bytes(StatusCode::OK, error.to_body()));
    };
    let mut failures = Vec::new();
    for resource in resources.iter().filter(|resource| !has_expression(resource)) {
        if let Some(failure) = judge(shared, request, resource).await? {
            failures.push(failure);
        }
    }
    let verdict = match failures.len() {
        0 => Verdict { status: "Succeeded", error: None },
        1 => Verdict { status: "Failed", error: failures.pop() },
        _ => {
            let message = "Preflight validation failed on multiple resources";
            let error =
                ArmError { details: failures, ..ArmError::new(Code::MultipleErrorsOccurred, message) };
            Verdict { status: "Failed", error: Some(error) }
        }
    };
    Ok(Answer::json(StatusCode::OK, &verdict))
}

/// What is wrong with one resource; `None` for a good one and for one we cannot judge.
async fn judge(shared: &Shared, request: &Request, resource: &Value) -> Result<Option<ArmError>, Failure> {
    let text = |member: &str| resource.get(member).and_then(Value::as_str).unwrap_or_default();
    let (name, kind) = (text("name"), text("type"));
    let Some(version) = ApiVersion::parse(text("apiVersion")) else {
        tracing::debug!(resource_type = kind, "preflight skips a resource of an unknown api-version");
        return Ok(None);
    };
    let Some(id) = id_of(request, kind, name) else {
        tracing::debug!(resource_type = kind, "preflight skips a resource that is not ours");
        return Ok(None);
    };
    let context = Context {
        id: &id,
        location: &shared.location,
        system_data: SystemData::default(),
        identity_url: request.caller.identity_url.as_deref(),
        now: shared.clock.now(),
        new_uid: Uuid::new_v4(),
        experimental: request.subscription.as_ref().is_some_and(|known| known.has_experimental_features()),
        allow_data_plane_identities: shared.allow_data_plane_identities,
        preflight: true,
    };
    let mut body = resource.clone();
    if let Some(members) = body.as_object_mut() {
        // A nested name is written `parent/child` here; the envelope is not the resource's.
        for member in ["name", "type", "apiVersion", "id"] {
            members.remove(member);
        }
    }
    let problems = if id.is_type(NodePool::TYPE) {
        NodePool::create(version, &body, &context).err().unwrap_or_default()
    } else if id.is_type(ExternalAuth::TYPE) {
        ExternalAuth::create(version, &body, &context).err().unwrap_or_default()
    } else {
        judge_cluster(shared, version, &body, &context).await?
    };
    if problems.is_empty() {
        return Ok(None);
    }
    let flat = ArmError::of_problems(problems);
    let details = if flat.details.is_empty() { vec![flat] } else { flat.details };
    let message = format!("Content validation failed for '{name}'");
    let error = ArmError::new(Code::InvalidRequestContent, message).with_target(id.as_str());
    Ok(Some(ArmError { details, ..error }))
}

async fn judge_cluster(
    shared: &Shared,
    version: ApiVersion,
    body: &Value,
    context: &Context<'_>,
) -> Result<Vec<FieldError>, Failure> {
    let cluster = match Cluster::create(version, body, context) {
        Ok(cluster) => cluster,
        Err(problems) => return Ok(problems),
    };
    if shared.documents.exists(context.id).await? {
        // An existing cluster holds its own claims; what may change is decided by the PUT.
        return Ok(Vec::new());
    }
    let mut discarded = Write::new(context.id.subscription().unwrap_or_default());
    Ok(claims::take(&shared.documents, &mut discarded, context.id, &cluster_claims(&cluster), true).await?)
}

/// The id a resource of a template would have: `type` and `name` have one segment per level.
fn id_of(request: &Request, kind: &str, name: &str) -> Option<ResourceId> {
    let names: Vec<&str> = name.split('/').collect();
    if names.iter().any(|name| name.is_empty()) {
        return None;
    }
    let (namespace, types) = kind.split_once('/')?;
    if !namespace.eq_ignore_ascii_case(NAMESPACE) {
        return None;
    }
    let types: Vec<String> = types.split('/').map(str::to_lowercase).collect();
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let pairs = match (types.as_slice(), names.as_slice()) {
        (["hcpopenshiftclusters"], [cluster]) => vec![("hcpOpenShiftClusters", *cluster)],
        (["hcpopenshiftclusters", "nodepools"], [cluster, child]) => {
            vec![("hcpOpenShiftClusters", *cluster), ("nodePools", *child)]
        }
        (["hcpopenshiftclusters", "externalauths"], [cluster, child]) => {
            vec![("hcpOpenShiftClusters", *cluster), ("externalAuths", *child)]
        }
        _ => return None,
    };
    let id = ResourceId::in_group(request.matched.subscription(), request.matched.group(), NAMESPACE, &pairs);
    ResourceId::parse(id.as_str()).ok()
}

/// Whether any text in it, key or value, is a template expression still to be resolved.
fn has_expression(value: &Value) -> bool {
    let unresolved = |text: &str| text.starts_with('[') && text.ends_with(']');
    match value {
        Value::String(text) => unresolved(text),
        Value::Array(items) => items.iter().any(has_expression),
        Value::Object(members) => members.iter().any(|(key, value)| unresolved(key) || has_expression(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn template_expressions_are_found_at_any_depth_and_in_keys() {
        assert!(has_expression(&json!({"a": [{"b": "[parameters('x')]"}]})));
        assert!(has_expression(&json!({"[concat('a')]": 1})));
        assert!(!has_expression(&json!({"a": "[not", "b": ["x]"]})));
    }
}
