//! Connections and numbered migrations.

use std::path::Path;

use aro_base::chain;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::OpenError;

/// Every change of the schema ever made, in order; entry n brings version n to n + 1. Never edited, only added to.
const MIGRATIONS: &[&str] = &[include_str!("schema/0001_documents.sql")];

/// Opens the one writing connection and brings the schema up to date.
pub(crate) fn open_writer(file: &Path) -> Result<Connection, OpenError> {
    // SQLite gives the log and its index the mode of the database.
    let failed = |source| OpenError::Directory { path: file.to_owned(), source };
    aro_files::ensure_file(file).map_err(failed)?;
    let mut connection = Connection::open(file)?;
    // The order matters: the journal mode can only change before anything is written.
    connection.execute_batch(
        // The log is kept longer than it gets: cutting it off costs tens of milliseconds in the middle of a commit.
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -65536;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA busy_timeout = 100;
         PRAGMA journal_size_limit = 268435456;",
    )?;
    prepare_once(&connection)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Opens a connection that cannot write.
pub(crate) fn open_reader(file: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.execute_batch("PRAGMA cache_size = -16384; PRAGMA mmap_size = 268435456;")?;
    prepare_once(&connection)?;
    Ok(connection)
}

/// Without the second setting SQLite plans a cached statement anew whenever a bound value changes that might matter to
/// the plan, which costs more than running it. Our statements have one good plan each.
fn prepare_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(64);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Makes sure that closing the connection does not copy the log into a database file that could not be written, and remove
/// the log.
pub(crate) fn keep_log(connection: &Connection) {
    let kept = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    if let Err(error) = kept {
        tracing::error!(error = %chain(&error), "closing the store may copy its log into a damaged database file");
    }
}

fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let known = MIGRATIONS.len() as i64;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > known {
        return Err(OpenError::TooNew { found, known });
    }
    for (version, migration) in (1_i64..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.cargo/config.toml` asks for it; a build that does not read the file would lack it.
    #[test]
    fn sqlite_flushes_data_alone_and_counts_no_allocations() {
        let connection = Connection::open_in_memory().unwrap();
        let mut statement = connection.prepare("PRAGMA compile_options").unwrap();
        let options = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let options: Vec<String> = options.map(Result::unwrap).collect();
        assert!(options.iter().any(|option| option == "DEFAULT_MEMSTATUS=0"), "{options:?}");
        // Not one of the options that SQLite lists; it was compiled with the same variable as the one above.
        let flags = option_env!("LIBSQLITE3_FLAGS").unwrap_or_default();
        assert!(flags.split(' ').any(|flag| flag == "-DHAVE_FDATASYNC=1"), "{flags}");
    }

    #[test]
    fn the_writer_never_checkpoints_inside_a_commit() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open_writer(&dir.path().join("store.db")).unwrap();
        let pages: i64 = connection.query_row("PRAGMA wal_autocheckpoint", [], |row| row.get(0)).unwrap();
        assert_eq!(pages, 0);
    }

    #[test]
    fn migrating_twice_changes_nothing_and_a_newer_schema_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("store.db");
        let dump = |connection: &Connection| -> Vec<String> {
            let mut statement = connection.prepare("SELECT sql FROM sqlite_schema ORDER BY 1").unwrap();
            let rows = statement.query_map([], |row| row.get::<_, Option<String>>(0)).unwrap();
            rows.map(|sql| sql.unwrap().unwrap_or_default()).collect()
        };
        let first = dump(&open_writer(&file).unwrap());
        let again = open_writer(&file).unwrap();
        assert_eq!(first, dump(&again));
        again.pragma_update(None, "user_version", 99).unwrap();
        drop(again);
        let refused = open_writer(&file).unwrap_err();
        assert!(matches!(refused, OpenError::TooNew { found: 99, .. }), "{refused}");
    }
}
