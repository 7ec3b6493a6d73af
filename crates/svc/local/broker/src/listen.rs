//! Accepting connections.

use std::sync::Arc;
use std::time::Duration;

use aro_runtime::{Fault, Listener, LogLimiter, Phase, Scope, TaskKind};
use tokio::sync::Semaphore;

use crate::connection::{self, Tls};
use crate::hub::Hub;

/// Accepts until the scope closes; clients get a DISCONNECT then.
pub fn start(listener: Listener, tls: Option<Tls>, hub: Arc<Hub>, limit: usize, scope: &Scope) {
    let accepting = scope.child(Phase::Listeners, "broker");
    let connections = scope.child(Phase::Requests, "broker");
    let permits = Arc::new(Semaphore::new(limit));
    let socket = listener.into_inner();
    let (stop, log_limiter) = (accepting.clone(), LogLimiter::every(Duration::from_secs(1)));
    accepting.spawn(TaskKind::Listener, "accept", async move {
        loop {
            let stream = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                (stream, _) = aro_net::accept(&socket) => stream,
            };
            // Without a free slot a client is disconnected at once, and retries.
            let Ok(permit) = permits.clone().try_acquire_owned() else {
                if let Some(suppressed) = log_limiter.permit() {
                    tracing::warn!(limit, suppressed, "connection limit reached; client rejected");
                }
                continue;
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was refused");
            }
            let serving = connection::run(stream, tls.clone(), hub.clone(), connections.clone());
            connections.spawn(TaskKind::Connection, "client", async move {
                let _permit = permit;
                serving.await;
                Ok::<_, Fault>(())
            });
        }
        Ok::<_, Fault>(())
    });
}
