//! The smaller groups.

use aro_base::SignedDuration;
use serde_json::{Value, json};

use super::age::human_duration;
use super::core::{balancer_addresses, event};
use super::look::{Look, few};

pub fn cells(group: &str, kind: &str, of: Look<'_>) -> Option<Vec<Value>> {
    let row = |middle: Vec<Value>| {
        std::iter::once(json!(of.name())).chain(middle).chain(std::iter::once(json!(of.age()))).collect()
    };
    Some(match (group, kind) {
        ("events.k8s.io", "Event") => event(of),
        ("networking.k8s.io", "Ingress") => row(ingress(of)),
        ("networking.k8s.io", "IngressClass") => ingress_class(of),
        ("networking.k8s.io", "NetworkPolicy") => row(vec![json!(of.selector_or_none("spec/podSelector"))]),
        ("networking.k8s.io", "IPAddress") => row(vec![json!(parent(of))]),
        ("networking.k8s.io", "ServiceCIDR") => row(vec![json!(of.joined("spec/cidrs", ","))]),
        ("discovery.k8s.io", "EndpointSlice") => row(endpoint_slice(of)),
        ("coordination.k8s.io", "Lease") => row(vec![json!(of.text("spec/holderIdentity"))]),
        ("policy", "PodDisruptionBudget") => row(vec![
            json!(of.shown("spec/minAvailable", "N/A")),
            json!(of.shown("spec/maxUnavailable", "N/A")),
            json!(of.number("status/disruptionsAllowed")),
        ]),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => role_binding(of),
        ("certificates.k8s.io", "CertificateSigningRequest") => signing_request(of),
        ("apiregistration.k8s.io", "APIService") => row(api_service(of)),
        ("scheduling.k8s.io", "PriorityClass") => vec![
            json!(of.name()),
            json!(of.number("value")),
            json!(of.flag("globalDefault")),
            json!(of.age()),
            json!(of.text("preemptionPolicy")),
        ],
        ("node.k8s.io", "RuntimeClass") => row(vec![json!(of.text("handler"))]),
        ("storage.k8s.io", _) => return storage(kind, of),
        ("admissionregistration.k8s.io", _) => return admission(kind, of),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flow_schema(of),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => row(priority_level(of)),
        ("resource.k8s.io", "ResourceClaim") => row(vec![json!(claim_state(of))]),
        ("resource.k8s.io", "ResourceSlice") => row(vec![
            json!(of.text("spec/nodeName")),
            json!(of.text("spec/driver")),
            json!(of.text("spec/pool/name")),
        ]),
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => row(Vec::new()),
        _ => return None,
    })
}

fn ingress(of: Look<'_>) -> Vec<Value> {
    const MOST: usize = 3;
    let hosts: Vec<&str> =
        of.list("spec/rules").map(|rule| rule.text("host")).filter(|host| !host.is_empty()).collect();
    let rules = of.count("spec/rules");
    let shown = hosts.iter().take(MOST).copied().collect::<Vec<_>>().join(",");
    // Upstream counts rules here, hosts or not, once three hosts are shown and a rule follows.
    let third =
        of.list("spec/rules").enumerate().filter(|(_, rule)| !rule.text("host").is_empty()).nth(MOST - 1);
    let more = third.is_some_and(|(index, _)| index + 1 < rules);
    let hosts = match (hosts.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (_, true) => format!("{shown} + {} more...", rules - MOST),
        _ => shown,
    };
    let ports = if of.count("spec/tls") == 0 { "80" } else { "80, 443" };
    vec![
        json!(of.text_or("spec/ingressClassName", "<none>")),
        json!(hosts),
        json!(balancer_addresses(of)),
        json!(ports),
    ]
}

fn annotated(of: Look<'_>, key: &str) -> bool {
    of.get("metadata/annotations").and_then(|all| all.get(key)).is_some_and(|value| value == "true")
}

fn ingress_class(of: Look<'_>) -> Vec<Value> {
    let default = annotated(of, "ingressclass.kubernetes.io/is-default-class");
    let name = if default { format!("{} (default)", of.name()) } else { of.name().to_owned() };
    let parameters = if of.has("spec/parameters") {
        let kind = of.text("spec/parameters/kind");
        let kind = match of.text("spec/parameters/apiGroup") {
            "" => kind.to_owned(),
            group => format!("{kind}.{group}"),
        };
        format!("{kind}/{}", of.text("spec/parameters/name"))
    } else {
        "<none>".to_owned()
    };
    vec![json!(name), json!(of.text("spec/controller")), json!(parameters), json!(of.age())]
}

fn parent(of: Look<'_>) -> String {
    if !of.has("spec/parentRef") {
        return "<none>".to_owned();
    }
    let part = |key: &str| of.text(&format!("spec/parentRef/{key}"));
    let group = part("group");
    let resource =
        if group.is_empty() { part("resource").to_owned() } else { format!("{}.{group}", part("resource")) };
    match part("namespace") {
        "" => format!("{}/{}", resource.to_lowercase(), part("name")),
        namespace => format!("{}/{namespace}/{}", resource.to_lowercase(), part("name")),
    }
}

fn endpoint_slice(of: Look<'_>) -> Vec<Value> {
    let port = |port: Look<'_>| match port.get("port") {
        Some(number) => number.to_string(),
        None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
    };
    let ports: Vec<String> = of.list("ports").map(port).collect();
    let mut addresses = Vec::new();
    for endpoint in of.list("endpoints") {
        let list = endpoint.get("addresses").and_then(Value::as_array).into_iter().flatten();
        addresses.extend(list.filter_map(Value::as_str).map(str::to_owned));
    }
    vec![
        json!(of.text("addressType")),
        json!(few(&ports, 3, "<unset>")),
        json!(few(&addresses, 3, "<unset>")),
    ]
}

fn role_binding(of: Look<'_>) -> Vec<Value> {
    let role = format!("{}/{}", of.text("roleRef/kind"), of.text("roleRef/name"));
    let subjects = |kind: &str| {
        let own = of.list("subjects").filter(|subject| subject.text("kind") == kind);
        let names = own.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
            _ => subject.text("name").to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    vec![
        json!(of.name()),
        json!(role),
        json!(of.age()),
        json!(subjects("User")),
        json!(subjects("Group")),
        json!(subjects("ServiceAccount")),
    ]
}

fn signing_request(of: Look<'_>) -> Vec<Value> {
    let has = |kind: &str| of.condition(kind).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !of.text("status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    let duration = of.get("spec/expirationSeconds").and_then(Value::as_i64);
    let duration = duration
        .map_or_else(|| "<none>".to_owned(), |seconds| human_duration(SignedDuration::from_secs(seconds)));
    vec![
        json!(of.name()),
        json!(of.age()),
        json!(of.text_or("spec/signerName", "<none>")),
        json!(of.text("spec/username")),
        json!(duration),
        json!(status),
    ]
}

fn api_service(of: Look<'_>) -> Vec<Value> {
    let service = if of.has("spec/service") {
        format!("{}/{}", of.text("spec/service/namespace"), of.text("spec/service/name"))
    } else {
        "Local".to_owned()
    };
    let available = of.condition("Available").map_or_else(
        || "Unknown".to_owned(),
        |condition| match (condition.text("status"), condition.text("reason")) {
            ("True", _) => "True".to_owned(),
            (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    );
    vec![json!(service), json!(available)]
}

fn storage(kind: &str, of: Look<'_>) -> Option<Vec<Value>> {
    Some(match kind {
        "StorageClass" => {
            let default = annotated(of, "storageclass.kubernetes.io/is-default-class")
                || annotated(of, "storageclass.beta.kubernetes.io/is-default-class");
            let name = if default { format!("{} (default)", of.name()) } else { of.name().to_owned() };
            vec![
                json!(name),
                json!(of.text("provisioner")),
                json!(of.text_or("reclaimPolicy", "Delete")),
                json!(of.text_or("volumeBindingMode", "Immediate")),
                json!(of.flag("allowVolumeExpansion")),
                json!(of.age()),
            ]
        }
        "CSINode" => vec![json!(of.name()), json!(of.count("spec/drivers")), json!(of.age())],
        "CSIDriver" => {
            let modes = of.joined("spec/volumeLifecycleModes", ",");
            let audiences =
                of.list("spec/tokenRequests").map(|of| of.text("audience")).collect::<Vec<_>>().join(",");
            vec![
                json!(of.name()),
                json!(of.get("spec/attachRequired").and_then(Value::as_bool).unwrap_or(true)),
                json!(of.flag("spec/podInfoOnMount")),
                json!(of.flag("spec/storageCapacity")),
                json!(if of.has("spec/tokenRequests") { audiences } else { "<unset>".to_owned() }),
                json!(of.flag("spec/requiresRepublish")),
                json!(if modes.is_empty() { "<none>".to_owned() } else { modes }),
                json!(of.age()),
            ]
        }
        "VolumeAttachment" => vec![
            json!(of.name()),
            json!(of.text("spec/attacher")),
            json!(of.text("spec/source/persistentVolumeName")),
            json!(of.text("spec/nodeName")),
            json!(of.flag("status/attached")),
            json!(of.age()),
        ],
        "VolumeAttributesClass" => vec![json!(of.name()), json!(of.text("driverName")), json!(of.age())],
        _ => return None,
    })
}

fn admission(kind: &str, of: Look<'_>) -> Option<Vec<Value>> {
    let policy = |count: &str| {
        let parameters = if of.has("spec/paramKind") {
            format!("{}/{}", of.text("spec/paramKind/apiVersion"), of.text("spec/paramKind/kind"))
        } else {
            "<unset>".to_owned()
        };
        vec![json!(of.name()), json!(of.count(count)), json!(parameters), json!(of.age())]
    };
    Some(match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            vec![json!(of.name()), json!(of.count("webhooks")), json!(of.age())]
        }
        "ValidatingAdmissionPolicy" => policy("spec/validations"),
        "MutatingAdmissionPolicy" => policy("spec/mutations"),
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            let parameters = match (of.text("spec/paramRef/name"), of.text("spec/paramRef/namespace")) {
                ("", _) => "<unset>".to_owned(),
                (name, "") => format!("*/{name}"),
                (name, namespace) => format!("{namespace}/{name}"),
            };
            vec![json!(of.name()), json!(of.text("spec/policyName")), json!(parameters), json!(of.age())]
        }
        _ => return None,
    })
}

fn flow_schema(of: Look<'_>) -> Vec<Value> {
    let dangling = of.condition("Dangling").map_or("?", |condition| condition.text("status"));
    vec![
        json!(of.name()),
        json!(of.text("spec/priorityLevelConfiguration/name")),
        json!(of.number("spec/matchingPrecedence")),
        json!(of.text_or("spec/distinguisherMethod/type", "<none>")),
        json!(of.age()),
        json!(dangling),
    ]
}

fn priority_level(of: Look<'_>) -> Vec<Value> {
    let number = |path: &str| of.get(path).cloned().unwrap_or_else(|| json!("<none>"));
    vec![
        json!(of.text("spec/type")),
        number("spec/limited/nominalConcurrencyShares"),
        number("spec/limited/limitResponse/queuing/queues"),
        number("spec/limited/limitResponse/queuing/handSize"),
        number("spec/limited/limitResponse/queuing/queueLengthLimit"),
    ]
}

fn claim_state(of: Look<'_>) -> String {
    let mut states = Vec::new();
    if of.is_deleting() {
        states.push("deleted");
    }
    if of.has("status/allocation") {
        states.push("allocated");
        if of.count("status/reservedFor") > 0 {
            states.push("reserved");
        }
    } else if !of.is_deleting() {
        states.push("pending");
    }
    states.join(",")
}
