//! Handles the packets of an accepted client. No I/O: responses go to its outbox.

use std::sync::Arc;

use bytes::Bytes;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    Packet, PubAck, PubAckReason, SubAck, Subscribe, SubscribeReasonCode, UnsubAck, UnsubAckReason,
    Unsubscribe,
};

use aro_mqtt::wire::{self, Frame, PublishFrame};

use crate::handshake::AcceptedClient;
use crate::hub::Hub;
use crate::outbox::{Outbox, Publication, QUOTA_EXCEEDED};
use crate::properties;
use crate::router::Subscriber;
use crate::topics::{Filter, is_topic};

/// Reasons to disconnect.
const PROTOCOL_ERROR: u8 = 0x82;
const TOPIC_INVALID: u8 = 0x90;
const RETAIN_NOT_SUPPORTED: u8 = 0x9a;
const QUALITY_NOT_SUPPORTED: u8 = 0x9b;

/// Filters in one packet.
const MOST_FILTERS: usize = 1000;

/// How the connection goes on after a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Continue,
    /// The client sent DISCONNECT.
    Gone,
    /// The connection ends with this reason.
    End(u8),
}

/// An accepted client.
pub struct Session {
    hub: Arc<Hub>,
    accepted: AcceptedClient,
    pub outbox: Arc<Outbox>,
    /// A subscriber of this client whose queue is long: this client is throttled.
    pub throttled_by: Option<Arc<Outbox>>,
    filters: Vec<Filter>,
}

impl Session {
    /// Registers the client, unless its identity has too many. Dropping this unregisters it.
    pub fn new(hub: Arc<Hub>, accepted: AcceptedClient) -> Option<Self> {
        let outbox =
            hub.register(&accepted.identity, &accepted.client_id, accepted.window, accepted.largest)?;
        Some(Self { hub, accepted, outbox, throttled_by: None, filters: Vec::new() })
    }

    /// Handles a packet.
    pub fn handle(&mut self, frame: Frame) -> Next {
        match frame {
            Frame::Publish(publish) => self.publish(&publish).map_or_else(Next::End, |()| Next::Continue),
            Frame::Ack(packet_id, _) => {
                // A packet id that is not in flight is the client's error, and harmless.
                self.outbox.acknowledged(packet_id);
                Next::Continue
            }
            Frame::Disconnect(_) => Next::Gone,
            Frame::Other(packet) => match *packet {
                Packet::Subscribe(subscribe) => self.subscribe(&subscribe),
                Packet::Unsubscribe(unsubscribe) => self.unsubscribe(&unsubscribe),
                Packet::PingReq(_) => {
                    self.outbox.answer(|out| out.extend_from_slice(&[0xd0, 0]));
                    Next::Continue
                }
                _ => Next::End(PROTOCOL_ERROR),
            },
        }
    }

    fn publish(&mut self, publish: &PublishFrame) -> Result<(), u8> {
        let topic = publish.topic();
        if publish.retain {
            return Err(RETAIN_NOT_SUPPORTED);
        }
        if publish.qos > 1 {
            return Err(QUALITY_NOT_SUPPORTED);
        }
        if !is_topic(topic) {
            return Err(TOPIC_INVALID);
        }
        properties::check(&publish.body)?;
        let reason = if self.hub.acl.may_publish(&self.accepted.identity, topic) {
            let publication = Publication {
                topic: topic.to_owned(),
                // A copy, so that a small queued message does not keep the whole read buffer.
                body: Bytes::copy_from_slice(&publish.body),
                qos: publish.qos,
            };
            let reach = self.hub.publish(self.outbox.id, publication);
            // Servers are never throttled: one slow agent would block them for all others.
            if !self.hub.acl.is_server(&self.accepted.identity) {
                self.throttled_by = reach.crowded;
            }
            match reach.count {
                0 => PubAckReason::NoMatchingSubscribers,
                _ => PubAckReason::Success,
            }
        } else {
            self.hub.reject(&self.accepted.identity, "publish", topic);
            PubAckReason::NotAuthorized
        };
        if publish.qos == 0 {
            return Ok(());
        }
        if reason == PubAckReason::Success {
            self.outbox.answer(|out| wire::put_ack(out, publish.packet_id));
        } else {
            self.answer(&Packet::PubAck(PubAck { pkid: publish.packet_id, reason, properties: None }));
        }
        Ok(())
    }

    fn subscribe(&mut self, subscribe: &Subscribe) -> Next {
        if subscribe.filters.len() > MOST_FILTERS {
            return Next::End(QUOTA_EXCEEDED);
        }
        if subscribe.properties.as_ref().is_some_and(|properties| properties.id.is_some()) {
            return Next::End(0xa1);
        }
        let mut codes = Vec::with_capacity(subscribe.filters.len());
        for asked in &subscribe.filters {
            let Some(filter) = Filter::parse(&asked.path) else {
                codes.push(SubscribeReasonCode::TopicFilterInvalid);
                continue;
            };
            if filter.share().is_some() && asked.nolocal {
                return Next::End(PROTOCOL_ERROR);
            }
            if !self.hub.acl.may_subscribe(&self.accepted.identity, &filter) {
                self.hub.reject(&self.accepted.identity, "subscribe", &asked.path);
                codes.push(SubscribeReasonCode::NotAuthorized);
                continue;
            }
            let known = self.filters.contains(&filter);
            if !known && self.filters.len() >= self.hub.limits.subscriptions {
                codes.push(SubscribeReasonCode::QuotaExceeded);
                continue;
            }
            let qos = u8::from(asked.qos != QoS::AtMostOnce);
            let subscriber = Subscriber { outbox: self.outbox.clone(), qos, no_local: asked.nolocal };
            self.hub.subscribe(&filter, subscriber);
            if !known {
                self.filters.push(filter);
            }
            let granted = if qos == 0 { QoS::AtMostOnce } else { QoS::AtLeastOnce };
            codes.push(SubscribeReasonCode::Success(granted));
        }
        self.answer(&Packet::SubAck(SubAck { pkid: subscribe.pkid, return_codes: codes, properties: None }));
        Next::Continue
    }

    fn unsubscribe(&mut self, unsubscribe: &Unsubscribe) -> Next {
        if unsubscribe.filters.len() > MOST_FILTERS {
            return Next::End(QUOTA_EXCEEDED);
        }
        let mut reasons = Vec::with_capacity(unsubscribe.filters.len());
        for text in &unsubscribe.filters {
            reasons.push(match Filter::parse(text) {
                Some(filter) if self.hub.unsubscribe(&filter, &self.outbox) => {
                    self.filters.retain(|known| *known != filter);
                    UnsubAckReason::Success
                }
                Some(_) => UnsubAckReason::NoSubscriptionExisted,
                None => UnsubAckReason::TopicFilterInvalid,
            });
        }
        let answer = UnsubAck { pkid: unsubscribe.pkid, reasons, properties: None };
        self.answer(&Packet::UnsubAck(answer));
        Next::Continue
    }

    fn answer(&self, packet: &Packet) {
        self.outbox.answer(|out| {
            // These packets contain nothing that cannot be encoded.
            let _ = packet.write(out, None);
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hub.unregister(&self.accepted.identity, &self.accepted.client_id, &self.outbox, &self.filters);
    }
}

#[cfg(test)]
mod tests;
