//! Evicting pods: a deletion that asks disruption budgets first.
//!
//! A budget is asked and charged in one commit on the version it was read at: of two who want the last disruption it
//! allows, one is granted and the other gets 429. The pod is noted in the budget until the controller of budgets
//! sees it go.

use aro_kube_apimachinery::GroupResource;
use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::selector::LabelSelector;
use aro_kube_apimachinery::status::{Cause, Details, Status};
use serde_json::{Value, json};

use super::call::Call;
use super::create::{check_place, unavailable};
use super::delete::{DeleteOptions, delete_object};
use crate::cluster::rfc3339;
use crate::http::answer::{self, Answer};
use crate::storage::{Change, Draft, Expect, Stored, WriteFailed};

/// How often it is tried when others write at the same time.
const TRIES: usize = 20;
/// Evictions that a budget may have noted at once.
const NOTED: usize = 2000;
/// When to try again, in seconds.
const LATER: u32 = 10;
const BUDGETS: &str = "poddisruptionbudgets.policy";

pub(super) async fn evict(call: &mut Call) -> Result<Answer, Status> {
    let mut eviction = read(call)?;
    check_place(call, &mut eviction)?;
    if meta::name(&eviction) != call.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    crate::identity::nodes::restriction::admit_eviction(call)?;
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
    evict_pod(call, &options).await?;
    let done =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(answer::json(201, &done))
}

/// Old clients still send the kind under its first version.
fn read(call: &mut Call) -> Result<Value, Status> {
    call.read_other("policy", "v1", "Eviction")
        .or_else(|why| call.read_other("policy", "v1beta1", "Eviction").map_err(|_| why))
}

async fn evict_pod(call: &Call, asked: &DeleteOptions) -> Result<(), Status> {
    let key = call.key();
    let mut refusal = None;
    for _ in 0..TRIES {
        let Some(stored) = call.latest(&key) else { return Err(call.not_found()) };
        let pod = stored.value();
        if is_protected(&pod) {
            // Checked once: an eviction that was charged is not charged again.
            return evict_protected(call, &key, &stored, asked).await;
        }
        let mut options = asked.clone();
        let phase = meta::get(&pod, &["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
        if phase == "Pending" && meta::deletion_timestamp(&pod).is_none() {
            // It goes because of what it was when we looked; it may have become ready since.
            options.version.get_or_insert_with(|| stored.version.to_string());
        }
        match mark_and_delete(call, &key, options).await {
            // The pod was changed concurrently; check its protection again.
            Err(status) if status.code == 409 && asked.version.is_none() => refusal = Some(status),
            answer => return answer,
        }
    }
    Err(refusal.unwrap_or_else(|| changed(call)))
}

async fn evict_protected(
    call: &Call,
    key: &str,
    stored: &Stored,
    asked: &DeleteOptions,
) -> Result<(), Status> {
    let exempt = ask_budgets(call, &stored.value(), asked.dry_run).await?;
    let mut options = asked.clone();
    if exempt.is_some() {
        // It goes because it was not ready when we looked.
        options.version = Some(stored.version.to_string());
    }
    let answer = mark_and_delete(call, key, options).await;
    match (answer, exempt) {
        (Err(status), Some(budget)) if status.code == 409 && asked.version.is_none() => {
            Err(unsettled(&budget))
        }
        (answer, _) => answer,
    }
}

/// Pods that run nothing are not protected.
fn is_protected(pod: &Value) -> bool {
    let phase = meta::get(pod, &["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
    !matches!(phase, "Succeeded" | "Failed" | "Pending") && meta::deletion_timestamp(pod).is_none()
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let all = meta::get(object, &["status", "conditions"]).and_then(Value::as_array)?;
    all.iter().find(|condition| condition["type"] == kind)
}

/// Puts a condition in the place of the one of its type. Its time stays if its state does.
fn set_condition(object: &mut Value, mut new: Value, now: &str) {
    let kind = new["type"].as_str().unwrap_or_default().to_owned();
    let known = condition(object, &kind);
    let since = known
        .filter(|known| known["status"] == new["status"])
        .map(|known| known["lastTransitionTime"].clone());
    new["lastTransitionTime"] = since.unwrap_or_else(|| json!(now));
    let all = meta::get(object, &["status", "conditions"]).and_then(Value::as_array).cloned();
    let mut all = all.unwrap_or_default();
    match all.iter_mut().find(|known| known["type"] == kind.as_str()) {
        Some(known) => *known = new,
        None => all.push(new),
    }
    meta::set(object, &["status", "conditions"], Value::Array(all));
}

/// Says on the pod why it goes, and deletes it.
async fn mark_and_delete(call: &Call, key: &str, mut options: DeleteOptions) -> Result<(), Status> {
    if !options.dry_run {
        let marked = mark(call, key, &options).await?;
        if options.version.is_some() {
            options.version = Some(marked);
        }
    }
    delete_object(&call.cluster, &call.served, key, &options).await?;
    Ok(())
}

/// Says on the pod why it goes; the version it has then.
async fn mark(call: &Call, key: &str, options: &DeleteOptions) -> Result<String, Status> {
    for _ in 0..TRIES {
        let Some(stored) = call.latest(key) else { return Err(call.not_found()) };
        let mut pod = stored.value();
        check_same(call, options.uid.as_deref(), meta::uid(&pod), "UID", "deleted and then recreated")?;
        check_same(
            call,
            options.version.as_deref(),
            &stored.version.to_string(),
            "ResourceVersion",
            "modified",
        )?;
        let reason = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null});
        set_condition(&mut pod, reason, &rfc3339(call.now));
        let draft = Change::Put(Draft::of(&pod));
        match call.cluster.store.commit(&call.watch_cache, key, Expect::Version(stored.version), draft).await
        {
            Ok(marked) => return Ok(marked.version.to_string()),
            // Looked at again: it may be another one by now.
            Err(WriteFailed::Changed(_)) => {}
            Err(WriteFailed::Unavailable) => return Err(unavailable()),
        }
    }
    Err(changed(call))
}

/// A pod that is evicted is the one that was meant.
fn check_same(call: &Call, asked: Option<&str>, found: &str, what: &str, how: &str) -> Result<(), Status> {
    match asked.filter(|asked| !asked.is_empty() && *asked != found) {
        None => Ok(()),
        Some(asked) => {
            let why = format!(
                "the {what} in the precondition ({asked}) does not match the {what} in record ({found}). The object might have been {how}"
            );
            Err(Status::conflict(&GroupResource::new("", "Pod"), &call.name, &why))
        }
    }
}

fn changed(call: &Call) -> Status {
    Status::conflict(&call.resource_name(), &call.name, "the pod changes too often")
}

/// Asks the budget that protects a pod, and charges it. Answers the name of a budget that lets the pod go without a
/// charge, because it is not healthy.
async fn ask_budgets(call: &Call, pod: &Value, dry_run: bool) -> Result<Option<String>, Status> {
    let label = |name: &str| meta::get(pod, &["metadata", "labels", name]).and_then(Value::as_str);
    let watch_cache = call.cluster.store.watch_cache(BUDGETS);
    let protects = |budget: &Value| {
        meta::namespace(budget) == call.namespace
            && meta::get(budget, &["spec", "selector"])
                .and_then(|selector| LabelSelector::from_object(selector).ok())
                .is_some_and(|selector| selector.matches(label))
    };
    let all = watch_cache.all().into_iter();
    let mut budgets = all.filter(|budget| protects(&budget.value())).map(|budget| budget.key.clone());
    let Some(key) = budgets.next() else { return Ok(None) };
    if budgets.next().is_some() {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Status::new(500, "", why));
    }
    for _ in 0..TRIES {
        let Some(stored) = call.cluster.store.latest(&watch_cache, &key) else { return Ok(None) };
        let budget = stored.value();
        let ready = condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True");
        if !ready && may_lose_unhealthy(&budget) {
            return Ok(Some(meta::name(&budget).to_owned()));
        }
        let charged = charge(&budget, &call.name, &rfc3339(call.now))?;
        if dry_run {
            return Ok(None);
        }
        let expect = Expect::Version(stored.version);
        match call.cluster.store.commit(&watch_cache, &key, expect, Change::Put(Draft::of(&charged))).await {
            Ok(_) => return Ok(None),
            Err(WriteFailed::Changed(_)) => {}
            Err(WriteFailed::Unavailable) => return Err(unavailable()),
        }
    }
    Err(unsettled(key.rsplit('/').next().unwrap_or_default()))
}

fn count(budget: &Value, name: &str) -> i64 {
    meta::get(budget, &["status", name]).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether a pod that is not ready may go whatever the budget allows.
fn may_lose_unhealthy(budget: &Value) -> bool {
    let policy = meta::get(budget, &["spec", "unhealthyPodEvictionPolicy"]).and_then(Value::as_str);
    let (healthy, wanted) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    policy == Some("AlwaysAllow") || (healthy >= wanted && wanted > 0)
}

/// The budget after one more eviction, or why there is none. Pure.
fn charge(budget: &Value, pod: &str, now: &str) -> Result<Value, Status> {
    let name = meta::name(budget);
    if count(budget, "observedGeneration") < meta::generation(budget) {
        return Err(unsettled(name));
    }
    let allowed = count(budget, "disruptionsAllowed");
    let resource = GroupResource::new("policy", "poddisruptionbudget");
    if allowed < 0 {
        return Err(Status::forbidden(&resource, name, "pdb disruptions allowed is negative"));
    }
    let noted = meta::get(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    if noted.is_some_and(|noted| noted.len() > NOTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(&resource, name, why));
    }
    if allowed == 0 {
        return Err(busy(&why_none(budget, name), 0));
    }
    let mut charged = budget.clone();
    meta::set(&mut charged, &["status", "disruptionsAllowed"], json!(allowed - 1));
    meta::set(&mut charged, &["status", "disruptedPods", pod], json!(now));
    if allowed == 1 {
        let none = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": count(budget, "observedGeneration")});
        set_condition(&mut charged, none, now);
    }
    Ok(charged)
}

fn why_none(budget: &Value, name: &str) -> String {
    let told = condition(budget, "DisruptionAllowed").filter(|told| told["status"] == "False");
    let text = |field: &str| told.and_then(|told| told[field].as_str()).unwrap_or_default();
    let (reason, message) = (text("reason"), text("message"));
    let (healthy, wanted) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    if reason == "SyncFailed" && !message.is_empty() {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        )
    } else if healthy <= wanted {
        format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")
    } else if !message.is_empty() {
        format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn unsettled(budget: &str) -> Status {
    busy(&format!("The disruption budget {budget} is still being processed by the server."), LATER)
}

fn busy(why: &str, retry_after_seconds: u32) -> Status {
    let cause =
        Cause { reason: "DisruptionBudget".to_owned(), message: why.to_owned(), field: String::new() };
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let details = Details { causes: vec![cause], retry_after_seconds, ..Details::default() };
    Status::new(429, "TooManyRequests", message).with_details(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(change: &[(&str, Value)]) -> Value {
        let mut budget = json!({"metadata": {"name": "web", "generation": 2}, "spec": {},
            "status": {"observedGeneration": 2, "disruptionsAllowed": 2, "currentHealthy": 5, "desiredHealthy": 3}});
        for (name, value) in change {
            meta::set(&mut budget, &["status", name], value.clone());
        }
        budget
    }

    fn refusal(budget: &Value) -> (u16, String) {
        let status = charge(budget, "pod", "now").unwrap_err();
        let cause = status.details.as_ref().and_then(|details| details.causes.first());
        (status.code, cause.map_or_else(|| status.message.clone(), |cause| cause.message.clone()))
    }

    #[test]
    fn one_is_taken_and_the_pod_is_noted() {
        let charged = charge(&budget(&[]), "pod", "now").unwrap();
        assert_eq!(charged["status"]["disruptionsAllowed"], 1);
        assert_eq!(charged["status"]["disruptedPods"], json!({"pod": "now"}));
        assert!(charged["status"].get("conditions").is_none());
        let last = charge(&budget(&[("disruptionsAllowed", json!(1))]), "pod", "now").unwrap();
        assert_eq!(last["status"]["conditions"][0]["reason"], "InsufficientPods");
    }

    #[test]
    fn every_refusal_says_why() {
        let processed = "The disruption budget web is still being processed by the server.";
        assert_eq!(refusal(&budget(&[("observedGeneration", json!(1))])), (429, processed.to_owned()));
        let none = [("disruptionsAllowed", json!(0)), ("currentHealthy", json!(3))];
        let needs = "The disruption budget web needs 3 healthy pods and has 3 currently";
        assert_eq!(refusal(&budget(&none)), (429, needs.to_owned()));
        let failed = json!([{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "oh"}]);
        let none = [("disruptionsAllowed", json!(0)), ("conditions", failed)];
        let synced =
            "The disruption budget web does not allow evicting pods currently because it failed sync: oh";
        assert_eq!(refusal(&budget(&none)), (429, synced.to_owned()));
        let enough = "The disruption budget web does not allow evicting pods currently";
        assert_eq!(refusal(&budget(&[("disruptionsAllowed", json!(0))])), (429, enough.to_owned()));
        assert_eq!(refusal(&budget(&[("disruptionsAllowed", json!(-1))])).0, 403);
    }

    #[test]
    fn unhealthy_pods_go_if_the_budget_says_so_or_is_met() {
        let short = [("currentHealthy", json!(2))];
        assert!(may_lose_unhealthy(&budget(&[])));
        assert!(!may_lose_unhealthy(&budget(&short)));
        let mut always = budget(&short);
        always["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
        assert!(may_lose_unhealthy(&always));
        assert!(
            !may_lose_unhealthy(&budget(&[("desiredHealthy", json!(0))])),
            "a budget of nothing is no budget"
        );
    }
}
