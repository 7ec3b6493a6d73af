//! The client of a cloud's administration, for the command line and tests.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use uuid::Uuid;

use super::{AdminAccess, ROOT, parse};
use crate::faults::{Rule, RuleStatus};
use crate::tls::CA;

/// A call takes at most this long.
const WITHIN: Duration = Duration::from_secs(30);
/// The largest answer: a page of large resources.
const MAX_ANSWER: usize = 64 << 20;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// No cloud runs in the directory.
    #[error("no local cloud runs there")]
    NotRunning(#[source] io::Error),
    /// It does not answer.
    #[error("the local cloud at {address} does not answer")]
    Unreachable {
        address: SocketAddr,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It refuses.
    #[error("{message} ({code})")]
    Refused { status: StatusCode, code: String, message: String },
    /// Its answer cannot be used.
    #[error("the answer of the local cloud cannot be used: {0}")]
    Protocol(&'static str),
}

impl AdminError {
    /// Whether entries of the log of mutations are gone.
    pub fn is_gap(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::GONE, .. })
    }
}

/// The rules of a cloud.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FaultList {
    pub seed: u64,
    pub rules: Vec<RuleStatus>,
}

/// Entries of the log of mutations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MutationPage {
    pub instance: Uuid,
    pub entries: Vec<MutationEntry>,
    /// Where the next page begins.
    pub cursor: u64,
}

/// An entry of the log of mutations.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MutationEntry {
    pub sequence: u64,
    pub time: String,
    pub outcome: String,
    pub method: String,
    pub resource_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// Resources, as their GET shows them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResourcePage {
    pub resources: Vec<Value>,
    pub next: Option<String>,
}

/// Calls the administration of one cloud.
#[derive(Debug, Clone)]
pub struct AdminClient {
    access: AdminAccess,
    tls: Arc<ClientConfig>,
}

impl AdminClient {
    /// The cloud whose files are in a directory.
    pub fn open(dir: &Path) -> Result<Self, AdminError> {
        let access = AdminAccess::read(dir).map_err(AdminError::NotRunning)?;
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(dir.join(CA));
        let certificates = certificates.map_err(|error| AdminError::NotRunning(io::Error::other(error)))?;
        roots.add_parsable_certificates(certificates.flatten());
        let config = ClientConfig::builder_with_provider(aro_pki::crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(|_| AdminError::Protocol("TLS cannot be set up"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { access, tls: Arc::new(config) })
    }

    /// The rules and what they have done.
    pub async fn faults(&self) -> Result<FaultList, AdminError> {
        parse(self.call(Method::GET, "faults", None).await?)
    }

    /// Adds a rule.
    pub async fn add_fault(&self, rule: &Rule) -> Result<RuleStatus, AdminError> {
        parse(self.call(Method::POST, "faults", Some(&json!(rule))).await?)
    }

    /// Removes a rule, or all; returns what was removed.
    pub async fn clear_faults(&self, id: Option<u64>) -> Result<Vec<RuleStatus>, AdminError> {
        let path = id.map_or_else(|| "faults".to_owned(), |id| format!("faults/{id}"));
        let mut cleared = self.call(Method::DELETE, &path, None).await?;
        parse(cleared.get_mut("rules").map(Value::take).unwrap_or_default())
    }

    /// Entries after a cursor of a log; without one from the oldest that is kept.
    pub async fn mutations(&self, after: Option<(Uuid, u64)>) -> Result<MutationPage, AdminError> {
        let query = after.map(|(instance, cursor)| format!("?after={cursor}&instance={instance}"));
        let path = format!("mutations{}", query.unwrap_or_default());
        parse(self.call(Method::GET, &path, None).await?)
    }

    /// A page of the resources of all subscriptions, of one, or of a group.
    pub async fn resources(
        &self,
        subscription: Option<&str>,
        group: Option<&str>,
        after: Option<&str>,
    ) -> Result<ResourcePage, AdminError> {
        let given = [("subscription", subscription), ("group", group), ("after", after)];
        let given = given.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded(value?))));
        let query = given.collect::<Vec<_>>().join("&");
        parse(self.call(Method::GET, &format!("resources?{query}"), None).await?)
    }

    /// One resource.
    pub async fn resource(&self, id: &str) -> Result<Value, AdminError> {
        self.call(Method::GET, &format!("resources?id={}", encoded(id)), None).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, AdminError> {
        let unreachable = |source| AdminError::Unreachable { address: self.access.address, source };
        let exchanged = tokio::time::timeout(WITHIN, self.exchange(method, path, body)).await;
        let (status, answer) = match exchanged {
            Ok(exchanged) => exchanged.map_err(unreachable)?,
            Err(late) => return Err(unreachable(late.into())),
        };
        let value: Value =
            serde_json::from_slice(&answer).map_err(|_| AdminError::Protocol("its body is not JSON"))?;
        if status.is_success() {
            return Ok(value);
        }
        let text = |name: &str| {
            value.pointer(&format!("/error/{name}")).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Err(AdminError::Refused { status, code: text("code"), message: text("message") })
    }

    /// One connection for each call: calls are rare.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{ROOT}/{path}"))
            .header(HOST, "localhost")
            .header(AUTHORIZATION, format!("Bearer {}", self.access.key))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.map(Value::to_string).unwrap_or_default())))?;
        let stream = TcpStream::connect(self.access.address).await?;
        let connector = TlsConnector::from(self.tls.clone());
        let stream = connector.connect(ServerName::try_from("localhost")?, stream).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Dropping the sender at the end of the exchange ends the connection.
        let exchange = async move {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((status, body.to_bytes()))
        };
        let (exchanged, _) = tokio::join!(exchange, connection);
        exchanged
    }
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
