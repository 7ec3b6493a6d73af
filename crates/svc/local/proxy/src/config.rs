//! The proxy's configuration.

use std::net::{Ipv4Addr, SocketAddr};

use aro_runtime::{ByteSize, Period, Problems, Section};

use crate::tunnels::Tunnels;

aro_runtime::section! {
    /// The region's CONNECT proxy.
    pub struct ProxyConfig in "proxy" {
        /// Where it listens. Plain HTTP: what is tunnelled has TLS of its own.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8442)),
        /// Set this to listen on another address than loopback. The proxy authenticates no client: every host that can reach
        /// the address can then use the local cloud and the region's clusters through it.
        pub expose_to_unauthenticated_clients: bool = false,
        /// The listener that answers for the Azure host names.
        pub azure_local: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8440)),
        /// The listener of Front Door; names in the region's zones that lead to a Front Door endpoint are relayed to it. Not
        /// set: they are refused.
        pub front_door: Option<SocketAddr> = None,
        /// The region's DNS server; names in its zones are relayed.
        pub dns: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 5353)),
        /// Listeners behind the addresses in the region's zones: "443=127.0.0.1:6443" for a port of every address,
        /// "192.0.2.1:443=127.0.0.1:6443" for one address.
        pub tunnels: Vec<String> = vec!["443=127.0.0.1:6443".to_owned()],
        /// Connections served at once; further ones are closed.
        pub max_connections: usize = 2000,
        /// Connections of one address; further ones are closed. Loopback, which all clients on this machine share, is exempt.
        pub max_connections_per_peer: usize = 200,
        /// The largest request head accepted.
        pub max_header: ByteSize = ByteSize::bytes(16 * 1024),
        /// How long a connection may take to send its request head.
        pub header_timeout: Period = Period::secs(10),
        /// How long a name may take to look up, and a destination to connect.
        pub connect_timeout: Period = Period::secs(5),
        /// How long a tunnel may carry nothing.
        pub idle_timeout: Period = Period::secs(1800),
        /// How long open tunnels may go on when the process stops.
        pub drain: Period = Period::secs(10),
    }
}

impl Section for ProxyConfig {
    fn examine(&self, problems: &mut Problems) {
        if !self.listen.ip().is_loopback() && !self.expose_to_unauthenticated_clients {
            problems.add(
                "listen",
                "is not a loopback address: the proxy authenticates no client. Listen on 127.0.0.1, or set proxy.expose_to_unauthenticated_clients = true if every host that can reach this address may use the local cloud",
            );
        }
        if let Err(error) = Tunnels::parse(&self.tunnels) {
            problems.add("tunnels", error.to_string());
        }
        for (key, value) in [
            ("max_connections", self.max_connections),
            ("max_connections_per_peer", self.max_connections_per_peer),
        ] {
            if value == 0 {
                problems.add(key, "must be at least 1");
            }
        }
        if !(8 * 1024..=1024 * 1024).contains(&self.max_header.get()) {
            problems.add("max_header", "must be between 8KiB and 1MiB");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_beyond_loopback_needs_the_flag_that_names_the_risk() {
        let open = ProxyConfig { listen: "0.0.0.0:8442".parse().unwrap(), ..ProxyConfig::default() };
        assert!(open.clone().check().is_err());
        assert!(ProxyConfig { expose_to_unauthenticated_clients: true, ..open }.check().is_ok());
        assert!(ProxyConfig::default().check().is_ok());
        assert!(ProxyConfig { tunnels: vec!["x".to_owned()], ..ProxyConfig::default() }.check().is_err());
    }
}
