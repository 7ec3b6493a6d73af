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
    /// A record inside the log does not check out. Starting anyway would lose acknowledged writes silently.
    #[error("{} is damaged at byte {offset}; restore it from a copy, or remove the directory to start empty", path.display())]
    Damaged {
        /// The segment file.
        path: PathBuf,
        /// Where the first bad record begins.
        offset: u64,
    },
}

impl OpenError {
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}
