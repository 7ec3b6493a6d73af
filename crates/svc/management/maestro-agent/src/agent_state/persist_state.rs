//! Whether the store holds one work's record as it is, and the index of those it does not.
//!
//! Records are written in rounds. A record whose status the broker has not acknowledged yet changes once more soon: it is
//! deferred for one round, never for two. A record that the engine waits for is not deferred.

use std::collections::BTreeSet;

/// How one work's record compares with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PersistState {
    /// The store holds it.
    #[default]
    Stored,
    /// It changed, and no round has selected it yet.
    Changed {
        /// A round has passed it over.
        deferred: bool,
        /// The engine gets this version once it is stored.
        engine_waits: bool,
    },
    /// The current round writes it.
    Due {
        /// The engine gets this version once it is stored.
        engine_waits: bool,
    },
    /// A write is under way.
    Writing {
        /// The engine gets the record once the write succeeds.
        engine_waits: bool,
        /// The record changed after the write began.
        changed: Option<Changed>,
    },
}

/// A change during a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// The engine gets the changed record once that one is stored.
    pub engine_waits: bool,
}

impl PersistState {
    /// The record changed. With `engine_waits`, the engine gets it only once it is stored.
    #[must_use]
    pub fn change(self, engine_waits: bool) -> Self {
        match self {
            Self::Stored => Self::Changed { deferred: false, engine_waits },
            Self::Changed { deferred, engine_waits: waits } => {
                Self::Changed { deferred, engine_waits: waits || engine_waits }
            }
            Self::Due { engine_waits: waits } => Self::Due { engine_waits: waits || engine_waits },
            Self::Writing { engine_waits: waits, changed } => {
                let engine_waits = engine_waits || changed.is_some_and(|before| before.engine_waits);
                Self::Writing { engine_waits: waits, changed: Some(Changed { engine_waits }) }
            }
        }
    }

    /// A round begins. `settled`: the record is not about to change.
    #[must_use]
    pub fn begin_round(self, settled: bool) -> Self {
        match self {
            Self::Changed { deferred, engine_waits } if settled || deferred || engine_waits => {
                Self::Due { engine_waits }
            }
            Self::Changed { engine_waits, .. } => Self::Changed { deferred: true, engine_waits },
            other => other,
        }
    }

    /// The write begins.
    #[must_use]
    pub fn begin_write(self) -> Self {
        match self {
            Self::Due { engine_waits } => Self::Writing { engine_waits, changed: None },
            other => other,
        }
    }

    /// The write succeeded. Also returns whether the engine gets the record now: not if a later version, which is not
    /// stored yet, has replaced the one it waited for.
    #[must_use]
    pub fn written(self) -> (Self, bool) {
        match self {
            Self::Writing { engine_waits, changed: None } => (Self::Stored, engine_waits),
            Self::Writing { engine_waits: waits, changed: Some(Changed { engine_waits }) } => {
                (Self::Changed { deferred: false, engine_waits }, waits && !engine_waits)
            }
            other => (other, false),
        }
    }

    /// The write failed; the current round repeats it.
    #[must_use]
    pub fn failed(self) -> Self {
        match self {
            Self::Writing { engine_waits, changed } => {
                Self::Due { engine_waits: engine_waits || changed.is_some_and(|after| after.engine_waits) }
            }
            other => other,
        }
    }
}

/// The works whose record has to be written: derived from their [`PersistState`], so that a round does not visit all works.
#[derive(Debug, Default)]
pub struct WriteIndex {
    changed: BTreeSet<String>,
    due: BTreeSet<String>,
}

impl WriteIndex {
    /// Follows a transition.
    pub fn update(&mut self, id: &str, before: PersistState, after: PersistState) {
        Self::set(&mut self.changed, id, is_changed(before), is_changed(after));
        Self::set(&mut self.due, id, is_due(before), is_due(after));
    }

    fn set(index: &mut BTreeSet<String>, id: &str, before: bool, after: bool) {
        match (before, after) {
            (false, true) => {
                index.insert(id.to_owned());
            }
            (true, false) => {
                index.remove(id);
            }
            _ => {}
        }
    }

    /// The works no round has selected yet.
    pub fn changed(&self) -> Vec<String> {
        self.changed.iter().cloned().collect()
    }

    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The first works of the current round.
    pub fn due(&self, limit: usize) -> Vec<String> {
        self.due.iter().take(limit).cloned().collect()
    }

    #[cfg(test)]
    pub fn holds(&self, id: &str, state: PersistState) -> bool {
        self.changed.contains(id) == is_changed(state) && self.due.contains(id) == is_due(state)
    }
}

fn is_changed(state: PersistState) -> bool {
    matches!(state, PersistState::Changed { .. })
}

fn is_due(state: PersistState) -> bool {
    matches!(state, PersistState::Due { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGED: PersistState = PersistState::Changed { deferred: false, engine_waits: false };
    const DUE: PersistState = PersistState::Due { engine_waits: false };

    #[test]
    fn unsettled_record_is_deferred_for_one_round_only() {
        let state = PersistState::Stored.change(false);
        assert_eq!(state, CHANGED);
        assert_eq!(state.begin_round(true), DUE);
        let deferred = state.begin_round(false);
        assert_eq!(deferred.change(false), deferred, "a change does not restart the wait");
        assert_eq!(deferred.begin_round(false), DUE);
    }

    #[test]
    fn record_the_engine_waits_for_is_not_deferred() {
        let state = PersistState::Stored.change(false).change(true);
        assert_eq!(state.begin_round(false), PersistState::Due { engine_waits: true });
        let (stored, release) = state.begin_round(false).begin_write().written();
        assert_eq!((stored, release), (PersistState::Stored, true));
    }

    #[test]
    fn version_received_during_a_write_reaches_the_engine_after_its_own_write() {
        let writing = PersistState::Due { engine_waits: true }.begin_write().change(true);
        let (after, release) = writing.written();
        assert!(!release, "the store holds the version before");
        assert_eq!(after, PersistState::Changed { deferred: false, engine_waits: true });
        let (after, release) = after.begin_round(false).begin_write().written();
        assert_eq!((after, release), (PersistState::Stored, true));
    }

    #[test]
    fn failed_write_is_due_again_and_keeps_the_engine_waiting() {
        let writing = DUE.begin_write();
        assert_eq!(writing.failed(), DUE);
        assert_eq!(writing.change(true).failed(), PersistState::Due { engine_waits: true });
        let held = PersistState::Due { engine_waits: true }.begin_write();
        assert_eq!(held.change(false).failed(), PersistState::Due { engine_waits: true });
    }
}
