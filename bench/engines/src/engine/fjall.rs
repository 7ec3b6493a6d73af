//! fjall: a log-structured merge tree with a journal before it.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Engine, Failure, Found, Write};

pub struct Fjall {
    database: Database,
    objects: Keyspace,
}

impl Fjall {
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let database = Database::builder(dir.join("fjall")).open()?;
        let objects = database.keyspace("objects", KeyspaceCreateOptions::default)?;
        Ok(Self { database, objects })
    }
}

impl Engine for Fjall {
    fn commit(&self, batch: &[Write]) -> Result<(), Failure> {
        let mut together = self.database.batch().durability(Some(PersistMode::SyncData));
        for write in batch {
            together.insert(&self.objects, write.key.to_be_bytes(), write.value.as_slice());
        }
        together.commit()?;
        Ok(())
    }

    fn scan(&self) -> Result<Found, Failure> {
        let mut found = Found::default();
        for record in self.objects.iter() {
            found.records += 1;
            found.bytes += record.value()?.len();
        }
        Ok(found)
    }
}
