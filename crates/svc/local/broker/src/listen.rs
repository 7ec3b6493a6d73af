//! Accepting connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aro_runtime::{Fault, Listener, Phase, Scope, Seldom, TaskKind};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::connection::{self, Tls};
use crate::hub::Hub;

/// Accepts until the scope closes; connections get a farewell then.
pub fn start(listener: Listener, tls: Option<Tls>, hub: Arc<Hub>, most: usize, scope: &Scope) {
    let accepting = scope.child(Phase::Listeners, "broker");
    let connections = scope.child(Phase::Requests, "broker");
    let permits = Arc::new(Semaphore::new(most));
    let socket = listener.into_inner();
    let (stop, complaints) = (accepting.clone(), Seldom::every(Duration::from_secs(1)));
    accepting.spawn(TaskKind::Listener, "accept", async move {
        loop {
            let stream = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                stream = accept(&socket) => stream,
            };
            // Whoever comes when all places are taken is sent away at once, and tries again.
            let Ok(permit) = permits.clone().try_acquire_owned() else {
                if let Some(untold) = complaints.now() {
                    tracing::warn!(most, untold, "there is no place for another client");
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

/// Accepts one connection; running out of files is waited out, since giving up would turn a shortage into an outage.
async fn accept(socket: &TcpListener) -> TcpStream {
    let mut pause = Duration::from_millis(5);
    loop {
        match socket.accept().await {
            Ok((stream, _)) => return stream,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::warn!(%error, "accepting is not possible now; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
}
