//! Answers that switch protocols: what happens to the connection afterwards.
//!
//! An answer with status 101 carries an [`Upgrade`] in its extensions. Once the answer is written, the connection's own
//! task runs it: so it has the connection's permit and scope, and closing the listener waits for it, too.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use http::{Extensions, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_util::sync::CancellationToken;

/// The bytes of a connection, after its last answer.
pub type UpgradedIo = TokioIo<Upgraded>;

/// In the extensions of requests whose connection can switch protocols.
#[derive(Debug, Clone, Copy)]
pub struct Upgradable;

type Then = Box<dyn FnOnce(UpgradedIo, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// What takes over the connection once an answer has switched protocols.
#[derive(Clone)]
pub struct Upgrade(Arc<Mutex<Option<Then>>>);

impl Upgrade {
    /// `then` gets the connection and a token; when that is cancelled, it should end soon, or it is cut.
    pub fn new<F>(then: impl FnOnce(UpgradedIo, CancellationToken) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(Mutex::new(Some(Box::new(move |io, stop| Box::pin(then(io, stop)))))))
    }
}

impl std::fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upgrade")
    }
}

/// The one switch a connection can make.
#[derive(Clone, Default)]
pub(super) struct Switch(Arc<Mutex<Option<(OnUpgrade, Then)>>>);

impl Switch {
    /// Notes what an answer wants to be done afterwards.
    pub(super) fn note(&self, status: StatusCode, extensions: &mut Extensions, io: Option<OnUpgrade>) {
        let wanted = extensions.remove::<Upgrade>().filter(|_| status == StatusCode::SWITCHING_PROTOCOLS);
        let then =
            wanted.and_then(|Upgrade(then)| then.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let (Some(io), Some(then)) = (io, then) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((io, then));
        }
    }

    /// Does it, if there is anything to do. The HTTP part of the connection has ended.
    pub(super) async fn run(self, stop: CancellationToken) {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((io, then)) = noted else { return };
        match io.await {
            Ok(upgraded) => then(TokioIo::new(upgraded), stop).await,
            Err(error) => tracing::debug!(%error, "a connection could not switch protocols"),
        }
    }
}
