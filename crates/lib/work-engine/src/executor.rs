//! Whether the executor of a work has the permissions that it needs.
//!
//! Without an executor the agent applies by its own right. With one, each object is asked for with access reviews before it is
//! written; objects that grant rights are also made as a dry run in the executor's name, which is how the server says
//! whether they would grant more than the executor has. What is only read is asked for, too: what is read is reported.

use aro_crds::work::v1::{ManifestWorkExecutor, ServiceAccountSubject};
use http::HeaderValue;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{PatchParams, PostParams};
use kube::core::Request;
use kube::{Api, Client, Resource as _};
use serde_json::Value;

use crate::failure::{Failure, code};
use crate::kinds::Kind;
use crate::live::Live;
use crate::manifest::Target;
use crate::write::FIELD_MANAGER;

/// Asks for one object. `body` is what would be written.
pub(crate) async fn check(
    client: &Client,
    executor: Option<&ManifestWorkExecutor>,
    target: &Target,
    body: &Value,
) -> Result<(), Failure> {
    let Some(account) = account_of(executor)? else { return Ok(()) };
    let mut verbs = vec!["create", "update", "patch", "get"];
    if target.owned {
        verbs.push("delete");
    }
    for verb in verbs {
        if !allowed(client, account, target, verb).await? {
            return Err(Failure::Denied(denied(target)));
        }
    }
    if target.kind.api.group == "rbac.authorization.k8s.io" {
        would_escalate(client, account, target, body).await?;
    }
    Ok(())
}

/// Asks whether one object may be looked at.
pub(crate) async fn check_reading(
    client: &Client,
    executor: Option<&ManifestWorkExecutor>,
    target: &Target,
) -> Result<(), Failure> {
    let Some(account) = account_of(executor)? else { return Ok(()) };
    if allowed(client, account, target, "get").await? {
        return Ok(());
    }
    Err(Failure::Denied(denied(target)))
}

/// The account a work is applied for; `None` is the agent itself. An executor without an account may do nothing.
fn account_of(executor: Option<&ManifestWorkExecutor>) -> Result<Option<&ServiceAccountSubject>, Failure> {
    let Some(executor) = executor else { return Ok(None) };
    let account = executor.subject.as_ref().and_then(|subject| subject.service_account.as_ref());
    let unnamed = || Failure::Denied("the executor names no service account".to_owned());
    account.map(Some).ok_or_else(unnamed)
}

fn denied(target: &Target) -> String {
    let api = &target.kind.api;
    let (namespace, name) = (&target.key.namespace, &target.key.name);
    format!("not allowed to apply the resource {} {}, {namespace} {name}", api.group, api.plural)
}

fn user(account: &ServiceAccountSubject) -> String {
    format!("system:serviceaccount:{}:{}", account.namespace, account.name)
}

fn groups(account: &ServiceAccountSubject) -> [String; 3] {
    [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{}", account.namespace),
        "system:authenticated".to_owned(),
    ]
}

async fn allowed(
    client: &Client,
    account: &ServiceAccountSubject,
    target: &Target,
    verb: &str,
) -> Result<bool, Failure> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user(account)),
            groups: Some(groups(account).to_vec()),
            resource_attributes: Some(ResourceAttributes {
                group: Some(target.kind.api.group.clone()),
                resource: Some(target.kind.api.plural.clone()),
                namespace: Some(target.key.namespace.clone()),
                name: Some(target.key.name.clone()),
                verb: Some(verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await.map_err(Failure::Api)?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Applies as a dry run in the executor's name.
async fn would_escalate(
    client: &Client,
    account: &ServiceAccountSubject,
    target: &Target,
    body: &Value,
) -> Result<(), Failure> {
    let parameters = PatchParams { dry_run: true, force: true, ..PatchParams::apply(FIELD_MANAGER) };
    let request = Request::new(url(&target.kind, &target.key.namespace));
    let request = request.patch(&target.key.name, &parameters, &kube::api::Patch::Apply(body));
    let mut request = request.map_err(|error| Failure::Malformed(error.to_string()))?;
    let header = |text: String| {
        HeaderValue::try_from(text)
            .map_err(|_| Failure::Malformed("the executor's name is no header".to_owned()))
    };
    request.headers_mut().insert("impersonate-user", header(user(account))?);
    for group in groups(account) {
        request.headers_mut().append("impersonate-group", header(group)?);
    }
    match client.request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(error) if code(&error) == 403 => {
            Err(Failure::Denied(format!("{}: {}", denied(target), Failure::Api(error))))
        }
        Err(error) => Err(Failure::Api(error)),
    }
}

fn url(kind: &Kind, namespace: &str) -> String {
    let namespace = kind.namespaced.then_some(namespace);
    Live::url_path(&kind.api, namespace)
}

#[cfg(test)]
mod tests {
    use aro_crds::work::v1::ExecutorSubject;

    use super::*;

    #[test]
    fn an_executor_without_an_account_may_do_nothing() {
        assert!(matches!(account_of(None), Ok(None)), "without an executor it is the agent");
        let unnamed = ManifestWorkExecutor::default();
        assert!(matches!(account_of(Some(&unnamed)), Err(Failure::Denied(_))));
        let half = ManifestWorkExecutor { subject: Some(ExecutorSubject::default()) };
        assert!(matches!(account_of(Some(&half)), Err(Failure::Denied(_))));
        let account = ServiceAccountSubject { namespace: "n".to_owned(), name: "a".to_owned() };
        let subject =
            ExecutorSubject { service_account: Some(account.clone()), ..ExecutorSubject::default() };
        let named = ManifestWorkExecutor { subject: Some(subject) };
        assert!(matches!(account_of(Some(&named)), Ok(Some(found)) if *found == account));
    }
}
