//! What is compared: durable commits of records by key.

mod fjall;
mod journal;
mod redb;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

pub const ENGINES: [&str; 4] = ["redb", "fjall", "sqlite", "journal"];

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A record to write.
pub struct Write {
    pub key: u64,
    pub value: Vec<u8>,
}

/// A store with one table.
pub trait Engine: Send + Sync {
    /// Returns when all are durable, together.
    fn commit(&self, batch: &[Write]) -> Result<(), Failure>;
    /// All there is, read once: what a start of our server does.
    fn scan(&self) -> Result<Found, Failure>;
    /// What the engine wants to do before its size on disk is judged.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// What a scan found.
#[derive(Default)]
pub struct Found {
    pub records: usize,
    pub bytes: usize,
}

pub fn open(name: &str, dir: &Path) -> Result<Arc<dyn Engine>, Failure> {
    Ok(match name {
        "redb" => Arc::new(redb::Redb::open(dir)?),
        "fjall" => Arc::new(fjall::Fjall::open(dir)?),
        "sqlite" => Arc::new(sqlite::Sqlite::open(dir)?),
        "journal" => Arc::new(journal::Owner::open(dir)?),
        other => return Err(format!("no engine `{other}`").into()),
    })
}
