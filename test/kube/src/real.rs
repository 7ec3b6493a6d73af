//! The other side: a real control plane on loopback, in a folder of its own.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aro_base::{SignedDuration, Timestamp};
use aro_fixtures::free_port;
use aro_pki::{Authority, Issued, Leaf, Subject, Usage, Validity};
use bytes::Bytes;
use http::Request;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::client::Client;

/// etcd, the API server and those controllers whose work ours does, too.
pub struct Real {
    // Dropped in this order: those who use it before what is used.
    _manager: Running,
    server: Running,
    etcd: Running,
    dir: TempDir,
    pub client: Client,
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const BUILDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/kube-real.sh");
const BINARIES: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
    root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,\
    certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller";
const READY: Duration = Duration::from_mins(2);

/// Where the binaries are, built if they are missing. `None`: there is no Go toolchain to build them with.
pub fn binaries() -> Result<Option<PathBuf>> {
    let output = Command::new(BUILDER).stderr(Stdio::inherit()).output().context("run kube-real.sh")?;
    if output.status.code() == Some(3) {
        return Ok(None);
    }
    ensure!(output.status.success(), "kube-real.sh failed: {}", output.status);
    let dir = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    for name in BINARIES {
        ensure!(dir.join(name).is_file(), "{name} is not in {}", dir.display());
    }
    Ok(Some(dir))
}

struct Keys {
    authority: Authority,
    server: Issued,
    admin: Issued,
    accounts: Authority,
}

impl Keys {
    fn make() -> Result<Self> {
        #[allow(clippy::disallowed_methods, reason = "the other processes look at the machine's clock, too")]
        let validity = Validity::from_now(Timestamp::now(), SignedDuration::from_hours(24));
        let authority = Authority::generate("real kubernetes", validity)?;
        let leaf = |subject, usage, dns_names| Leaf {
            subject,
            dns_names,
            addresses: vec![Ipv4Addr::LOCALHOST.into()],
            usage,
            validity,
        };
        let names = vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()];
        let server = authority.issue(&leaf(Subject::new("kube-apiserver", [""; 0]), Usage::Server, names))?;
        let admin = Subject::new("kubernetes-admin", ["system:masters"]);
        let admin = authority.issue(&leaf(admin, Usage::Client, Vec::new()))?;
        Ok(Self { server, admin, accounts: Authority::generate("service-accounts", validity)?, authority })
    }

    fn write(&self, dir: &Path) -> Result<()> {
        std::fs::write(dir.join("ca.crt"), self.authority.certificate())?;
        std::fs::write(dir.join("ca.key"), self.authority.key().expose())?;
        std::fs::write(dir.join("server.crt"), &self.server.certificate)?;
        std::fs::write(dir.join("server.key"), self.server.key.expose())?;
        std::fs::write(dir.join("admin.crt"), &self.admin.certificate)?;
        std::fs::write(dir.join("admin.key"), self.admin.key.expose())?;
        std::fs::write(dir.join("accounts.key"), self.accounts.key().expose())?;
        std::fs::write(dir.join("accounts.crt"), self.accounts.certificate())?;
        Ok(())
    }
}

fn start(binary: &Path, dir: &Path, flags: &[String]) -> Result<Running> {
    let name = binary.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let log = File::create(dir.join(format!("{name}.log")))?;
    let child = Command::new(binary)
        .args(flags)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("start {name}"))?;
    Ok(Running(child))
}

impl Real {
    /// Starts it all and returns when it answers. What it stores may be lost: nobody waits for a disk.
    pub async fn start(binaries: &Path) -> Result<Self> {
        Self::start_all(binaries, &["--unsafe-no-fsync"]).await
    }

    /// The same with a storage that flushes, for measuring.
    pub async fn start_durable(binaries: &Path) -> Result<Self> {
        Self::start_all(binaries, &[]).await
    }

    /// Process ids of the API server and of etcd.
    pub fn pids(&self) -> [u32; 2] {
        [self.server.0.id(), self.etcd.0.id()]
    }

    async fn start_all(binaries: &Path, etcd_options: &[&str]) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let keys = Keys::make()?;
        keys.write(dir.path())?;
        let (client_port, peer_port, port) = (free_port()?, free_port()?, free_port()?);
        let etcd_url = format!("http://127.0.0.1:{client_port}");
        let peer_url = format!("http://127.0.0.1:{peer_port}");
        let mut etcd_arguments = vec![
            "--data-dir=etcd".to_owned(),
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
        ];
        etcd_arguments.extend(etcd_options.iter().map(|option| (*option).to_owned()));
        let etcd = start(&binaries.join("etcd"), dir.path(), &etcd_arguments)?;
        let mut server = start(
            &binaries.join("kube-apiserver"),
            dir.path(),
            &[
                format!("--etcd-servers={etcd_url}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                "--cert-dir=certificates".to_owned(),
                "--client-ca-file=ca.crt".to_owned(),
                "--tls-cert-file=server.crt".to_owned(),
                "--tls-private-key-file=server.key".to_owned(),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                "--service-account-signing-key-file=accounts.key".to_owned(),
                "--service-account-key-file=accounts.crt".to_owned(),
                "--authorization-mode=Node,RBAC".to_owned(),
                "--enable-admission-plugins=NodeRestriction".to_owned(),
                "--endpoint-reconciler-type=none".to_owned(),
                "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
                "--enable-bootstrap-token-auth".to_owned(),
            ],
        )?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": {
                "server": format!("https://127.0.0.1:{port}"), "certificate-authority": "ca.crt"}}],
            "users": [{"name": "admin", "user": {"client-certificate": "admin.crt", "client-key": "admin.key"}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        });
        std::fs::write(dir.path().join("kubeconfig"), kubeconfig.to_string())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (certificate, key) = (&keys.admin.certificate, keys.admin.key.expose());
        let client = Client::new(address, "localhost", keys.authority.certificate(), certificate, key)?;
        poll(&client, "/readyz", dir.path(), &mut server).await?;
        let mut manager = start(
            &binaries.join("kube-controller-manager"),
            dir.path(),
            &[
                "--kubeconfig=kubeconfig".to_owned(),
                format!("--controllers={CONTROLLERS}"),
                "--leader-elect=false".to_owned(),
                "--secure-port=0".to_owned(),
                "--root-ca-file=ca.crt".to_owned(),
                "--cluster-signing-cert-file=ca.crt".to_owned(),
                "--cluster-signing-key-file=ca.key".to_owned(),
                "--kube-api-qps=500".to_owned(),
                "--kube-api-burst=500".to_owned(),
            ],
        )?;
        // The controllers work once the first namespace has what they make there.
        for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            poll(&client, &format!("/api/v1/namespaces/default/{path}"), dir.path(), &mut manager).await?;
        }
        Ok(Self { _manager: manager, server, etcd, dir, client })
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// The last lines of a log, for those who look into a failure.
    pub fn log(&self, name: &str) -> String {
        tail(self.dir.path(), name)
    }
}

fn tail(dir: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(dir.join(format!("{name}.log"))).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Asks until the answer is good, or who makes it so is gone.
async fn poll(client: &Client, path: &str, dir: &Path, child: &mut Running) -> Result<()> {
    let deadline = Instant::now() + READY;
    loop {
        let request = Request::get(path).header(http::header::HOST, "localhost").body(Bytes::new())?;
        if client.call(request).await.is_ok_and(|answer| answer.code.is_success()) {
            return Ok(());
        }
        if Instant::now() > deadline || child.0.try_wait()?.is_some() {
            let logs = BINARIES.map(|name| format!("{name}:\n{}", tail(dir, name))).join("\n");
            bail!("the real control plane did not answer {path} within {READY:?}\n{logs}");
        }
        // A pause between two looks, not a guess at how long something takes.
        sleep(Duration::from_millis(50)).await;
    }
}
