//! Where a stack keeps its data.

use std::io;
use std::path::{Path, PathBuf};

/// A directory that stays, or one that goes with the stack.
#[derive(Debug)]
pub enum DataDir {
    /// Stays.
    Kept(PathBuf),
    /// Removed when the stack has stopped.
    Ephemeral(tempfile::TempDir),
}

impl DataDir {
    /// This directory; created when it is needed.
    pub fn kept(path: impl Into<PathBuf>) -> Self {
        Self::Kept(path.into())
    }

    /// A new temporary one.
    pub fn ephemeral() -> io::Result<Self> {
        tempfile::Builder::new().prefix("aro-").tempdir().map(Self::Ephemeral)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Ephemeral(dir) => dir.path(),
        }
    }
}
