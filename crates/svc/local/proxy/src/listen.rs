//! Accepting connections.

use std::sync::Arc;
use std::time::Duration;

use aro_net::{Admission, AdmissionLimits};
use aro_runtime::{Fault, Listener, LogLimiter, Phase, Scope, TaskKind};

use crate::connection::{self, Shared};
use crate::metrics::Reason;

/// Accepts until the scope closes; open tunnels drain then.
pub(crate) fn start(listener: Listener, shared: Arc<Shared>, limits: AdmissionLimits, scope: &Scope) {
    let accepting = scope.child(Phase::Listeners, "proxy");
    let connections = scope.child(Phase::Requests, "proxy");
    let admission = Admission::new(limits);
    let limiter = LogLimiter::every(Duration::from_secs(1));
    let (stop, socket) = (accepting.clone(), listener.into_inner());
    accepting.spawn(TaskKind::Listener, "accept", async move {
        loop {
            let (stream, peer) = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = aro_net::accept(&socket) => accepted,
            };
            // There is no handshake; a client that sends no request is cut after the header time-out.
            let Some(room) = admission.admit(peer.ip()).and_then(aro_net::Pending::try_establish) else {
                shared.metrics.refuse(Reason::Limit);
                if let Some(suppressed) = limiter.permit() {
                    tracing::warn!(peer = %peer.ip(), suppressed, "proxy connection limit reached; connection closed");
                }
                continue;
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was refused");
            }
            let serving = connection::run(stream, shared.clone(), connections.clone(), room);
            connections.spawn(TaskKind::Connection, "connection", async move {
                serving.await;
                Ok::<_, Fault>(())
            });
        }
        Ok::<_, Fault>(())
    });
}
