//! Front Door as a role.

use std::convert::Infallible;
use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::{Dialer, Resolve};
use aro_runtime::{BuildError, Checked, Component, Role, RunError, Scope};
use aro_web::{ServeOptions, serve, serve_after};
use http::Request;
use hyper::body::Incoming;

use crate::cache::Ages;
use crate::config::FrontdoorConfig;
use crate::documents::Documents;
use crate::metrics::FrontdoorMetrics;
use crate::origin::{Fixed, Origin, OriginUrl};
use crate::ports::FrontdoorPorts;
use crate::service::answer;
use crate::tls::{self, TlsHandshake};

/// The public face of the clusters' OIDC documents.
pub struct Frontdoor {
    config: Checked<FrontdoorConfig>,
    listener: aro_runtime::Listener,
    clock: SharedClock,
    ready: Component,
    url: OriginUrl,
    dialer: Dialer,
    metrics: FrontdoorMetrics,
}

impl Role for Frontdoor {
    const NAME: &'static str = "frontdoor";
    type Config = FrontdoorConfig;
    type Ports = FrontdoorPorts;

    fn build(config: Checked<FrontdoorConfig>, ports: FrontdoorPorts) -> Result<Self, BuildError> {
        let url = config.origin.as_deref().and_then(OriginUrl::parse);
        let url = url.ok_or_else(|| BuildError::new("`frontdoor.origin` is not set"))?;
        let resolve: Arc<dyn Resolve> = match config.connect_to {
            Some(address) => Arc::new(Fixed(address)),
            None => ports.resolve,
        };
        Ok(Self {
            dialer: Dialer::new(resolve, config.origin_timeout.get()),
            metrics: FrontdoorMetrics::new(&ports.metrics),
            ready: ports.readiness.component("frontdoor"),
            listener: ports.listener,
            clock: ports.clock,
            url,
            config,
        })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let config = &self.config;
        let origin_tls = match (&config.ca_file, self.url.tls) {
            (Some(file), true) => Some(tls::client_config(file).await?),
            (None, true) => {
                return Err(RunError::new("`frontdoor.ca_file` is required for an origin with https"));
            }
            (_, false) => None,
        };
        let deadline = config.origin_timeout.get();
        let origin = Origin { url: self.url, dialer: self.dialer, tls: origin_tls, deadline };
        let ages = Ages { fresh: config.max_age.get(), stale: config.stale_if_error.get() };
        let budget = usize::try_from(config.cache.get()).unwrap_or(usize::MAX);
        let metrics = self.metrics;
        let documents = Documents::new(origin, budget, ages, config.max_origin_requests, metrics.clone());
        let shared = Arc::new((documents, metrics));
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let shared = shared.clone();
            async move { Ok::<_, Infallible>(answer(request, &shared.0, &shared.1).await) }
        });
        let options = ServeOptions {
            max_connections: config.max_connections,
            max_loopback_connections: config.max_connections,
            header_timeout: config.header_timeout.get(),
            drain: config.drain.get(),
            ..ServeOptions::named("frontdoor")
        };
        match config.tls() {
            Some(paths) => {
                let acceptor = tls::acceptor(paths, self.clock, config.reread.get(), &scope).await?;
                serve_after(self.listener, TlsHandshake { acceptor, service }, &scope, options);
            }
            None => {
                serve(self.listener, service, &scope, options);
            }
        }
        self.ready.ready();
        scope.cancelled().await;
        Ok(())
    }
}
