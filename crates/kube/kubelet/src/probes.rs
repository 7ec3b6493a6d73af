//! Probes of containers that really run: is it ready, is it alive?
//!
//! The task's port is asked, as a kubelet asks the pod's. What cannot be asked of a task (a command) is left out; the
//! role's own readiness counts in any case.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::image::Started;

/// What to ask, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub address: SocketAddr,
    /// The path and headers of an HTTP request; `None`: whether a connection is accepted.
    pub request: Option<String>,
    pub delay: Duration,
    pub period: Duration,
    pub timeout: Duration,
    pub successes: u32,
    pub failures: u32,
}

/// How to ask a container, if there is something to ask.
pub fn plan(probe: &Probe, container: &Container, started: &Started) -> Option<Plan> {
    let (port, request) = if let Some(http) = &probe.http_get {
        let path = http.path.as_deref().unwrap_or("/");
        let host = http.host.as_deref().unwrap_or("localhost");
        let safe = |text: &str| !text.contains(['\r', '\n']);
        if !safe(path) || !safe(host) {
            return None;
        }
        // With TLS, a connection is all we can ask for.
        let plain = http.scheme.as_deref() != Some("HTTPS");
        let text = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: kube-probe/aro\r\nConnection: close\r\n\r\n"
        );
        (&http.port, plain.then_some(text))
    } else {
        (&probe.tcp_socket.as_ref()?.port, None)
    };
    let secs = |value: Option<i32>, or: i32| {
        Duration::from_secs(u64::try_from(value.unwrap_or(or).max(0)).unwrap_or(0))
    };
    let count = |value: Option<i32>, or: i32| u32::try_from(value.unwrap_or(or).max(1)).unwrap_or(1);
    Some(Plan {
        address: *started.ports.get(&number(port, container)?)?,
        request,
        delay: secs(probe.initial_delay_seconds, 0),
        period: secs(probe.period_seconds, 10).max(Duration::from_secs(1)),
        timeout: secs(probe.timeout_seconds, 1).max(Duration::from_secs(1)),
        successes: count(probe.success_threshold, 1),
        failures: count(probe.failure_threshold, 3),
    })
}

fn number(port: &IntOrString, container: &Container) -> Option<u16> {
    match port {
        IntOrString::Int(port) => u16::try_from(*port).ok(),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name))?;
            u16::try_from(named.container_port).ok()
        }
    }
}

/// Asks once.
pub async fn ask(plan: &Plan) -> Result<(), String> {
    match tokio::time::timeout(plan.timeout, try_once(plan)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(format!("no answer within {:?}", plan.timeout)),
    }
}

async fn try_once(plan: &Plan) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(plan.address).await.map_err(failed)?;
    let Some(request) = &plan.request else { return Ok(()) };
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.map_err(failed)?;
    let code = std::str::from_utf8(&head[9..]).ok().and_then(|code| code.parse::<u16>().ok());
    match code {
        Some(200..=399) if head.starts_with(b"HTTP/1.") => Ok(()),
        Some(code) => Err(format!("HTTP probe failed with statuscode: {code}")),
        None => Err("the answer is not HTTP".to_owned()),
    }
}

/// Counts answers in a row.
#[derive(Debug, Default)]
pub struct Verdict {
    well: u32,
    badly: u32,
}

impl Verdict {
    /// Records a result; returns the verdict when enough results agree.
    pub fn take(&mut self, well: bool, plan: &Plan) -> Option<bool> {
        if well {
            (self.well, self.badly) = (self.well.saturating_add(1), 0);
            (self.well >= plan.successes).then_some(true)
        } else {
            (self.well, self.badly) = (0, self.badly.saturating_add(1));
            (self.badly >= plan.failures).then_some(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use aro_runtime::Readiness;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    fn made(probe: serde_json::Value, address: SocketAddr) -> Option<Plan> {
        let container = json!({"name": "c", "ports": [{"name": "http", "containerPort": 8443}]});
        let started = Started { ports: BTreeMap::from([(8443, address)]), readiness: Readiness::new() };
        plan(&serde_json::from_value(probe).unwrap(), &serde_json::from_value(container).unwrap(), &started)
    }

    #[tokio::test]
    async fn a_container_is_asked_at_its_real_port() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let http = made(json!({"httpGet": {"path": "/healthz", "port": "http"}}), address).unwrap();
        let answers = async {
            for answer in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 503 Busy\r\n\r\n", "what?"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut seen = [0; 13];
                stream.read_exact(&mut seen).await.unwrap();
                assert_eq!(&seen, b"GET /healthz ");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let asks = async { (ask(&http).await, ask(&http).await, ask(&http).await) };
        let ((well, busy, nonsense), ()) = tokio::join!(asks, answers);
        assert_eq!(well, Ok(()));
        assert_eq!(busy, Err("HTTP probe failed with statuscode: 503".to_owned()));
        assert!(nonsense.is_err());
        assert!(made(json!({"exec": {"command": ["true"]}}), address).is_none());
        assert!(made(json!({"tcpSocket": {"port": 9}}), address).is_none(), "it has no such port");
    }

    #[test]
    fn only_answers_in_a_row_count() {
        let plan =
            made(json!({"tcpSocket": {"port": 8443}, "failureThreshold": 2}), ([127, 0, 0, 1], 1).into())
                .unwrap();
        let mut verdict = Verdict::default();
        let said: Vec<Option<bool>> =
            [false, true, false, false].map(|well| verdict.take(well, &plan)).to_vec();
        assert_eq!(said, [None, Some(true), None, Some(false)]);
    }
}
