//! Numbers for containers, partitions and types, as the writer knows them.
//!
//! The maps are only a cache of the database. After a rollback they may name rows that do not exist,
//! so the writer throws them away then.

use std::collections::HashMap;

use aro_store::{Container, PartitionKey, adapter::fold};
use rusqlite::{Connection, OptionalExtension as _, params};

/// How many names of one sort are remembered before starting over; the database still knows them all.
const REMEMBERED: usize = 50_000;

/// A container's row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContainerRow {
    pub(crate) id: i64,
    pub(crate) seq: i64,
    pub(crate) version_floor: u64,
}

/// A type's row.
#[derive(Debug, Clone)]
pub(crate) struct KindRow {
    pub(crate) id: i64,
    pub(crate) written: String,
}

#[derive(Debug, Default)]
pub(crate) struct Names {
    containers: HashMap<Container, ContainerRow>,
    partitions: HashMap<(i64, PartitionKey), i64>,
    kinds: HashMap<(i64, String), KindRow>,
}

impl Names {
    pub(crate) fn container(
        &mut self,
        connection: &Connection,
        container: Container,
    ) -> rusqlite::Result<ContainerRow> {
        if let Some(row) = self.containers.get(&container) {
            return Ok(*row);
        }
        connection
            .prepare_cached("INSERT INTO container (name) VALUES (?1) ON CONFLICT DO NOTHING")?
            .execute([container.name()])?;
        let row = connection
            .prepare_cached("SELECT id, seq, version_floor FROM container WHERE name = ?1")?
            .query_row([container.name()], |row| {
                let floor: i64 = row.get(2)?;
                Ok(ContainerRow { id: row.get(0)?, seq: row.get(1)?, version_floor: floor as u64 })
            })?;
        self.containers.insert(container, row);
        Ok(row)
    }

    /// Remembers the sequence that the current transaction is about to store.
    pub(crate) fn advance(&mut self, container: Container, seq: i64) {
        if let Some(row) = self.containers.get_mut(&container) {
            row.seq = seq;
        }
    }

    pub(crate) fn partition(
        &mut self,
        connection: &Connection,
        container: i64,
        partition: &PartitionKey,
    ) -> rusqlite::Result<i64> {
        let key = (container, partition.clone());
        if let Some(id) = self.partitions.get(&key) {
            return Ok(*id);
        }
        let find = "SELECT id FROM partition WHERE container = ?1 AND name = ?2";
        let name = params![container, partition.as_str()];
        let found = connection.prepare_cached(find)?.query_row(name, |row| row.get(0)).optional()?;
        let id = if let Some(id) = found {
            id
        } else {
            connection
                .prepare_cached("INSERT INTO partition (container, name) VALUES (?1, ?2)")?
                .insert(params![container, partition.as_str()])?
        };
        remember(&mut self.partitions, key, id);
        Ok(id)
    }

    pub(crate) fn kind(
        &mut self,
        connection: &Connection,
        container: i64,
        resource_type: &str,
    ) -> rusqlite::Result<KindRow> {
        let key = (container, fold(resource_type));
        if let Some(row) = self.kinds.get(&key) {
            return Ok(row.clone());
        }
        connection
            .prepare_cached(
                "INSERT INTO kind (container, folded, written) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            )?
            .execute(params![container, key.1, resource_type])?;
        let row = connection
            .prepare_cached("SELECT id, written FROM kind WHERE container = ?1 AND folded = ?2")?
            .query_row(params![container, key.1], |row| {
                Ok(KindRow { id: row.get(0)?, written: row.get(1)? })
            })?;
        remember(&mut self.kinds, key, row.clone());
        Ok(row)
    }
}

fn remember<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, V>, key: K, value: V) {
    if map.len() >= REMEMBERED {
        map.clear();
    }
    map.insert(key, value);
}
