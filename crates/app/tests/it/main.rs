//! Stacks in this process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod data_dir;

use std::net::SocketAddr;
use std::time::Duration;

use aro_app::{
    App, AppConfig, Composition, DataDir, Registry, RunningApp, StartError, StartOptions, migrate,
};
use aro_base::chain;
use aro_runtime::SystemClock;
use aro_runtime::config::Sources;
use aro_store::testing::postgres::TestPostgres;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn sources() -> Sources {
    listeners()
        .set("clusters_service.debug_listen", "127.0.0.1:0")
        .set("maestro.debug_listen", "127.0.0.1:0")
        .set("azure_local.listen", "127.0.0.1:0")
        .set("dns.listen", "127.0.0.1:0")
        .set("frontdoor.listen", "127.0.0.1:0")
        .set("proxy.listen", "127.0.0.1:0")
}

/// Free ports for what every region listens on.
fn listeners() -> Sources {
    Sources::default()
        .set("frontend.listen", "127.0.0.1:0")
        .set("admin.listen", "127.0.0.1:0")
        .set("kube.listen", "127.0.0.1:0")
}

async fn start(sources: &Sources, data: DataDir) -> Result<RunningApp, StartError> {
    App::start(
        AppConfig::load(sources).unwrap(),
        StartOptions::new(data, Composition::Region { debug_ports: true }),
    )
    .await
}

async fn get(addr: SocketAddr, path: &str) -> String {
    let exchange = async {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    tokio::time::timeout(Duration::from_secs(20), exchange).await.expect("an answer in time")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stacks_run_side_by_side_and_share_nothing() {
    let one = start(&sources(), DataDir::ephemeral().unwrap()).await.unwrap();
    let two = start(&sources(), DataDir::ephemeral().unwrap()).await.unwrap();
    let (admin_one, admin_two) = (one.addr("admin").unwrap(), two.addr("admin").unwrap());
    assert!(one.readiness().is_ready() && two.readiness().is_ready());
    assert_ne!(one.addr("frontend"), two.addr("frontend"));
    assert_ne!(one.data_dir(), two.data_dir());

    get(one.addr("frontend").unwrap(), "/nothing").await;
    let count = |scrape: String| {
        // The local cloud announces its subscriptions with PUT.
        let gets =
            |line: &&str| line.starts_with("frontend_http_requests_total{") && !line.contains("\"PUT\"");
        let lines = scrape.lines().filter(gets);
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!(count(get(admin_one, "/metrics").await), 1);
    assert_eq!(count(get(admin_two, "/metrics").await), 0);

    one.stop().await.unwrap();
    assert!(TcpStream::connect(admin_one).await.is_err(), "the first stack is gone");
    assert!(get(admin_two, "/readyz").await.starts_with("HTTP/1.1 200"), "the second is not");
    two.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ephemeral_directory_goes_with_its_stack_and_a_kept_one_stays() {
    let app = start(&sources(), DataDir::ephemeral().unwrap()).await.unwrap();
    let dir = app.data_dir().to_owned();
    assert!(dir.join("store").exists());
    app.stop().await.unwrap();
    assert!(!dir.exists());

    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("deep/data");
    start(&sources(), DataDir::kept(&kept)).await.unwrap().stop().await.unwrap();
    assert!(kept.join("store").exists());
    // Stopped means stopped: the directory can be taken again at once.
    start(&sources(), DataDir::kept(&kept)).await.unwrap().stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use_is_reported_before_the_store_is_touched() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = taken.local_addr().unwrap();
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let error =
        start(&sources().set("frontend.listen", addr.to_string()), DataDir::kept(&data)).await.unwrap_err();
    let text = chain(&error).to_string();
    assert!(text.starts_with(&format!("port {} is in use", addr.port())), "{text}");
    assert!(!data.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_has_one_owner() {
    let home = tempfile::tempdir().unwrap();
    let first = start(&sources(), DataDir::kept(home.path())).await.unwrap();
    let error = start(&sources(), DataDir::kept(home.path())).await.unwrap_err();
    assert!(chain(&error).to_string().starts_with("cannot open the sqlite store: "), "{}", chain(&error));
    first.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_migrated_on_demand_only_and_then_serves_two_replicas() {
    let server = TestPostgres::launch().unwrap();
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), server.fresh_schema().unwrap()).unwrap();
    let path = secret.path().display().to_string();
    let sources = sources().set("store.kind", "postgres").set("store.url_file", path);

    let error = start(&sources, DataDir::ephemeral().unwrap()).await.unwrap_err();
    assert!(chain(&error).to_string().starts_with("cannot open the postgres store: "), "{}", chain(&error));

    let data = DataDir::ephemeral().unwrap();
    let config = AppConfig::load(&sources).unwrap();
    migrate(&config.store, &data, SystemClock::shared()).await.unwrap();
    migrate(&config.store, &data, SystemClock::shared()).await.unwrap();
    let one = start(&sources, DataDir::ephemeral().unwrap()).await.unwrap();
    let two = start(&sources, data).await.unwrap();
    assert!(one.store().ping().await.is_ok() && two.store().ping().await.is_ok());
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

/// Needs one line in a registry, and nothing else of the program.
static SCRATCH_ROLES: [&aro_app::RoleDescriptor; 2] =
    [&aro_frontend::DESCRIPTOR, &aro_scratch_role::DESCRIPTOR];
const WITH_SCRATCH: Registry = Registry::new(&SCRATCH_ROLES);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_is_added_to_the_registry_runs_as_a_pod_of_the_region() {
    let sources = listeners().set("scratch.listen", "127.0.0.1:0");
    let config = AppConfig::of(WITH_SCRATCH, &sources).unwrap();
    let what = Composition::Region { debug_ports: true };
    let app = App::start(config, StartOptions::new(DataDir::ephemeral().unwrap(), what)).await.unwrap();
    let answer = get(app.addr("scratch").unwrap(), "/").await;
    assert!(answer.ends_with("hello from a pod"), "its environment is the Deployment's: {answer}");
    app.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_is_added_to_the_registry_runs_alone() {
    let sources = listeners().set("scratch.greeting", "hello from the flags");
    let config = AppConfig::of(WITH_SCRATCH, &sources).unwrap();
    let what = Composition::Roles(vec![&aro_scratch_role::DESCRIPTOR]);
    let app = App::start(config, StartOptions::new(DataDir::ephemeral().unwrap(), what)).await.unwrap();
    assert_eq!(app.addr("kube"), None, "nothing else runs");
    let answer = get(app.addr("scratch").unwrap(), "/").await;
    assert!(answer.ends_with("hello from the flags"), "{answer}");
    app.stop().await.unwrap();
}
