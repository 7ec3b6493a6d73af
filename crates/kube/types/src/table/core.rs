//! The core group.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::look::{Look, few};
use super::pods;

pub fn cells(kind: &str, object: Look<'_>) -> Option<Vec<Value>> {
    Some(match kind {
        "Pod" => pods::pod(object),
        "Service" => service(object),
        "Node" => node(object),
        "Namespace" => vec![json!(object.name()), json!(object.text("status/phase")), json!(object.age())],
        "ConfigMap" => {
            vec![
                json!(object.name()),
                json!(object.count("data") + object.count("binaryData")),
                json!(object.age()),
            ]
        }
        "Secret" => {
            vec![
                json!(object.name()),
                json!(object.text("type")),
                json!(object.count("data")),
                json!(object.age()),
            ]
        }
        "ServiceAccount" => vec![json!(object.name()), json!(object.age())],
        "Endpoints" => vec![json!(object.name()), json!(endpoints(object)), json!(object.age())],
        "Event" => event(object),
        "ReplicationController" => replication_controller(object),
        "PodTemplate" => {
            let (names, images) = object.containers("template/spec/containers");
            vec![
                json!(object.name()),
                json!(names),
                json!(images),
                json!(object.labels("template/metadata/labels")),
            ]
        }
        "PersistentVolume" => persistent_volume(object),
        "PersistentVolumeClaim" => claim(object),
        "ResourceQuota" => resource_quota(object),
        "ComponentStatus" => component_status(object),
        _ => return None,
    })
}

fn service(of: Look<'_>) -> Vec<Value> {
    let port = |port: Look<'_>| {
        let (number, node, protocol) = (port.number("port"), port.number("nodePort"), port.text("protocol"));
        if node > 0 { format!("{number}:{node}/{protocol}") } else { format!("{number}/{protocol}") }
    };
    let ports = of.list("spec/ports").map(port).collect::<Vec<_>>().join(",");
    let cluster_ip = of.get("spec/clusterIPs").and_then(|ips| ips.get(0)).and_then(Value::as_str);
    vec![
        json!(of.name()),
        json!(of.text("spec/type")),
        json!(cluster_ip.unwrap_or("<none>")),
        json!(external_ip(of)),
        json!(if ports.is_empty() { "<none>".to_owned() } else { ports }),
        json!(of.age()),
        json!(of.labels("spec/selector")),
    ]
}

fn external_ip(of: Look<'_>) -> String {
    let external = of.joined("spec/externalIPs", ",");
    match of.text("spec/type") {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external,
        "LoadBalancer" => {
            let balancer = balancer_addresses(of);
            let both: Vec<&str> =
                [&*balancer, &*external].into_iter().filter(|text| !text.is_empty()).collect();
            if both.is_empty() { "<pending>".to_owned() } else { both.join(",") }
        }
        "ExternalName" => of.text("spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Where a load balancer is reached.
pub fn balancer_addresses(of: Look<'_>) -> String {
    let address = |ingress: Look<'_>| match ingress.text("ip") {
        "" => ingress.text("hostname").to_owned(),
        ip => ip.to_owned(),
    };
    let addresses: BTreeSet<String> =
        of.list("status/loadBalancer/ingress").map(address).filter(|text| !text.is_empty()).collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn node(of: Look<'_>) -> Vec<Value> {
    let ready = of.condition("Ready").map(|of| of.text("status") == "True");
    let mut status = match ready {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if of.flag("spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = of.list("status/addresses").find(|address| address.text("type") == kind);
        found.map_or("<none>", |address| address.text("address"))
    };
    let architecture = of.text("status/nodeInfo/architecture");
    let mut kernel = of.text_or("status/nodeInfo/kernelVersion", "<unknown>").to_owned();
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        json!(of.name()),
        json!(status),
        json!(node_roles(of)),
        json!(of.age()),
        json!(of.text("status/nodeInfo/kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(of.text_or("status/nodeInfo/osImage", "<unknown>")),
        json!(kernel),
        json!(of.text_or("status/nodeInfo/containerRuntimeVersion", "<unknown>")),
    ]
}

fn node_roles(of: Look<'_>) -> String {
    let labels = of.get("metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let role = |(key, value): (&String, &Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    if roles.is_empty() { "<none>".to_owned() } else { roles }
}

fn endpoints(of: Look<'_>) -> String {
    let mut all = Vec::new();
    for subset in of.list("subsets") {
        let addresses = || subset.list("addresses").map(|address| address.text("ip"));
        if subset.count("ports") == 0 {
            all.extend(addresses().map(str::to_owned));
        }
        for port in subset.list("ports") {
            let number = port.number("port");
            all.extend(addresses().map(|ip| {
                if ip.contains(':') { format!("[{ip}]:{number}") } else { format!("{ip}:{number}") }
            }));
        }
    }
    if of.count("subsets") == 0 { "<none>".to_owned() } else { few(&all, 3, "") }
}

/// Also events of `events.k8s.io`, which name some members differently.
pub fn event(of: Look<'_>) -> Vec<Value> {
    let since = |paths: &[&str]| {
        let path = paths.iter().find(|path| !of.text(path).is_empty());
        path.map_or_else(|| "<unknown>".to_owned(), |path| of.since(path))
    };
    let first = since(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
    let (mut last, mut count) = (
        since(&["lastTimestamp", "deprecatedLastTimestamp"]),
        of.number("count").max(of.number("deprecatedCount")),
    );
    if last == "<unknown>" {
        last.clone_from(&first);
    }
    if of.has("series") {
        last = since(&["series/lastObservedTime"]);
        count = of.number("series/count");
    } else if count == 0 {
        count = 1;
    }
    let about = if of.has("regarding") { "regarding" } else { "involvedObject" };
    let below = |key: &str| of.text(&format!("{about}/{key}")).to_owned();
    let kind = below("kind").to_lowercase();
    let name = below("name");
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let either = |paths: &[&str]| {
        paths.iter().map(|path| of.text(path)).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component = either(&[
        "source/component",
        "deprecatedSource/component",
        "reportingComponent",
        "reportingController",
    ]);
    let instance = either(&["source/host", "deprecatedSource/host", "reportingInstance"]);
    let source = if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") };
    vec![
        json!(last),
        json!(of.text("type")),
        json!(of.text("reason")),
        json!(target),
        json!(below("fieldPath")),
        json!(source),
        json!(either(&["message", "note"]).trim()),
        json!(first),
        json!(count),
        json!(of.name()),
    ]
}

fn replication_controller(of: Look<'_>) -> Vec<Value> {
    let (names, images) = of.containers("spec/template/spec/containers");
    vec![
        json!(of.name()),
        json!(of.number("spec/replicas")),
        json!(of.number("status/replicas")),
        json!(of.number("status/readyReplicas")),
        json!(of.age()),
        json!(names),
        json!(images),
        json!(of.labels("spec/selector")),
    ]
}

fn access_modes(of: Look<'_>, path: &str) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = of.get(path).and_then(Value::as_array);
    let has = |mode: &str| modes.is_some_and(|modes| modes.iter().any(|of| of == mode));
    short.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// The class, which older objects name in an annotation.
fn storage_class(of: Look<'_>) -> &str {
    let annotations = of.get("metadata/annotations");
    let older = annotations.and_then(|all| all.get("volume.beta.kubernetes.io/storage-class"));
    older.and_then(Value::as_str).unwrap_or_else(|| of.text("spec/storageClassName"))
}

fn phase(of: Look<'_>) -> &str {
    if of.is_deleting() { "Terminating" } else { of.text("status/phase") }
}

fn persistent_volume(of: Look<'_>) -> Vec<Value> {
    let claim = if of.has("spec/claimRef") {
        format!("{}/{}", of.text("spec/claimRef/namespace"), of.text("spec/claimRef/name"))
    } else {
        String::new()
    };
    vec![
        json!(of.name()),
        json!(of.text_or("spec/capacity/storage", "0")),
        json!(access_modes(of, "spec/accessModes")),
        json!(of.text("spec/persistentVolumeReclaimPolicy")),
        json!(phase(of)),
        json!(claim),
        json!(storage_class(of)),
        json!(of.text_or("spec/volumeAttributesClassName", "<unset>")),
        json!(of.text("status/reason")),
        json!(of.age()),
        json!(of.text_or("spec/volumeMode", "<unset>")),
    ]
}

fn claim(of: Look<'_>) -> Vec<Value> {
    let volume = of.text("spec/volumeName");
    let (capacity, modes) = if volume.is_empty() {
        ("", String::new())
    } else {
        (of.text_or("status/capacity/storage", "0"), access_modes(of, "status/accessModes"))
    };
    vec![
        json!(of.name()),
        json!(phase(of)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(storage_class(of)),
        json!(of.text_or("spec/volumeAttributesClassName", "<unset>")),
        json!(of.age()),
        json!(of.text_or("spec/volumeMode", "<unset>")),
    ]
}

fn resource_quota(of: Look<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let used = of.get("status/used");
    for (name, hard) in of.get("status/hard").and_then(Value::as_object).into_iter().flatten() {
        let used = used.and_then(|used| used.get(name)).and_then(Value::as_str).unwrap_or("0");
        let text = format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"));
        if name.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    vec![json!(of.name()), json!(requests.join(", ")), json!(limits.join(", ")), json!(of.age())]
}

fn component_status(of: Look<'_>) -> Vec<Value> {
    let healthy = of.list("conditions").find(|condition| condition.text("type") == "Healthy");
    let (status, message, error) = healthy.map_or(("Unknown", "", ""), |of| {
        let status = if of.text("status") == "True" { "Healthy" } else { "Unhealthy" };
        (status, of.text("message"), of.text("error"))
    });
    vec![json!(of.name()), json!(status), json!(message), json!(error)]
}
