//! The DNS server's configuration.

use std::net::{Ipv4Addr, SocketAddr};

use aro_runtime::{ByteSize, Period, Problems, Section};

aro_runtime::section! {
    /// The authoritative DNS server of the local cloud's zones.
    pub struct DnsConfig in "dns" {
        /// Where it listens, over UDP and TCP.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 5353)),
        /// The largest datagram sent, whatever a client accepts; larger answers need TCP.
        pub max_datagram: u16 = 1232,
        /// The largest query accepted.
        pub max_query: ByteSize = ByteSize::bytes(4096),
        /// Connections served at once; further ones are closed.
        pub max_connections: usize = 1000,
        /// Connections of one address; further ones are closed. All clients on this machine share the loopback address.
        pub max_connections_per_peer: usize = 100,
        /// How long a connection may take to send a query, and how long it may be idle.
        pub idle_timeout: Period = Period::secs(10),
        /// How much memory the documents of zones and record sets may take; what exceeds it is not served.
        pub zone_memory: ByteSize = ByteSize::mib(256),
    }
}

impl Section for DnsConfig {
    fn examine(&self, problems: &mut Problems) {
        if self.max_datagram < 512 {
            problems.add("max_datagram", "must be at least 512");
        }
        if !(512..=65_535).contains(&self.max_query.get()) {
            problems.add("max_query", "must be between 512B and 65535B");
        }
        for (key, value) in [
            ("max_connections", self.max_connections),
            ("max_connections_per_peer", self.max_connections_per_peer),
        ] {
            if value == 0 {
                problems.add(key, "must be at least 1");
            }
        }
        if self.zone_memory.get() == 0 {
            problems.add("zone_memory", "must be at least 1B");
        }
    }
}
