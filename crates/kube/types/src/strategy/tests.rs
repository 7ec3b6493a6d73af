use std::sync::Arc;

use aro_kube_apimachinery::GroupVersionKind;
use serde_json::json;

use super::*;

fn resource(group: &str, kind: &str) -> &'static Arc<ResourceType> {
    builtin().by_gvk(&GroupVersionKind::new(group, "v1", kind)).unwrap()
}

#[test]
fn status_is_written_through_its_subresource_only() {
    let deployments = resource("apps", "Deployment");
    let old = json!({"metadata": {"generation": 4, "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
    let mut new = json!({"metadata": {"generation": 9}, "spec": {"replicas": 2}, "status": {"replicas": 7}});
    prepare_update(deployments, "", &mut new, &old);
    assert_eq!(
        new,
        json!({"metadata": {"generation": 5}, "spec": {"replicas": 2}, "status": {"replicas": 1}})
    );

    let mut new = json!({"metadata": {}, "spec": {"replicas": 2}, "status": {"replicas": 7}});
    prepare_update(deployments, "status", &mut new, &old);
    assert_eq!(
        new,
        json!({"metadata": {"generation": 4, "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 7}})
    );
}

#[test]
fn annotations_of_a_deployment_count_but_labels_do_not() {
    let old = json!({"metadata": {"generation": 1}, "spec": {}, "status": {}});
    for (metadata, generation) in
        [(json!({"labels": {"a": "b"}}), 1), (json!({"annotations": {"a": "b"}}), 2)]
    {
        let mut new = json!({"metadata": metadata, "spec": {}, "status": {}});
        prepare_update(resource("apps", "Deployment"), "", &mut new, &old);
        assert_eq!(new["metadata"]["generation"], generation);
    }
}

#[test]
fn a_config_map_has_no_generation() {
    let mut map = json!({"metadata": {"generation": 3}, "data": {}});
    prepare_create(resource("", "ConfigMap"), &mut map);
    assert_eq!(map, json!({"metadata": {}, "data": {}}));
}

#[test]
fn namespaces_keep_their_finalizers_until_finalized() {
    let namespaces = resource("", "Namespace");
    let old =
        json!({"metadata": {}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"}});
    let asked = json!({"metadata": {}, "spec": {"finalizers": []}, "status": {"phase": "Active"}});
    let mut new = asked.clone();
    prepare_update(namespaces, "", &mut new, &old);
    assert_eq!(new, old);
    let mut new = asked;
    prepare_update(namespaces, "finalize", &mut new, &old);
    assert_eq!(new["spec"]["finalizers"], json!([]));
    assert_eq!(new["status"]["phase"], "Terminating");
}

#[test]
fn approval_changes_nothing_but_conditions() {
    let old = json!({"metadata": {}, "spec": {"request": "x"}, "status": {"certificate": "c"}});
    let mut new =
        json!({"metadata": {}, "spec": {"request": "y"}, "status": {"conditions": [{"type": "Approved"}]}});
    prepare_update(resource("certificates.k8s.io", "CertificateSigningRequest"), "approval", &mut new, &old);
    assert_eq!(
        new,
        json!({"metadata": {}, "spec": {"request": "x"}, "status": {"certificate": "c", "conditions": [{"type": "Approved"}]}})
    );
}

#[test]
fn a_changed_template_counts_in_the_annotation_of_a_daemon_set() {
    let old = json!({"metadata": {"generation": 1, "annotations": {"deprecated.daemonset.template.generation": "3"}},
        "spec": {"template": {"a": 1}}});
    let mut new = json!({"metadata": {}, "spec": {"template": {"a": 2}}});
    prepare_update(resource("apps", "DaemonSet"), "", &mut new, &old);
    assert_eq!(new["metadata"]["annotations"]["deprecated.daemonset.template.generation"], "4");
    assert_eq!(new["metadata"]["generation"], 2);
}
