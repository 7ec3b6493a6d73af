//! The history of a set's template: which revision is wanted, and which are old.
//!
//! A revision holds a patch that puts its template back, because that is what `kubectl rollout undo` sends.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::pods::controller_reference;

const HASH: &str = "controller.kubernetes.io/hash";
/// Letters and digits that make no words; upstream's names are made of them, too.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Longer names of sets are cut in names of revisions.
const PREFIX: usize = 223;
/// How many old revisions are kept if the set does not say.
const KEPT: i32 = 10;

/// What has to happen so that the set's template is the newest revision.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// It is the newest already.
    Newest(Arc<ControllerRevision>),
    /// It was there before: give it this number.
    Again(Arc<ControllerRevision>, i64),
    /// It is new, with this number.
    New(i64),
}

/// Sorts by number; ties by age, then by name.
pub fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by(|a, b| {
        let key = |revision: &ControllerRevision| {
            (revision.revision, revision.metadata.creation_timestamp.clone().map(|time| time.0))
        };
        key(a).cmp(&key(b)).then_with(|| a.metadata.name.cmp(&b.metadata.name))
    });
}

/// Decides by sorted revisions.
pub fn wanted(template: &PodTemplateSpec, revisions: &[Arc<ControllerRevision>]) -> Wanted {
    let next = revisions.last().map_or(1, |newest| newest.revision.saturating_add(1));
    let equal = revisions.iter().rev().find(|revision| template_of(revision).as_ref() == Some(template));
    match (equal, revisions.last()) {
        (Some(equal), Some(newest)) if Arc::ptr_eq(equal, newest) => Wanted::Newest(equal.clone()),
        (Some(equal), _) => Wanted::Again(equal.clone(), next),
        (None, _) => Wanted::New(next),
    }
}

/// The template a revision puts back.
pub fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// A revision of the set's template. `collisions` makes another name when one is taken by something else.
pub fn make(set: &StatefulSet, number: i64, collisions: i32) -> ControllerRevision {
    let template = set.spec.as_ref().map(|spec| &spec.template);
    let mut patch = serde_json::to_value(template).unwrap_or(Value::Null);
    if let Some(patch) = patch.as_object_mut() {
        patch.insert("$patch".to_owned(), json!("replace"));
    }
    let data = json!({"spec": {"template": patch}});
    let hash = hash(&format!("{data}{collisions}"));
    let name = set.name_any();
    let prefix = name.get(..PREFIX).unwrap_or(&name);
    let mut labels =
        template.and_then(|template| template.metadata.as_ref()?.labels.clone()).unwrap_or_default();
    labels.insert(HASH.to_owned(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{prefix}-{hash}")),
            namespace: set.namespace(),
            labels: Some(labels),
            annotations: set.metadata.annotations.clone(),
            owner_references: Some(vec![controller_reference(set)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: number,
    }
}

/// FNV-1 with 32 bits, written with letters that make no words.
fn hash(text: &str) -> String {
    let number =
        text.bytes().fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    let digits = number.to_string();
    digits.bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

/// The unused revisions, oldest first.
pub fn surplus(
    set: &StatefulSet,
    revisions: &[Arc<ControllerRevision>],
    live: &HashSet<String>,
) -> Vec<Arc<ControllerRevision>> {
    let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(KEPT);
    let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
    let old: Vec<_> = revisions.iter().filter(|revision| !live.contains(&revision.name_any())).collect();
    let too_many = old.len().saturating_sub(limit);
    old.into_iter().take(too_many).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(image: &str) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "u"},
            "spec": {"selector": {}, "revisionHistoryLimit": 1, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}},
        }))
        .unwrap()
    }

    fn made(image: &str, number: i64) -> Arc<ControllerRevision> {
        Arc::new(make(&set(image), number, 0))
    }

    fn template(image: &str) -> PodTemplateSpec {
        set(image).spec.unwrap().template
    }

    #[test]
    fn an_unchanged_template_keeps_its_revision_and_an_old_one_comes_back_with_a_new_number() {
        let (a, b) = (made("a", 1), made("b", 2));
        let known = [a.clone(), b.clone()];
        assert_eq!(wanted(&template("b"), &known), Wanted::Newest(b));
        assert_eq!(wanted(&template("a"), &known), Wanted::Again(a, 3));
        assert_eq!(wanted(&template("c"), &known), Wanted::New(3));
        assert_eq!(wanted(&template("c"), &[]), Wanted::New(1));
    }

    #[test]
    fn a_revision_is_named_after_its_content_and_holds_a_patch() {
        let (one, other) = (make(&set("a"), 1, 0), make(&set("b"), 1, 0));
        assert_eq!(one.name_any(), make(&set("a"), 7, 0).name_any());
        assert_ne!(one.name_any(), other.name_any());
        assert_ne!(one.name_any(), make(&set("a"), 1, 1).name_any());
        let data = &one.data.as_ref().unwrap().0;
        assert_eq!(data["spec"]["template"]["$patch"], "replace");
        assert_eq!(template_of(&one), Some(template("a")));
        assert_eq!(one.labels()["app"], "web");
    }

    #[test]
    fn history_keeps_the_live_ones_and_the_newest_of_the_rest() {
        let known = [made("a", 1), made("b", 2), made("c", 3), made("d", 4)];
        let live = HashSet::from([known[0].name_any(), known[3].name_any()]);
        let surplus = surplus(&set("d"), &known, &live);
        assert_eq!(surplus, [known[1].clone()]);
    }
}
