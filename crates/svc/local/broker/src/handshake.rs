//! CONNECT and CONNACK.

use bytes::BytesMut;
use rumqttc::v5::mqttbytes::v5::{
    ConnAck, ConnAckProperties, Connect, ConnectReturnCode, LastWill, Login, Packet,
};

use aro_mqtt::wire::Frame;

use crate::acl::Acl;
use crate::hub::Limits;

/// The keep-alive of clients that disable it: a dead client must not keep its slot.
const LONGEST_KEEP_ALIVE: u16 = 600;

/// An accepted client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedClient {
    pub identity: String,
    pub client_id: String,
    /// Seconds.
    pub keep_alive: u16,
    /// Messages it accepts unacknowledged.
    pub window: u16,
    /// The largest packet it accepts.
    pub largest: usize,
}

/// Why a client is rejected, and its CONNACK code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub code: ConnectReturnCode,
    pub reason: &'static str,
}

fn reject<T>(code: ConnectReturnCode, reason: &'static str) -> Result<T, Rejection> {
    Err(Rejection { code, reason })
}

/// Checks the first packet. `certificate` is the common name of the client's certificate, if the connection has TLS.
pub fn welcome(
    frame: Frame,
    certificate: Option<&str>,
    acl: &Acl,
    generated: impl FnOnce() -> String,
) -> Result<(AcceptedClient, ClientProperties), Rejection> {
    let Frame::Other(packet) = frame else {
        return reject(ConnectReturnCode::ProtocolError, "the first packet must be CONNECT");
    };
    let Packet::Connect(connect, will, login) = *packet else {
        return reject(ConnectReturnCode::ProtocolError, "the first packet must be CONNECT");
    };
    let identity = identify(certificate, login.as_ref())?;
    if !acl.knows(&identity) {
        return reject(ConnectReturnCode::NotAuthorized, "this name cannot be an identity");
    }
    check(&connect, will.as_ref())?;
    let properties = connect.properties.as_ref();
    let assigned = connect.client_id.is_empty();
    let client_id = if assigned { generated() } else { connect.client_id.clone() };
    let keep_alive =
        if connect.keep_alive == 0 { LONGEST_KEEP_ALIVE } else { connect.keep_alive.min(LONGEST_KEEP_ALIVE) };
    let window = properties.and_then(|properties| properties.receive_maximum).unwrap_or(u16::MAX);
    let largest = properties.and_then(|properties| properties.max_packet_size);
    let answer = ClientProperties {
        assigned: assigned.then(|| client_id.clone()),
        keep_alive: (keep_alive != connect.keep_alive).then_some(keep_alive),
    };
    let largest = largest.map_or(usize::MAX, |largest| largest as usize);
    Ok((AcceptedClient { identity, client_id, keep_alive, window, largest }, answer))
}

/// The certificate's name is the identity; without TLS the user name is.
fn identify(certificate: Option<&str>, login: Option<&Login>) -> Result<String, Rejection> {
    match (certificate, login) {
        (Some(name), _) => Ok(name.to_owned()),
        (None, Some(login)) if !login.username.is_empty() => Ok(login.username.clone()),
        (None, _) => reject(ConnectReturnCode::BadUserNamePassword, "without TLS a user name is required"),
    }
}

fn check(connect: &Connect, will: Option<&LastWill>) -> Result<(), Rejection> {
    use ConnectReturnCode as Code;
    let properties = connect.properties.as_ref();
    if will.is_some() {
        return reject(Code::ImplementationSpecificError, "this broker does not support wills");
    }
    if properties.is_some_and(|properties| properties.authentication_method.is_some()) {
        return reject(Code::BadAuthenticationMethod, "this broker does not support enhanced authentication");
    }
    if properties.is_some_and(|properties| {
        properties.receive_maximum == Some(0) || properties.max_packet_size == Some(0)
    }) {
        return reject(Code::ProtocolError, "a window or a packet size of zero");
    }
    if connect.client_id.len() > 256 {
        return reject(Code::ClientIdentifierNotValid, "a client id has at most 256 bytes");
    }
    Ok(())
}

/// The client-specific properties of CONNACK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProperties {
    assigned: Option<String>,
    keep_alive: Option<u16>,
}

fn connack(code: ConnectReturnCode, properties: ConnAckProperties) -> BytesMut {
    let mut out = BytesMut::new();
    let packet = ConnAck { session_present: false, code, properties: Some(properties) };
    // Encoding fails only for lengths that these strings do not have; an empty packet then ends the connection.
    let _ = packet.write(&mut out);
    out
}

fn nothing() -> ConnAckProperties {
    ConnAckProperties {
        session_expiry_interval: None,
        receive_max: None,
        max_qos: None,
        retain_available: None,
        max_packet_size: None,
        assigned_client_identifier: None,
        topic_alias_max: None,
        reason_string: None,
        user_properties: Vec::new(),
        wildcard_subscription_available: None,
        subscription_identifiers_available: None,
        shared_subscription_available: None,
        server_keep_alive: None,
        response_information: None,
        server_reference: None,
        authentication_method: None,
        authentication_data: None,
    }
}

/// CONNACK for an accepted client: the broker's capabilities.
pub fn accepted(answer: ClientProperties, limits: &Limits) -> BytesMut {
    connack(
        ConnectReturnCode::Success,
        ConnAckProperties {
            session_expiry_interval: Some(0),
            receive_max: Some(limits.receive_maximum),
            max_qos: Some(1),
            retain_available: Some(0),
            max_packet_size: Some(u32::try_from(limits.max_packet).unwrap_or(u32::MAX)),
            assigned_client_identifier: answer.assigned,
            subscription_identifiers_available: Some(0),
            server_keep_alive: answer.keep_alive,
            ..nothing()
        },
    )
}

/// CONNACK for a rejected client.
pub fn refused(rejection: &Rejection) -> BytesMut {
    connack(
        rejection.code,
        ConnAckProperties { reason_string: Some(rejection.reason.to_owned()), ..nothing() },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rumqttc::v5::mqttbytes::v5::ConnectProperties;

    fn connect(client_id: &str, keep_alive: u16) -> Connect {
        Connect { keep_alive, client_id: client_id.to_owned(), clean_start: true, properties: None }
    }

    fn frame(connect: Connect, will: Option<LastWill>, login: Option<Login>) -> Frame {
        Frame::Other(Box::new(Packet::Connect(connect, will, login)))
    }

    fn ask(frame: Frame, certificate: Option<&str>) -> Result<AcceptedClient, Rejection> {
        let acl = Acl::new("maestro", ["maestro".to_owned()]);
        welcome(frame, certificate, &acl, || "made".to_owned()).map(|(accepted, _)| accepted)
    }

    #[test]
    fn identity_is_the_certificate_name_and_the_user_name_only_without_one() {
        let login = Some(Login { username: "maestro".to_owned(), password: String::new() });
        let accepted = ask(frame(connect("x", 30), None, login.clone()), Some("c1")).unwrap();
        assert_eq!(accepted.identity, "c1");
        assert_eq!(ask(frame(connect("x", 30), None, login), None).unwrap().identity, "maestro");
        let code = ask(frame(connect("x", 30), None, None), None).unwrap_err().code;
        assert_eq!(code, ConnectReturnCode::BadUserNamePassword);
    }

    #[test]
    fn unsupported_feature_is_rejected() {
        let will = LastWill::new("t", "x", rumqttc::v5::mqttbytes::QoS::AtLeastOnce, false, None);
        let code = ask(frame(connect("x", 30), Some(will), None), Some("c1")).unwrap_err().code;
        assert_eq!(code, ConnectReturnCode::ImplementationSpecificError);
        let mut asking = connect("x", 30);
        asking.properties = Some(ConnectProperties {
            authentication_method: Some("x".to_owned()),
            ..ConnectProperties::new()
        });
        let code = ask(frame(asking, None, None), Some("c1")).unwrap_err().code;
        assert_eq!(code, ConnectReturnCode::BadAuthenticationMethod);
        let code = ask(frame(connect("x", 30), None, None), Some("+")).unwrap_err().code;
        assert_eq!(code, ConnectReturnCode::NotAuthorized);
        assert_eq!(ask(Frame::Disconnect(0), Some("c1")).unwrap_err().code, ConnectReturnCode::ProtocolError);
    }

    #[test]
    fn client_without_an_id_gets_one_and_keep_alive_is_never_disabled() {
        let accepted = ask(frame(connect("", 0), None, None), Some("c1")).unwrap();
        assert_eq!((accepted.client_id.as_str(), accepted.keep_alive), ("made", LONGEST_KEEP_ALIVE));
    }
}
