//! How the program ends when something or someone does not want it to.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::process::{Running, text};

const PATIENCE: Duration = Duration::from_secs(30);

/// A request whose body never comes, and which the server has begun to serve.
fn hanging_request(addr: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(addr).unwrap();
    let path = "/subscriptions/00000000-0000-0000-0000-000000000001?api-version=2.0";
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\n\
         content-type: application/json\r\ncontent-length: 10\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server asks for the body only once the request is being served.
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(text(&answer), "HTTP/1.1 100");
    stream
}

fn wait_until_refused(addr: SocketAddr) {
    while TcpStream::connect(addr).is_ok() {
        std::thread::yield_now();
    }
}

#[test]
fn a_request_that_hangs_is_named_when_the_grace_period_ends() {
    let mut running = Running::start(&["frontend", "--ephemeral", "--set", "process.grace=200ms"]);
    let _request = hanging_request(running.endpoints()["frontend"]);
    running.signal(Signal::SIGTERM);
    let output = running.finish();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let last = said
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("error: did not stop within the grace period: "));
    // On a busy machine others may be late, too.
    let named =
        last.is_some_and(|late| late.split(", ").any(|path| path == "aro/frontend/frontend/connection"));
    assert!(named, "{said}");
}

#[test]
fn a_request_that_hangs_in_a_region_is_named_with_where_it_hangs() {
    let mut running = Running::start(&["up", "--ephemeral", "--debug-ports", "--set", "process.grace=200ms"]);
    let _request = hanging_request(running.endpoints()["frontend"]);
    running.signal(Signal::SIGTERM);
    let output = running.finish();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    let late = last.strip_prefix("error: did not stop within the grace period: ").unwrap_or_default();
    // Whichever is cut off first ends the other: the port that leads to the pod, or the connection in it.
    let in_port = |path: &str| path == "aro/aro-hcp-frontend/forward";
    let in_pod = |path: &str| path.contains("/aro-hcp-frontend-") && path.ends_with("/connection");
    assert!(late.split(", ").any(|path| in_port(path) || in_pod(path)), "{said}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut running = Running::start(&["frontend", "--ephemeral"]);
    let frontend = running.endpoints()["frontend"];
    let _request = hanging_request(frontend);
    running.signal(Signal::SIGINT);
    wait_until_refused(frontend);
    running.signal(Signal::SIGINT);
    let output = running.finish();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
}

#[test]
fn traces_are_sent_at_the_end_and_a_deaf_collector_does_not_hold_it_up() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("telemetry.otlp_endpoint=http://{}", collector.local_addr().unwrap());
    let (heard, preface) = mpsc::channel();
    let listening = std::thread::spawn(move || {
        let (mut stream, _) = collector.accept().unwrap();
        let mut start = [0; 14];
        stream.read_exact(&mut start).unwrap();
        heard.send(text(&start)).unwrap();
        // Never answers.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut running = Running::start(&[
        "frontend",
        "--ephemeral",
        "--set",
        &endpoint,
        "--set",
        "telemetry.otlp_timeout=500ms",
    ]);
    let frontend = running.endpoints()["frontend"];
    let mut stream = TcpStream::connect(frontend).unwrap();
    stream.write_all(b"GET /nothing HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.to_ascii_lowercase().contains("\r\ntraceresponse: 00-"), "{answer}");

    running.signal(Signal::SIGINT);
    let output = running.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(preface.recv_timeout(PATIENCE).unwrap(), "PRI * HTTP/2.0");
    listening.join().unwrap();
}
