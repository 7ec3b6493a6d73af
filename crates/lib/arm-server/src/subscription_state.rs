//! What a subscription in a given state may do.

use aro_arm::subscription::State;

/// The answer for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// This provider knows no such subscription: 400.
    Unregistered,
    /// It may read and delete, not change: 409.
    ReadOnly(State),
    /// It is gone: 400.
    Gone,
}

/// Decides by the stored state (`None`: ARM never notified this provider of it) and the method.
pub fn decide(state: Option<State>, method: &str) -> Verdict {
    match state {
        None | Some(State::Unregistered) => Verdict::Unregistered,
        Some(State::Registered) => Verdict::Allowed,
        Some(State::Warned | State::Suspended) if matches!(method, "GET" | "DELETE") => Verdict::Allowed,
        Some(state @ (State::Warned | State::Suspended)) => Verdict::ReadOnly(state),
        Some(State::Deleted) => Verdict::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_allows_what_arm_specifies() {
        use State::{Deleted, Registered, Suspended, Unregistered, Warned};
        for (state, get, delete, put) in [
            (None, Verdict::Unregistered, Verdict::Unregistered, Verdict::Unregistered),
            (Some(Unregistered), Verdict::Unregistered, Verdict::Unregistered, Verdict::Unregistered),
            (Some(Registered), Verdict::Allowed, Verdict::Allowed, Verdict::Allowed),
            (Some(Warned), Verdict::Allowed, Verdict::Allowed, Verdict::ReadOnly(Warned)),
            (Some(Suspended), Verdict::Allowed, Verdict::Allowed, Verdict::ReadOnly(Suspended)),
            (Some(Deleted), Verdict::Gone, Verdict::Gone, Verdict::Gone),
        ] {
            assert_eq!([decide(state, "GET"), decide(state, "DELETE")], [get, delete], "{state:?}");
            for method in ["PUT", "PATCH", "POST"] {
                assert_eq!(decide(state, method), put, "{state:?} {method}");
            }
        }
    }
}
