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

use crate::roles::launch;
use crate::store::OpenStore;
use crate::{AppConfig, DataDir, Endpoint, RoleName, RunningApp, StartError};

/// Starts stacks.
#[derive(Debug)]
pub struct App;

/// What is not configuration: which roles, where, by which clock.
pub struct StartOptions {
    /// The roles to run.
    pub roles: Vec<RoleName>,
    /// Where data lives.
    pub data: DataDir,
    /// The wall clock.
    pub clock: SharedClock,
}

impl StartOptions {
    /// Every role, on the machine's clock.
    pub fn all(data: DataDir) -> Self {
        Self { roles: RoleName::ALL.to_vec(), data, clock: SystemClock::shared() }
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
        let bound = Bound::bind(&config, &options.roles).await?;
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
        let started = match app.launch(&config, bound, options.clock, started) {
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
    async fn bind(config: &AppConfig, roles: &[RoleName]) -> Result<Self, StartError> {
        let kube = if roles.contains(&RoleName::Kube) {
            Some(Listener::bind(config.kube.listen, "kube.listen").await?)
        } else {
            None
        };
        let frontend = if roles.contains(&RoleName::Frontend) {
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
