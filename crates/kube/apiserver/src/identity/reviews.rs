//! Resources that are questions: whose token is this, who am I, may I, may they.

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::{FieldError, Status};
use serde_json::{Value, json};

use super::authenticate;
use super::authorize::{Attributes, authorize, rules_of};
use super::nodes::node_of;
use super::tokens::{self, Rejected};
use super::user::User;
use crate::http::answer::{self, Answer};
use crate::rest::Call;
use crate::types::Served;

/// Whether a resource is answered and not stored.
pub fn is_review(served: &Served) -> bool {
    served.custom.is_none()
        && matches!(served.resource.gvk.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
}

pub fn handle(mut call: Call) -> Result<Answer, Status> {
    if call.verb != "create" {
        return Err(crate::rest::method_not_allowed());
    }
    let mut review = call.read_body()?;
    if !review.get("metadata").is_some_and(Value::is_object) {
        review["metadata"] = json!({});
    }
    if call.served.resource.namespaced {
        meta::set(&mut review, &["metadata", "namespace"], json!(call.namespace));
    }
    // The answer is not the caller's.
    meta::remove(&mut review, &["status"]);
    call.track(None, &mut review);
    let status = match call.served.resource.gvk.kind.as_str() {
        "TokenReview" => token(&call, &mut review)?,
        "SelfSubjectReview" => {
            meta::set(&mut review, &["metadata", "creationTimestamp"], json!(call.time()));
            json!({"userInfo": user_info(&call.user)})
        }
        "SelfSubjectAccessReview" => access(&call, &review, &call.user.clone(), "")?,
        "SubjectAccessReview" => access(&call, &review, &subject(&review)?, "")?,
        "LocalSubjectAccessReview" => {
            let namespace = call.namespace.clone();
            access(&call, &review, &subject(&review)?, &namespace)?
        }
        "SelfSubjectRulesReview" => rules(&call, &review)?,
        _ => return Err(crate::rest::method_not_allowed()),
    };
    review["status"] = status;
    Ok(answer::json(201, &review))
}

/// Upstream does not say what kind of review it is, either.
fn invalid(error: FieldError) -> Status {
    let kind =
        aro_kube_apimachinery::GroupKind { group: "authorization.k8s.io".to_owned(), kind: String::new() };
    Status::invalid(&kind, "", &[error])
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn token(call: &Call, review: &mut Value) -> Result<Value, Status> {
    let token = meta::get(review, &["spec", "token"]).and_then(Value::as_str).unwrap_or_default().to_owned();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences: Vec<String> = meta::get(review, &["spec", "audiences"])
        .and_then(Value::as_array)
        .map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let requested = if audiences.is_empty() { vec![tokens::ISSUER.to_owned()] } else { audiences };
    Ok(match authenticate::of_token(&call.cluster, &token, &requested) {
        Ok((user, audiences)) => {
            json!({"authenticated": true, "user": user_info(&user), "audiences": audiences})
        }
        Err(rejected) => {
            let error = match rejected {
                Rejected::Foreign(_) => "invalid bearer token".to_owned(),
                known => format!("[invalid bearer token, {known}]"),
            };
            json!({"user": {}, "error": error})
        }
    })
}

/// Whom a review is about.
fn subject(review: &Value) -> Result<User, Status> {
    let text = |name: &str| {
        meta::get(review, &["spec", name]).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let groups =
        meta::get(review, &["spec", "groups"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let groups: Vec<String> = groups.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let user =
        User { name: text("user"), uid: text("uid"), groups, extra: std::collections::BTreeMap::new() };
    if user.name.is_empty() && user.groups.is_empty() {
        let error = FieldError::invalid("spec.user", "", "at least one of user or group must be specified");
        return Err(invalid(error));
    }
    Ok(user)
}

fn access(call: &Call, review: &Value, user: &User, namespace: &str) -> Result<Value, Status> {
    let resource = meta::get(review, &["spec", "resourceAttributes"]).filter(|value| value.is_object());
    let path = meta::get(review, &["spec", "nonResourceAttributes"]).filter(|value| value.is_object());
    fn text<'a>(value: &'a Value, name: &str) -> &'a str {
        value.get(name).and_then(Value::as_str).unwrap_or_default()
    }
    let asked = match (resource, path) {
        (Some(_), Some(_)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            return Err(invalid(FieldError::invalid(
                "spec.nonResourceAttributes",
                path.cloned().unwrap_or_default(),
                detail,
            )));
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            return Err(invalid(FieldError::invalid("spec.resourceAttributes", Value::Null, detail)));
        }
        (None, Some(path)) => {
            Attributes { verb: text(path, "verb"), path: text(path, "path"), ..Attributes::default() }
        }
        (Some(resource), None) => {
            if !namespace.is_empty() && text(resource, "namespace") != namespace {
                let message = format!(
                    "spec.resourceAttributes.namespace: Invalid value: {:?}: must match metadata.namespace",
                    text(resource, "namespace")
                );
                return Err(Status::bad_request(message));
            }
            Attributes {
                verb: text(resource, "verb"),
                group: text(resource, "group"),
                version: text(resource, "version"),
                resource: text(resource, "resource"),
                subresource: text(resource, "subresource"),
                namespace: text(resource, "namespace"),
                name: text(resource, "name"),
                fields: resource
                    .get("fieldSelector")
                    .map(|selector| text(selector, "rawSelector"))
                    .unwrap_or_default(),
                path: "",
            }
        }
    };
    let decision = authorize(&call.cluster, user, &asked);
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    Ok(status)
}

fn rules(call: &Call, review: &Value) -> Result<Value, Status> {
    let namespace = meta::get(review, &["spec", "namespace"]).and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in rules_of(&call.cluster, &call.user, namespace) {
        if !rule.resources.is_empty() {
            let mut shown =
                json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
            if !rule.resource_names.is_empty() {
                shown["resourceNames"] = json!(rule.resource_names);
            }
            resources.push(shown);
        }
        if !rule.paths.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.paths}));
        }
    }
    let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    if node_of(&call.user).is_some() {
        // What a node may do depends on its pods: that is no list of rules.
        status["incomplete"] = json!(true);
        status["evaluationError"] = json!("node authorizer does not support user rule resolution");
    }
    Ok(status)
}
