//! Keeps other processes out of the data directory.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::OpenError;

/// Holds the directory for as long as it lives. The kernel lets go of the lock when the process dies, so a stale
/// file never blocks a start.
#[derive(Debug)]
pub(crate) struct DirLock {
    file: File,
}

impl DirLock {
    /// Takes the directory, creating it if missing.
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Directory { path: directory.to_owned(), source };
        aro_files::take_dir(directory).map_err(failed)?;
        let mut file = aro_files::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(directory.join("lock"))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let known = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
                let holder = if known { holder.trim().to_owned() } else { "unknown".to_owned() };
                return Err(OpenError::Locked { path: directory.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { file })
    }
}

impl Drop for DirLock {
    /// Not by closing the file alone: a child that is being started has a copy of it until it becomes another program, and
    /// the lock would last as long.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::take(dir.path()).unwrap();
        let refused = DirLock::take(dir.path()).unwrap_err();
        assert!(
            matches!(&refused, OpenError::Locked { holder, .. } if *holder == std::process::id().to_string())
        );
        // As a child has it that was forked while the directory was held.
        let copy = first.file.try_clone().unwrap();
        drop(first);
        DirLock::take(dir.path()).unwrap();
        drop(copy);
    }
}
