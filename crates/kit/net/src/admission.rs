//! Which connections a listener takes: a share for each peer, slots for handshakes, and room for established connections.
//!
//! A connection passes two stages. Until its handshake is done it is [`Pending`] and occupies a handshake slot; afterwards it
//! is [`Established`] and counts as a connection. The stages have limits of their own: clients that never finish a handshake
//! do not use up the room of those that do. When all handshake slots are taken, the oldest pending connection is evicted for
//! the new one: a client that makes progress needs its slot for milliseconds, one that stalls keeps it for seconds.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The limits of one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Established connections at once.
    pub connections: usize,
    /// Connections whose handshake is not done.
    pub handshakes: usize,
    /// Connections of one address, pending ones included; an IPv6 network of 64 bits is one address.
    pub per_peer: usize,
    /// The same for loopback addresses: many clients of one machine share them.
    pub per_loopback_peer: usize,
}

/// Decides which connections of a listener are served.
#[derive(Debug, Clone)]
pub struct Admission(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: AdmissionLimits,
    established: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    peers: HashMap<IpAddr, usize>,
    /// By age. Dropping the sender evicts the connection.
    pending: BTreeMap<u64, oneshot::Sender<()>>,
    next: u64,
}

impl Admission {
    /// An admission with these limits; a limit of 0 counts as 1.
    pub fn new(limits: AdmissionLimits) -> Self {
        let established = Arc::new(Semaphore::new(limits.connections.clamp(1, Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared { limits, established, state: Mutex::default() }))
    }

    /// A handshake slot for a new connection; evicts the oldest pending connection if there is none left. `None`: this peer
    /// has as many connections as it may have.
    pub fn admit(&self, peer: IpAddr) -> Option<Pending> {
        let limits = &self.0.limits;
        let most = if peer.to_canonical().is_loopback() { limits.per_loopback_peer } else { limits.per_peer };
        let peer = network_of(peer);
        let (sender, evicted) = oneshot::channel();
        let mut state = self.0.state();
        let count = state.peers.entry(peer).or_default();
        if *count >= most.max(1) {
            return None;
        }
        *count += 1;
        while state.pending.len() >= limits.handshakes.max(1) {
            state.pending.pop_first();
        }
        let id = state.next;
        state.next += 1;
        state.pending.insert(id, sender);
        drop(state);
        let slot = Slot { shared: self.0.clone(), id };
        let peer = PeerCount { shared: self.0.clone(), peer };
        Some(Pending { evicted, slot, peer })
    }

    /// Connections whose handshake is not done.
    pub fn pending(&self) -> usize {
        self.0.state().pending.len()
    }
}

/// The unit that peers are counted by: an IPv6 client has a whole network of addresses.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        other => other,
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection whose handshake is not done. Dropping it frees its slot.
#[derive(Debug)]
pub struct Pending {
    evicted: oneshot::Receiver<()>,
    slot: Slot,
    peer: PeerCount,
}

#[derive(Debug)]
struct Slot {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.state().pending.remove(&self.id);
    }
}

#[derive(Debug)]
struct PeerCount {
    shared: Arc<Shared>,
    peer: IpAddr,
}

impl Drop for PeerCount {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(count) = state.peers.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                state.peers.remove(&self.peer);
            }
        }
    }
}

impl Pending {
    /// Returns when a newer connection needs the slot: this one has to end.
    pub async fn evicted(&mut self) {
        // The sender sends nothing; it is dropped.
        let _ = (&mut self.evicted).await;
    }

    /// Waits for room among the established connections, in the handshake slot. `None`: evicted meanwhile.
    pub async fn establish(mut self) -> Option<Established> {
        let permits = self.slot.shared.established.clone();
        tokio::select! {
            biased;
            // The semaphore is never closed.
            permit = permits.acquire_owned() => Some(Established { _permit: permit.ok()?, _peer: self.peer }),
            _ = &mut self.evicted => None,
        }
    }

    /// The same without waiting. `None`: there is no room.
    pub fn try_establish(self) -> Option<Established> {
        let permit = self.slot.shared.established.clone().try_acquire_owned().ok()?;
        Some(Established { _permit: permit, _peer: self.peer })
    }
}

/// A connection with a completed handshake. Dropping it frees its room.
#[derive(Debug)]
pub struct Established {
    _permit: OwnedSemaphorePermit,
    _peer: PeerCount,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LIMITS: AdmissionLimits =
        AdmissionLimits { connections: 2, handshakes: 2, per_peer: 2, per_loopback_peer: 100 };
    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn a_full_set_of_handshake_slots_evicts_the_oldest_and_not_the_newest() {
        let admission = Admission::new(LIMITS);
        let mut first = admission.admit(LOCAL).unwrap();
        let mut second = admission.admit(LOCAL).unwrap();
        let third = admission.admit(LOCAL).unwrap();
        first.evicted().await;
        let kept = tokio::time::timeout(Duration::from_millis(20), second.evicted()).await;
        assert!(kept.is_err(), "the second is not the oldest");
        assert_eq!(admission.pending(), 2);
        drop((first, second, third));
        assert_eq!(admission.pending(), 0);
    }

    #[tokio::test]
    async fn pending_handshakes_take_no_room_of_established_connections() {
        let admission = Admission::new(LIMITS);
        let stalled: Vec<Pending> = (0..50).filter_map(|_| admission.admit(LOCAL)).collect();
        let one = admission.admit(LOCAL).unwrap().try_establish().expect("room for one");
        let two = admission.admit(LOCAL).unwrap().try_establish().expect("room for two");
        assert!(admission.admit(LOCAL).unwrap().try_establish().is_none(), "the limit holds");
        let waiting = admission.admit(LOCAL).unwrap();
        drop(one);
        assert!(waiting.establish().await.is_some(), "room that is freed goes to the next");
        drop((stalled, two));
    }

    #[test]
    fn one_peer_has_a_limited_share_and_gets_it_back() {
        let admission = Admission::new(LIMITS);
        let far: IpAddr = "192.0.2.1".parse().unwrap();
        let held = [admission.admit(far).unwrap(), admission.admit(far).unwrap()];
        assert!(admission.admit(far).is_none());
        assert!(admission.admit("::ffff:192.0.2.1".parse().unwrap()).is_none(), "the same peer, mapped");
        assert!(admission.admit("192.0.2.2".parse().unwrap()).is_some());
        let [one, _two] = held;
        drop(one.try_establish());
        assert!(admission.admit(far).is_some());
    }

    #[test]
    fn an_ipv6_network_is_one_peer() {
        let admission = Admission::new(LIMITS);
        let held: Vec<_> =
            ["2001:db8::1", "2001:db8::2"].map(|ip| admission.admit(ip.parse().unwrap())).into();
        assert!(held.iter().all(Option::is_some));
        assert!(admission.admit("2001:db8::3".parse().unwrap()).is_none());
        assert!(admission.admit("2001:db8:0:1::1".parse().unwrap()).is_some());
    }
}
