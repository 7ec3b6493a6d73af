//! The update graph of OpenShift's update service: releases and edges per channel, as JSON.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use aro_net::{Dialer, HostPort, Resolve, Tls};
use bytes::Bytes;
use http::header::{ACCEPT, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use url::Url;

use super::{CHANNEL_GROUPS, Catalogue, Release, VersionNumber};

/// The first minor version that clusters are created with, and how many after it are asked for.
const MINOR: u32 = 20;
const MINORS: u32 = 16;
/// The largest answer.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// How long opening a connection, and one request in all, may take.
const DIAL: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(20);

/// Why the graph could not be read.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// No answer.
    #[error("read the update graph from `{0}`")]
    Unreachable(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another status than 200.
    #[error("the update graph at `{0}` answered {1}")]
    Refused(String, StatusCode),
    /// Not what a graph looks like.
    #[error("the update graph at `{0}` cannot be decoded")]
    Malformed(String, #[source] serde_json::Error),
    /// The cryptography does not support the protocol versions.
    #[error("set up TLS for the update graph")]
    Tls(#[source] rustls::Error),
    /// No release in any channel.
    #[error("the update graph has no release that clusters could be created with")]
    Empty,
}

#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default)]
    edges: Vec<(usize, usize)>,
}

#[derive(Debug, Deserialize)]
struct Node {
    version: String,
    #[serde(default)]
    payload: String,
}

/// Reads the graph behind a URL.
pub struct Graph {
    url: Url,
    dialer: Dialer,
    tls: Option<Arc<ClientConfig>>,
}

impl Graph {
    /// The graph at a URL; a `https` one is trusted by the machine's authorities.
    pub fn new(url: Url, resolve: Arc<dyn Resolve>) -> Result<Self, GraphError> {
        let tls = (url.scheme() == "https").then(tls).transpose()?;
        Ok(Self { url, dialer: Dialer::new(resolve, DIAL), tls })
    }

    /// Reads all channels.
    pub async fn read(&self) -> Result<Catalogue, GraphError> {
        let mut merged = Merged::default();
        for group in CHANNEL_GROUPS {
            for minor in MINOR..MINOR + MINORS {
                let answer = self.channel(&format!("{group}-4.{minor}")).await?;
                if answer.nodes.is_empty() {
                    break;
                }
                merged.add(group, &answer);
            }
        }
        merged.catalogue().ok_or(GraphError::Empty)
    }

    async fn channel(&self, channel: &str) -> Result<Answer, GraphError> {
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("channel", channel).append_pair("arch", "multi");
        let text = url.to_string();
        let timed = tokio::time::timeout(REQUEST, self.get(&url)).await;
        let answered = timed.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        let (status, body) = answered.map_err(|source| GraphError::Unreachable(text.clone(), source))?;
        if status != StatusCode::OK {
            return Err(GraphError::Refused(text, status));
        }
        serde_json::from_slice(&body).map_err(|source| GraphError::Malformed(text, source))
    }

    async fn get(&self, url: &Url) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let host = url.host_str().ok_or("the URL names no host")?.to_owned();
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        let authority = url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let request = Request::get(path)
            .header(HOST, authority)
            .header(ACCEPT, "application/json")
            .body(Empty::<Bytes>::new())?;
        let target = HostPort { host: host.trim_matches(['[', ']']).to_owned(), port };
        let tls = self.tls.clone().map(|config| Tls { config, server_name: None });
        let stream = self.dialer.dial(&target, tls).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let exchange = async move {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
            Ok((head.status, body))
        };
        tokio::pin!(exchange);
        tokio::select! {
            biased;
            answered = &mut exchange => answered,
            // The connection ended; what it delivered before is still there.
            _ = connection => exchange.await,
        }
    }
}

/// TLS with the machine's authorities. Some of them may be unreadable; the others still count.
fn tls() -> Result<Arc<ClientConfig>, GraphError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(aro_pki::crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(GraphError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Releases and edges of all channels so far.
#[derive(Default)]
struct Merged {
    releases: BTreeMap<(String, String), Release>,
    edges: HashMap<String, Vec<VersionNumber>>,
}

impl Merged {
    fn add(&mut self, group: &str, answer: &Answer) {
        let numbers: Vec<Option<VersionNumber>> =
            answer.nodes.iter().map(|node| VersionNumber::parse(&node.version)).collect();
        let release = |index: usize| -> Option<Release> {
            let number = numbers.get(index)?.clone()?;
            let image = answer.nodes.get(index)?.payload.clone();
            let enabled = number.line() >= (4, MINOR);
            Some(Release { number, channel_group: group.to_owned(), enabled, image })
        };
        for release in (0..numbers.len()).filter_map(&release) {
            let key = (group.to_owned(), release.number.to_string());
            self.releases.entry(key).or_insert(release);
        }
        for (from, to) in &answer.edges {
            if let (Some(from), Some(to)) = (release(*from), release(*to)) {
                let edges = self.edges.entry(from.id()).or_default();
                if !edges.contains(&to.number) {
                    edges.push(to.number);
                }
            }
        }
    }

    fn catalogue(self) -> Option<Catalogue> {
        let releases: Vec<Release> = self.releases.into_values().collect();
        if !releases.iter().any(|release| release.enabled) {
            return None;
        }
        let sorted = |mut numbers: Vec<VersionNumber>| {
            numbers.sort_unstable();
            numbers.iter().map(ToString::to_string).collect()
        };
        let edges = self.edges.into_iter().map(|(id, numbers)| (id, sorted(numbers))).collect();
        Some(Catalogue::new(releases, Some(edges)))
    }
}

#[cfg(test)]
mod tests {
    use aro_net::SystemResolve;
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Serves a graph with one channel group until the test ends. Returns its URL.
    async fn served(status: &'static str) -> (Url, impl Future<Output = ()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/graph", listener.local_addr().unwrap())).unwrap();
        let serve = async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let body = if head.contains("channel=stable-4.20&arch=multi") {
                    json!({
                        "nodes": [{"version": "4.20.1", "payload": "q@sha256:a"}, {"version": "4.20.3", "payload": "q@sha256:b"},
                                  {"version": "4.19.9", "payload": "q@sha256:c"}, {"version": "odd"}],
                        "edges": [[0, 1], [2, 0], [3, 0], [0, 9]],
                    })
                } else {
                    json!({"nodes": [], "edges": []})
                };
                let text = body.to_string();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        (url, serve)
    }

    async fn read(status: &'static str) -> Result<Catalogue, GraphError> {
        let (url, serve) = served(status).await;
        let graph = Graph::new(url, Arc::new(SystemResolve)).unwrap();
        tokio::select! {
            read = graph.read() => read,
            () = serve => unreachable!("it serves for ever"),
        }
    }

    #[tokio::test]
    async fn releases_images_and_edges_are_those_of_the_graph() {
        let catalogue = read("200 OK").await.unwrap();
        let ids: Vec<String> = catalogue.releases().iter().map(Release::id).collect();
        assert_eq!(ids, ["openshift-v4.19.9", "openshift-v4.20.1", "openshift-v4.20.3"]);
        let first = catalogue.find("4.20.1").unwrap();
        assert_eq!((first.image.as_str(), first.enabled), ("q@sha256:a", true));
        assert_eq!(catalogue.upgrades_of(first), ["4.20.3"]);
        assert!(!catalogue.find("4.19.9").unwrap().enabled);
        assert_eq!(
            catalogue.default_release().unwrap().id(),
            "openshift-v4.20.3",
            "the newest, without the default"
        );
    }

    #[tokio::test]
    async fn a_graph_that_is_not_there_is_an_error() {
        assert!(matches!(read("503 Busy").await, Err(GraphError::Refused(..))));
        let nowhere = Url::parse("http://127.0.0.1:1/graph").unwrap();
        let graph = Graph::new(nowhere, Arc::new(SystemResolve)).unwrap();
        assert!(matches!(graph.read().await, Err(GraphError::Unreachable(..))));
    }
}
