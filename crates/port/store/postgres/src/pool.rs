//! Connections, with a deadline around everything that uses one.

use std::time::Duration;

use aro_store::StoreError;
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio_postgres::{Config, Row, types::ToSql};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{DeadlinePassed, store_error};
use crate::{OpenError, PostgresOptions, tls};

/// Reads the connection string and settles TLS.
pub(crate) fn settings(options: &PostgresOptions) -> Result<(Config, MakeRustlsConnect), OpenError> {
    let mut config: Config = options.connection.expose().parse().map_err(OpenError::Settings)?;
    let connector = tls::connector(&mut config, options.ca_file.as_deref())?;
    config.connect_timeout(options.deadline / 2);
    config.keepalives_idle(Duration::from_secs(30));
    if config.get_application_name().is_none() {
        config.application_name("aro-store");
    }
    Ok((config, connector))
}

/// Whether a connection remembers a prepared statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    /// For the few statements this code holds.
    Keep,
    /// For statements whose shape a client chooses: there is no end of them.
    Forget,
}

/// Hands out connections.
pub(crate) struct Connections {
    pool: Pool,
    deadline: Duration,
}

impl Connections {
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self, OpenError> {
        let (config, connector) = settings(options)?;
        let manager = Manager::from_config(
            config,
            connector,
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let session = session_settings(options.deadline);
        let pool = Pool::builder(manager)
            .max_size(options.pool_size.max(1))
            .runtime(Runtime::Tokio1)
            .post_create(Hook::async_fn(move |client, _| {
                let session = session.clone();
                Box::pin(async move { client.batch_execute(&session).await.map_err(HookError::Backend) })
            }))
            .build()
            .map_err(OpenError::connect)?;
        Ok(Self { pool, deadline: options.deadline })
    }

    /// Runs one statement. A connection that did not answer in time is thrown away, not given to the next caller.
    pub(crate) async fn query(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.run(sql, params, Plan::Keep).await
    }

    async fn run(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        plan: Plan,
    ) -> Result<Vec<Row>, StoreError> {
        let deadline = tokio::time::Instant::now() + self.deadline;
        let late = |_| StoreError::Unavailable(Box::new(DeadlinePassed));
        let object = tokio::time::timeout_at(deadline, self.pool.get())
            .await
            .map_err(late)?
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        let call = async {
            let statement = match plan {
                Plan::Keep => object.prepare_cached(sql).await?,
                Plan::Forget => object.prepare(sql).await?,
            };
            object.query(&statement, params).await
        };
        match tokio::time::timeout_at(deadline, call).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => {
                // After DDL by a migration a cached plan may be refused for ever; a new session has none.
                if error.code() == Some(&tokio_postgres::error::SqlState::FEATURE_NOT_SUPPORTED) {
                    drop(Object::take(object));
                }
                Err(store_error(error))
            }
            Err(elapsed) => {
                drop(Object::take(object));
                Err(late(elapsed))
            }
        }
    }

    /// Runs a statement that changes nothing: a connection that turns out to be dead is no reason to fail.
    pub(crate) async fn read(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.read_with(sql, params, Plan::Keep).await
    }

    /// The same; the caller decides whether the statement is kept.
    pub(crate) async fn read_with(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        plan: Plan,
    ) -> Result<Vec<Row>, StoreError> {
        match self.run(sql, params, plan).await {
            Err(StoreError::Unavailable(error)) if lost_connection(&*error) => {
                self.run(sql, params, plan).await
            }
            other => other,
        }
    }

    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

/// The server gives up a little before we do, so that it does no work without a caller. Every statement here is meant to
/// use an index: while a table is small or freshly filled its statistics suggest otherwise, and the plan is kept.
pub(crate) fn session_settings(deadline: Duration) -> String {
    let statement = (deadline * 9 / 10).as_millis().max(1);
    format!(
        "SET statement_timeout = {statement}; SET idle_in_transaction_session_timeout = {statement};
         SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"
    )
}

fn lost_connection(error: &(dyn std::error::Error + 'static)) -> bool {
    let Some(error) = error.downcast_ref::<tokio_postgres::Error>() else { return false };
    // Without a code it never came from the server: the connection broke. 57P01 to 57P03: it is going away.
    error.code().is_none_or(|code| code.code().starts_with("57P"))
}
