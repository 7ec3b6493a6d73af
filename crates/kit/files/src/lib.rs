//! Files and directories of a data directory: for their owner alone.
//!
//! What is kept there holds keys, tokens and customer data, so no other user of the machine may read it, whatever the
//! umask is. Directories are 0700 and files 0600; a file that its owner may execute or not write keeps the owner's bits.
//!
//! The flow: a component takes its directory with [`take_dir`], which also tightens what an earlier release left open, and
//! makes files in it with [`options`], [`ensure_file`], [`replace`] or [`replace_unflushed`].
//!
//! What it is not: access control between components of this process. They run as one user.
#![warn(missing_docs)]

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// The mode of a directory.
const DIRECTORY: u32 = 0o700;
/// The mode of a file.
const FILE: u32 = 0o600;
/// The bits of the owner.
const OWNER: u32 = 0o700;
/// Set on directories that several users share, as `/tmp`.
const STICKY: u32 = 0o1000;

/// The mode a file may have when this one is wanted for it: the owner's bits.
pub fn owner_only(mode: u32) -> u32 {
    mode & OWNER
}

/// Makes a directory and its missing parents. One that exists is tightened; what is in it stays as it is.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path).map_err(named(path))?;
    let metadata = fs::metadata(path).map_err(named(path))?;
    if metadata.permissions().mode() & STICKY != 0 {
        // Closing it would lock every other user out.
        let shared = format!("{} is shared by several users; use a directory of its own", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, shared));
    }
    tighten(path, &metadata)
}

/// Makes a directory, or tightens one that exists with everything in it. Links are not followed.
pub fn take_dir(path: &Path) -> io::Result<()> {
    create_dir(path)?;
    tighten_content(path)
}

/// Options to open a file that is created, when it is, for its owner alone.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE);
    options
}

/// Makes an empty file, or tightens one that exists.
pub fn ensure_file(path: &Path) -> io::Result<()> {
    let file = options().create(true).append(true).open(path).map_err(named(path))?;
    tighten(path, &file.metadata().map_err(named(path))?)
}

/// Writes a file that is there with all of its content or not at all, and survives a crash once this returns. A new file
/// takes the place of the old one, so the old one's mode and its open handles do not matter.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    swap(path, content, true)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_dir(dir)
}

/// The same without waiting for the disk, for files that every start writes anew: readers see all of the content or the old
/// file, but a crash of the machine may lose it.
pub fn replace_unflushed(path: &Path, content: &[u8]) -> io::Result<()> {
    swap(path, content, false)
}

fn swap(path: &Path, content: &[u8], flush: bool) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(&new)(error)),
        _ => {}
    }
    let write = || {
        let mut file = options().write(true).create_new(true).open(&new)?;
        file.write_all(content)?;
        if flush {
            file.sync_all()?;
        }
        fs::rename(&new, path)
    };
    write().map_err(named(path))
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(named(dir))
}

fn tighten_content(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir).map_err(named(dir))? {
        let path = entry.map_err(named(dir))?.path();
        let metadata = match fs::symlink_metadata(&path) {
            // Temporary files come and go.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata.map_err(named(&path))?,
        };
        if metadata.is_symlink() {
            continue;
        }
        tighten(&path, &metadata)?;
        if metadata.is_dir() {
            tighten_content(&path)?;
        }
    }
    Ok(())
}

fn tighten(path: &Path, metadata: &Metadata) -> io::Result<()> {
    let mode = metadata.permissions().mode() & 0o7777;
    if owner_only(mode) == mode {
        return Ok(());
    }
    match fs::set_permissions(path, fs::Permissions::from_mode(owner_only(mode))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        set => set.map_err(named(path)),
    }
}

/// The system's errors do not name the file.
fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
