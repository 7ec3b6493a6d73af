//! One container: what it is doing, and what it does next.
//!
//! A simulated container moves on by a script and the time alone ([`ContainerState::step`]); a real one is moved on by
//! what happens to its tasks. Both end and start again by the same rules.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use parking_lot::Mutex;

use aro_runtime::Scope;

use crate::logs::Log;
use crate::simulate::Run;

/// What becomes of a container that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    pub fn of(text: Option<&str>) -> Self {
        match text {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    /// Containers that run before the others are there to end well, once. Those that stay have a policy of their own.
    pub fn of_init(self, container: &Container) -> Self {
        match (container.restart_policy.as_deref(), self) {
            (Some("Always"), _) => Self::Always,
            (_, Self::Never) => Self::Never,
            _ => Self::OnFailure,
        }
    }

    fn restarts(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// What a container is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// It starts at this time; `None`: when something else has happened.
    Waiting {
        reason: &'static str,
        message: String,
        from: Option<Timestamp>,
    },
    Running {
        since: Timestamp,
    },
    Ended(Ended),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub since: Option<Timestamp>,
    pub at: Timestamp,
    pub code: i32,
    pub reason: &'static str,
    pub message: String,
}

/// A container that really runs.
pub struct RealRun {
    pub scope: Scope,
    pub log: Arc<Log>,
    pub flags: Arc<Flags>,
}

/// What is known about a container that really runs; kept by the task that watches it.
#[derive(Debug, Default)]
pub struct Flags {
    state: Mutex<FlagState>,
}

#[derive(Debug, Default)]
struct FlagState {
    ready: bool,
    /// The readiness probe's last word; `None`: there is no such probe.
    probe: Option<bool>,
    failure: Option<(i32, String)>,
}

impl Flags {
    pub fn is_ready(&self) -> bool {
        let state = self.state.lock();
        state.ready && state.probe.unwrap_or(true)
    }

    pub fn set_ready(&self, ready: bool) {
        self.state.lock().ready = ready;
    }

    pub fn set_probe(&self, ready: bool) {
        self.state.lock().probe = Some(ready);
    }

    /// Only the first failure counts.
    pub fn fail(&self, code: i32, why: String) {
        self.state.lock().failure.get_or_insert((code, why));
    }

    pub fn failure(&self) -> Option<(i32, String)> {
        self.state.lock().failure.clone()
    }
}

pub struct ContainerState {
    pub name: String,
    pub stage: Stage,
    pub restarts: u32,
    /// How often it has failed in a row, as far as this process knows.
    pub crashes: u32,
    pub last: Option<Ended>,
    pub ready: bool,
    /// How the current run goes, if it is simulated.
    pub script: Option<Run>,
    pub real: Option<RealRun>,
    /// The log of the run before, if it was real.
    pub previous: Option<Arc<Log>>,
}

/// The pause before the second restart; it doubles up to [`LONGEST_PAUSE`]. The first restart comes at once.
pub const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How a run ended that went with the process it was part of. Not its fault: it starts again at once.
const GONE: &str = "Unknown";
/// A container that has run for this long has recovered.
const RECOVERED: SignedDuration = SignedDuration::from_mins(10);

impl ContainerState {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            stage: Stage::Waiting { reason: "ContainerCreating", message: String::new(), from: None },
            restarts: 0,
            crashes: 0,
            last: None,
            ready: false,
            script: None,
            real: None,
            previous: None,
        }
    }

    /// As an earlier process left it. What really ran then has ended with that process.
    pub fn resumed(known: &ContainerStatus, simulated: bool, now: Timestamp) -> Self {
        let mut state = Self::new(&known.name);
        state.restarts = u32::try_from(known.restart_count).unwrap_or_default();
        let (stage, last) = (known.state.as_ref(), known.last_state.as_ref());
        state.last = last.and_then(|last| last.terminated.as_ref()).map(ended_of);
        if let Some(ended) = stage.and_then(|stage| stage.terminated.as_ref()) {
            state.stage = Stage::Ended(ended_of(ended));
        } else if let Some(running) = stage.and_then(|stage| stage.running.as_ref()) {
            let since = running.started_at.as_ref().map(|time| time.0);
            if simulated {
                state.stage = Stage::Running { since: since.unwrap_or(now) };
                state.ready = known.ready;
            } else {
                let message = "the process that ran it has ended".to_owned();
                state.stage = Stage::Ended(Ended { since, at: now, code: 255, reason: GONE, message });
            }
        }
        state
    }

    /// Ends the current run.
    pub fn end(&mut self, now: Timestamp, code: i32, reason: &'static str, message: String) {
        let since = match &self.stage {
            Stage::Running { since } => Some(*since),
            _ => None,
        };
        self.ready = false;
        self.stage = Stage::Ended(Ended { since, at: now, code, reason, message });
    }

    /// Whether it has ended for good.
    pub fn is_over(&self, policy: Policy) -> Option<i32> {
        match &self.stage {
            Stage::Ended(ended) if !policy.restarts(ended.code) => Some(ended.code),
            _ => None,
        }
    }

    /// Whether it runs, or has ended well and for good.
    pub fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running { .. })
    }

    /// If it has ended and is to run again: makes it wait for that.
    pub fn plan_restart(&mut self, policy: Policy, first_pause: Duration, what: &str) {
        let Stage::Ended(ended) = &self.stage else { return };
        if !policy.restarts(ended.code) {
            return;
        }
        let recovered = ended.since.is_some_and(|since| ended.at.duration_since(since) > RECOVERED);
        if recovered || ended.reason == GONE {
            self.crashes = 0;
        }
        let pause = pause_before(self.crashes, first_pause);
        let from = ended.at.saturating_add(SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX));
        let message = format!("back-off {}s restarting failed container={what}", pause.as_secs());
        let waiting = Stage::Waiting {
            reason: "CrashLoopBackOff",
            message,
            from: Some(from.unwrap_or(Timestamp::MAX)),
        };
        let Stage::Ended(ended) = std::mem::replace(&mut self.stage, waiting) else { return };
        if ended.reason != GONE {
            self.crashes = self.crashes.saturating_add(1);
        }
        self.last = Some(ended);
        self.restarts = self.restarts.saturating_add(1);
        self.script = None;
    }

    /// When it moves on by itself.
    pub fn next(&self) -> Option<Timestamp> {
        match (&self.stage, &self.script) {
            (Stage::Waiting { from, .. }, _) => *from,
            (Stage::Running { since }, Some(run)) => {
                let ready = run.ready_after.filter(|_| !self.ready).map(|after| later(*since, after));
                let ends = run.ends.map(|(after, _)| later(*since, after));
                ready.into_iter().chain(ends).min()
            }
            _ => None,
        }
    }

    /// Whether it waits and its time has come.
    pub fn is_due(&self, now: Timestamp) -> bool {
        matches!(&self.stage, Stage::Waiting { from, .. } if from.is_none_or(|from| from <= now))
    }

    /// Moves a simulated container on, given its run. Does not start it again.
    pub fn step(&mut self, now: Timestamp) {
        let Some(run) = self.script else { return };
        if self.is_due(now) {
            self.stage = Stage::Running { since: now };
        }
        let Stage::Running { since } = self.stage else { return };
        if let Some((after, code)) = run.ends
            && later(since, after) <= now
        {
            let reason = if code == 0 { "Completed" } else { "Error" };
            return self.end(now, code, reason, String::new());
        }
        self.ready = run.ready_after.is_some_and(|after| later(since, after) <= now);
    }
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn pause_before(restarts: u32, first: Duration) -> Duration {
    match restarts {
        0 => Duration::ZERO,
        n => first.saturating_mul(1_u32.checked_shl(n - 1).unwrap_or(u32::MAX)).min(LONGEST_PAUSE),
    }
}

fn ended_of(known: &k8s_openapi::api::core::v1::ContainerStateTerminated) -> Ended {
    let reason = match known.reason.as_deref() {
        Some("Completed") => "Completed",
        Some(GONE) => GONE,
        _ => "Error",
    };
    Ended {
        since: known.started_at.as_ref().map(|time| time.0),
        at: known.finished_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        code: known.exit_code,
        reason,
        message: known.message.clone().unwrap_or_default(),
    }
}

/// The policy of a pod.
pub fn policy_of(pod: &Pod) -> Policy {
    Policy::of(pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Script;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + secs).unwrap()
    }

    fn run(script: &Script, container: &mut ContainerState, policy: Policy, until: i64) -> Vec<(i64, u32)> {
        let mut ends = Vec::new();
        for second in 0..=until {
            container.plan_restart(policy, FIRST_PAUSE, "c");
            if container.script.is_none() && container.is_due(at(second)) {
                container.script = Some(script.run(container.restarts, policy == Policy::Always));
            }
            let before = container.is_running() || matches!(container.stage, Stage::Waiting { .. });
            container.step(at(second));
            if before && matches!(container.stage, Stage::Ended(_)) {
                ends.push((second, container.restarts));
            }
        }
        ends
    }

    #[test]
    fn a_crashing_container_starts_again_at_once_and_then_later_each_time() {
        let script: Script = serde_json::from_str(r#"{"exitCode": 1}"#).unwrap();
        let mut container = ContainerState::new("c");
        let ends = run(&script, &mut container, Policy::Always, 200);
        assert_eq!(ends.iter().map(|end| end.1).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        let times: Vec<i64> = ends.iter().map(|end| end.0).collect();
        assert!(times[1] <= 1 && times[2] - times[1] >= 10 && times[3] - times[2] >= 20, "{times:?}");
    }

    #[test]
    fn what_went_with_its_process_starts_again_at_once_however_often_that_was() {
        let known = serde_json::json!({"name": "c", "image": "aro/x", "imageID": "", "ready": true, "restartCount": 9,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
        let mut container = ContainerState::resumed(&serde_json::from_value(known).unwrap(), false, at(0));
        container.plan_restart(Policy::Always, FIRST_PAUSE, "c");
        assert!(container.is_due(at(0)) && container.restarts == 10, "{:?}", container.stage);
        // Those that crash by themselves still wait.
        container.stage = Stage::Running { since: at(0) };
        container.end(at(1), 1, "Error", String::new());
        container.plan_restart(Policy::Always, FIRST_PAUSE, "c");
        assert!(container.is_due(at(1)), "the first time, not yet");
        container.stage = Stage::Running { since: at(1) };
        container.end(at(2), 1, "Error", String::new());
        container.plan_restart(Policy::Always, FIRST_PAUSE, "c");
        assert!(!container.is_due(at(11)) && container.is_due(at(12)));
    }

    #[test]
    fn a_container_that_is_not_to_run_again_stays_ended() {
        let script = Script::default();
        for (policy, code) in [(Policy::OnFailure, Some(0)), (Policy::Never, Some(0))] {
            let mut container = ContainerState::new("c");
            assert_eq!(run(&script, &mut container, policy, 100).len(), 1);
            assert_eq!((container.is_over(policy), container.restarts), (code, 0));
        }
    }

    #[test]
    fn readiness_comes_when_the_script_says_so() {
        let script: Script = serde_json::from_str(r#"{"readyDelay": "5s"}"#).unwrap();
        let mut container = ContainerState::new("c");
        run(&script, &mut container, Policy::Always, 4);
        assert!(!container.ready && container.next() == Some(at(5)));
        run(&script, &mut container, Policy::Always, 5);
        assert!(container.ready && container.next().is_none());
    }

    #[test]
    fn after_a_restart_of_the_process_simulated_ones_go_on_and_real_ones_have_ended() {
        let known: ContainerStatus = serde_json::from_value(serde_json::json!({
            "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 4,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }))
        .unwrap();
        let simulated = ContainerState::resumed(&known, true, at(0));
        assert!(simulated.is_running() && simulated.ready && simulated.restarts == 4);
        let real = ContainerState::resumed(&known, false, at(0));
        assert!(matches!(real.stage, Stage::Ended(Ended { code: 255, reason: "Unknown", .. })));
    }
}
