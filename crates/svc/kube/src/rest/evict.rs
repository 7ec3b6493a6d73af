//! Evicting pods: a deletion that asks disruption budgets first.

use aro_machinery::meta;
use aro_machinery::selector::LabelSelector;
use aro_machinery::status::{Cause, Details, Status};
use serde_json::{Value, json};

use super::call::Call;
use super::delete::{DeleteOptions, delete_object};
use crate::http::answer::{self, Answer};

pub(super) async fn evict(call: &mut Call) -> Result<Answer, Status> {
    let eviction = call.read_other("policy", "v1", "Eviction")?;
    let named = meta::name(&eviction);
    if !named.is_empty() && named != call.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    crate::identity::nodes::restriction::admit_eviction(call)?;
    let key = call.key();
    let Some(stored) = call.latest(&key) else { return Err(call.not_found()) };
    let pod = stored.value();
    ask_budgets(call, &pod)?;
    let wish = eviction.get("deleteOptions").cloned().unwrap_or_default();
    let precondition =
        |name: &str| meta::get(&wish, &["preconditions", name]).and_then(Value::as_str).map(str::to_owned);
    let options = DeleteOptions {
        grace_seconds: wish.get("gracePeriodSeconds").and_then(Value::as_i64),
        uid: precondition("uid"),
        version: precondition("resourceVersion"),
        dry_run: call.query.dry_run()
            || wish.get("dryRun").and_then(Value::as_array).is_some_and(|all| !all.is_empty()),
        ..DeleteOptions::default()
    };
    delete_object(&call.cluster, &call.served, &key, &options).await?;
    Ok(answer::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

/// Pods that run nothing are not protected; others by at most one budget.
fn ask_budgets(call: &Call, pod: &Value) -> Result<(), Status> {
    let phase = meta::get(pod, &["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
    if matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::deletion_timestamp(pod).is_some() {
        return Ok(());
    }
    let label = |name: &str| meta::get(pod, &["metadata", "labels", name]).and_then(Value::as_str);
    let shelf = call.cluster.space.shelf("poddisruptionbudgets.policy");
    let all = shelf.all().into_iter().map(|budget| budget.value());
    let protects = |budget: &Value| {
        meta::namespace(budget) == call.namespace
            && meta::get(budget, &["spec", "selector"])
                .and_then(|selector| LabelSelector::from_object(selector).ok())
                .is_some_and(|selector| selector.matches(label))
    };
    let budgets: Vec<Value> = all.filter(protects).collect();
    let budget = match budgets.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::internal(why));
        }
    };
    let count = |path: &[&str]| meta::get(budget, path).and_then(Value::as_i64).unwrap_or_default();
    let name = meta::name(budget);
    let message = if count(&["status", "observedGeneration"]) < meta::generation(budget) {
        format!("The disruption budget {name} is still being processed by the server.")
    } else if count(&["status", "disruptionsAllowed"]) <= 0 {
        let (healthy, wanted) = (count(&["status", "currentHealthy"]), count(&["status", "desiredHealthy"]));
        format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")
    } else {
        return Ok(());
    };
    let cause = Cause { reason: "DisruptionBudget".to_owned(), message, field: String::new() };
    let why = "Cannot evict pod as it would violate the pod's disruption budget.";
    Err(Status::new(429, "TooManyRequests", why)
        .with_details(Details { causes: vec![cause], ..Details::default() }))
}
