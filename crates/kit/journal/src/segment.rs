//! Segment files: naming, making, reading, removing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
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

    fn file(self, dir: &Path) -> PathBuf {
        dir.join(format!("{:016x}.log", self.0))
    }

    fn parse(name: &str) -> Option<Self> {
        let digits = name.strip_suffix(".log")?;
        (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok().map(Self)).flatten()
    }
}

/// Records may hold secrets: readable by the owner only.
const PRIVATE: u32 = 0o600;

/// Makes the directory, if it is not there, for its owner alone.
pub(crate) fn make_dir(dir: &Path) -> Result<(), OpenError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| OpenError::io("make the directory", dir, source))
}

/// Takes the directory for this process.
pub(crate) fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(PRIVATE).open(&path);
    let file = file.map_err(|source| OpenError::io("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::Locked { path: dir.to_owned() }),
        Err(std::fs::TryLockError::Error(source)) => Err(OpenError::io("lock", &path, source)),
    }
}

/// The segments there are, oldest first.
pub(crate) fn list(dir: &Path) -> Result<Vec<SegmentId>, OpenError> {
    let failed = |source| OpenError::io("read the directory", dir, source);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if let Some(id) = SegmentId::parse(&name) {
            found.push(id);
        } else if name.ends_with(".new") {
            // Prepared, but the process ended before it was used.
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Gives every record to `record`. A bad tail is what a crash leaves behind: it is cut off in the `last` segment and
/// an error in any other.
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
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match frame::read(rest, id) {
            Found::Record(payload) => {
                record(payload);
                at += HEADER + payload.len();
            }
            Found::End => return Ok(()),
            Found::Bad if last => {
                tracing::warn!(path = %path.display(), offset = at, "the end of the log was cut off by a crash");
                return cut(&path, at as u64).map_err(|source| OpenError::io("cut", &path, source));
            }
            Found::Bad => return Err(OpenError::Damaged { path, offset: at as u64 }),
        }
    }
}

/// Cuts a torn tail off, so that the segment is sound once others follow it.
fn cut(path: &Path, length: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

pub(crate) fn remove(dir: &Path, id: SegmentId) -> Result<(), OpenError> {
    let path = id.file(dir);
    std::fs::remove_file(&path).map_err(|source| OpenError::io("remove", &path, source))
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Makes a file full of zeros under a name that no start looks at. Flushing into blocks that exist is several times
/// faster than into a growing file, because the file system has nothing of its own to write.
pub(crate) fn prepare(dir: &Path, id: SegmentId, bytes: u64, flush: bool) -> io::Result<File> {
    let path = id.file(dir).with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(PRIVATE).open(path)?;
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
    if flush { File::open(dir)?.sync_all() } else { Ok(()) }
}
