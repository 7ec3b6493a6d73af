//! Starting a stack.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_frontend::{AcceptAll, BuiltInCatalogue, Frontend, FrontendPorts};
use aro_kube::{Clusters, Kube, KubePorts};
use aro_runtime::{
    Component, Fault, Listener, Metrics, Phase, Readiness, Role as _, Scope, SystemClock, TaskKind,
};
use aro_store::SharedStore;
use aro_web::admin::serve_admin;
use tokio::sync::watch;

use crate::images::RoleImages;
use crate::region;
use crate::roles::launch;
use crate::store::OpenStore;
use crate::{AppConfig, DataDir, Endpoint, RoleName, RunningApp, StartError};

/// Starts stacks.
#[derive(Debug)]
pub struct App;

/// What runs in a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Composition {
    /// A whole region: Kubernetes, and the roles as its pods.
    Region {
        /// Whether ports that a region keeps to itself are opened on loopback.
        debug_ports: bool,
    },
    /// These roles, each by itself.
    Roles(Vec<RoleName>),
}

impl Composition {
    /// Whether a role is started directly.
    fn starts(&self, role: RoleName) -> bool {
        match self {
            Self::Region { .. } => role == RoleName::Kube,
            Self::Roles(roles) => roles.contains(&role),
        }
    }
}

/// What is not configuration: what runs, where, by which clock.
pub struct StartOptions {
    /// What runs.
    pub what: Composition,
    /// Where data lives.
    pub data: DataDir,
    /// The wall clock.
    pub clock: SharedClock,
}

impl StartOptions {
    /// A region on the machine's clock.
    pub fn region(data: DataDir, debug_ports: bool) -> Self {
        Self { what: Composition::Region { debug_ports }, data, clock: SystemClock::shared() }
    }

    /// Some roles, each by itself, on the machine's clock.
    pub fn roles(data: DataDir, roles: Vec<RoleName>) -> Self {
        Self { what: Composition::Roles(roles), data, clock: SystemClock::shared() }
    }
}

/// What is bound before anything else happens.
struct Bound {
    admin: Listener,
    kube: Option<Listener>,
    frontend: Option<Listener>,
}

impl App {
    /// Starts a stack and returns when it is ready. When this fails, nothing of it keeps running.
    pub async fn start(config: AppConfig, options: StartOptions) -> Result<RunningApp, StartError> {
        let bound = Bound::bind(&config, &options.what).await?;
        let store = OpenStore::open(&config.store, &options.data, options.clock.clone()).await?;
        let (started, kube) = watch::channel(None);
        let mut app = RunningApp {
            endpoints: Vec::new(),
            root: Scope::root("aro"),
            roles: Vec::new(),
            store,
            metrics: Metrics::new(),
            readiness: Readiness::new(),
            kube,
            grace: config.process.grace.get(),
            data: options.data,
        };
        let started = match app.launch(&config, &options.what, bound, options.clock, started) {
            Ok(()) => app.until_ready(&config).await,
            Err(error) => Err(error),
        };
        match started {
            Ok(()) => Ok(app),
            Err(error) => {
                // Whatever is late now is late because of the error we report.
                let _ = app.stop().await;
                Err(error)
            }
        }
    }
}

impl Bound {
    async fn bind(config: &AppConfig, what: &Composition) -> Result<Self, StartError> {
        let kube = if what.starts(RoleName::Kube) {
            Some(Listener::bind(config.kube.listen, "kube.listen").await?)
        } else {
            None
        };
        let debug = *what == Composition::Region { debug_ports: true };
        let frontend = if debug || what.starts(RoleName::Frontend) {
            Some(Listener::bind(config.frontend.listen, "frontend.listen").await?)
        } else {
            None
        };
        Ok(Self { admin: Listener::bind(config.admin.listen, "admin.listen").await?, kube, frontend })
    }
}

impl RunningApp {
    fn launch(
        &mut self,
        config: &AppConfig,
        what: &Composition,
        bound: Bound,
        clock: SharedClock,
        started: watch::Sender<Option<Clusters>>,
    ) -> Result<(), StartError> {
        watch_store(self.store.shared(), self.readiness.component("store"), &self.root);
        if let Some(listener) = bound.kube {
            self.endpoints.push(Endpoint {
                name: Kube::NAME,
                addr: listener.local_addr(),
                scheme: "https",
                about: "Kubernetes API servers, by TLS server name",
            });
            let ports = KubePorts {
                listener,
                dir: self.data.path().join("kube"),
                // What goes with the process need not survive it.
                flush: !matches!(self.data, DataDir::Ephemeral(_)),
                clock: clock.clone(),
                metrics: self.metrics.clone(),
                readiness: self.readiness.clone(),
                images: Arc::new(RoleImages {
                    sources: config.sources.clone(),
                    store: self.store.shared(),
                    clock: clock.clone(),
                    metrics: self.metrics.clone(),
                }),
                started,
            };
            let scope = launch::<Kube>(&self.root, config.kube.clone(), ports)
                .map_err(|source| StartError::Build { role: Kube::NAME, source })?;
            self.roles.push(scope);
        }
        if let Some(listener) = bound.frontend {
            self.endpoints.push(Endpoint {
                name: Frontend::NAME,
                addr: listener.local_addr(),
                scheme: "http",
                about: "ARM API of Microsoft.RedHatOpenShift",
            });
            if matches!(what, Composition::Region { .. }) {
                region::open(listener, self.kube.clone(), region::FRONTEND, &self.root);
            } else {
                self.launch_frontend(config, listener, clock)?;
            }
        }
        if matches!(what, Composition::Region { .. }) {
            region::bring_up(self.kube.clone(), self.readiness.component("region"), &self.root);
        }
        self.endpoints.push(Endpoint {
            name: "admin",
            addr: bound.admin.local_addr(),
            scheme: "http",
            about: "/metrics, /healthz, /readyz",
        });
        serve_admin(bound.admin, self.metrics.clone(), self.readiness.clone(), &self.root);
        Ok(())
    }

    fn launch_frontend(
        &mut self,
        config: &AppConfig,
        listener: Listener,
        clock: SharedClock,
    ) -> Result<(), StartError> {
        let ports = FrontendPorts {
            listener,
            store: self.store.shared(),
            clock,
            catalogue: Arc::new(BuiltInCatalogue),
            preflight: Arc::new(AcceptAll),
            metrics: self.metrics.clone(),
            readiness: self.readiness.clone(),
        };
        let scope = launch::<Frontend>(&self.root, config.frontend.clone(), ports)
            .map_err(|source| StartError::Build { role: Frontend::NAME, source })?;
        self.roles.push(scope);
        Ok(())
    }

    async fn until_ready(&self, config: &AppConfig) -> Result<(), StartError> {
        let limit = config.process.start_timeout;
        tokio::select! {
            biased;
            failure = self.failed() => Err(StartError::Failed(failure)),
            ready = tokio::time::timeout(limit.get(), self.readiness.ready()) => ready.map_err(|_| {
                let waiting = self.readiness.waiting().into_iter();
                let waiting: Vec<String> = waiting.map(|(name, why)| format!("{name} ({why})")).collect();
                StartError::NotReady { after: limit.to_string(), waiting: waiting.join(", ") }
            }),
        }
    }
}

/// How often the store is asked whether it is there.
const STORE_PING: Duration = Duration::from_secs(5);

/// Keeps the stack's readiness in step with the store's.
fn watch_store(store: SharedStore, component: Component, root: &Scope) {
    root.child(Phase::Transports, "store-watch").spawn(TaskKind::Helper, "ping", async move {
        let mut well = true;
        loop {
            match tokio::time::timeout(STORE_PING, store.ping()).await {
                Ok(Ok(())) => {
                    component.ready();
                    well = true;
                }
                Ok(Err(error)) => {
                    component.not_ready("the store does not answer");
                    if std::mem::take(&mut well) {
                        tracing::warn!(error = %chain(&error), "the store does not answer");
                    }
                }
                Err(_) => {
                    component.not_ready("the store does not answer in time");
                    if std::mem::take(&mut well) {
                        tracing::warn!("the store does not answer in time");
                    }
                }
            }
            tokio::time::sleep(STORE_PING).await;
        }
        #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
        Ok::<(), Fault>(())
    });
}
