//! Numbered migrations, and what must hold before the store is used.

use aro_base::chain;
use tokio_postgres::{Client, GenericClient};

use crate::pool::settings;
use crate::{OpenError, PostgresOptions};

/// Every change of the schema ever made, in order. Never edited, only added to.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001_documents.sql"),
    include_str!("schema/0002_conditions.sql"),
    include_str!("schema/0003_marks.sql"),
    include_str!("schema/0004_groups.sql"),
];

/// Whether the feed's places lie in this server's future: transaction ids start over when a dump is restored into a
/// new server, and new changes would then hide behind old ones.
const RESTORED: &str =
    "SELECT coalesce(max(m.pos), 0) >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint * 128
    FROM (SELECT max(pos) AS pos FROM store_document UNION ALL SELECT max(purged) FROM store_container) m";

/// Brings the schema up to date. Replicas may do so at the same time: one works, the others wait for it.
pub async fn migrate(options: &PostgresOptions) -> Result<(), OpenError> {
    let (config, connector) = settings(options)?;
    let (mut client, connection) = config.connect(connector).await.map_err(OpenError::connect)?;
    let work = async move {
        let result = apply(&mut client).await;
        drop(client);
        result
    };
    // The connection must be driven while the client waits; it ends when the client is dropped.
    let (result, ended) = futures::join!(work, connection);
    if let Err(error) = ended {
        tracing::debug!(error = %chain(&error), "the connection of the migration ended badly");
    }
    result
}

async fn apply(client: &mut Client) -> Result<(), OpenError> {
    let transaction = client.transaction().await.map_err(OpenError::Migrate)?;
    transaction
        .batch_execute(
            "SET LOCAL statement_timeout = 0;
             SELECT pg_advisory_xact_lock(hashtextextended('store_migration', 4711));
             CREATE TABLE IF NOT EXISTS store_migration (
                version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());",
        )
        .await
        .map_err(OpenError::Migrate)?;
    let found = version(&transaction).await.map_err(OpenError::Migrate)?;
    let known = MIGRATIONS.len() as i32;
    if found > known {
        return Err(OpenError::TooNew { found, known });
    }
    for (version, migration) in (1_i32..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
        transaction.batch_execute(migration).await.map_err(OpenError::Migrate)?;
        let note = "INSERT INTO store_migration (version) VALUES ($1)";
        transaction.execute(note, &[&version]).await.map_err(OpenError::Migrate)?;
        tracing::info!(version, "the store's schema was migrated");
    }
    if transaction.query_one(RESTORED, &[]).await.map_err(OpenError::Migrate)?.get(0) {
        tracing::warn!("the database was restored from a copy; all change-feed consumers will list again");
        transaction.batch_execute(NEW_LIFE).await.map_err(OpenError::Migrate)?;
    }
    transaction.commit().await.map_err(OpenError::Migrate)
}

/// Old places become small numbers in the same order; the new name of the database expires all cursors.
const NEW_LIFE: &str = "
    LOCK TABLE store_document IN EXCLUSIVE MODE;
    UPDATE store_document d SET pos = o.n
        FROM (SELECT k, row_number() OVER (ORDER BY pos) AS n FROM store_document) o WHERE o.k = d.k;
    UPDATE store_container SET purged = 0;
    UPDATE store_life SET id = substr(md5(random()::text || clock_timestamp()::text), 1, 8);";

async fn version(client: &impl GenericClient) -> Result<i32, tokio_postgres::Error> {
    let row = client.query_one("SELECT coalesce(max(version), 0) FROM store_migration", &[]).await?;
    row.try_get(0)
}

/// Checks that the schema is the one this release knows and returns the database's name for cursors.
pub(crate) async fn verify(options: &PostgresOptions) -> Result<String, OpenError> {
    let (config, connector) = settings(options)?;
    let (client, connection) = config.connect(connector).await.map_err(OpenError::connect)?;
    let work = async move {
        let known = MIGRATIONS.len() as i32;
        let exists = client
            .query_one("SELECT to_regclass('store_migration') IS NOT NULL", &[])
            .await
            .map_err(OpenError::connect)?;
        if !exists.get::<_, bool>(0) {
            return Err(OpenError::TooOld { found: 0, known });
        }
        let found = version(&client).await.map_err(OpenError::connect)?;
        match found.cmp(&known) {
            std::cmp::Ordering::Less => return Err(OpenError::TooOld { found, known }),
            std::cmp::Ordering::Greater => return Err(OpenError::TooNew { found, known }),
            std::cmp::Ordering::Equal => {}
        }
        if client.query_one(RESTORED, &[]).await.map_err(OpenError::connect)?.get(0) {
            return Err(OpenError::Restored);
        }
        let row = client.query_one("SELECT id FROM store_life", &[]).await.map_err(OpenError::connect)?;
        row.try_get(0).map_err(OpenError::connect)
    };
    let (result, _) = futures::join!(work, connection);
    result
}
