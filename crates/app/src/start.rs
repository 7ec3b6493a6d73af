//! Starting a stack.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_broker::{Broker, BrokerPorts};
use aro_frontend::{AcceptAll, BuiltInCatalogue, Frontend, FrontendPorts};
use aro_kube_apiserver::{Clusters, Kube, KubePorts};
use aro_maestro::{MaestroPorts, MaestroServer};
use aro_maestro_agent::{MaestroAgent, MaestroAgentPorts};
use aro_mce::{Mce, McePorts};
use aro_mqtt::SystemResolve;
use aro_runtime::{
    Checked, Component, Fault, Listener, Metrics, Phase, Readiness, Role, Scope, SystemClock, TaskKind,
};
use aro_store::SharedStore;
use aro_web::admin::serve_admin;
use kube::Client;
use tokio::sync::watch;

use crate::config::ClusterConfig;
use crate::images::RoleImages;
use crate::region::{self, DebugPort};
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
    broker: Option<Listener>,
    maestro: Option<Listener>,
    maestro_grpc: Option<Listener>,
    /// The cluster that agents work on, and where it is.
    cluster: Option<(Client, String)>,
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

async fn bind(wanted: bool, addr: SocketAddr, key: &str) -> Result<Option<Listener>, StartError> {
    Ok(if wanted { Some(Listener::bind(addr, key).await?) } else { None })
}

/// The cluster that an agent works on.
async fn cluster(config: &ClusterConfig) -> Result<(Client, String), StartError> {
    let context = config.context.as_deref();
    match &config.kubeconfig {
        Some(path) => {
            let client = aro_kube::of_kubeconfig(path, context).await?;
            Ok((client, format!("{}#{}", path.display(), context.unwrap_or_default())))
        }
        None => Ok(aro_kube::of_surroundings().await?),
    }
}

impl Bound {
    async fn bind(config: &AppConfig, what: &Composition) -> Result<Self, StartError> {
        let debug = *what == Composition::Region { debug_ports: true };
        let server = what.starts(RoleName::MaestroServer);
        let maestro = match debug {
            true => (config.region.maestro_listen, "region.maestro_listen"),
            false => (config.maestro.listen, "maestro.listen"),
        };
        let frontend = debug || what.starts(RoleName::Frontend);
        Ok(Self {
            admin: Listener::bind(config.admin.listen, "admin.listen").await?,
            kube: bind(what.starts(RoleName::Kube), config.kube.listen, "kube.listen").await?,
            frontend: bind(frontend, config.frontend.listen, "frontend.listen").await?,
            broker: bind(what.starts(RoleName::Broker), config.broker.listen, "broker.listen").await?,
            maestro: bind(debug || server, maestro.0, maestro.1).await?,
            cluster: if what.starts(RoleName::Mce) || what.starts(RoleName::MaestroAgent) {
                Some(cluster(&config.cluster).await?)
            } else {
                None
            },
            maestro_grpc: match config.region.maestro_grpc_listen.filter(|_| debug) {
                Some(address) => bind(true, address, "region.maestro_grpc_listen").await?,
                None => bind(server, config.maestro.grpc_listen, "maestro.grpc_listen").await?,
            },
        })
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
                    clusters: self.kube.clone(),
                }),
                started,
            };
            self.start_role::<Kube>(config.kube.clone(), ports)?;
        }
        if let Some(listener) = bound.frontend {
            self.endpoints.push(Endpoint {
                name: Frontend::NAME,
                addr: listener.local_addr(),
                scheme: "http",
                about: "ARM API of Microsoft.RedHatOpenShift",
            });
            if matches!(what, Composition::Region { .. }) {
                region::open(listener, self.kube.clone(), DebugPort::FRONTEND, &self.root);
            } else {
                self.launch_frontend(config, listener, clock.clone())?;
            }
        }
        if let Some(listener) = bound.broker {
            self.launch_broker(config, listener, clock.clone())?;
        }
        if let Some(listener) = bound.maestro {
            self.endpoints.push(Endpoint {
                name: "maestro",
                addr: listener.local_addr(),
                scheme: "http",
                about: "Maestro's REST API",
            });
            let in_pods = matches!(what, Composition::Region { .. });
            match (bound.maestro_grpc, in_pods) {
                (Some(grpc), false) => self.launch_maestro(config, listener, grpc, clock.clone())?,
                (grpc, _) => self.open_maestro(listener, grpc),
            }
        }
        if let Some((client, address)) = bound.cluster {
            self.launch_agents(config, what, client, address, clock.clone())?;
        }
        if matches!(what, Composition::Region { .. }) {
            let dir = self.data.path().join("region");
            region::bring_up(self.kube.clone(), dir, clock, self.readiness.component("region"), &self.root);
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
        self.start_role::<Frontend>(config.frontend.clone(), ports)
    }

    fn launch_broker(
        &mut self,
        config: &AppConfig,
        listener: Listener,
        clock: SharedClock,
    ) -> Result<(), StartError> {
        self.endpoints.push(Endpoint {
            name: Broker::NAME,
            addr: listener.local_addr(),
            scheme: if config.broker.cert_file.is_some() { "mqtts" } else { "mqtt" },
            about: "MQTT v5 broker",
        });
        let ports =
            BrokerPorts { listener, clock, metrics: self.metrics.clone(), readiness: self.readiness.clone() };
        self.start_role::<Broker>(config.broker.clone(), ports)
    }

    /// Opens ports to the server in its pod.
    fn open_maestro(&mut self, rest: Listener, grpc: Option<Listener>) {
        region::open(rest, self.kube.clone(), DebugPort::MAESTRO, &self.root);
        if let Some(grpc) = grpc {
            self.endpoints.push(maestro_grpc(&grpc, true));
            region::open(grpc, self.kube.clone(), DebugPort::MAESTRO_GRPC, &self.root);
        }
    }

    fn launch_maestro(
        &mut self,
        config: &AppConfig,
        rest: Listener,
        grpc: Listener,
        clock: SharedClock,
    ) -> Result<(), StartError> {
        self.endpoints.push(maestro_grpc(&grpc, config.maestro.grpc_cert_file.is_some()));
        let ports = MaestroPorts {
            rest,
            grpc,
            store: self.store.shared(),
            resolve: Arc::new(SystemResolve),
            clock,
            metrics: self.metrics.clone(),
            readiness: self.readiness.clone(),
        };
        self.start_role::<MaestroServer>(config.maestro.clone(), ports)
    }

    fn launch_agents(
        &mut self,
        config: &AppConfig,
        what: &Composition,
        client: Client,
        address: String,
        clock: SharedClock,
    ) -> Result<(), StartError> {
        if what.starts(RoleName::MaestroAgent) {
            let ports = MaestroAgentPorts {
                client: client.clone(),
                store: self.store.shared(),
                resolve: Arc::new(SystemResolve),
                clock: clock.clone(),
                metrics: self.metrics.clone(),
                readiness: self.readiness.clone(),
            };
            self.start_role::<MaestroAgent>(config.maestro_agent.clone(), ports)?;
        }
        if what.starts(RoleName::Mce) {
            let ports = McePorts {
                hub: client.clone(),
                hub_address: address,
                spoke: client,
                clock,
                metrics: self.metrics.clone(),
                readiness: self.readiness.clone(),
            };
            self.start_role::<Mce>(config.mce.clone(), ports)?;
        }
        Ok(())
    }

    fn start_role<R: Role>(&mut self, config: Checked<R::Config>, ports: R::Ports) -> Result<(), StartError> {
        let scope = launch::<R>(&self.root, config, ports)
            .map_err(|source| StartError::Build { role: R::NAME, source })?;
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

fn maestro_grpc(listener: &Listener, tls: bool) -> Endpoint {
    Endpoint {
        name: "maestro-grpc",
        addr: listener.local_addr(),
        scheme: if tls { "https" } else { "http" },
        about: "Maestro's gRPC door for sources",
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
