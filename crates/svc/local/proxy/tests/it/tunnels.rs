use std::time::Duration;

use anyhow::Result;
use aro_proxy::ProxyConfig;
use aro_runtime::Period;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{DEADLINE, Fixture, read_head, read_response};

#[tokio::test]
async fn azure_hosts_and_names_of_the_region_are_tunnelled_byte_for_byte() -> Result<()> {
    let proxy = Fixture::start(ProxyConfig::default()).await?;
    for (target, listener) in
        [("management.azure.com:443", &proxy.azure_local), ("API.c1.example.com:443", &proxy.ingress)]
    {
        let ((mut client, head), accepted) = tokio::try_join!(proxy.ask(target), async {
            Ok(tokio::time::timeout(DEADLINE, listener.accept()).await??)
        })?;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(!head.to_ascii_lowercase().contains("content-length"), "a tunnel has no body: {head}");
        let (mut destination, _) = accepted;
        let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let mut received = vec![0; sent.len()];
        tokio::try_join!(client.write_all(&sent), destination.read_exact(&mut received))?;
        assert_eq!(received, sent);
        // The client ends its direction and still receives.
        client.shutdown().await?;
        assert_eq!(destination.read(&mut [0; 1]).await?, 0);
        destination.write_all(b"answer").await?;
        drop(destination);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await?;
        assert_eq!(answer, "answer");
    }
    proxy.until_metric("proxy_tunnels_open 0").await?;
    proxy.until_metric("proxy_tunnels_total 2").await?;
    proxy.until_metric(r#"proxy_bytes_total{direction="from_client"} 200000"#).await?;
    proxy.until_metric(r#"proxy_bytes_total{direction="to_client"} 12"#).await
}

#[tokio::test]
async fn bytes_sent_with_the_request_head_reach_the_destination() -> Result<()> {
    let proxy = Fixture::start(ProxyConfig::default()).await?;
    let mut client = proxy.connect().await?;
    client.write_all(b"CONNECT management.azure.com:443 HTTP/1.1\r\nHost: x\r\n\r\nhello").await?;
    let (mut destination, _) = tokio::time::timeout(DEADLINE, proxy.azure_local.accept()).await??;
    let mut hello = [0; 5];
    tokio::time::timeout(DEADLINE, destination.read_exact(&mut hello)).await??;
    assert_eq!(&hello, b"hello");
    Ok(())
}

#[tokio::test]
async fn other_hosts_are_refused_with_their_name_and_what_is_allowed() -> Result<()> {
    let proxy = Fixture::start(ProxyConfig::default()).await?;
    let mut client = proxy.connect().await?;
    // Refusals leave the connection open for another try.
    for (target, status, part) in [
        ("example.org:443", "403", "example.org is not served here"),
        ("127.0.0.1:443", "403", "127.0.0.1 is not served here"),
        ("management.azure.com:80", "403", "not on port 80"),
        ("api.c1.example.com:22", "403", "not on port 22"),
    ] {
        client.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await?;
        let (head, body) = read_response(&mut client).await?;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{target}: {head}");
        assert!(body.contains(part), "{target}: {body}");
    }
    client.write_all(b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n").await?;
    let (head, _) = read_response(&mut client).await?;
    assert!(
        head.starts_with("HTTP/1.1 405") && head.to_ascii_lowercase().contains("allow: connect"),
        "{head}"
    );
    proxy.until_metric(r#"proxy_refused_total{reason="host"} 2"#).await?;
    proxy.until_metric(r#"proxy_refused_total{reason="port"} 2"#).await?;
    proxy.until_metric(r#"proxy_refused_total{reason="method"} 1"#).await
}

#[tokio::test]
async fn a_destination_that_is_down_is_a_bad_gateway() -> Result<()> {
    let mut proxy = Fixture::start(ProxyConfig::default()).await?;
    proxy.azure_local = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let (_, head) = proxy.ask("management.azure.com:443").await?;
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
    proxy.until_metric(r#"proxy_refused_total{reason="unreachable"} 1"#).await
}

#[tokio::test]
async fn a_client_that_sends_no_request_or_too_much_of_one_is_cut() -> Result<()> {
    let config = ProxyConfig { header_timeout: Period::millis(100), ..ProxyConfig::default() };
    let proxy = Fixture::start(config).await?;
    let mut silent = proxy.connect().await?;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(DEADLINE, silent.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "a silent client is cut");
    let mut chatty = proxy.connect().await?;
    let head = format!("CONNECT management.azure.com:443 HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024));
    // The connection may be reset while the head is still being written.
    let _ = chatty.write_all(head.as_bytes()).await;
    let answered = read_head(&mut chatty).await;
    assert!(answered.as_ref().map_or(true, |head| head.starts_with("HTTP/1.1 431")), "{answered:?}");
    Ok(())
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() -> Result<()> {
    let proxy = Fixture::start(ProxyConfig { max_connections: 1, ..ProxyConfig::default() }).await?;
    let (_held, head) = proxy.ask("management.azure.com:443").await?;
    assert!(head.starts_with("HTTP/1.1 200"));
    let mut second = proxy.connect().await?;
    let read = tokio::time::timeout(DEADLINE, second.read(&mut [0; 1])).await?;
    assert!(!matches!(read, Ok(1..)), "{read:?}");
    proxy.until_metric(r#"proxy_refused_total{reason="limit"} 1"#).await
}

#[tokio::test]
async fn open_tunnels_drain_when_the_role_stops() -> Result<()> {
    let config = ProxyConfig { drain: Period::secs(5), ..ProxyConfig::default() };
    let proxy = Fixture::start(config).await?;
    let ((mut client, _), accepted) = tokio::try_join!(proxy.ask("management.azure.com:443"), async {
        Ok(tokio::time::timeout(DEADLINE, proxy.azure_local.accept()).await??)
    })?;
    let (mut destination, _) = accepted;
    let closing = proxy.scope.close(Duration::from_secs(20));
    let using = async {
        // Once no connection is accepted any more, the tunnel still works until it ends.
        while proxy.connect().await.is_ok() {
            tokio::task::yield_now().await;
        }
        client.write_all(b"last").await?;
        let mut last = [0; 4];
        destination.read_exact(&mut last).await?;
        drop((client, destination));
        anyhow::Ok(last)
    };
    let (closed, last) = tokio::join!(closing, using);
    assert_eq!(&last?, b"last");
    assert!(closed.is_ok());
    Ok(())
}
