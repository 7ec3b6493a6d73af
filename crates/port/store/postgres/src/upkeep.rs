//! What is done now and then: expired documents and old tombstones go, and the planner learns what a young table is like.
//!
//! The server gathers statistics by itself, but looks only once a minute. Until then it takes all indexes of a table it
//! knows nothing about for equally good, and a listing of one partition walks through the container.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, Timestamp, chain};
use aro_store::StoreError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::corrupt;
use crate::pool::Connections;
use crate::writer::Writer;

/// How often it is asked whether something is due.
const LOOK: Duration = Duration::from_secs(1);

/// Between two purges when the first has left something.
const BUSY: Duration = Duration::from_millis(100);

/// After so many writes of this process statistics are gathered, and each time there are ten times as many.
const FIRST_STATISTICS: u64 = 100;

/// With more than these the server's own pace is good enough.
const LAST_STATISTICS: u64 = 100_000;

pub(crate) struct Upkeep {
    pub(crate) connections: Arc<Connections>,
    pub(crate) clock: SharedClock,
    pub(crate) interval: Duration,
    pub(crate) rows: i32,
    pub(crate) writer: Arc<Writer>,
}

impl Upkeep {
    /// Runs until cancelled.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let mut next_purge = Instant::now() + self.interval;
        let mut next_statistics = FIRST_STATISTICS;
        loop {
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep_until(next_purge.min(Instant::now() + LOOK)) => {}
            }
            if Instant::now() >= next_purge {
                next_purge = Instant::now() + self.purge().await;
            }
            let written = self.writer.written();
            if statistics_due(written, next_statistics) {
                next_statistics = written.saturating_mul(10);
                self.gather_statistics().await;
            }
        }
    }

    /// Purges once; returns how long to wait for the next time.
    async fn purge(&self) -> Duration {
        match purge(&self.connections, self.clock.now(), self.rows).await {
            // A full purge means that more is due.
            Ok(purged) if purged >= u64::try_from(self.rows).unwrap_or(0) => BUSY,
            Ok(_) => self.interval,
            Err(error) => {
                tracing::warn!(error = %chain(&error), "purging the store failed");
                self.interval
            }
        }
    }

    /// Another replica may be doing it, or only the table's owner may: then it is left out here.
    async fn gather_statistics(&self) {
        if let Err(error) = self.connections.query("ANALYZE (SKIP_LOCKED) store_document", &[]).await {
            tracing::debug!(error = %chain(&error), "gathering statistics failed");
        }
    }
}

fn statistics_due(written: u64, next: u64) -> bool {
    written >= next && next <= LAST_STATISTICS
}

/// Removes what is past its time, about so many rows; returns how many went.
pub(crate) async fn purge(connections: &Connections, now: Timestamp, rows: i32) -> Result<u64, StoreError> {
    let result = connections.query("SELECT store_purge($1, $2)", &[&now.as_microsecond(), &rows]).await?;
    let purged: i32 = result.first().map_or(Ok(0), |row| row.try_get(0)).map_err(corrupt)?;
    Ok(u64::try_from(purged).unwrap_or(0))
}
