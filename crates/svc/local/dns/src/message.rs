//! One query in, one response out.

use std::net::SocketAddr;

use hickory_proto::op::{Edns, MessageType, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};
use hickory_proto::serialize::binary::BinEncoder;
use hickory_server::net::xfer::Protocol;
use hickory_server::server::Request;
use hickory_server::zone_handler::MessageResponseBuilder;

use crate::metrics::Transport;
use crate::zone::{Answer, Zones};

/// The size of a DNS header.
const HEADER: usize = 12;

/// A response, encoded.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) bytes: Vec<u8>,
    pub(crate) code: ResponseCode,
}

/// Answers one message. `None`: it gets no response, because it is not a query or too short to have an id.
///
/// `max_udp` bounds what a datagram may hold, whatever the client accepts: larger ones are fragmented on their way.
pub(crate) fn respond(
    message: &[u8],
    peer: SocketAddr,
    transport: Transport,
    max_udp: u16,
    zones: &Zones,
) -> Option<Response> {
    // A response that is answered could be answered in turn, without end.
    if message.len() < HEADER || message[2] & 0x80 != 0 {
        return None;
    }
    let protocol = match transport {
        Transport::Udp => Protocol::Udp,
        Transport::Tcp => Protocol::Tcp,
    };
    let Ok(request) = Request::from_bytes(message.to_vec(), peer, protocol) else {
        return Some(header_only(message, ResponseCode::FormErr));
    };
    if request.metadata.message_type != MessageType::Query {
        return None;
    }
    let answer = decide(&request, zones);
    let largest = match transport {
        Transport::Udp => request.max_payload().min(max_udp.max(512)),
        Transport::Tcp => u16::MAX,
    };
    Some(
        encode(&request, &answer, largest, max_udp)
            .unwrap_or_else(|| header_only(message, ResponseCode::ServFail)),
    )
}

fn decide(request: &Request, zones: &Zones) -> Answer {
    let refuse = |code| Answer {
        code,
        authoritative: false,
        answers: Vec::new(),
        authorities: Vec::new(),
        additionals: Vec::new(),
    };
    if request.metadata.op_code != OpCode::Query {
        return refuse(ResponseCode::NotImp);
    }
    if request.version() > 0 {
        return refuse(ResponseCode::BADVERS);
    }
    let Ok(info) = request.request_info() else { return refuse(ResponseCode::FormErr) };
    let class = info.query.query_class();
    let record_type = info.query.query_type();
    if !matches!(class, DNSClass::IN | DNSClass::ANY)
        || matches!(record_type, RecordType::AXFR | RecordType::IXFR)
    {
        return refuse(ResponseCode::Refused);
    }
    let mut name = info.query.original().name().clone();
    name.set_fqdn(true);
    zones.answer(&name, record_type)
}

/// The response in at most `largest` bytes; what does not fit is left out and marked, so that the client asks over TCP.
fn encode(request: &Request, answer: &Answer, largest: u16, max_udp: u16) -> Option<Response> {
    let mut metadata = Metadata::response_from_request(&request.metadata);
    metadata.response_code = answer.code;
    metadata.authoritative = answer.authoritative;
    metadata.recursion_available = false;
    let mut edns = Edns::new();
    edns.set_max_payload(max_udp).set_version(0);
    let mut builder = MessageResponseBuilder::from_message_request(request);
    if request.edns.is_some() {
        builder.edns(&edns);
    }
    let response = builder.build(metadata, &answer.answers, &answer.authorities, [], &answer.additionals);
    let mut bytes = Vec::with_capacity(512);
    let mut encoder = BinEncoder::new(&mut bytes);
    encoder.set_max_size(largest);
    response.destructive_emit(&mut encoder).ok()?;
    Some(Response { bytes, code: answer.code })
}

/// A response without question and records, for messages that cannot be decoded.
fn header_only(message: &[u8], code: ResponseCode) -> Response {
    let mut bytes = vec![0; HEADER];
    if let Some(id) = message.get(..2) {
        bytes[..2].copy_from_slice(id);
    }
    // Response, with the operation and the recursion flag of the query.
    bytes[2] = 0x80 | (message.get(2).copied().unwrap_or_default() & 0x79);
    bytes[3] = code.low();
    Response { bytes, code }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hickory_proto::op::{Message, Query};
    use hickory_proto::rr::rdata::A;
    use hickory_proto::rr::{Name, RData, Record};
    use proptest::prelude::*;

    use super::*;
    use crate::name::parse_name;
    use crate::zone::Zone;

    const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4000);

    fn zones() -> Zones {
        let name = |text: &str| parse_name(text).unwrap();
        let record =
            |owner: &str, n: u8| Record::from_rdata(name(owner), 60, RData::A(A([10, 0, 0, n].into())));
        let many = (0..200).map(|n| record("many.example.com", n)).collect();
        let sets = [vec![record("www.example.com", 1)], many];
        Zones::new([Arc::new(Zone::new(name("example.com"), &[], sets))])
    }

    fn query(name: &str, record_type: RecordType) -> Message {
        let mut message = Message::query();
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), record_type));
        message
    }

    fn exchange(message: &Message, transport: Transport) -> Message {
        let response = respond(&message.to_vec().unwrap(), PEER, transport, 1232, &zones()).unwrap();
        Message::from_vec(&response.bytes).unwrap()
    }

    #[test]
    fn a_query_is_answered_with_its_id_and_question() {
        let question = query("WWW.example.com.", RecordType::A);
        let response = exchange(&question, Transport::Udp);
        assert_eq!(response.metadata.id, question.metadata.id);
        assert_eq!(response.metadata.message_type, MessageType::Response);
        assert!(response.metadata.authoritative && !response.metadata.recursion_available);
        assert!(
            response.queries[0].name().eq_case(question.queries[0].name()),
            "the case of the question is kept"
        );
        assert_eq!(response.answers.len(), 1);
        assert!(response.edns.is_none(), "the client sent none");
    }

    #[test]
    fn a_datagram_is_cut_at_the_negotiated_size_and_a_connection_is_not() {
        let mut question = query("many.example.com.", RecordType::A);
        let sized = |message: &Message, transport| {
            let sent = respond(&message.to_vec().unwrap(), PEER, transport, 1232, &zones()).unwrap();
            (sent.bytes.len(), Message::from_vec(&sent.bytes).unwrap())
        };
        let (size, plain) = sized(&question, Transport::Udp);
        assert!(size <= 512 && plain.metadata.truncation, "{size}");
        for (accepted, most) in [(800, 800), (4096, 1232), (100, 512)] {
            let mut edns = Edns::new();
            edns.set_max_payload(accepted);
            question.set_edns(edns);
            let (size, response) = sized(&question, Transport::Udp);
            assert!(size <= most && response.metadata.truncation, "{accepted}: {size}");
        }
        let (_, whole) = sized(&question, Transport::Tcp);
        assert_eq!((whole.answers.len(), whole.metadata.truncation), (200, false));
        assert!(whole.edns.is_some());
    }

    #[test]
    fn what_is_not_supported_is_refused_with_the_right_code() {
        let code = |message: &Message| exchange(message, Transport::Udp).metadata.response_code;
        assert_eq!(code(&query("www.example.org.", RecordType::A)), ResponseCode::Refused);
        assert_eq!(code(&query("example.com.", RecordType::AXFR)), ResponseCode::Refused);
        let mut update = query("example.com.", RecordType::SOA);
        update.metadata.op_code = OpCode::Notify;
        assert_eq!(code(&update), ResponseCode::NotImp);
        let mut chaos = query("example.com.", RecordType::TXT);
        chaos.queries[0].set_query_class(DNSClass::CH);
        assert_eq!(code(&chaos), ResponseCode::Refused);
        let mut two = query("example.com.", RecordType::A);
        two.add_query(Query::query(Name::root(), RecordType::A));
        assert_eq!(code(&two), ResponseCode::FormErr);
        let mut future = query("example.com.", RecordType::A);
        let mut edns = Edns::new();
        edns.set_version(1).set_max_payload(1232);
        future.set_edns(edns);
        // The number is that of BADSIG as well.
        assert_eq!(u16::from(code(&future)), u16::from(ResponseCode::BADVERS));
    }

    #[test]
    fn responses_and_fragments_get_no_response() {
        let mut response = query("www.example.com.", RecordType::A);
        response.metadata.message_type = MessageType::Response;
        assert!(respond(&response.to_vec().unwrap(), PEER, Transport::Udp, 1232, &zones()).is_none());
        assert!(respond(&[1, 2, 3], PEER, Transport::Udp, 1232, &zones()).is_none());
        let cut = query("www.example.com.", RecordType::A).to_vec().unwrap();
        let refused = respond(&cut[..cut.len() - 3], PEER, Transport::Udp, 1232, &zones()).unwrap();
        assert_eq!((refused.code, &refused.bytes[..2]), (ResponseCode::FormErr, &cut[..2]));
        assert_eq!(Message::from_vec(&refused.bytes).unwrap().metadata.response_code, ResponseCode::FormErr);
    }

    proptest! {
        #[test]
        fn no_message_panics_or_exceeds_its_size(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let zones = zones();
            if let Some(response) = respond(&bytes, PEER, Transport::Udp, 1232, &zones) {
                prop_assert!(response.bytes.len() <= 1232);
            }
            let _ = respond(&bytes, PEER, Transport::Tcp, 1232, &zones);
        }
    }
}
