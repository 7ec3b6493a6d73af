//! Inflight checks.

use crate::Time;

words! {
    /// The state of a check.
    InflightCheckState {
        Pending = "pending",
        Running = "running",
        Passed = "passed",
        Failed = "failed",
    }
}

objects! {
    /// A check of the customer's resources that runs before anything is made.
    InflightCheck {
        kind: String,
        id: String,
        href: String,
        name: String,
        state: InflightCheckState,
        /// For a failed one an object with the member `error`.
        details: serde_json::Value,
        started_at: Time,
        ended_at: Time,
        restarts: i64,
    }
}
