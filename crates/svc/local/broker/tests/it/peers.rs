//! Certificates, brokers and links of these tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use aro_base::SignedDuration;
use aro_broker::{Broker, BrokerConfig, BrokerPorts};
use aro_fixtures::{BrokerFiles, Mosquitto, wait};
use aro_mqtt::{Credentials, Delivery, Inbox, Link, LinkOptions, LinkPorts, Message};
use aro_net::SystemResolve;
use aro_pki::{Authority, IdentityPaths, Leaf, Subject, Usage, Validity};
use aro_runtime::{Listener, Metrics, Readiness, Role as _, Scope, Section as _, SystemClock, TaskKind};
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// An authority and the files it issued.
pub struct Certificates {
    authority: Authority,
    directory: tempfile::TempDir,
}

impl Certificates {
    pub fn new() -> Result<Self> {
        let authority = Authority::generate("test", Self::validity())?;
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("ca.crt"), authority.certificate())?;
        Ok(Self { authority, directory })
    }

    fn validity() -> Validity {
        Self::validity_of(SignedDuration::from_hours(1))
    }

    fn validity_of(length: SignedDuration) -> Validity {
        Validity::from_now(SystemClock::shared().now(), length)
    }

    /// Writes a certificate for this name, over the one before.
    pub fn issue(&self, name: &str, usage: Usage) -> Result<IdentityPaths> {
        self.issue_for(name, usage, SignedDuration::from_hours(1))
    }

    /// The same for as long as a test wants.
    pub fn issue_for(&self, name: &str, usage: Usage, length: SignedDuration) -> Result<IdentityPaths> {
        let issued = self.authority.issue(&Leaf {
            subject: Subject::new(name, Vec::<String>::new()),
            dns_names: vec!["localhost".to_owned()],
            addresses: vec![Ipv4Addr::LOCALHOST.into()],
            usage,
            validity: Self::validity_of(length),
        })?;
        let file = |ending: &str| self.directory.path().join(format!("{}.{ending}", name.replace('/', "_")));
        std::fs::write(file("crt"), issued.certificate)?;
        std::fs::write(file("key"), issued.key.expose())?;
        Ok(IdentityPaths { certificate: file("crt"), key: file("key"), bundle: Some(self.authorities()) })
    }

    fn authorities(&self) -> PathBuf {
        self.directory.path().join("ca.crt")
    }

    fn broker(&self) -> Result<BrokerFiles> {
        let paths = self.issue("broker", Usage::Server)?;
        Ok(BrokerFiles { certificate: paths.certificate, key: paths.key, authorities: self.authorities() })
    }
}

/// A broker that can be stopped and restarted at its address.
pub enum TestBroker {
    Embedded { address: SocketAddr, config: BrokerConfig, scope: Option<Scope>, metrics: Metrics },
    Mosquitto(Mosquitto),
}

impl TestBroker {
    pub async fn embedded(certificates: &Certificates) -> Result<Self> {
        let files = certificates.broker()?;
        Self::embedded_with(BrokerConfig {
            cert_file: Some(files.certificate),
            key_file: Some(files.key),
            client_ca_file: Some(files.authorities),
            ..BrokerConfig::default()
        })
        .await
    }

    pub async fn embedded_with(config: BrokerConfig) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut broker = Self::Embedded { address, config, scope: None, metrics: Metrics::new() };
        broker.start().await?;
        Ok(broker)
    }

    /// `None` if mosquitto is not installed and not required.
    pub async fn mosquitto(certificates: &Certificates) -> Result<Option<Self>> {
        let found = Mosquitto::start(&certificates.broker()?).await?;
        Ok(found.map(Self::Mosquitto))
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Embedded { address, .. } => *address,
            Self::Mosquitto(mosquitto) => mosquitto.address(),
        }
    }

    pub fn metrics(&self) -> String {
        match self {
            Self::Embedded { metrics, .. } => metrics.encode(),
            Self::Mosquitto(_) => String::new(),
        }
    }

    /// Ours is stopped; mosquitto is killed.
    pub async fn stop(&mut self) -> Result<()> {
        match self {
            Self::Embedded { scope, .. } => {
                if let Some(scope) = scope.take() {
                    scope.close(Duration::from_secs(5)).await?;
                    assert_eq!(scope.task_count(), 0, "nothing is left running");
                }
                Ok(())
            }
            Self::Mosquitto(mosquitto) => mosquitto.kill().await,
        }
    }

    pub async fn start(&mut self) -> Result<()> {
        match self {
            Self::Embedded { address, config, scope, metrics } => {
                let listener = Listener::bind(*address, "broker.listen").await?;
                *address = listener.local_addr();
                *metrics = Metrics::new();
                let readiness = Readiness::new();
                let ports = BrokerPorts {
                    listener,
                    clock: SystemClock::shared(),
                    metrics: metrics.clone(),
                    readiness: readiness.clone(),
                };
                let role = Broker::build(config.clone().check().map_err(|p| anyhow::anyhow!("{p}"))?, ports)?;
                let root = Scope::root("test");
                let own = root.role("broker");
                own.spawn(TaskKind::Role, "run", role.run(own.clone()));
                readiness.ready().await;
                *scope = Some(root);
                Ok(())
            }
            Self::Mosquitto(mosquitto) => mosquitto.run().await,
        }
    }
}

/// An inbox that keeps what it gets.
#[derive(Default)]
pub struct Kept {
    connects: Mutex<usize>,
    messages: Mutex<Option<mpsc::UnboundedSender<Delivery>>>,
    /// Keeps messages without acknowledging them.
    hold: bool,
    held: Mutex<Vec<Delivery>>,
}

#[async_trait::async_trait]
impl Inbox for Kept {
    fn connected(&self) {
        *self.connects.lock() += 1;
    }

    async fn deliver(&self, delivery: Delivery) {
        if self.hold {
            self.held.lock().push(delivery);
            return;
        }
        if let Some(messages) = &*self.messages.lock() {
            messages.send(delivery).ok();
        }
    }
}

impl Kept {
    pub fn holding() -> Self {
        Self { hold: true, ..Self::default() }
    }

    pub fn held(&self) -> usize {
        self.held.lock().len()
    }

    pub fn release(&self, count: usize) {
        self.held.lock().drain(..count).for_each(|delivery| delivery.ack.done());
    }

    pub fn connects(&self) -> usize {
        *self.connects.lock()
    }
}

/// A link and what arrived by it.
pub struct Peer {
    pub link: Link,
    pub inbox: Arc<Kept>,
    arrived: mpsc::UnboundedReceiver<Delivery>,
    pub scope: Scope,
    pub metrics: Metrics,
}

impl Peer {
    pub fn start(options: LinkOptions, subscriptions: &[&str], inbox: Kept) -> Self {
        let (sender, arrived) = mpsc::unbounded_channel();
        *inbox.messages.lock() = Some(sender);
        let inbox = Arc::new(inbox);
        let scope = Scope::root("peer");
        let metrics = Metrics::new();
        let ports = LinkPorts {
            resolve: Arc::new(SystemResolve),
            clock: SystemClock::shared(),
            metrics: metrics.clone(),
        };
        let subscriptions = subscriptions.iter().map(|filter| (*filter).to_owned()).collect();
        let link = Link::start(options, subscriptions, inbox.clone(), ports, &scope);
        Self { link, inbox, arrived, scope, metrics }
    }

    /// Connects as this identity and waits until that has worked.
    pub async fn connect(
        broker: &TestBroker,
        certificates: &Certificates,
        identity: &str,
        client_id: &str,
        subscriptions: &[&str],
    ) -> Result<Self> {
        let peer =
            Self::start(options(broker, certificates, identity, client_id)?, subscriptions, Kept::default());
        peer.up().await?;
        Ok(peer)
    }

    pub async fn up(&self) -> Result<()> {
        tokio::time::timeout(wait::DEADLINE, self.link.connected()).await.context("the link does not come up")
    }

    /// The next message, acknowledged.
    pub async fn next(&mut self) -> Result<(String, Message)> {
        let Some(delivery) =
            tokio::time::timeout(wait::DEADLINE, self.arrived.recv()).await.context("no message")?
        else {
            bail!("the link is gone")
        };
        delivery.ack.done();
        Ok((delivery.topic, delivery.message))
    }

    /// What has arrived and was not looked at.
    pub fn waiting(&mut self) -> usize {
        std::iter::from_fn(|| self.arrived.try_recv().ok()).count()
    }
}

pub fn options(
    broker: &TestBroker,
    certificates: &Certificates,
    identity: &str,
    client_id: &str,
) -> Result<LinkOptions> {
    let mut options = LinkOptions::new(broker.address().to_string(), client_id);
    options.credentials = Some(Credentials::Files(certificates.issue(identity, Usage::Client)?));
    Ok(options)
}

pub fn message(payload: impl Into<bytes::Bytes>) -> Message {
    Message {
        content_type: Some("application/json".to_owned()),
        user_properties: vec![
            ("ce-specversion".to_owned(), "1.0".to_owned()),
            ("ce-originalsource".to_owned(), String::new()),
            ("ce-metadata".to_owned(), r#"{"name":"grüße"}"#.to_owned()),
        ],
        payload: payload.into(),
    }
}
