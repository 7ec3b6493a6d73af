//! Secrets live in files; the configuration only says where.

use std::io;
use std::path::PathBuf;

use aro_base::Secret;
use serde::{Deserialize, Serialize};

/// The path of a file that holds a secret. Used by keys that end in `_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretFile(PathBuf);

/// Why a secret could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The file could not be read.
    #[error("read the secret in `{}`", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("the secret file `{}` is empty", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
}

impl SecretFile {
    /// A secret in this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Reads it, without the line break editors leave at the end. Done at start-up; it blocks.
    pub fn read(&self) -> Result<Secret<String>, SecretFileError> {
        let text = std::fs::read_to_string(&self.0)
            .map_err(|source| SecretFileError::Read { path: self.0.clone(), source })?;
        match text.trim_end_matches(['\r', '\n']) {
            "" => Err(SecretFileError::Empty { path: self.0.clone() }),
            secret => Ok(Secret::new(secret.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_break_is_not_part_of_the_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("url");
        std::fs::write(&path, "postgres://h/db\n").unwrap();
        assert_eq!(SecretFile::new(&path).read().unwrap().expose(), "postgres://h/db");
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(SecretFile::new(&path).read(), Err(SecretFileError::Empty { .. })));
    }
}
