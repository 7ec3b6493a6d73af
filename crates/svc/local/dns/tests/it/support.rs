//! A DNS server on a store, and a client that speaks DNS over UDP and TCP.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use aro_arm::ResourceId;
use aro_base::{ManualClock, Timestamp};
use aro_cloud_store::{CLOUD, Resource, key_of};
use aro_dns::{Dns, DnsConfig, DnsPorts, SharedZones};
use aro_runtime::{Listener, Metrics, Readiness, Scope, Section as _, launch};
use aro_store::{Batch, NewDocument, Op, Raw, SharedStore};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use hickory_proto::op::{Edns, Message, Query};
use hickory_proto::rr::{Name, RecordType};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

const DEADLINE: Duration = Duration::from_secs(10);
const GROUP: &str =
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g/providers/Microsoft.Network";

pub struct Fixture {
    pub address: SocketAddr,
    pub zones: SharedZones,
    pub metrics: Metrics,
    pub readiness: Readiness,
    pub scope: Scope,
    store: SharedStore,
    _directory: tempfile::TempDir,
}

impl Fixture {
    /// A server on a store that holds these resources already.
    pub async fn start(resources: &[(&str, Value)]) -> Result<Self> {
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000)?);
        let directory = tempfile::tempdir()?;
        let store: SharedStore = SqliteStore::open(SqliteOptions::new(directory.path()), clock)?;
        for (path, properties) in resources {
            write(&store, path, properties.clone()).await?;
        }
        let listener = free_listener().await?;
        let fixture = Self {
            address: listener.local_addr(),
            zones: SharedZones::default(),
            metrics: Metrics::new(),
            readiness: Readiness::new(),
            scope: Scope::root("dns"),
            store,
            _directory: directory,
        };
        let ports = DnsPorts {
            listener,
            store: fixture.store.clone(),
            zones: fixture.zones.clone(),
            metrics: fixture.metrics.clone(),
            readiness: fixture.readiness.clone(),
        };
        launch::<Dns>(&fixture.scope, DnsConfig::default().check()?, ports)?;
        tokio::time::timeout(DEADLINE, fixture.readiness.ready()).await.context("never ready")?;
        Ok(fixture)
    }

    pub async fn write(&self, path: &str, properties: Value) -> Result<()> {
        write(&self.store, path, properties).await
    }

    pub async fn delete(&self, path: &str) -> Result<()> {
        let key = key_of(&ResourceId::parse(&format!("{GROUP}/{path}"))?);
        let found = self.store.get(&key).await?.context("no such document")?;
        self.store.write(Batch::new(CLOUD, key.partition).with(Op::Delete(key.id, found.etag))).await?;
        Ok(())
    }

    pub async fn udp(&self, name: &str, record_type: RecordType) -> Result<Message> {
        self.udp_of_size(name, record_type, None).await
    }

    pub async fn udp_of_size(
        &self,
        name: &str,
        record_type: RecordType,
        size: Option<u16>,
    ) -> Result<Message> {
        let mut query = question(name, record_type)?;
        if let Some(size) = size {
            let mut edns = Edns::new();
            edns.set_max_payload(size);
            query.set_edns(edns);
        }
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        socket.send_to(&query.to_vec()?, self.address).await?;
        let mut buffer = vec![0; 65_535];
        let received = tokio::time::timeout(DEADLINE, socket.recv_from(&mut buffer)).await??;
        Ok(Message::from_vec(&buffer[..received.0])?)
    }

    pub async fn tcp(&self, name: &str, record_type: RecordType) -> Result<Message> {
        let mut stream = TcpStream::connect(self.address).await?;
        exchange(&mut stream, &question(name, record_type)?).await
    }

    /// The first address of a name, as soon as it is `expected`.
    pub async fn until(&self, name: &str, expected: Option<&str>) -> Result<()> {
        let wait = async {
            loop {
                let response = self.udp(name, RecordType::A).await?;
                if response.answers.first().map(|record| record.data.to_string()).as_deref() == expected {
                    return Ok(());
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, wait)
            .await
            .with_context(|| format!("{name} never was {expected:?}"))?
    }
}

/// A listener whose port is free over UDP as well.
async fn free_listener() -> Result<Listener> {
    for _ in 0..50 {
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), "dns.listen").await?;
        if UdpSocket::bind(listener.local_addr()).await.is_ok() {
            return Ok(listener);
        }
    }
    anyhow::bail!("no port is free over both TCP and UDP")
}

async fn write(store: &SharedStore, path: &str, properties: Value) -> Result<()> {
    let id = ResourceId::parse(&format!("{GROUP}/{path}"))?;
    let (key, at) = (key_of(&id), Timestamp::from_second(1_800_000_000)?);
    let resource = Resource {
        id: id.as_str().to_owned(),
        body: json!({"properties": properties}).as_object().cloned().unwrap_or_default(),
        created: at,
        changed: at,
        created_by: None,
        references: BTreeSet::new(),
        secrets: Vec::new(),
        operation: None,
        deleting: false,
    };
    let document = NewDocument {
        id: key.id.clone(),
        resource_type: id.resource_type(),
        resource_id: id.as_str().to_owned(),
        ttl: None,
        body: Raw::of(&resource)?,
    };
    let op = match store.get(&key).await? {
        Some(found) => Op::Replace(document, found.etag),
        None => Op::Create(document),
    };
    store.write(Batch::new(CLOUD, key.partition).with(op)).await?;
    Ok(())
}

pub fn question(name: &str, record_type: RecordType) -> Result<Message> {
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(name)?, record_type));
    Ok(message)
}

pub async fn exchange(stream: &mut TcpStream, message: &Message) -> Result<Message> {
    let bytes = message.to_vec()?;
    stream.write_u16(u16::try_from(bytes.len())?).await?;
    stream.write_all(&bytes).await?;
    let read = async {
        let mut buffer = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut buffer).await?;
        Ok(Message::from_vec(&buffer)?)
    };
    tokio::time::timeout(DEADLINE, read).await?
}

pub fn a(address: &str) -> Value {
    json!({"TTL": 60, "ARecords": [{"ipv4Address": address}]})
}
