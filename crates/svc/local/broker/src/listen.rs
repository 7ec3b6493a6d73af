//! Accepting connections.

use std::sync::Arc;
use std::time::Duration;

use aro_net::{Admission, AdmissionLimits};
use aro_runtime::{Fault, Listener, LogLimiter, Phase, Scope, TaskKind};

use crate::connection::{self, Tls};
use crate::hub::Hub;

/// Accepts until the scope closes; clients get a DISCONNECT then.
pub fn start(listener: Listener, tls: Option<Tls>, hub: Arc<Hub>, limits: AdmissionLimits, scope: &Scope) {
    let accepting = scope.child(Phase::Listeners, "broker");
    let connections = scope.child(Phase::Requests, "broker");
    let admission = Admission::new(limits);
    let socket = listener.into_inner();
    let (stop, log_limiter) = (accepting.clone(), LogLimiter::every(Duration::from_secs(1)));
    accepting.spawn(TaskKind::Listener, "accept", async move {
        loop {
            let (stream, peer) = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = aro_net::accept(&socket) => accepted,
            };
            // A client beyond its address's limit is disconnected at once, and retries.
            let Some(pending) = admission.admit(peer.ip()) else {
                if let Some(suppressed) = log_limiter.permit() {
                    tracing::warn!(peer = %peer.ip(), suppressed, "connection limit of a peer reached; client rejected");
                }
                continue;
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was refused");
            }
            let serving = connection::run(stream, pending, tls.clone(), hub.clone(), connections.clone());
            connections.spawn(TaskKind::Connection, "client", async move {
                serving.await;
                Ok::<_, Fault>(())
            });
        }
        Ok::<_, Fault>(())
    });
}
