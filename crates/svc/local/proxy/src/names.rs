//! The addresses of names in the region's zones, by asking the region's DNS server and no other.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use hickory_proto::op::{Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use tokio::net::UdpSocket;

/// Names that the region's DNS serves.
#[async_trait]
pub trait Names: Send + Sync + 'static {
    /// The addresses of a host; `None` if no zone of the region has any for it.
    async fn addresses(&self, host: &str) -> io::Result<Option<Vec<IpAddr>>>;
}

/// Asks a DNS server over UDP. Only authoritative answers count: the server must serve the zone itself.
#[derive(Debug, Clone, Copy)]
pub struct DnsNames {
    server: SocketAddr,
    deadline: Duration,
}

impl DnsNames {
    /// Asks this server; each name has this much time.
    pub fn new(server: SocketAddr, deadline: Duration) -> Self {
        Self { server, deadline }
    }

    async fn ask(&self, name: &Name, record_type: RecordType) -> io::Result<Vec<IpAddr>> {
        let mut query = Message::query();
        query.add_query(Query::query(name.clone(), record_type));
        let bytes = query.to_vec().map_err(io::Error::other)?;
        let any: IpAddr = match self.server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(self.server).await?;
        socket.send(&bytes).await?;
        let mut buffer = [0; 4096];
        loop {
            let length = socket.recv(&mut buffer).await?;
            let Ok(response) = Message::from_vec(&buffer[..length]) else { continue };
            if is_response_to(&response, &query) {
                return Ok(addresses_in(&response));
            }
        }
    }
}

#[async_trait]
impl Names for DnsNames {
    async fn addresses(&self, host: &str) -> io::Result<Option<Vec<IpAddr>>> {
        let Ok(mut name) = Name::from_ascii(host) else { return Ok(None) };
        name.set_fqdn(true);
        let both = async {
            let mut found = self.ask(&name, RecordType::A).await?;
            if found.is_empty() {
                found = self.ask(&name, RecordType::AAAA).await?;
            }
            Ok((!found.is_empty()).then_some(found))
        };
        tokio::time::timeout(self.deadline, both)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn is_response_to(response: &Message, query: &Message) -> bool {
    response.metadata.message_type == MessageType::Response
        && response.metadata.id == query.metadata.id
        && response.queries == query.queries
}

/// The addresses of an authoritative answer; none of any other.
fn addresses_in(response: &Message) -> Vec<IpAddr> {
    if !response.metadata.authoritative || response.metadata.response_code != ResponseCode::NoError {
        return Vec::new();
    }
    let addresses = response.answers.iter().filter_map(|record| match &record.data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    });
    addresses.collect()
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::A;

    use super::*;

    /// Answers one query with what `make` turns it into, then further ones with an empty authoritative answer.
    async fn server(
        make: impl Fn(Message) -> Vec<Message> + Send + 'static,
    ) -> (SocketAddr, tokio::task::JoinSet<()>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            let mut buffer = [0; 1024];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
                let query = Message::from_vec(&buffer[..length]).unwrap();
                for response in make(query) {
                    socket.send_to(&response.to_vec().unwrap(), peer).await.unwrap();
                }
            }
        });
        (address, tasks)
    }

    fn answer(query: &Message, authoritative: bool) -> Message {
        let mut response = query.clone().into_response();
        response.metadata.authoritative = authoritative;
        if query.queries[0].query_type() == RecordType::A {
            let owner = query.queries[0].name().clone();
            response.add_answer(Record::from_rdata(owner, 60, RData::A(A([127, 0, 0, 9].into()))));
        }
        response
    }

    #[tokio::test]
    async fn an_authoritative_answer_counts_and_others_do_not() {
        for (authoritative, expected) in [(true, Some(vec!["127.0.0.9".parse().unwrap()])), (false, None)] {
            let (address, _tasks) = server(move |query| vec![answer(&query, authoritative)]).await;
            let names = DnsNames::new(address, Duration::from_secs(5));
            assert_eq!(names.addresses("api.example.com").await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn responses_to_other_questions_are_skipped() {
        let (address, _tasks) = server(|query| {
            let mut other = answer(&query, true);
            other.metadata.id = query.metadata.id.wrapping_add(1);
            other.answers.clear();
            vec![other, answer(&query, true)]
        })
        .await;
        let names = DnsNames::new(address, Duration::from_secs(5));
        assert!(names.addresses("api.example.com").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_an_error_at_the_deadline() {
        let (address, _tasks) = server(|_| Vec::new()).await;
        let names = DnsNames::new(address, Duration::from_millis(50));
        assert_eq!(names.addresses("api.example.com").await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
