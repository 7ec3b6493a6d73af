//! Where faults enter the engine: a port that the fault switchboard of `azure-local` implements.
//!
//! The engine asks at the points that a layer around it cannot reach: before a quota is used, when a role assignment takes
//! effect, and when a long-running operation begins. Without a switchboard ([`NoFaults`]) nothing happens there.

use std::fmt::Debug;
use std::time::Duration;

use aro_arm::ResourceId;
use http::Method;

/// The resource that a request writes.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub method: &'a Method,
    pub id: &'a ResourceId,
}

/// An operation that does not end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stick {
    /// The rule that keeps it from ending.
    pub rule: u64,
    /// How many polls it stays so; `None`: until the rule is cleared.
    pub polls: Option<u32>,
}

/// Decides about faults inside of the engine. Calls must not block.
pub trait FaultHooks: Debug + Send + Sync {
    /// Whether the creation of a resource is refused for lack of quota.
    fn exhausts_quota(&self, _: Target<'_>) -> bool {
        false
    }

    /// How much later than its creation a role assignment takes effect.
    fn assignment_delay(&self, _: Target<'_>) -> Duration {
        Duration::ZERO
    }

    /// Whether the operation that begins now sticks.
    fn sticks(&self, _: Target<'_>) -> Option<Stick> {
        None
    }
}

/// No fault at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

impl FaultHooks for NoFaults {}
