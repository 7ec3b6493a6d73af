//! Probes and lifecycle hooks: handlers that run in or against a container.

use serde_json::Value;

use crate::validate::format;
use crate::validate::path::{Found, Path, list, member, number, text};

pub fn all(found: &mut Found, container: &Value, at: &Path<'_>, grace: Option<i64>) {
    if let Some(lifecycle) = member(container, "lifecycle") {
        let at = at.child("lifecycle");
        for key in ["postStart", "preStop"] {
            if let Some(hook) = member(lifecycle, key) {
                handler(found, hook, &at.child(key), grace);
            }
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = member(container, key) {
            check(found, probe, key, &at.child(key), grace);
        }
    }
}

fn check(found: &mut Found, probe: &Value, kind: &str, at: &Path<'_>, grace: Option<i64>) {
    handler(found, probe, at, grace);
    for key in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        found.not_negative(&at.child(key), probe.get(key));
    }
    let own_grace = number(probe, "terminationGracePeriodSeconds");
    if let Some(seconds) = own_grace.filter(|seconds| *seconds <= 0) {
        found.invalid(&at.child("terminationGracePeriodSeconds"), seconds, "must be greater than 0");
    }
    if kind == "readinessProbe" {
        if let Some(seconds) = own_grace {
            found.invalid(
                &at.child("terminationGracePeriodSeconds"),
                seconds,
                "must not be set for readinessProbes",
            );
        }
    } else if let Some(threshold) = number(probe, "successThreshold").filter(|threshold| *threshold != 1) {
        found.invalid(&at.child("successThreshold"), threshold, "must be 1");
    }
}

/// Exactly one of the ways to run it.
fn handler(found: &mut Found, handler: &Value, at: &Path<'_>, grace: Option<i64>) {
    let mut handlers = 0;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = member(handler, kind) else { continue };
        handlers += 1;
        let own = at.child(kind);
        if handlers > 1 {
            found.forbidden(&own, "may not specify more than 1 handler type");
            continue;
        }
        match kind {
            "exec" => {
                if list(action, "command").is_empty() {
                    found.required(&own.child("command"), "");
                }
            }
            "httpGet" => {
                if text(action, "path").is_empty() {
                    found.required(&own.child("path"), "");
                }
                port(found, action, &own.child("port"));
                found.one_of(&own.child("scheme"), text(action, "scheme"), &["HTTP", "HTTPS"]);
            }
            "sleep" => {
                let seconds = number(action, "seconds").unwrap_or_default();
                let most = grace.unwrap_or(30);
                if seconds < 0 || seconds > most {
                    let why =
                        format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
                    found.invalid(&own, seconds, why);
                }
            }
            _ => port(found, action, &own.child("port")),
        }
    }
    if handlers == 0 {
        found.required(at, "must specify a handler type");
    }
}

/// A number or the name of a port.
pub fn port(found: &mut Found, holder: &Value, at: &Path<'_>) {
    match holder.get("port") {
        Some(Value::String(name)) => found.texts(at, name, format::port_name(name)),
        value => found.port(at, value.and_then(Value::as_i64).unwrap_or_default()),
    }
}
