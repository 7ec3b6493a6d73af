//! The two set-ups: a region in one process, and everything as a process of its own beside PostgreSQL and mosquitto.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use aro_base::{Clock as _, Secret, SignedDuration};
use aro_fixtures::free_port;
use aro_harness::{Process, StoreChoice};
use aro_kube::of_kubeconfig;
use aro_maestro_e2e::chain::{Broker, BrokerKind, Source};
use aro_maestro_e2e::pki::{Pki, text};
use aro_pki::{Authority, IdentityPaths, Leaf, Subject, Usage, Validity};
use aro_runtime::SystemClock;
use aro_store::testing::postgres::TestPostgres;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

/// Whose works these are.
const SOURCE: &str = "bench";

/// A running chain.
pub struct World {
    pub label: &'static str,
    pub source: Source,
    pub rest: SocketAddr,
    /// The management clusters.
    pub clusters: Vec<(String, Client)>,
    pub parts: Parts,
}

/// What it consists of.
pub enum Parts {
    Region { process: Process, _identity: tempfile::TempDir },
    Roles(Box<Roles>),
}

/// Everything apart.
pub struct Roles {
    pub server: Process,
    pub agents: Vec<Process>,
    pub kube: Process,
    pub broker: Broker,
    _postgres: TestPostgres,
    _pki: Pki,
}

impl World {
    /// `aro up` with SQLite, the embedded broker and embedded Kubernetes.
    pub async fn region(consumers: usize) -> Result<Self> {
        let names = names(consumers);
        let clusters = json!(["svc"].into_iter().chain(names.iter().map(String::as_str)).collect::<Vec<_>>());
        let settings = [
            ("kube.clusters", clusters.to_string()),
            ("maestro.debug_grpc_listen", "127.0.0.1:0".to_owned()),
            ("telemetry.log", "warn".to_owned()),
        ];
        let process = start("up", StoreChoice::Embedded, &settings).await?;
        let clusters = clients(&process, &names).await?;
        let dir = tempfile::tempdir()?;
        let identity = of_region(&process, &dir)?;
        let grpc = process.addr("maestro-grpc").context("the gRPC door")?;
        Ok(Self {
            label: "region in one process",
            source: Source::new(SOURCE, grpc, identity)?,
            rest: process.addr("maestro").context("the REST API")?,
            clusters,
            parts: Parts::Region { process, _identity: dir },
        })
    }

    /// A process for each role. Nothing, if there is no mosquitto.
    pub async fn roles(consumers: usize) -> Result<Option<Self>> {
        let names = names(consumers);
        let pki = Pki::new()?;
        let Some(broker) = Broker::start(BrokerKind::Mosquitto, &pki).await? else { return Ok(None) };
        let kube = start(
            "kube",
            StoreChoice::Embedded,
            &[
                ("kube.clusters", json!(names).to_string()),
                ("kube.nodes", "0".to_owned()),
                ("kube.workloads", "false".to_owned()),
                ("telemetry.log", "warn".to_owned()),
            ],
        )
        .await?;
        let clusters = clients(&kube, &names).await?;
        let postgres = TestPostgres::launch()?;
        let server = server(&pki, &broker, &names, postgres.fresh_schema()?).await?;
        let mut agents = Vec::new();
        for name in &names {
            agents.push(agent(&pki, &broker, &kube, name).await?);
        }
        let grpc = server.addr("maestro-grpc").context("the gRPC door")?;
        Ok(Some(Self {
            label: "roles, PostgreSQL, mosquitto",
            source: Source::new(SOURCE, grpc, pki.identity(SOURCE)?)?,
            rest: server.addr("maestro").context("the REST API")?,
            clusters,
            parts: Parts::Roles(Box::new(Roles {
                server,
                agents,
                kube,
                broker,
                _postgres: postgres,
                _pki: pki,
            })),
        }))
    }

    /// The process whose memory is reported: the whole region, or Maestro's server.
    pub fn pid(&self) -> Result<u32> {
        match &self.parts {
            Parts::Region { process, .. } => process.pid(),
            Parts::Roles(roles) => roles.server.pid(),
        }
    }

    /// The processor time that all of it has used, this process and PostgreSQL left out.
    pub fn cpu(&self) -> Result<Duration> {
        match &self.parts {
            Parts::Region { process, .. } => cpu_of(process),
            Parts::Roles(roles) => {
                let all = [&roles.server, &roles.kube].into_iter().chain(&roles.agents);
                all.map(cpu_of).sum()
            }
        }
    }

    /// What it said, for when something goes wrong.
    pub fn log(&self) -> String {
        match &self.parts {
            Parts::Region { process, .. } => process.log_text(),
            Parts::Roles(roles) => {
                let agents: String = roles.agents.iter().map(Process::log_text).collect();
                format!("{}\n{agents}\n{}", roles.server.log_text(), roles.kube.log_text())
            }
        }
    }
}

fn cpu_of(process: &Process) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid()?))?;
    // Times in hundredths of a second follow the name, which ends with the last parenthesis.
    let fields: Vec<&str> =
        stat.rsplit_once(')').context("a name")?.1.split_whitespace().skip(11).take(2).collect();
    let ticks: u64 = fields.iter().map(|field| field.parse::<u64>()).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

fn names(consumers: usize) -> Vec<String> {
    (1..=consumers).map(|number| format!("mgmt-{number}")).collect()
}

async fn start(role: &'static str, store: StoreChoice, settings: &[(&str, String)]) -> Result<Process> {
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    Process::start_release(role, store, &settings).await
}

/// A client of each cluster, which then knows works and has a namespace of its own name.
async fn clients(process: &Process, names: &[String]) -> Result<Vec<(String, Client)>> {
    let mut clients = Vec::new();
    for name in names {
        let client = of_kubeconfig(&process.data_dir().join("kube/kubeconfig.yaml"), Some(name)).await?;
        let apply = PatchParams::apply("bench").force();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in aro_crds::definitions() {
            definitions.patch(definition.name(), &apply, &Patch::Apply(definition.object())).await?;
        }
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        namespaces.patch(name, &apply, &Patch::Apply(namespace)).await?;
        clients.push((name.clone(), client));
    }
    Ok(clients)
}

async fn server(pki: &Pki, broker: &Broker, names: &[String], url: String) -> Result<Process> {
    let (own, door, bundle) = (pki.identity("maestro")?, pki.identity("grpc")?, text(&pki.bundle()));
    let settings = [
        ("maestro.broker", broker.address().to_string()),
        ("maestro.client_id", "maestro-0".to_owned()),
        ("maestro.broker_cert_file", text(&own.certificate)),
        ("maestro.broker_key_file", text(&own.key)),
        ("maestro.broker_ca_file", bundle.clone()),
        ("maestro.grpc_cert_file", text(&door.certificate)),
        ("maestro.grpc_key_file", text(&door.key)),
        ("maestro.grpc_client_ca_file", bundle),
        ("maestro.consumers", json!(names).to_string()),
        ("telemetry.log", "warn".to_owned()),
    ];
    start("maestro server", StoreChoice::Postgres { url }, &settings).await
}

async fn agent(pki: &Pki, broker: &Broker, kube: &Process, consumer: &str) -> Result<Process> {
    let identity = pki.identity(consumer)?;
    let settings = [
        ("maestro_agent.consumer", consumer.to_owned()),
        ("maestro_agent.broker", broker.address().to_string()),
        ("maestro_agent.hub_id", "bench".to_owned()),
        ("maestro_agent.cert_file", text(&identity.certificate)),
        ("maestro_agent.key_file", text(&identity.key)),
        ("maestro_agent.ca_file", text(&pki.bundle())),
        ("cluster.kubeconfig", text(&kube.data_dir().join("kube/kubeconfig.yaml"))),
        ("cluster.context", consumer.to_owned()),
        // Agents keep their order over restarts, so that their figures stay comparable.
        ("admin.listen", format!("127.0.0.1:{}", free_port()?)),
        ("telemetry.log", "warn".to_owned()),
    ];
    start("maestro agent", StoreChoice::Embedded, &settings).await
}

/// The source's certificate, from the region's own authority.
fn of_region(process: &Process, dir: &tempfile::TempDir) -> Result<IdentityPaths> {
    let region = process.data_dir().join("region/sources");
    let certificate = std::fs::read_to_string(region.join("ca.crt"))?;
    let key = Secret::new(std::fs::read_to_string(region.join("ca.key"))?);
    let issued = Authority::load(&certificate, &key)?.issue(&Leaf {
        subject: Subject::new(SOURCE, Vec::<String>::new()),
        dns_names: Vec::new(),
        addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        usage: Usage::Client,
        validity: Validity::from_now(SystemClock.now(), SignedDuration::from_hours(24)),
    })?;
    let file = |name: &str| dir.path().join(name);
    std::fs::write(file("tls.key"), issued.key.expose())?;
    std::fs::write(file("tls.crt"), issued.certificate)?;
    std::fs::write(file("ca.crt"), certificate)?;
    Ok(IdentityPaths { certificate: file("tls.crt"), key: file("tls.key"), bundle: Some(file("ca.crt")) })
}
