//! SQLite with a write-ahead log, flushed at every commit.

use std::path::Path;
use std::sync::Mutex;

use rusqlite::{Connection, params};

use super::{Engine, Failure, Found, Write};

pub struct Sqlite(Mutex<Connection>);

impl Sqlite {
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let connection = Connection::open(dir.join("sqlite"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch("CREATE TABLE IF NOT EXISTS objects (key INTEGER PRIMARY KEY, value BLOB NOT NULL)")?;
        Ok(Self(Mutex::new(connection)))
    }

    fn connection(&self) -> Result<std::sync::MutexGuard<'_, Connection>, Failure> {
        self.0.lock().map_err(|_| "another writer had panicked".into())
    }
}

impl Engine for Sqlite {
    fn commit(&self, batch: &[Write]) -> Result<(), Failure> {
        let mut connection = self.connection()?;
        let transaction = connection.transaction()?;
        {
            let mut put = transaction.prepare_cached("INSERT OR REPLACE INTO objects (key, value) VALUES (?, ?)")?;
            for write in batch {
                put.execute(params![write.key as i64, write.value])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn scan(&self) -> Result<Found, Failure> {
        let connection = self.connection()?;
        let mut all = connection.prepare("SELECT value FROM objects")?;
        let mut rows = all.query([])?;
        let mut found = Found::default();
        while let Some(row) = rows.next()? {
            found.records += 1;
            found.bytes += row.get_ref(0)?.as_blob()?.len();
        }
        Ok(found)
    }
}
