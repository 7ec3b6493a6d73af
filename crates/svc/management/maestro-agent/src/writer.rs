//! Writes changed records to the store in rounds, and then hands the engine the works that waited for it.

use aro_runtime::Scope;

use crate::agent::SharedAgent;
use crate::record_store::{self, RecordStore};

/// Writes until the scope closes, and what is left then.
pub async fn run(agent: SharedAgent, mut records: RecordStore, stop: Scope) {
    let mut deferred = false;
    loop {
        let stopping = wait_for_changes(&agent, deferred, &stop).await;
        {
            let mut state = agent.state.lock();
            deferred = state.begin_round();
            if stopping {
                state.begin_last_round();
            }
        }
        if !write_due(&agent, &mut records).await && !stopping {
            deferred = true;
            tokio::time::sleep(record_store::RETRY_PAUSE).await;
        }
        if stopping {
            return;
        }
    }
}

/// Waits for a change, and then a moment for more, unless the engine waits. Returns whether the scope closes.
async fn wait_for_changes(agent: &SharedAgent, deferred: bool, stop: &Scope) -> bool {
    tokio::select! {
        () = stop.cancelled() => return true,
        () = agent.engine_waits.notified() => return false,
        () = agent.records_changed.notified(), if !deferred => {}
        () = std::future::ready(()), if deferred => {}
    }
    tokio::select! {
        () = stop.cancelled() => true,
        () = agent.engine_waits.notified() => false,
        () = tokio::time::sleep(record_store::COLLECT) => false,
    }
}

/// Writes the records of this round. Returns false if some could not be written; they stay due.
async fn write_due(agent: &SharedAgent, records: &mut RecordStore) -> bool {
    loop {
        let due = agent.state.lock().take_due(RecordStore::max_batch());
        if due.is_empty() {
            return true;
        }
        let taken: Vec<String> = due.iter().map(|(id, _)| id.clone()).collect();
        let failed = records.write(due).await;
        let released = agent.state.lock().finish_writes(&taken, &failed);
        if let Some(engine) = agent.engine.get() {
            for record in released {
                if record.deleting {
                    engine.leave(record.work());
                } else {
                    engine.put(record.work());
                }
            }
        }
        if !failed.is_empty() {
            return false;
        }
    }
}
