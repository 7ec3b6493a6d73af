//! Segment files: naming, making, reading, removing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::frame::{self, Found, HEADER};

/// A segment, numbered from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(u64);

impl SegmentId {
    pub(crate) const FIRST: Self = Self(1);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn file(self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.log", self.hex()))
    }

    pub(crate) fn hex(self) -> String {
        format!("{:016x}", self.0)
    }

    pub(crate) fn from_hex(digits: &str) -> Option<Self> {
        (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok().map(Self)).flatten()
    }
}

/// Makes the directory, if it is not there. Records may hold secrets: all of it is for its owner alone.
pub(crate) fn make_dir(dir: &Path) -> Result<(), OpenError> {
    aro_files::take_dir(dir).map_err(|source| OpenError::io("make the directory", dir, source))
}

/// Takes the directory for this process.
pub(crate) fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join("lock");
    let file = aro_files::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|source| OpenError::io("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::Locked { path: dir.to_owned() }),
        Err(std::fs::TryLockError::Error(source)) => Err(OpenError::io("lock", &path, source)),
    }
}

/// The segments there are, oldest first. They are removed from the oldest on only, so a gap means that a file was lost.
pub(crate) fn list(dir: &Path) -> Result<Vec<SegmentId>, OpenError> {
    let failed = |source| OpenError::io("read the directory", dir, source);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if let Some(id) = name.strip_suffix(".log").and_then(SegmentId::from_hex) {
            found.push(id);
        } else if name.ends_with(".new") {
            // Prepared, but the process ended before it was used.
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    found.sort_unstable();
    for pair in found.windows(2) {
        if let [before, after] = pair
            && before.next() != *after
        {
            return Err(OpenError::Missing { path: before.next().file(dir), after: before.file(dir) });
        }
    }
    Ok(found)
}

/// Gives every record to `record`. What a crash may leave of the last flush is cut off in the `last` segment. Anything
/// else that is not a record is an error: a record that was acknowledged is lost.
pub(crate) fn replay(
    dir: &Path,
    id: SegmentId,
    last: bool,
    record: &mut impl FnMut(&[u8]),
) -> Result<(), OpenError> {
    let path = id.file(dir);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|source| OpenError::io("read", &path, source))?;
    let mut at = 0;
    let rest = loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match frame::read(rest, id) {
            Found::Record(payload) => {
                record(payload);
                at += HEADER + payload.len();
            }
            Found::End if is_zero(rest) => return Ok(()),
            Found::End | Found::Bad => break rest,
        }
    };
    if !last || frame::later_flush_follows(rest, id) {
        return Err(OpenError::Damaged { path, offset: at as u64 });
    }
    tracing::warn!(path = %path.display(), offset = at, "incomplete last flush found after a crash; journal truncated at the offset");
    cut(&path, at as u64).map_err(|source| OpenError::io("cut", &path, source))
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|chunk| ZEROS.starts_with(chunk))
}

/// Cuts a torn tail off, so that the segment is sound once others follow it.
fn cut(path: &Path, length: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

pub(crate) fn remove(dir: &Path, id: SegmentId, flush: bool) -> Result<(), OpenError> {
    let path = id.file(dir);
    let removed = std::fs::remove_file(&path).and_then(|()| {
        // Before the next one goes: after a crash no segment may be there without the ones that follow it.
        if flush { aro_files::sync_dir(dir) } else { Ok(()) }
    });
    removed.map_err(|source| OpenError::io("remove", &path, source))
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Makes a file full of zeros under a name that no start looks at. Flushing into blocks that exist is several times
/// faster than into a growing file, because the file system has nothing of its own to write.
pub(crate) fn prepare(dir: &Path, id: SegmentId, bytes: u64, flush: bool) -> io::Result<File> {
    let path = id.file(dir).with_extension("new");
    let mut file = aro_files::options().create(true).truncate(true).write(true).open(path)?;
    if flush {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(ZEROS.len() as u64);
            file.write_all(ZEROS.get(..piece as usize).unwrap_or_default())?;
            left -= piece;
        }
        file.sync_all()?;
    }
    Ok(file)
}

/// Gives a prepared file its name.
pub(crate) fn adopt(dir: &Path, id: SegmentId, flush: bool) -> io::Result<()> {
    let path = id.file(dir);
    std::fs::rename(path.with_extension("new"), &path)?;
    // The name must be as durable as what is written under it.
    if flush { aro_files::sync_dir(dir) } else { Ok(()) }
}
