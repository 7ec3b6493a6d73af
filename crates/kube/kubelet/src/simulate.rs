//! How a simulated container behaves: a script from its pod's annotations.
//!
//! `aro.dev/simulate: '{"startDelay": "2s", "readyDelay": "500ms", "runFor": "10s", "exitCode": 1, "failures": 2}'` is
//! for all containers of the pod; `simulate.aro.dev/<container>` is for one. Without a script a container starts at once,
//! is ready at once, and runs for ever; where the pod is not to be restarted for ever, it ends well at once.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde::Deserialize;

/// Says that nothing runs behind a pod.
pub const SIMULATED: &str = "aro.dev/simulated";
/// The script of a pod.
pub const SCRIPT: &str = "aro.dev/simulate";
/// The script of one container: this, and the container's name.
pub const CONTAINER_SCRIPT: &str = "simulate.aro.dev/";

/// What a simulated container does.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Script {
    /// From the start request to running.
    pub start_delay: Span,
    /// From running to ready.
    pub ready_delay: Span,
    /// It never becomes ready.
    pub never_ready: bool,
    /// From running to its end. Not set: it runs for ever, or ends at once if its pod is not restarted for ever.
    pub run_for: Option<Span>,
    /// How it ends.
    pub exit_code: i32,
    /// How many of its runs end with `exitCode`; later ones end (or go on) well. Not set: all.
    pub failures: Option<u32>,
    /// Its image cannot be pulled.
    pub pull_error: bool,
}

/// A length of time in words, as `1m30s` or `500ms`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let length: jiff::SignedDuration = text.parse().map_err(serde::de::Error::custom)?;
        let length =
            Duration::try_from(length).map_err(|_| serde::de::Error::custom("must not be negative"))?;
        Ok(Self(length))
    }
}

/// How one run of a container goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub start_delay: Duration,
    /// After running; `None`: never.
    pub ready_after: Option<Duration>,
    /// After running, with this code; `None`: it does not end.
    pub ends: Option<(Duration, i32)>,
}

impl Script {
    /// The script of a container; an error if it cannot be read.
    pub fn of(pod: &Pod, container: &str) -> Result<Self, String> {
        let annotations = pod.annotations();
        let own = format!("{CONTAINER_SCRIPT}{container}");
        let Some((key, text)) = annotations.get_key_value(&own).or_else(|| annotations.get_key_value(SCRIPT))
        else {
            return Ok(Self::default());
        };
        serde_json::from_str(text).map_err(|error| format!("the annotation {key} is no script: {error}"))
    }

    /// The run after so many restarts. `goes_on`: the pod is restarted for ever, so its containers do not just end.
    pub fn run(&self, restarts: u32, goes_on: bool) -> Run {
        let fails = self.exit_code != 0 && self.failures.is_none_or(|failures| restarts < failures);
        let scripted = self.run_for.map(|span| span.0);
        let ends = match (scripted, fails) {
            (Some(after), true) => Some((after, self.exit_code)),
            // Those that only failed at first go on when they no longer do.
            (Some(_), false) if self.exit_code != 0 && goes_on => None,
            (Some(after), false) => Some((after, 0)),
            (None, true) => Some((Duration::ZERO, self.exit_code)),
            (None, false) if goes_on => None,
            (None, false) => Some((Duration::ZERO, 0)),
        };
        Run {
            start_delay: self.start_delay.0,
            ready_after: (!self.never_ready).then_some(self.ready_delay.0),
            ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn script(text: &str) -> Result<Script, String> {
        let pod = json!({"metadata": {"name": "p", "annotations": {SCRIPT: text}}});
        Script::of(&serde_json::from_value(pod).unwrap(), "c")
    }

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn without_a_script_servers_run_for_ever_and_jobs_end_well_at_once() {
        let script = Script::default();
        assert_eq!(script.run(0, true).ends, None);
        assert_eq!(script.run(0, false).ends, Some((Duration::ZERO, 0)));
        assert_eq!(script.run(0, true).ready_after, Some(Duration::ZERO));
    }

    #[test]
    fn a_script_tells_when_and_how_each_run_ends() {
        let flaky = script(r#"{"startDelay": "1s", "runFor": "10s", "exitCode": 3, "failures": 2}"#).unwrap();
        assert_eq!(
            flaky.run(0, true),
            Run { start_delay: secs(1), ready_after: Some(secs(0)), ends: Some((secs(10), 3)) }
        );
        assert_eq!(flaky.run(1, true).ends, Some((secs(10), 3)));
        assert_eq!(flaky.run(2, true).ends, None, "it has recovered");
        assert_eq!(flaky.run(2, false).ends, Some((secs(10), 0)), "a job comes to its end");
        assert_eq!(script(r#"{"neverReady": true}"#).unwrap().run(0, true).ready_after, None);
    }

    #[test]
    fn one_container_may_have_a_script_of_its_own() {
        let pod = json!({"metadata": {"name": "p", "annotations": {SCRIPT: "{}", "simulate.aro.dev/slow": r#"{"readyDelay": "5s"}"#}}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert_eq!(Script::of(&pod, "slow").unwrap().ready_delay, Span(secs(5)));
        assert_eq!(Script::of(&pod, "other").unwrap(), Script::default());
    }

    #[test]
    fn a_script_that_cannot_be_read_says_why() {
        for text in ["{", r#"{"startDelay": 5}"#, r#"{"startDelay": "-1s"}"#, r#"{"unknown": 1}"#] {
            assert!(
                script(text).unwrap_err().starts_with("the annotation aro.dev/simulate is no script: "),
                "{text}"
            );
        }
    }
}
