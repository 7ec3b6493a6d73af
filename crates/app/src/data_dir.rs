//! Where a stack keeps its data.

use std::io;
use std::path::{Path, PathBuf};

use crate::StartError;

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

    /// Makes it when it is missing, and closes it to other users when it is there. Each component does the same with the
    /// directory it has in it.
    pub(crate) async fn take(&self) -> Result<(), StartError> {
        let path = self.path().to_owned();
        let taken = tokio::task::spawn_blocking(move || aro_files::create_dir(&path)).await;
        let taken = taken.map_err(io::Error::other).flatten();
        taken.map_err(|source| StartError::DataDir { path: self.path().display().to_string(), source })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Ephemeral(dir) => dir.path(),
        }
    }
}
