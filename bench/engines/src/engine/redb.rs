//! redb: a B-tree with copy on write; a commit is durable when it returns.

use std::path::Path;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::{Engine, Failure, Found, Write};

const OBJECTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("objects");

pub struct Redb(Database);

impl Redb {
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let database = Database::create(dir.join("redb"))?;
        let transaction = database.begin_write()?;
        transaction.open_table(OBJECTS)?;
        transaction.commit()?;
        Ok(Self(database))
    }
}

impl Engine for Redb {
    fn commit(&self, batch: &[Write]) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(OBJECTS)?;
            for write in batch {
                table.insert(write.key, write.value.as_slice())?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn scan(&self) -> Result<Found, Failure> {
        let mut found = Found::default();
        for record in self.0.begin_read()?.open_table(OBJECTS)?.iter()? {
            found.records += 1;
            found.bytes += record?.1.value().len();
        }
        Ok(found)
    }
}
