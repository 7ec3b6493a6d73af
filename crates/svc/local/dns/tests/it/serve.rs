use std::time::Duration;

use anyhow::Result;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Fixture, a, exchange, question};

#[tokio::test]
async fn documents_that_exist_at_the_start_are_answered_over_udp_and_tcp() -> Result<()> {
    let dns = Fixture::start(&[
        ("dnsZones/example.com", json!({"nameServers": ["ns1.example.net."]})),
        ("dnsZones/example.com/A/www", a("192.0.2.1")),
        ("dnsZones/example.com/A/*.apps", a("192.0.2.2")),
        ("dnsZones/example.com/TXT/@", json!({"TXTRecords": [{"value": ["v=spf1 -all"]}]})),
    ])
    .await?;
    let response = dns.udp("www.EXAMPLE.com.", RecordType::A).await?;
    assert!(response.metadata.authoritative);
    assert_eq!(response.answers[0].data.to_string(), "192.0.2.1");
    let wild = dns.tcp("console.apps.example.com.", RecordType::A).await?;
    assert_eq!(wild.answers[0].data.to_string(), "192.0.2.2");
    let servers = dns.udp("example.com.", RecordType::NS).await?;
    assert_eq!(servers.answers[0].data.to_string(), "ns1.example.net.");
    assert_eq!(dns.udp("example.com.", RecordType::TXT).await?.answers.len(), 1);
    let denied = dns.udp("no.example.com.", RecordType::A).await?;
    assert_eq!(denied.metadata.response_code, ResponseCode::NXDomain);
    assert_eq!(denied.authorities[0].record_type(), RecordType::SOA);
    let refused = dns.udp("www.example.org.", RecordType::A).await?;
    assert_eq!(refused.metadata.response_code, ResponseCode::Refused);
    let metrics = dns.metrics.encode();
    for line in [
        r#"dns_queries_total{code="noerror",transport="tcp"} 1"#,
        r#"dns_queries_total{code="nxdomain",transport="udp"} 1"#,
        r#"dns_queries_total{code="refused",transport="udp"} 1"#,
        "dns_zones 1",
        "dns_record_sets 3",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    Ok(())
}

#[tokio::test]
async fn changes_are_answered_as_soon_as_the_feed_delivers_them() -> Result<()> {
    let dns = Fixture::start(&[]).await?;
    dns.until("api.c1.example.com.", None).await?;
    dns.write("dnsZones/example.com", json!({})).await?;
    dns.write("dnsZones/example.com/A/api.c1", a("192.0.2.1")).await?;
    dns.until("api.c1.example.com.", Some("192.0.2.1")).await?;
    assert_eq!(dns.zones.lookup("api.c1.example.com").map(|found| found.len()), Some(1));
    dns.write("dnsZones/example.com/A/api.c1", a("192.0.2.2")).await?;
    dns.until("api.c1.example.com.", Some("192.0.2.2")).await?;
    dns.delete("dnsZones/example.com/A/api.c1").await?;
    dns.until("api.c1.example.com.", None).await
}

#[tokio::test]
async fn a_child_zone_replaces_the_referral_of_its_parent() -> Result<()> {
    let dns = Fixture::start(&[
        ("dnsZones/example.com", json!({})),
        ("dnsZones/example.com/NS/aro.c1", json!({"NSRecords": [{"nsdname": "ns1.elsewhere.org"}]})),
    ])
    .await?;
    let referral = dns.udp("console.apps.aro.c1.example.com.", RecordType::A).await?;
    assert!(!referral.metadata.authoritative && referral.answers.is_empty());
    assert_eq!(referral.authorities[0].data.to_string(), "ns1.elsewhere.org.");
    dns.write("dnsZones/aro.c1.example.com", json!({})).await?;
    dns.write("dnsZones/aro.c1.example.com/A/*.apps", a("192.0.2.8")).await?;
    dns.until("console.apps.aro.c1.example.com.", Some("192.0.2.8")).await
}

#[tokio::test]
async fn an_alias_answers_with_the_address_of_the_public_ip() -> Result<()> {
    let target = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g/providers/Microsoft.Network/publicIPAddresses/router";
    let dns = Fixture::start(&[
        ("dnsZones/example.com", json!({})),
        ("dnsZones/example.com/A/api", json!({"TTL": 30, "targetResource": {"id": target}})),
        ("publicIPAddresses/router", json!({"ipAddress": "198.51.100.7"})),
    ])
    .await?;
    dns.until("api.example.com.", Some("198.51.100.7")).await?;
    dns.write("publicIPAddresses/router", json!({"ipAddress": "198.51.100.8"})).await?;
    dns.until("api.example.com.", Some("198.51.100.8")).await
}

#[tokio::test]
async fn a_large_answer_is_truncated_over_udp_and_whole_over_tcp() -> Result<()> {
    let many: Vec<_> = (0..150).map(|n| json!({"ipv4Address": format!("10.0.0.{n}")})).collect();
    let dns = Fixture::start(&[
        ("dnsZones/example.com", json!({})),
        ("dnsZones/example.com/A/many", json!({"ARecords": many})),
    ])
    .await?;
    let small = dns.udp("many.example.com.", RecordType::A).await?;
    assert!(small.metadata.truncation && small.answers.len() < 32);
    let larger = dns.udp_of_size("many.example.com.", RecordType::A, Some(4096)).await?;
    assert!(larger.metadata.truncation && larger.answers.len() > small.answers.len());
    let whole = dns.tcp("many.example.com.", RecordType::A).await?;
    assert_eq!((whole.answers.len(), whole.metadata.truncation), (150, false));
    Ok(())
}

#[tokio::test]
async fn one_connection_serves_several_queries_and_ends_on_nonsense() -> Result<()> {
    let dns = Fixture::start(&[
        ("dnsZones/example.com", json!({})),
        ("dnsZones/example.com/A/www", a("192.0.2.1")),
    ])
    .await?;
    let mut stream = TcpStream::connect(dns.address).await?;
    for _ in 0..3 {
        let response = exchange(&mut stream, &question("www.example.com.", RecordType::A)?).await?;
        assert_eq!(response.answers.len(), 1);
    }
    stream.write_u16(60_000).await?;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await?;
    assert!(ended.is_err() || rest.is_empty(), "a query that is too long ends the connection");
    Ok(())
}

#[tokio::test]
async fn closing_the_scope_ends_open_connections() -> Result<()> {
    let dns = Fixture::start(&[("dnsZones/example.com", json!({}))]).await?;
    let mut stream = TcpStream::connect(dns.address).await?;
    exchange(&mut stream, &question("example.com.", RecordType::SOA)?).await?;
    dns.scope.close(Duration::from_secs(10)).await.map_err(|laggards| anyhow::anyhow!("{laggards:?}"))?;
    assert!(stream.read_u8().await.is_err());
    Ok(())
}
