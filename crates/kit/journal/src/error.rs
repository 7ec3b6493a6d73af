//! What can go wrong with the files.

use std::io;
use std::path::{Path, PathBuf};

/// Why the log cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The disk said no.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another process has it open.
    #[error("{} is in use by another process; stop it, or use another data directory", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A record inside the log does not check out, and more follows it. Starting anyway would lose acknowledged writes
    /// silently.
    #[error(
        "{file} is damaged at byte {offset}, in records that were acknowledged; restore the directory from a copy, or, to \
         lose what the file holds from there on, run `truncate --size={offset} {file}`",
        file = path.display()
    )]
    Damaged {
        /// The segment file.
        path: PathBuf,
        /// Where the first bad record begins.
        offset: u64,
    },
    /// A segment between others is not there.
    #[error(
        "{} is missing, and segments after it are there; restore it from a copy, or, to lose what it held and all after it, \
         remove the segments after {}",
        path.display(),
        after.display()
    )]
    Missing {
        /// The segment file that should be there.
        path: PathBuf,
        /// The last one before it.
        after: PathBuf,
    },
    /// The first or the last segment is not there.
    #[error(
        "{} is missing; restore it from a copy, or, to lose what it held, remove {}",
        path.display(),
        range.display()
    )]
    Lost {
        /// The segment file that should be there.
        path: PathBuf,
        /// The file that names the oldest and the newest segment.
        range: PathBuf,
    },
    /// Only the oldest segment can be removed: a gap means damage at the next start.
    #[error("segment {number} of {} is not the oldest; it stays", dir.display())]
    NotOldest {
        /// The directory.
        dir: PathBuf,
        /// The segment's number.
        number: u64,
    },
}

impl OpenError {
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}
