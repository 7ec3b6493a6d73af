//! Ingresses and network policies.

use serde_json::Value;

use super::path::{Found, Path, list, member, number, text};
use super::{format, selectors};

const SPEC: Path<'static> = Path::new("spec");

pub fn ingress(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    let backend = member(spec, "defaultBackend");
    if list(spec, "rules").is_empty() && backend.is_none() {
        found.invalid(&SPEC, Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(backend) = backend {
        check_backend(found, backend, &SPEC.child("defaultBackend"));
    }
    let rules = SPEC.child("rules");
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        let at = rules.index(index);
        host(found, text(rule, "host"), &at.child("host"));
        if let Some(http) = member(rule, "http") {
            paths(found, list(http, "paths"), &at.child("http").child("paths"));
        }
    }
    let tls = SPEC.child("tls");
    for (index, item) in list(spec, "tls").iter().enumerate() {
        let at = tls.index(index);
        for (index, name) in list(item, "hosts").iter().filter_map(Value::as_str).enumerate() {
            let at = at.child("hosts");
            let wrong = if name.contains('*') {
                format::wildcard_subdomain(name)
            } else {
                format::dns_subdomain(name)
            };
            found.texts(&at.index(index), name, wrong);
        }
    }
    if let Some(class) = member(spec, "ingressClassName").and_then(Value::as_str) {
        found.texts(&SPEC.child("ingressClassName"), class, format::dns_subdomain(class));
    }
}

fn host(found: &mut Found, host: &str, at: &Path<'_>) {
    if host.is_empty() {
        return;
    }
    if format::ip(host).is_some() {
        found.invalid(at, host, "must be a DNS name, not an IP address");
        return;
    }
    let wrong =
        if host.contains('*') { format::wildcard_subdomain(host) } else { format::dns_subdomain(host) };
    found.texts(at, host, wrong);
}

fn paths(found: &mut Found, paths: &[Value], at: &Path<'_>) {
    if paths.is_empty() {
        found.required(at, "");
    }
    for (index, path) in paths.iter().enumerate() {
        let at = at.index(index);
        match text(path, "pathType") {
            "" => {
                found.required(&at.child("pathType"), "pathType must be specified");
                continue;
            }
            "Exact" | "Prefix" => absolute_path(found, text(path, "path"), &at.child("path")),
            "ImplementationSpecific" => {
                let path = text(path, "path");
                if !path.is_empty() && !path.starts_with('/') {
                    found.invalid(&at.child("path"), path, "must be an absolute path");
                }
            }
            other => {
                let known = ["Exact", "ImplementationSpecific", "Prefix"];
                found.not_supported(&at.child("pathType"), other, &known);
            }
        }
        check_backend(found, &path["backend"], &at.child("backend"));
    }
}

fn absolute_path(found: &mut Found, path: &str, at: &Path<'_>) {
    if !path.starts_with('/') {
        found.invalid(at, path, "must be an absolute path");
    }
    if path.is_empty() {
        return;
    }
    for bad in ["//", "/./", "/../", "%2f", "%2F"] {
        if path.contains(bad) {
            found.invalid(at, path, format!("must not contain '{bad}'"));
        }
    }
    for bad in ["/..", "/."] {
        if path.ends_with(bad) {
            found.invalid(at, path, format!("cannot end with '{bad}'"));
        }
    }
}

fn check_backend(found: &mut Found, backend: &Value, at: &Path<'_>) {
    match (member(backend, "service"), member(backend, "resource")) {
        (None, None) => found.invalid(at, "", "resource or service backend is required"),
        (Some(_), Some(_)) => found.invalid(at, "", "cannot set both resource and service backends"),
        (None, Some(resource)) => {
            let at = at.child("resource");
            for key in ["kind", "name"] {
                if text(resource, key).is_empty() {
                    found.required(&at.child(key), "");
                }
            }
        }
        (Some(service), None) => {
            let own = at.child("service");
            match text(service, "name") {
                "" => found.required(&own.child("name"), ""),
                name => found.texts(&own.child("name"), name, format::dns_1035_label(name)),
            }
            let port = &service["port"];
            let (name, number) = (text(port, "name"), number(port, "number").unwrap_or_default());
            let port_at = own.child("port");
            match (name, number) {
                ("", 0) => found.required(at, "port name or number is required"),
                ("", number) => found.port(&port_at.child("number"), number),
                (name, 0) => found.texts(&port_at.child("name"), name, format::port_name(name)),
                _ => found.invalid(at, "", "cannot set both port name & port number"),
            }
        }
    }
}

pub fn ingress_class(found: &mut Found, object: &Value) {
    let at = SPEC.child("controller");
    let controller = text(&object["spec"], "controller");
    if controller.is_empty() {
        found.required(&at, "");
    } else if !format::is_domain_path(controller) {
        found.invalid(&at, controller, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    }
}

pub fn network_policy(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    if let Some(selector) = member(spec, "podSelector") {
        selectors::check(found, selector, &SPEC.child("podSelector"));
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules = SPEC.child(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let at = rules.index(index);
            for (index, port) in list(rule, "ports").iter().enumerate() {
                policy_port(found, port, &at.child("ports").index(index));
            }
            for (index, peer) in list(rule, peers).iter().enumerate() {
                policy_peer(found, peer, &at.child(peers).index(index));
            }
        }
    }
    let at = SPEC.child("policyTypes");
    for (index, kind) in list(spec, "policyTypes").iter().filter_map(Value::as_str).enumerate() {
        found.one_of(&at.index(index), kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(found: &mut Found, port: &Value, at: &Path<'_>) {
    if let Some(protocol) = member(port, "protocol").and_then(Value::as_str) {
        found.one_of(&at.child("protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    }
    match member(port, "port") {
        None => {
            if member(port, "endPort").is_some() {
                found.required(&at.child("port"), "may not be empty when `endPort` is specified");
            }
        }
        Some(Value::String(name)) => found.texts(&at.child("port"), name, format::port_name(name)),
        Some(value) => {
            let start = value.as_i64().unwrap_or_default();
            found.port(&at.child("port"), start);
            if let Some(end) = number(port, "endPort") {
                if end < start {
                    found.invalid(&at.child("endPort"), start, "must be greater than or equal to `port`");
                }
                found.port(&at.child("endPort"), end);
            }
        }
    }
}

fn policy_peer(found: &mut Found, peer: &Value, at: &Path<'_>) {
    let mut peers = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = member(peer, key) {
            peers += 1;
            selectors::check(found, selector, &at.child(key));
        }
    }
    if let Some(block) = member(peer, "ipBlock") {
        ip_block(found, block, &at.child("ipBlock"));
        if peers > 0 {
            found.forbidden(at, "may not specify both ipBlock and another peer");
        }
        peers += 1;
    }
    if peers == 0 {
        found.required(at, "must specify a peer");
    }
}

fn ip_block(found: &mut Found, block: &Value, at: &Path<'_>) {
    let text = text(block, "cidr");
    let Some(cidr) = format::cidr(text) else {
        if text.is_empty() {
            found.required(&at.child("cidr"), "");
        } else {
            found.invalid(&at.child("cidr"), text, format::CIDR_RULE);
        }
        return;
    };
    for (index, except) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
        let at = at.child("except");
        match format::cidr(except) {
            None => found.invalid(&at.index(index), except, format::CIDR_RULE),
            Some((address, length)) => {
                if !format::contains(cidr, address) || length <= cidr.1 {
                    found.invalid(&at.index(index), except, "must be a strict subset of `cidr`");
                }
            }
        }
    }
}
