//! The transport over sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_net::SystemResolve;
use aro_ocm::ClusterId;
use aro_peers::{CallError, ClustersService, ClustersServiceOptions, TransportError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn client(address: SocketAddr, deadline: Duration) -> ClustersService {
    let options = ClustersServiceOptions { address: address.to_string(), deadline };
    ClustersService::new(&options, Arc::new(SystemResolve))
}

/// Accepts one connection, reads one request and answers with these bytes. Returns the request.
async fn answer(listener: TcpListener, reply: &'static str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut read = vec![0; 4096];
    let length = stream.read(&mut read).await.unwrap();
    stream.write_all(reply.as_bytes()).await.unwrap();
    String::from_utf8_lossy(&read[..length]).into_owned()
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test]
async fn an_object_is_read_over_a_socket() {
    let (listener, address) = listener().await;
    let id = ClusterId::parse("c1").unwrap();
    let reply = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 28\r\n\r\n{\"id\":\"c1\",\"state\":\"ready\"}\r\n";
    let client = client(address, Duration::from_secs(10));
    let (found, asked) = tokio::join!(client.find_cluster(&id), answer(listener, reply));
    assert_eq!(found.unwrap().unwrap().state, Some(aro_ocm::ClusterState::Ready));
    assert!(asked.starts_with("GET /api/aro_hcp/v1alpha1/clusters/c1 HTTP/1.1\r\n"), "{asked}");
}

#[tokio::test]
async fn a_refused_connection_and_a_lost_reply_are_told_apart() {
    let id = ClusterId::parse("c1").unwrap();
    let (closed, address) = self::listener().await;
    drop(closed);
    let refused = client(address, Duration::from_secs(10)).find_cluster(&id).await.unwrap_err();
    assert!(
        matches!(refused, CallError::Unreachable { source: TransportError::Unreachable { .. }, .. }),
        "{refused:?}"
    );

    let (listener, address) = listener().await;
    let lossy = client(address, Duration::from_secs(10));
    let (lost, _) = tokio::join!(
        lossy.find_cluster(&id),
        answer(listener, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{")
    );
    let lost = lost.unwrap_err();
    assert!(matches!(lost, CallError::Unreachable { source: TransportError::Lost { .. }, .. }), "{lost:?}");
}

#[tokio::test]
async fn a_call_ends_at_its_deadline() {
    let (listener, address) = listener().await;
    let id = ClusterId::parse("c1").unwrap();
    let late = client(address, Duration::from_millis(50)).find_cluster(&id).await.unwrap_err();
    assert!(matches!(late, CallError::Unreachable { source: TransportError::Late { .. }, .. }), "{late:?}");
    drop(listener);
}
