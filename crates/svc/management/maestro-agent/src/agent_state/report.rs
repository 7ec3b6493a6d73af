//! What the agent reports about one work.

use aro_bundle::SequenceId;

use super::send_state::Cause;
use crate::record::Record;

/// A bundle that cannot be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    pub record: Record,
    pub reason: String,
}

/// A report about one work.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// The work's status; `requested` if the broker had acknowledged it before and the server requested it again.
    Status { record: Box<Record>, sequence: SequenceId, requested: bool },
    /// The work is deleted.
    Deleted { record: Box<Record>, sequence: SequenceId },
    /// The bundle cannot be applied.
    Rejected { rejection: Box<Rejection>, sequence: SequenceId },
}

impl Report {
    /// The report that is due for a work, if any. Notes the sequence id in the record.
    pub(super) fn of(
        record: &mut Record,
        cause: Cause,
        next_sequence: impl FnOnce() -> SequenceId,
    ) -> Option<Self> {
        if record.deleted {
            return Some(Self::Deleted { record: Box::new(record.clone()), sequence: next_sequence() });
        }
        let observed = record.observed.as_mut()?;
        let requested = observed.acked && cause == Cause::Request;
        if observed.acked && !requested {
            return None;
        }
        let sequence = next_sequence();
        observed.sequence = Some(sequence.to_string());
        Some(Self::Status { record: Box::new(record.clone()), sequence, requested })
    }

    /// Why this report was published.
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Status { requested: true, .. } => Cause::Request,
            _ => Cause::Change,
        }
    }
}
