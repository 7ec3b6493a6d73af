//! Rules a job gives about failures and success. Pure.

use k8s_openapi::api::batch::v1::{Job, PodFailurePolicyOnExitCodesRequirement};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt as _;

use super::indexes::Indexes;

/// What a rule says about a failed pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It counts; no rule says anything else.
    Count,
    /// It does not count.
    Ignore,
    /// Its index has failed for good.
    FailIndex,
    /// The job has failed for good, for this reason.
    FailJob(String),
}

/// What the rules say about a failed pod; the first that fits counts.
pub fn of_failure(job: &Job, pod: &Pod) -> Verdict {
    let rules = job.spec.as_ref().and_then(|spec| Some(&spec.pod_failure_policy.as_ref()?.rules));
    for (position, rule) in rules.into_iter().flatten().enumerate() {
        let who = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        let why = if let Some(codes) = &rule.on_exit_codes {
            ended_with(pod, codes).map(|(container, code)| {
                format!("Container {container} for pod {who} failed with exit code {code} matching {} rule at index {position}", rule.action)
            })
        } else {
            let patterns = rule.on_pod_conditions.iter().flatten();
            let conditions = || pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            patterns
                .filter_map(|pattern| {
                    let status = pattern.status.as_deref().unwrap_or("True");
                    conditions().find(|known| known.type_ == pattern.type_ && known.status == status)
                })
                .map(|found| {
                    format!(
                        "Pod {who} has condition {} matching {} rule at index {position}",
                        found.type_, rule.action
                    )
                })
                .next()
        };
        match (why, rule.action.as_str()) {
            (Some(why), "FailJob") => return Verdict::FailJob(why),
            (Some(_), "Ignore") => return Verdict::Ignore,
            (Some(_), "FailIndex") => return Verdict::FailIndex,
            (Some(_), "Count") => return Verdict::Count,
            _ => {}
        }
    }
    Verdict::Count
}

/// The container that ended with one of the codes.
fn ended_with<'a>(pod: &'a Pod, codes: &PodFailurePolicyOnExitCodesRequirement) -> Option<(&'a str, i32)> {
    let status = pod.status.as_ref()?;
    let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    let code = |status: &ContainerStatus| Some(status.state.as_ref()?.terminated.as_ref()?.exit_code);
    all.filter(|status| codes.container_name.as_ref().is_none_or(|name| *name == status.name))
        .filter_map(|status| Some((status.name.as_str(), code(status)?)))
        .find(|(_, code)| {
            let listed = codes.values.contains(code);
            *code != 0 && if codes.operator == "In" { listed } else { codes.operator == "NotIn" && !listed }
        })
}

/// Which rule of success is met, if any.
pub fn of_success(job: &Job, succeeded: &Indexes, completions: u32) -> Option<String> {
    let rules = &job.spec.as_ref()?.success_policy.as_ref()?.rules;
    if succeeded.is_empty() {
        return None;
    }
    let position = rules.iter().position(|rule| {
        let enough = rule.succeeded_count.and_then(|count| u32::try_from(count).ok());
        match rule.succeeded_indexes.as_deref().map(|text| Indexes::parse(text, completions)) {
            Some(wanted) if wanted.is_empty() => false,
            Some(wanted) => {
                let shared = wanted.shared(succeeded);
                shared == wanted.len() || enough.is_some_and(|enough| shared >= enough)
            }
            None => enough.is_some_and(|enough| succeeded.len() >= enough),
        }
    })?;
    Some(format!("Matched rules at index {position}"))
}
