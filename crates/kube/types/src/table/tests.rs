use aro_kube_apimachinery::GroupVersionKind;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::registry::builtin;

fn row(group: &str, kind: &str, object: Value) -> Vec<Value> {
    let resource = builtin().by_gvk(&GroupVersionKind::new(group, "v1", kind)).unwrap();
    cells(resource, &object, "2026-01-01T01:00:00Z".parse().unwrap())
}

fn texts(cells: Vec<Value>) -> Vec<String> {
    cells.iter().map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)).collect()
}

#[test]
fn every_resource_has_as_many_cells_as_columns() {
    for resource in builtin().resources().iter().filter(|of| of.allows("list")) {
        let cells = cells(resource, &json!({"metadata": {"name": "x"}}), Timestamp::UNIX_EPOCH);
        // Upstream itself has one cell too many here.
        let extra = usize::from(resource.gvk.kind == "IPAddress");
        assert_eq!(cells.len(), columns(resource).len() + extra, "{}", resource.gvk);
    }
}

#[test]
fn columns_are_described_where_upstream_documents_the_field() {
    let pods = builtin().by_gvk(&GroupVersionKind::new("", "v1", "Pod")).unwrap();
    let columns = columns(pods);
    assert_eq!(columns[0].format, "name");
    assert!(columns[0].description.starts_with("Name must be unique within a namespace."));
    assert!(columns[4].description.starts_with("CreationTimestamp is a timestamp"));
    assert_eq!(columns[8].priority, 1);
}

#[test]
fn a_running_pod_shows_its_containers() {
    let pod = json!({"metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": "n", "containers": [{"name": "a"}, {"name": "b"}]},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "containerStatuses": [
            {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}},
             "lastState": {"terminated": {"finishedAt": "2026-01-01T00:50:00Z"}}},
            {"name": "b", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}});
    assert_eq!(
        texts(row("", "Pod", pod)),
        ["p", "1/2", "CrashLoopBackOff", "2 (10m ago)", "60m", "10.0.0.1", "n", "<none>", "<none>"]
    );
}

#[test]
fn pods_say_why_they_are_not_running() {
    let status = |pod: Value| texts(row("", "Pod", pod))[2].clone();
    assert_eq!(status(json!({"status": {"phase": "Pending"}})), "Pending");
    assert_eq!(
        status(json!({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}})),
        "Terminating"
    );
    let init = json!({"spec": {"initContainers": [{"name": "i"}, {"name": "j"}]},
        "status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}});
    assert_eq!(status(init), "Init:0/2");
    let done = json!({"status": {"phase": "Succeeded",
        "containerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}});
    assert_eq!(status(done), "Completed");
    let killed =
        json!({"status": {"containerStatuses": [{"state": {"terminated": {"exitCode": 137, "signal": 9}}}]}});
    assert_eq!(status(killed), "Signal:9");
}

#[test]
fn other_kinds_show_what_people_look_for() {
    let created = "2025-12-31T01:00:00Z";
    for (group, kind, mut object, expected) in [
        ("", "ConfigMap", json!({"data": {"a": "1"}, "binaryData": {"b": ""}}), vec!["x", "2", "24h"]),
        ("", "Secret", json!({"type": "Opaque", "data": {"a": ""}}), vec!["x", "Opaque", "1", "24h"]),
        ("", "Namespace", json!({"status": {"phase": "Active"}}), vec!["x", "Active", "24h"]),
        (
            "batch",
            "Job",
            json!({"spec": {"completions": 1, "selector": {"matchLabels": {"a": "b"}}}}),
            vec!["x", "Running", "0/1", "", "24h", "", "", "a=b"],
        ),
        (
            "apps",
            "Deployment",
            json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}, "status": {"readyReplicas": 1}}),
            vec!["x", "1/2", "0", "0", "24h", "c", "i", "a=b"],
        ),
        (
            "",
            "Service",
            json!({"spec": {"type": "NodePort", "clusterIPs": ["10.0.0.1"],
            "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}]}}),
            vec!["x", "NodePort", "10.0.0.1", "<none>", "80:30000/TCP", "24h", "<none>"],
        ),
        (
            "",
            "Node",
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1"}}}),
            vec![
                "x",
                "Ready",
                "<none>",
                "24h",
                "v1",
                "<none>",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>",
            ],
        ),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            json!({"spec": {"signerName": "s", "username": "u",
            "expirationSeconds": 3600}, "status": {"conditions": [{"type": "Approved"}], "certificate": "x"}}),
            vec!["x", "24h", "s", "u", "60m", "Approved,Issued"],
        ),
        (
            "",
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "a"}, {"ip": "b"}, {"ip": "c"}, {"ip": "d"}],
            "ports": [{"port": 1}]}]}),
            vec!["x", "a:1,b:1,c:1 + 1 more...", "24h"],
        ),
        ("rbac.authorization.k8s.io", "Role", json!({}), vec!["x", created]),
    ] {
        object["metadata"] = json!({"name": "x", "creationTimestamp": created});
        assert_eq!(texts(row(group, kind, object)), expected, "{kind}");
    }
}

#[test]
fn an_event_says_when_and_about_what() {
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"}, "type": "Normal",
        "reason": "Started", "message": " up ", "eventTime": "2026-01-01T00:59:00.000000Z", "firstTimestamp": null,
        "reportingComponent": "kubelet", "source": {}});
    assert_eq!(
        texts(row("", "Event", event)),
        ["60s", "Normal", "Started", "pod/p", "", "kubelet", "up", "60s", "1", "e"]
    );
}

#[test]
fn a_pod_that_ended_says_so_in_its_row() {
    let pods = builtin().by_gvk(&GroupVersionKind::new("", "v1", "Pod")).unwrap();
    assert!(row_conditions(pods, &json!({"status": {"phase": "Failed"}})).is_some());
    assert!(row_conditions(pods, &json!({"status": {"phase": "Running"}})).is_none());
}

proptest! {
    #[test]
    fn cells_never_panic(pick in any::<prop::sample::Index>(), text in "\\PC{0,12}", number in any::<i64>()) {
        let resource = pick.get(builtin().resources());
        for value in [json!(text), json!(number), json!([{"a": text}]), json!({"b": [number]})] {
            let object = json!({"metadata": value, "spec": value, "status": {"conditions": value, "hard": value}});
            cells(resource, &object, Timestamp::UNIX_EPOCH);
        }
    }
}

#[test]
fn rows_are_those_of_a_real_server() {
    let recorded: Value = serde_json::from_str(include_str!("../../tests/golden/rows.json")).unwrap();
    let mut wrong = Vec::new();
    for row in recorded.as_array().unwrap() {
        let (version, kind) = row["api"].as_str().unwrap().split_once('|').unwrap();
        let gvk = aro_kube_apimachinery::GroupVersion::parse(version).unwrap().with_kind(kind);
        let resource = builtin().by_gvk(&gvk).unwrap();
        let own = cells(resource, &row["object"], row["now"].as_str().unwrap().parse().unwrap());
        // A second may pass between the answer and the note of its time.
        let theirs = row["cells"].as_array().unwrap();
        if own != *theirs {
            wrong.push(format!("{kind}\n   own {own:?}\ntheirs {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
