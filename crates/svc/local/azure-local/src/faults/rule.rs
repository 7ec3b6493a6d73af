//! A rule: which requests get which fault, how often. As operators write it.

use std::time::Duration;

use aro_runtime::Period;
use serde::{Deserialize, Serialize};

use crate::front_door::Service;

/// The longest pattern.
const MAX_PATTERN: usize = 1024;
/// The longest delay.
const MAX_DELAY: Duration = Duration::from_mins(30);
const METHODS: [&str; 6] = ["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE"];

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// The request waits before it is handled.
    Latency,
    /// 429 with `Retry-After`.
    Throttle,
    /// 500; the request is not handled.
    ServerError,
    /// The connection ends before the request is handled.
    Cut,
    /// The request takes effect, and the connection ends without an answer.
    LostReply,
    /// A resource is not created: its quota is used up.
    QuotaExhausted,
    /// 403 `AuthorizationFailed`.
    PermissionMissing,
    /// A role assignment takes effect later than it is made.
    LateRoleAssignment,
    /// A long-running operation stays `InProgress`.
    StuckOperation,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 9] = [
        Self::Latency,
        Self::Throttle,
        Self::ServerError,
        Self::Cut,
        Self::LostReply,
        Self::QuotaExhausted,
        Self::PermissionMissing,
        Self::LateRoleAssignment,
        Self::StuckOperation,
    ];

    /// Whether only ARM has it.
    fn is_of_arm(self) -> bool {
        matches!(
            self,
            Self::QuotaExhausted | Self::PermissionMissing | Self::LateRoleAssignment | Self::StuckOperation
        )
    }
}

/// What a request does, whatever it works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// GET and HEAD, without polls.
    Read,
    /// PUT and PATCH.
    Write,
    Delete,
    /// POST.
    Action,
    /// GET of the status or the result of a long-running operation.
    Poll,
}

/// Which requests get which fault. What is not set matches everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    pub fault: Fault,
    /// How long: the latency, the time in `Retry-After`, how late a role assignment takes effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Period>,
    /// A stuck operation ends after this many polls; without it, when the rule is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<u32>,
    /// The service of the cloud; ARM if it is not set.
    #[serde(default = "arm")]
    pub service: Service,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The resource type, such as `Microsoft.Network/virtualNetworks`, or an action on it, such as
    /// `Microsoft.ContainerRegistry/registries/generateCredentials`. `*` matches any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// The resource id; for other services than ARM host and path. `*` matches any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// How probable the fault is for each request that matches, above 0 and at most 1.
    #[serde(default = "always")]
    pub probability: f64,
    /// How often it happens at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Of the rule's random decisions; without it they follow from the switchboard's seed and the rule's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

fn always() -> f64 {
    1.0
}

fn arm() -> Service {
    Service::Arm
}

impl Rule {
    /// A fault of every request to ARM.
    pub fn of(fault: Fault) -> Self {
        let (delay, polls, operation, method) = (None, None, None, None);
        let (resource_type, resource, count, seed) = (None, None, None, None);
        let (service, probability) = (arm(), always());
        Self {
            fault,
            delay,
            polls,
            service,
            operation,
            method,
            resource_type,
            resource,
            probability,
            count,
            seed,
        }
    }

    /// Whether the rule makes sense; `Err` is the text for its author.
    pub fn check(&self) -> Result<(), String> {
        if !(self.probability > 0.0 && self.probability <= 1.0) {
            return Err("probability must be above 0 and at most 1".to_owned());
        }
        if self.count == Some(0) {
            return Err("count must be at least 1".to_owned());
        }
        for (name, pattern) in [("resourceType", &self.resource_type), ("resource", &self.resource)] {
            if pattern.as_ref().is_some_and(|pattern| pattern.is_empty() || pattern.len() > MAX_PATTERN) {
                return Err(format!("{name} must have 1 to {MAX_PATTERN} characters"));
            }
        }
        let known = |method: &String| METHODS.iter().any(|known| known.eq_ignore_ascii_case(method));
        if self.method.as_ref().is_some_and(|method| !known(method)) {
            return Err(format!("method must be one of {}", METHODS.join(", ")));
        }
        self.check_time()?;
        if self.polls.is_some() && self.fault != Fault::StuckOperation {
            return Err("polls belongs to stuckOperation only".to_owned());
        }
        if self.service != Service::Arm && self.fault.is_of_arm() {
            return Err("this fault exists in ARM only".to_owned());
        }
        Ok(())
    }

    fn check_time(&self) -> Result<(), String> {
        let needs = matches!(self.fault, Fault::Latency | Fault::LateRoleAssignment);
        let takes = needs || self.fault == Fault::Throttle;
        match self.delay {
            None if needs => Err("delay must be set for this fault".to_owned()),
            Some(_) if !takes => {
                Err("delay belongs to latency, throttle and lateRoleAssignment only".to_owned())
            }
            Some(delay) if delay.get() > MAX_DELAY => Err("delay must be at most 30m".to_owned()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_fault_and_what_it_is_limited_to() {
        let rule: Rule = serde_json::from_str(
            r#"{"fault": "throttle", "delay": "2s", "operation": "write", "resource": "*/resourceGroups/g/*", "count": 3}"#,
        )
        .unwrap();
        assert_eq!((rule.fault, rule.service, rule.count), (Fault::Throttle, Service::Arm, Some(3)));
        rule.check().unwrap();
        let again: Rule = serde_json::from_str(&serde_json::to_string(&rule).unwrap()).unwrap();
        assert_eq!(again, rule);
    }

    #[test]
    fn rules_without_sense_are_refused_with_a_reason() {
        for (text, reason) in [
            (r#"{"fault": "cut", "probability": 0.0}"#, "probability"),
            (r#"{"fault": "cut", "probability": 1.5}"#, "probability"),
            (r#"{"fault": "cut", "count": 0}"#, "count"),
            (r#"{"fault": "cut", "delay": "1s"}"#, "delay belongs"),
            (r#"{"fault": "latency"}"#, "delay must be set"),
            (r#"{"fault": "latency", "delay": "2h"}"#, "30m"),
            (r#"{"fault": "cut", "polls": 1}"#, "polls"),
            (r#"{"fault": "cut", "method": "FETCH"}"#, "method"),
            (r#"{"fault": "cut", "resource": ""}"#, "resource must"),
            (r#"{"fault": "quotaExhausted", "service": "vault"}"#, "ARM only"),
        ] {
            let rule: Rule = serde_json::from_str(text).unwrap();
            let refused = rule.check().unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
        for text in [r#"{"fault": "flood"}"#, r#"{"fault": "cut", "colour": "red"}"#, "{}"] {
            assert!(serde_json::from_str::<Rule>(text).is_err(), "{text}");
        }
    }
}
