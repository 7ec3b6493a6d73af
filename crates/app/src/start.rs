//! Starting a stack.
//!
//! The order: bind every listener, open the store, start what the composition names, wait until all is ready. In a region
//! embedded Kubernetes and the cloud around it are started directly; the other roles are pods.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_kube_apiserver::{Clusters, Kube, KubePorts};
use aro_net::{Resolve, SystemResolve};
use aro_role::{ClusterAccess, ListenerDescriptor, Need, RegionSetting, RoleContext, RoleDescriptor};
use aro_runtime::config::Loaded;
use aro_runtime::{
    Component, Fault, Listener, Metrics, Phase, Readiness, Role, Scope, SystemClock, TaskKind,
};
use aro_store::SharedStore;
use aro_web::admin::serve_admin;
use tokio::sync::watch;

use crate::cloud_access;
use crate::config::ClusterConfig;
use crate::region::{self, CloudResults, DebugPort, RegionCloud};
use crate::role_images::RoleImages;
use crate::service_resolver::ServiceResolver;
use crate::store::OpenStore;
use crate::timeline;
use crate::{AppConfig, CloudEnvironment, DataDir, Endpoint, Registry, RunningApp, StartError};

/// Starts stacks.
#[derive(Debug)]
pub struct App;

/// What runs in a stack.
#[derive(Debug, Clone)]
pub enum Composition {
    /// A whole region: embedded Kubernetes, and the roles as its pods.
    Region {
        /// Whether ports that a region keeps closed are opened on loopback.
        debug_ports: bool,
    },
    /// Embedded Kubernetes alone.
    Kube,
    /// These roles, each by itself.
    Roles(Vec<&'static RoleDescriptor>),
}

impl Composition {
    fn runs_kube(&self) -> bool {
        matches!(self, Self::Region { .. } | Self::Kube)
    }

    /// The roles that are started directly: in a region the cloud around the clusters.
    fn roles(&self, registry: Registry) -> Vec<&'static RoleDescriptor> {
        match self {
            Self::Kube => Vec::new(),
            Self::Region { .. } => registry.iter().filter(|role| role.beside.is_some()).collect(),
            Self::Roles(roles) => roles.clone(),
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
    /// A composition on the machine's clock.
    pub fn new(data: DataDir, what: Composition) -> Self {
        Self { what, data, clock: SystemClock::shared() }
    }
}

/// What is bound or opened before anything is started.
struct Bound {
    admin: Listener,
    kube: Option<Listener>,
    roles: Vec<(&'static RoleDescriptor, HashMap<&'static str, Listener>)>,
    debug: Vec<(DebugPort, Listener)>,
    /// The cluster that roles started alone work on.
    cluster: Option<ClusterAccess>,
}

impl App {
    /// Starts a stack and returns when it is ready. When this fails, nothing of it keeps running.
    pub async fn start(config: AppConfig, options: StartOptions) -> Result<RunningApp, StartError> {
        let mut endpoints = Vec::new();
        let bound = Bound::bind(&config, &options.what, &mut endpoints).await?;
        if options.what.runs_kube() {
            options.data.take().await?;
        }
        let cloud = match options.what {
            Composition::Region { .. } => RegionCloud::of(&config, options.data.path())?,
            Composition::Kube | Composition::Roles(_) => None,
        };
        if let Some(cloud) = &cloud {
            CloudEnvironment::write(&cloud.dir, &endpoints).map_err(StartError::CloudEnvironment)?;
            issue_certificate(cloud, &options.clock).await?;
        }
        let admin = bound.admin.local_addr();
        timeline::write_address(options.data.path(), admin).map_err(StartError::AdminAddress)?;
        let store = OpenStore::open(&config.store, &options.data, options.clock.clone()).await?;
        let (started, kube) = watch::channel(None);
        let (laid_out, layout) = watch::channel(None);
        let (opened, open_cloud) = watch::channel(None);
        let mut app = RunningApp {
            endpoints,
            root: Scope::root("aro"),
            roles: Vec::new(),
            store,
            metrics: Metrics::new(),
            readiness: Readiness::new(),
            kube,
            layout,
            cloud: open_cloud,
            grace: config.process.grace.get(),
            data: options.data,
        };
        let clock = options.clock.clone();
        let started = match app.launch(&config, &options.what, bound, options.clock, started, cloud.as_ref())
        {
            Ok(()) => {
                if let (Some(cloud), Some(azure_local)) = (cloud, app.addr("azure-local")) {
                    if config.deploys("clusters-service") {
                        let resolve = Arc::new(ServiceResolver { clusters: app.kube.clone() });
                        let ready = app.readiness.component("shards");
                        let dir = app.data.path().join("region");
                        region::register_shards(cloud.layout.clone().into(), resolve, dir, ready, &app.root);
                    }
                    let ready = app.readiness.component("cloud-layout");
                    let results = CloudResults { opened, laid_out };
                    cloud.start(azure_local, clock, ready, results, &app.root);
                }
                app.until_ready(&config).await
            }
            Err(error) => Err(error),
        };
        match started {
            Ok(()) => Ok(app),
            Err(error) => {
                // The error that is reported is the cause of any task that is late now.
                let _ = app.stop().await;
                Err(error)
            }
        }
    }
}

/// Issues the certificate that Front Door reads when it starts.
async fn issue_certificate(cloud: &RegionCloud, clock: &SharedClock) -> Result<(), StartError> {
    let (cloud, now) = (cloud.clone(), clock.now());
    let issued = tokio::task::spawn_blocking(move || cloud.issue_certificate(now)).await;
    issued.map_err(std::io::Error::other).flatten().map_err(StartError::CloudCertificate)
}

/// The cluster that a role started alone works on.
async fn cluster(config: &ClusterConfig) -> Result<ClusterAccess, StartError> {
    let context = config.context.as_deref();
    let (client, address) = match &config.kubeconfig {
        Some(path) => {
            let client = aro_kube::of_kubeconfig(path, context).await?;
            (client, format!("{}#{}", path.display(), context.unwrap_or_default()))
        }
        None => aro_kube::of_surroundings().await?,
    };
    Ok(ClusterAccess { client, address })
}

impl Bound {
    async fn bind(
        config: &AppConfig,
        what: &Composition,
        endpoints: &mut Vec<Endpoint>,
    ) -> Result<Self, StartError> {
        let admin = Listener::bind(config.admin.listen, "admin.listen").await?;
        let mut bound = Self { admin, kube: None, roles: Vec::new(), debug: Vec::new(), cluster: None };
        if what.runs_kube() {
            let listener = Listener::bind(config.kube.listen, "kube.listen").await?;
            endpoints.push(Endpoint {
                name: Kube::NAME,
                addr: listener.local_addr(),
                scheme: "https",
                about: "Kubernetes API servers, by TLS server name",
            });
            bound.kube = Some(listener);
        }
        for role in what.roles(config.registry) {
            let mut listeners = HashMap::new();
            for descriptor in role.listeners {
                let listener = Listener::bind((descriptor.address)(&config.loaded)?, descriptor.key).await?;
                endpoints.push(endpoint(descriptor, &listener, (descriptor.scheme)(&config.loaded)));
                listeners.insert(descriptor.name, listener);
            }
            bound.roles.push((role, listeners));
        }
        if matches!(what, Composition::Region { debug_ports: true }) {
            bound.bind_debug_ports(config, endpoints).await?;
        }
        if what.roles(config.registry).iter().any(|role| role.needs(Need::Cluster)) {
            bound.cluster = Some(cluster(&config.cluster).await?);
        }
        endpoints.push(Endpoint {
            name: "admin",
            addr: bound.admin.local_addr(),
            scheme: "http",
            about: "/metrics, /healthz, /readyz",
        });
        Ok(bound)
    }

    async fn bind_debug_ports(
        &mut self,
        config: &AppConfig,
        endpoints: &mut Vec<Endpoint>,
    ) -> Result<(), StartError> {
        for role in config.registry.iter().filter(|role| config.deploys(role.name)) {
            for descriptor in role.listeners {
                let (Some(debug), Some(port)) = (&descriptor.debug, DebugPort::of(role, descriptor)) else {
                    continue;
                };
                let Some(address) = (debug.address)(&config.loaded)? else { continue };
                let listener = Listener::bind(address, debug.key).await?;
                endpoints.push(endpoint(descriptor, &listener, debug.scheme));
                self.debug.push((port, listener));
            }
        }
        Ok(())
    }
}

fn endpoint(descriptor: &ListenerDescriptor, listener: &Listener, scheme: &'static str) -> Endpoint {
    let (name, about) = (descriptor.endpoint, descriptor.about);
    Endpoint { name, addr: listener.local_addr(), scheme, about }
}

impl RunningApp {
    fn launch(
        &mut self,
        config: &AppConfig,
        what: &Composition,
        bound: Bound,
        clock: SharedClock,
        started: watch::Sender<Option<Clusters>>,
        cloud: Option<&RegionCloud>,
    ) -> Result<(), StartError> {
        watch_store(self.store.shared(), self.readiness.component("store"), &self.root);
        stop_on_store_failure(&self.store, &self.root);
        if let Some(listener) = bound.kube {
            self.launch_kube(config, listener, clock.clone(), started)?;
        }
        let is_region = matches!(what, Composition::Region { .. });
        let resolve: Arc<dyn Resolve> = match is_region {
            true => Arc::new(ServiceResolver { clusters: self.kube.clone() }),
            false => Arc::new(SystemResolve),
        };
        for (role, listeners) in bound.roles {
            let scope = self.root.role(role.name);
            let needs = |need| role.needs(need);
            let own = self.config_of(role, config, is_region, cloud)?;
            self.set_schemes(role, &own);
            let context = RoleContext {
                scope: scope.clone(),
                config: own,
                listeners,
                store: needs(Need::Store).then(|| self.store.shared()),
                cluster: bound.cluster.clone().filter(|_| needs(Need::Cluster)),
                cloud: match needs(Need::Cloud) {
                    true => Some(cloud_access::of_config(config, resolve.clone(), &clock)?),
                    false => None,
                },
                resolve: resolve.clone(),
                data_dir: self.data.path().to_owned(),
                clock: clock.clone(),
                metrics: self.metrics.clone(),
                readiness: self.readiness.clone(),
            };
            (role.start)(context).map_err(|source| StartError::Build { role: role.name, source })?;
            self.roles.push(scope);
        }
        for (port, listener) in bound.debug {
            region::open_debug_port(listener, self.kube.clone(), port, &self.root);
        }
        if matches!(what, Composition::Region { .. }) {
            let dir = self.data.path().join("region");
            let ready = self.readiness.component("region");
            let roles = (config.registry, config.up.without.clone());
            region::bring_up(roles, self.kube.clone(), dir, clock, ready, &self.root);
        }
        let more = timeline::router(self.store.shared());
        serve_admin(bound.admin, self.metrics.clone(), self.readiness.clone(), more, &self.root);
        Ok(())
    }

    /// The configuration of a role that is started directly; a region sets what it alone knows.
    fn config_of(
        &self,
        role: &RoleDescriptor,
        config: &AppConfig,
        is_region: bool,
        cloud: Option<&RegionCloud>,
    ) -> Result<Arc<Loaded>, StartError> {
        let settings = role.beside.filter(|_| is_region).map(|beside| beside.settings).unwrap_or_default();
        if settings.is_empty() {
            return Ok(config.loaded.clone());
        }
        let mut sources = config.sources.clone();
        for (key, setting) in settings {
            let value = match setting {
                RegionSetting::Text(text) => Some((*text).to_owned()),
                RegionSetting::AddressOf(endpoint) => self.addr(endpoint).map(|address| address.to_string()),
                RegionSetting::CloudFile(name) => {
                    cloud.map(|cloud| cloud.dir.join(name).display().to_string())
                }
                RegionSetting::Layout(setting) => cloud.map(|cloud| cloud.setting(*setting)),
            };
            if let Some(value) = value {
                sources = sources.set(*key, value);
            }
        }
        Ok(Arc::new(crate::config::schema(config.registry).load(&sources)?))
    }

    /// The endpoints of a role by its own configuration: a region may give it a certificate.
    fn set_schemes(&mut self, role: &RoleDescriptor, config: &Loaded) {
        for listener in role.listeners {
            let own = self.endpoints.iter_mut().filter(|endpoint| endpoint.name == listener.endpoint);
            own.for_each(|endpoint| endpoint.scheme = (listener.scheme)(config));
        }
    }

    fn launch_kube(
        &mut self,
        config: &AppConfig,
        listener: Listener,
        clock: SharedClock,
        started: watch::Sender<Option<Clusters>>,
    ) -> Result<(), StartError> {
        let ports = KubePorts {
            listener,
            dir: self.data.path().join("kube"),
            // Data that is removed with the process need not survive a crash.
            flush: !matches!(self.data, DataDir::Ephemeral(_)),
            clock: clock.clone(),
            metrics: self.metrics.clone(),
            readiness: self.readiness.clone(),
            images: Arc::new(RoleImages {
                registry: config.registry,
                sources: config.sources.clone(),
                store: self.store.shared(),
                clock: clock.clone(),
                metrics: self.metrics.clone(),
                data_dir: self.data.path().to_owned(),
                region: config.kube.clusters.clone(),
                clusters: self.kube.clone(),
                cloud: self.cloud.clone(),
            }),
            started,
        };
        let scope = self.root.role(Kube::NAME);
        let failed = |source| StartError::Build { role: Kube::NAME, source };
        aro_runtime::launch::<Kube>(&scope, config.kube.clone(), ports).map_err(failed)?;
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

/// How often the store is pinged.
const STORE_PING: Duration = Duration::from_secs(5);

/// Keeps the stack's readiness in step with the store's.
fn watch_store(store: SharedStore, component: Component, root: &Scope) {
    root.child(Phase::Transports, "store-watch").spawn(TaskKind::Helper, "ping", async move {
        let mut healthy = true;
        loop {
            match tokio::time::timeout(STORE_PING, store.ping()).await {
                Ok(Ok(())) => {
                    component.ready();
                    healthy = true;
                }
                Ok(Err(error)) => {
                    component.not_ready("the store does not answer");
                    if std::mem::take(&mut healthy) {
                        tracing::warn!(error = %chain(&error), "the store does not answer");
                    }
                }
                Err(_) => {
                    component.not_ready("the store does not answer in time");
                    if std::mem::take(&mut healthy) {
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

/// Stops the stack when the embedded store takes no more writes: only a start reads what is on disk.
fn stop_on_store_failure(store: &OpenStore, root: &Scope) {
    let OpenStore::Sqlite(store) = store else { return };
    let (store, scope) = (store.clone(), root.child(Phase::Transports, "store-failure"));
    let inside = scope.clone();
    scope.spawn(TaskKind::Critical, "failure", async move {
        tokio::select! {
            () = inside.cancelled() => Ok(()),
            reason = store.failed() => Err(Fault::new(reason)),
        }
    });
}
