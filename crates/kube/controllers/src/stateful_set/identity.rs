//! Who is who in a set: names, ordinals, labels, and the volumes that belong to an ordinal.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use crate::pods;

/// The label that carries the name of a pod's revision.
pub const REVISION: &str = "controller-revision-hash";
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The set's name and the ordinal in the name of a pod; `None` if it cannot be a member of any set.
pub fn parse(pod_name: &str) -> Option<(&str, i32)> {
    let (parent, ordinal) = pod_name.rsplit_once('-')?;
    if ordinal.is_empty() || !ordinal.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((parent, ordinal.parse().ok()?))
}

/// The ordinal of a member of this set. A name that only looks like one (`web-01`) is no member's.
pub fn ordinal_in(set: &str, pod_name: &str) -> Option<i32> {
    let (parent, ordinal) = parse(pod_name)?;
    (parent == set && pod_name == format!("{set}-{ordinal}")).then_some(ordinal)
}

pub fn first_ordinal(set: &StatefulSet) -> i32 {
    let ordinals = set.spec.as_ref().and_then(|spec| spec.ordinals.as_ref());
    ordinals.and_then(|ordinals| ordinals.start).unwrap_or(0).max(0)
}

pub fn replicas(set: &StatefulSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

/// Whether the set wants a pod with this ordinal.
pub fn is_wanted(set: &StatefulSet, ordinal: i32) -> bool {
    let first = first_ordinal(set);
    ordinal >= first && ordinal < first.saturating_add(replicas(set))
}

pub fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", set.name_any())
}

/// The revision a pod was made of.
pub fn revision_of(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(REVISION)).map(String::as_str).unwrap_or_default()
}

/// The claims of an ordinal, as they are to be made.
pub fn claims(set: &StatefulSet, ordinal: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let Some(spec) = &set.spec else { return Vec::new() };
    let templates = spec.volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let name = template.metadata.name.clone().unwrap_or_default();
            let mut labels = template.metadata.labels.clone().unwrap_or_default();
            labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
            let metadata = ObjectMeta {
                name: Some(format!("{name}-{}-{ordinal}", set.name_any())),
                namespace: set.namespace(),
                labels: (!labels.is_empty()).then_some(labels),
                annotations: template.metadata.annotations.clone(),
                ..ObjectMeta::default()
            };
            (name, PersistentVolumeClaim { metadata, spec: template.spec.clone(), status: None })
        })
        .collect()
}

/// A member as it is to be made of a template.
pub fn pod(set: &StatefulSet, template: &PodTemplateSpec, revision: &str, ordinal: i32) -> Pod {
    let mut pod = pods::of_template(template, set);
    let name = pod_name(set, ordinal);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(REVISION.to_owned(), revision.to_owned());
    identify(labels, &name, ordinal);
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name.clone());
    spec.subdomain = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
    let claims = claims(set, ordinal);
    let mut volumes: Vec<Volume> = claims
        .iter()
        .map(|(volume, claim)| Volume {
            name: volume.clone(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim.name_any(),
                read_only: None,
            }),
            ..Volume::default()
        })
        .collect();
    // A volume of the template gives way to a claim of the same name.
    let own = spec.volumes.take().unwrap_or_default();
    volumes.extend(own.into_iter().filter(|own| claims.iter().all(|(volume, _)| *volume != own.name)));
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
    pod.metadata.name = Some(name);
    pod
}

fn identify(labels: &mut BTreeMap<String, String>, name: &str, ordinal: i32) {
    labels.insert(POD_NAME.to_owned(), name.to_owned());
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
}

/// The labels a member lacks, which an adopted pod may.
pub fn missing_labels(pod: &Pod, ordinal: i32) -> Option<BTreeMap<String, String>> {
    let name = pod.name_any();
    let known = pod.metadata.labels.as_ref().and_then(|labels| labels.get(POD_NAME));
    (known != Some(&name)).then(|| {
        let mut labels = BTreeMap::new();
        identify(&mut labels, &name, ordinal);
        labels
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_exact_names_are_members() {
        assert_eq!(ordinal_in("web", "web-0"), Some(0));
        assert_eq!(ordinal_in("web", "web-12"), Some(12));
        for name in ["web", "web-", "web-01", "web-+1", "web-x", "other-1", "web-1-2", "web-99999999999"] {
            assert_eq!(ordinal_in("web", name), None, "{name}");
        }
        assert_eq!(parse("a-b-3"), Some(("a-b", 3)));
    }

    #[test]
    fn a_member_has_its_name_everywhere_and_its_own_claims() {
        let set: StatefulSet = serde_json::from_value(json!({
            "metadata": {"name": "db", "namespace": "n", "uid": "u"},
            "spec": {"serviceName": "peers", "selector": {"matchLabels": {"app": "db"}}, "replicas": 2,
                "ordinals": {"start": 3},
                "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [], "volumes": [
                    {"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"tier": "x"}}, "spec": {}}]},
        }))
        .unwrap();
        let template = set.spec.as_ref().unwrap().template.clone();
        let pod = serde_json::to_value(pod(&set, &template, "db-r1", 4)).unwrap();
        assert_eq!(pod["metadata"]["name"], "db-4");
        assert_eq!(
            pod["metadata"]["labels"],
            json!({"app": "db", "controller-revision-hash": "db-r1",
                "statefulset.kubernetes.io/pod-name": "db-4", "apps.kubernetes.io/pod-index": "4"})
        );
        assert_eq!(
            (pod["spec"]["hostname"].as_str(), pod["spec"]["subdomain"].as_str()),
            (Some("db-4"), Some("peers"))
        );
        assert_eq!(
            pod["spec"]["volumes"],
            json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-4"}}, {"name": "tmp", "emptyDir": {}}])
        );
        let claims = claims(&set, 4);
        assert_eq!(claims[0].1.name_any(), "data-db-4");
        assert_eq!(
            serde_json::to_value(&claims[0].1.metadata.labels).unwrap(),
            json!({"app": "db", "tier": "x"})
        );
        assert!(is_wanted(&set, 3) && is_wanted(&set, 4) && !is_wanted(&set, 2) && !is_wanted(&set, 5));
    }
}
