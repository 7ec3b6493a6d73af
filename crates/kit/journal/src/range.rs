//! Which segments a log consists of: the numbers of the oldest and the newest one, in a file beside them.
//!
//! The names of the segments show a gap between them, but not that the first or the last one was lost. The file is written
//! before a record is written to a new segment, and before an old one is removed; so after a crash there may be one more
//! segment at either end than it names, never one fewer. A log of an earlier release has no such file and gets one.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::segment::SegmentId;

/// The oldest and the newest segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub oldest: SegmentId,
    pub newest: SegmentId,
}

impl Range {
    /// Reads the file; `None` for a new log, and for one of an earlier release.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>, OpenError> {
        let path = file(dir);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(OpenError::io("read", &path, source)),
        };
        let numbers = text.trim_end().split_once(' ');
        let range = numbers.and_then(|(oldest, newest)| {
            Some(Self { oldest: SegmentId::from_hex(oldest)?, newest: SegmentId::from_hex(newest)? })
        });
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not two segment numbers");
        range.map(Some).ok_or_else(|| OpenError::io("read", &path, damaged()))
    }

    /// Writes the file; durable once this returns.
    pub(crate) fn write(self, dir: &Path) -> io::Result<()> {
        let text = format!("{} {}\n", self.oldest.hex(), self.newest.hex());
        aro_files::replace(&file(dir), text.as_bytes())
    }

    /// Whether every segment of the range was found; `found` is sorted and has no gap.
    pub(crate) fn check(self, dir: &Path, found: &[SegmentId]) -> Result<(), OpenError> {
        let lost = match (found.first(), found.last()) {
            (Some(oldest), _) if *oldest > self.oldest => self.oldest,
            (_, Some(newest)) if *newest < self.newest => newest.next(),
            (Some(_), Some(_)) => return Ok(()),
            _ => self.oldest,
        };
        Err(OpenError::Lost { path: lost.file(dir), range: file(dir) })
    }
}

fn file(dir: &Path) -> PathBuf {
    dir.join("range")
}
