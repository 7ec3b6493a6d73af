//! The status of a work, from what is known of its objects.

use std::sync::Arc;

use aro_base::Timestamp;
use aro_crds::work::v1::{
    ManifestCondition, ManifestResourceMeta, ManifestResourceStatus, ManifestWorkStatus, StatusFeedbackResult,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::choice::Choice;
use crate::conditions::{
    APPLIED, AVAILABLE, COMPLETE, Claim, DELETING, FEEDBACK, RULE_PREFIX, Truth, find, is_true, settle,
};
use crate::decide::Known;
use crate::failure::Failure;
use crate::feedback::gather;
use crate::live::Live;
use crate::rules;

/// What a pass found out about one manifest.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) meta: ManifestResourceMeta,
    pub(crate) choice: Choice,
    pub(crate) failure: Option<Arc<Failure>>,
    pub(crate) known: Known<Arc<Live>>,
}

/// What the status is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) generation: i64,
    /// What was reported last.
    pub(crate) old: &'a ManifestWorkStatus,
    pub(crate) now: Timestamp,
    pub(crate) max_json_raw: usize,
}

/// The status of a work.
pub(crate) fn of_work(frame: Frame<'_>, seen: &[Seen]) -> ManifestWorkStatus {
    let manifests: Vec<ManifestCondition> = seen.iter().map(|seen| of_manifest(frame, seen)).collect();
    let each: Vec<&[Condition]> = manifests.iter().map(|manifest| manifest.conditions.as_slice()).collect();
    let mut claims = vec![applied(&each, frame.generation), available(&each, frame.generation)];
    claims.extend(rules::aggregate(&each, frame.generation));
    ManifestWorkStatus {
        conditions: settle(&frame.old.conditions, claims, frame.now, None),
        resource_status: ManifestResourceStatus { manifests },
    }
}

/// The status of a work that goes: as it was, and that it goes.
pub(crate) fn of_leaving(frame: Frame<'_>, message: &str) -> ManifestWorkStatus {
    let claim = Claim::new(DELETING, Truth::True, "WorkDeleting", message).at(frame.generation);
    let mut status = frame.old.clone();
    let mut made = settle(&status.conditions, vec![claim], frame.now, None);
    status.conditions.retain(|condition| condition.type_ != DELETING);
    status.conditions.append(&mut made);
    status
}

/// Whether a work is done for good: nothing of it is written or looked at any more.
pub(crate) fn is_frozen(status: &ManifestWorkStatus, generation: i64) -> bool {
    find(&status.conditions, COMPLETE)
        .is_some_and(|complete| complete.status == "True" && complete.observed_generation == Some(generation))
}

/// Whether a report said that all of this generation is applied.
pub(crate) fn says_applied(status: &ManifestWorkStatus, generation: i64) -> bool {
    find(&status.conditions, APPLIED)
        .is_some_and(|applied| applied.status == "True" && applied.observed_generation == Some(generation))
}

/// Whether a report said that an object is done for good.
pub(crate) fn is_complete(status: &ManifestWorkStatus, meta: &ManifestResourceMeta, generation: i64) -> bool {
    before(status, meta).is_some_and(|manifest| {
        is_true(&manifest.conditions, COMPLETE)
            && find(&manifest.conditions, COMPLETE)
                .is_some_and(|complete| complete.observed_generation == Some(generation))
    })
}

/// What was reported of an object; its place in the list may be another now.
fn before<'a>(status: &'a ManifestWorkStatus, meta: &ManifestResourceMeta) -> Option<&'a ManifestCondition> {
    let same = |known: &ManifestResourceMeta| {
        (&known.group, &known.kind, &known.namespace, &known.name)
            == (&meta.group, &meta.kind, &meta.namespace, &meta.name)
    };
    let mut manifests = status.resource_status.manifests.iter();
    manifests.find(|manifest| same(&manifest.resource_meta))
}

fn of_manifest(frame: Frame<'_>, seen: &Seen) -> ManifestCondition {
    let nothing = ManifestCondition::default();
    let old = before(frame.old, &seen.meta).unwrap_or(&nothing);
    let mut claims =
        vec![manifest_applied(seen.failure.as_deref()).at(frame.generation), manifest_available(seen)];
    let (mut values, mut anew) = (Vec::new(), None);
    if let Known::There(live) = &seen.known {
        let feedback = gather(&seen.choice.feedback, live.value(), frame.max_json_raw);
        if feedback.values != old.status_feedback.values {
            anew = Some(FEEDBACK);
        }
        claims.push(synced(&seen.choice, &feedback.errors));
        values = feedback.values;
    }
    claims.extend(ruled(frame, seen, old));
    ManifestCondition {
        resource_meta: seen.meta.clone(),
        status_feedback: StatusFeedbackResult { values },
        conditions: settle(&old.conditions, claims, frame.now, anew),
    }
}

fn manifest_applied(failure: Option<&Failure>) -> Claim {
    match failure {
        None => Claim::new(APPLIED, Truth::True, "AppliedManifestComplete", "Apply manifest complete"),
        Some(failure) => {
            let reason = match failure {
                Failure::IgnoreFields(_) => "AppliedManifestSSAIgnoreFieldError",
                _ => "AppliedManifestFailed",
            };
            Claim::new(APPLIED, Truth::False, reason, format!("Failed to apply manifest: {failure}"))
        }
    }
}

fn manifest_available(seen: &Seen) -> Claim {
    match &seen.known {
        Known::There(_) => Claim::new(AVAILABLE, Truth::True, "ResourceAvailable", "Resource is available"),
        Known::Absent => {
            Claim::new(AVAILABLE, Truth::False, "ResourceNotAvailable", "Resource is not available")
        }
        Known::Unknown if seen.meta.resource.is_empty() || seen.meta.name.is_empty() => {
            Claim::new(AVAILABLE, Truth::Unknown, "IncompleteResourceMeta", "Resource meta is incompleted")
        }
        Known::Unknown => {
            Claim::new(AVAILABLE, Truth::Unknown, "FetchingResourceFailed", "Failed to fetch resource")
        }
    }
}

fn synced(choice: &Choice, errors: &[String]) -> Claim {
    if choice.feedback.is_empty() {
        Claim::new(FEEDBACK, Truth::True, "NoStatusFeedbackSynced", "")
    } else if errors.is_empty() {
        Claim::new(FEEDBACK, Truth::True, "StatusFeedbackSynced", "")
    } else {
        let message = format!("Sync status feedback failed with error [{}]", errors.join(", "));
        Claim::new(FEEDBACK, Truth::False, "StatusFeedbackSyncFailed", message)
    }
}

/// What the rules say. Of an object that is complete they have said their last word; of one that is not there they say
/// what they said of this generation.
fn ruled(frame: Frame<'_>, seen: &Seen, old: &ManifestCondition) -> Vec<Claim> {
    if seen.choice.rules.is_empty() {
        return Vec::new();
    }
    let said = |condition: &&Condition| {
        condition.reason.starts_with(RULE_PREFIX) && condition.observed_generation == Some(frame.generation)
    };
    let complete = is_complete(frame.old, &seen.meta, frame.generation);
    match &seen.known {
        Known::There(live) if !complete => {
            rules::evaluate(&seen.choice.rules, live.value(), frame.generation)
        }
        _ => old.conditions.iter().filter(said).filter_map(repeated).collect(),
    }
}

/// A condition as it was. The reasons of rules are few.
fn repeated(condition: &Condition) -> Option<Claim> {
    const REASONS: [&str; 4] = [
        "ConditionRuleEvaluated",
        "ConditionRuleExpressionError",
        "ConditionRuleInvalid",
        "ConditionRuleInternalError",
    ];
    let reason = REASONS.into_iter().find(|reason| *reason == condition.reason)?;
    let truth = match condition.status.as_str() {
        "True" => Truth::True,
        "False" => Truth::False,
        _ => Truth::Unknown,
    };
    let claim = Claim::new(&condition.type_, truth, reason, condition.message.clone());
    Some(Claim { generation: condition.observed_generation, ..claim })
}

fn applied(manifests: &[&[Condition]], generation: i64) -> Claim {
    if manifests.iter().all(|conditions| is_true(conditions, APPLIED)) {
        Claim::new(APPLIED, Truth::True, "AppliedManifestWorkComplete", "Apply manifest work complete")
    } else {
        Claim::new(APPLIED, Truth::False, "AppliedManifestWorkFailed", "Failed to apply manifest work")
    }
    .at(generation)
}

fn available(manifests: &[&[Condition]], generation: i64) -> Claim {
    let count = |word: &str| {
        let with = |conditions: &&&[Condition]| {
            find(conditions, AVAILABLE).is_some_and(|found| found.status == word)
        };
        manifests.iter().filter(with).count()
    };
    let (total, missing, unknown) = (manifests.len(), count("False"), count("Unknown"));
    if missing > 0 {
        let message = format!("{missing} of {total} resources are not available");
        Claim::new(AVAILABLE, Truth::False, "ResourcesNotAvailable", message)
    } else if unknown > 0 {
        let message = format!("{unknown} of {total} resources have unknown status");
        Claim::new(AVAILABLE, Truth::Unknown, "ResourcesStatusUnknown", message)
    } else {
        Claim::new(AVAILABLE, Truth::True, "ResourcesAvailable", "All resources are available")
    }
    .at(generation)
}

#[cfg(test)]
mod tests;
