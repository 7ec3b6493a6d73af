//! Who may do what, and smaller groups: roles, certificates, leases, priorities, webhooks.

use serde_json::Value;

use super::path::{Found, Path, list, member, number, text};
use super::workloads::{at_most_100_percent, count_or_percent};
use super::{format, selectors};

const SPEC: Path<'static> = Path::new("spec");
const RBAC: &str = "rbac.authorization.k8s.io";

pub fn rbac(found: &mut Found, kind: &str, object: &Value) {
    match kind {
        "Role" | "ClusterRole" => role(found, object, kind == "Role"),
        _ => binding(found, object, kind == "RoleBinding"),
    }
}

fn role(found: &mut Found, object: &Value, namespaced: bool) {
    let rules = Path::new("rules");
    for (index, rule) in list(object, "rules").iter().enumerate() {
        let at = rules.index(index);
        if list(rule, "verbs").is_empty() {
            found.required(&at.child("verbs"), "verbs must contain at least one value");
        }
        let urls = list(rule, "nonResourceURLs");
        let url_at = at.child("nonResourceURLs");
        let resources = [list(rule, "apiGroups"), list(rule, "resources"), list(rule, "resourceNames")];
        if !urls.is_empty() {
            if namespaced {
                found.invalid(&url_at, urls.to_vec(), "namespaced rules cannot apply to non-resource URLs");
            }
            if resources.iter().any(|list| !list.is_empty()) {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                found.invalid(&url_at, urls.to_vec(), why);
            }
            continue;
        }
        if resources[0].is_empty() {
            found.required(&at.child("apiGroups"), "resource rules must supply at least one api group");
        }
        if resources[1].is_empty() {
            found.required(&at.child("resources"), "resource rules must supply at least one resource");
        }
    }
    if let Some(aggregation) = member(object, "aggregationRule") {
        let rule = Path::new("aggregationRule");
        let at = rule.child("clusterRoleSelectors");
        let all = list(aggregation, "clusterRoleSelectors");
        if all.is_empty() {
            found.required(&at, "at least one clusterRoleSelector required if aggregationRule is non-nil");
        }
        for (index, selector) in all.iter().enumerate() {
            selectors::check(found, selector, &at.index(index));
        }
    }
}

fn binding(found: &mut Found, object: &Value, namespaced: bool) {
    let at = Path::new("roleRef");
    let role = &object["roleRef"];
    found.one_of(&at.child("apiGroup"), text(role, "apiGroup"), &[RBAC]);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    found.one_of(&at.child("kind"), text(role, "kind"), kinds);
    match text(role, "name") {
        "" => found.required(&at.child("name"), ""),
        name => found.texts(&at.child("name"), name, format::path_segment(name)),
    }
    let subjects = Path::new("subjects");
    for (index, subject) in list(object, "subjects").iter().enumerate() {
        let at = subjects.index(index);
        let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
        if name.is_empty() {
            found.required(&at.child("name"), "");
        }
        match text(subject, "kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    found.texts(&at.child("name"), name, format::dns_subdomain(name));
                }
                found.one_of(&at.child("apiGroup"), group, &[""]);
                if !namespaced && text(subject, "namespace").is_empty() {
                    found.required(&at.child("namespace"), "");
                }
            }
            "User" | "Group" => found.one_of(&at.child("apiGroup"), group, &[RBAC]),
            other => found.not_supported(&at.child("kind"), other, &["ServiceAccount", "User", "Group"]),
        }
    }
}

pub fn role_ref_update(found: &mut Found, new: &Value, old: &Value) {
    if new["roleRef"] != old["roleRef"] {
        let role = &new["roleRef"];
        let shown =
            serde_json::json!({"APIGroup": role["apiGroup"], "Kind": role["kind"], "Name": role["name"]});
        found.invalid(&Path::new("roleRef"), shown, "cannot change roleRef");
    }
}

pub fn disruption_budget(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    if member(spec, "minAvailable").is_some() && member(spec, "maxUnavailable").is_some() {
        found.invalid(&SPEC, spec.clone(), "minAvailable and maxUnavailable cannot be both set");
    }
    for key in ["minAvailable", "maxUnavailable"] {
        count_or_percent(found, spec.get(key), &SPEC.child(key));
        at_most_100_percent(found, spec.get(key), &SPEC.child(key));
    }
    if let Some(selector) = member(spec, "selector") {
        selectors::check(found, selector, &SPEC.child("selector"));
    }
    if let Some(policy) = member(spec, "unhealthyPodEvictionPolicy").and_then(Value::as_str) {
        let at = SPEC.child("unhealthyPodEvictionPolicy");
        found.one_of(&at, policy, &["AlwaysAllow", "IfHealthyBudget"]);
    }
}

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub fn signing_request(found: &mut Found, object: &Value) {
    use base64::Engine as _;
    let spec = &object["spec"];
    let request = text(spec, "request");
    let decoded = base64::engine::general_purpose::STANDARD.decode(request).unwrap_or_default();
    let begin = b"-----BEGIN CERTIFICATE REQUEST-----";
    if !decoded.windows(begin.len()).any(|window| window == begin) {
        let shown = if text(&object["spec"], "request").is_empty() { Value::Null } else { request.into() };
        found.invalid(&SPEC.child("request"), shown, "PEM block type must be CERTIFICATE REQUEST");
    }
    let at = SPEC.child("usages");
    let usages = list(spec, "usages");
    if usages.is_empty() {
        found.required(&at, "");
    }
    for (index, usage) in usages.iter().filter_map(Value::as_str).enumerate() {
        found.one_of(&at.index(index), usage, &USAGES);
        if usages.iter().take(index).any(|earlier| earlier == usage) {
            found.duplicate(&at.index(index), usage);
        }
    }
    let at = SPEC.child("signerName");
    match text(spec, "signerName") {
        "" => found.required(&at, ""),
        "kubernetes.io/legacy-unknown" => {
            let why = "the legacy signerName is not allowed via this API version";
            found.invalid(&at, "kubernetes.io/legacy-unknown", why);
        }
        signer if !format::is_domain_path(signer) => {
            let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            found.invalid(&at, signer, why);
        }
        _ => {}
    }
    if let Some(seconds) = number(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        found.invalid(&SPEC.child("expirationSeconds"), seconds, why);
    }
}

pub fn lease(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    if let Some(seconds) = number(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        found.invalid(&SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0");
    }
    found.not_negative(&SPEC.child("leaseTransitions"), spec.get("leaseTransitions"));
}

pub fn priority_class(found: &mut Found, object: &Value) {
    const MOST: i64 = 1_000_000_000;
    let name = text(&object["metadata"], "name");
    let value = number(object, "value").unwrap_or_default();
    let known = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
    let system = known.iter().any(|(known, priority)| *known == name && *priority == value);
    if name.starts_with("system-") && !system {
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
        );
        let metadata = Path::new("metadata");
        found.forbidden(&metadata.child("name"), &why);
    } else if !system && value > MOST {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        found.forbidden(&Path::new("value"), why);
    }
    if let Some(policy) = member(object, "preemptionPolicy").and_then(Value::as_str) {
        found.one_of(&Path::new("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]);
    }
}

pub fn priority_class_update(found: &mut Found, new: &Value, old: &Value) {
    if number(new, "value") != number(old, "value") {
        found.forbidden(&Path::new("value"), "may not be changed in an update.");
    }
    found.immutable(
        &Path::new("preemptionPolicy"),
        member(new, "preemptionPolicy"),
        member(old, "preemptionPolicy"),
    );
}

pub fn runtime_class(found: &mut Found, object: &Value) {
    let at = Path::new("handler");
    match text(object, "handler") {
        "" => found.required(&at, ""),
        name => found.texts(&at, name, format::dns_label(name)),
    }
}

pub fn api_service(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    let name = text(&object["metadata"], "name");
    let wanted = format!("{}.{}", text(spec, "version"), text(spec, "group"));
    if name != wanted {
        let metadata = Path::new("metadata");
        let why = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        found.invalid(&metadata.child("name"), name, why);
    }
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let value = number(spec, key).unwrap_or_default();
        if value <= 0 || value > most {
            found.invalid(&SPEC.child(key), value, format!("must be positive and less than {most}"));
        }
    }
    let insecure = spec.get("insecureSkipTLSVerify").and_then(Value::as_bool).unwrap_or_default();
    let bundle = !text(spec, "caBundle").is_empty();
    let Some(service) = member(spec, "service") else {
        if bundle {
            let why = "local APIServices may not have a caBundle";
            found.invalid(&SPEC.child("caBundle"), "", why);
        }
        if insecure {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            found.invalid(&SPEC.child("insecureSkipTLSVerify"), true, why);
        }
        return;
    };
    let at = SPEC.child("service");
    for key in ["namespace", "name"] {
        if text(service, key).is_empty() {
            found.required(&at.child(key), "");
        }
    }
    if insecure && bundle {
        let why = "may not be true if caBundle is present";
        found.invalid(&SPEC.child("insecureSkipTLSVerify"), true, why);
    }
}

pub fn webhooks(found: &mut Found, object: &Value) {
    let all = Path::new("webhooks");
    for (index, hook) in list(object, "webhooks").iter().enumerate() {
        webhook(found, hook, &all.index(index));
    }
}

fn webhook(found: &mut Found, hook: &Value, at: &Path<'_>) {
    let name = text(hook, "name");
    if name.is_empty() {
        found.required(&at.child("name"), "");
    } else {
        let wrong = format::dns_subdomain(name);
        if wrong.is_empty() && name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            found.invalid(&at.child("name"), name, why);
        }
        found.texts(&at.child("name"), name, wrong);
    }
    if list(hook, "admissionReviewVersions").is_empty() {
        found.required(&at.child("admissionReviewVersions"), "must specify one of v1, v1beta1");
    }
    for (index, rule) in list(hook, "rules").iter().enumerate() {
        let rules = at.child("rules");
        let at = rules.index(index);
        let operations = list(rule, "operations");
        if operations.is_empty() {
            found.required(&at.child("operations"), "");
        }
        for (index, operation) in operations.iter().filter_map(Value::as_str).enumerate() {
            let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
            found.one_of(&at.child("operations").index(index), operation, &known);
        }
        for key in ["apiGroups", "apiVersions", "resources"] {
            if list(rule, key).is_empty() {
                found.required(&at.child(key), "");
            }
        }
    }
    for (key, known) in [("failurePolicy", ["Fail", "Ignore"]), ("matchPolicy", ["Equivalent", "Exact"])] {
        if let Some(policy) = member(hook, key).and_then(Value::as_str) {
            found.one_of(&at.child(key), policy, &known);
        }
    }
    match text(hook, "sideEffects") {
        "" => found.required(&at.child("sideEffects"), "must specify one of None, NoneOnDryRun"),
        effects => found.one_of(&at.child("sideEffects"), effects, &["None", "NoneOnDryRun"]),
    }
    if let Some(seconds) = number(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        found.invalid(&at.child("timeoutSeconds"), seconds, why);
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = member(hook, key) {
            selectors::check(found, selector, &at.child(key));
        }
    }
    client_config(found, &hook["clientConfig"], &at.child("clientConfig"));
}

/// Where a webhook is called.
fn client_config(found: &mut Found, config: &Value, at: &Path<'_>) {
    let url = member(config, "url").and_then(Value::as_str);
    match (url, member(config, "service")) {
        (None, None) | (Some(_), Some(_)) => found.required(at, "exactly one of url or service is required"),
        (Some(url), None) => {
            let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
            if scheme != "https" {
                let why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
                found.invalid(&at.child("url"), scheme, why);
            }
        }
        (None, Some(service)) => {
            let at = at.child("service");
            for (key, why) in
                [("name", "service name is required"), ("namespace", "service namespace is required")]
            {
                if text(service, key).is_empty() {
                    found.required(&at.child(key), why);
                }
            }
        }
    }
}
