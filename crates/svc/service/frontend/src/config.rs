//! The frontend's configuration.

use std::net::{Ipv4Addr, SocketAddr};

use aro_net::HostPort;
use aro_runtime::{ByteSize, Period, Problems, Section};

aro_runtime::section! {
    /// The ARM resource provider's front end.
    pub struct FrontendConfig in "frontend" {
        /// Where the ARM API listens. Plain HTTP: TLS ends at the ingress. In a region, where `--debug-ports` opens it.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)),
        /// The Azure region this instance serves; every resource gets it, regardless of its body. Not set: `region.location`.
        pub location: Option<String> = None,
        /// Set this when an authenticating ingress is the only way to reach `listen`. Required for any address but
        /// loopback, because the identity headers of a request are trusted.
        pub behind_ingress: bool = false,
        /// Where Clusters Service is, `host:port`: it offers the releases and is asked before a cluster is accepted. Empty:
        /// a built-in list of releases, and every valid cluster is accepted. A region sets it.
        pub clusters_service: String = String::new(),
        /// How large a request body may be.
        pub max_body: ByteSize = ByteSize::mib(4),
        /// How long a request body may take to arrive.
        pub body_timeout: Period = Period::secs(30),
        /// How many bytes of request bodies may be in memory at once; a request beyond that gets 503 and retries.
        pub body_budget: ByteSize = ByteSize::mib(128),
        /// How much memory rendered answers may take, so that a resource read often is rendered once.
        pub rendered_cache: ByteSize = ByteSize::mib(32),
        /// How many connections are served at once; more wait for a while.
        pub max_connections: usize = 10_000,
        /// How long a connection may take to send its request headers.
        pub header_timeout: Period = Period::secs(15),
        /// How long requests under way may take to finish when the process stops.
        pub drain: Period = Period::secs(31),
        /// Accept data-plane operator identities in the cluster's own identity map, as newer command-line
        /// extensions send them. The published rule refuses them.
        pub allow_data_plane_identities: bool = false,
    }
}

impl Section for FrontendConfig {
    fn examine(&self, problems: &mut Problems) {
        if !self.listen.ip().is_loopback() && !self.behind_ingress {
            problems.add(
                "listen",
                "is not a loopback address: the front end trusts the identity headers of its callers. Listen on 127.0.0.1, or set frontend.behind_ingress = true if an authenticating ingress is the only way in",
            );
        }
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if self.location.as_deref().is_some_and(|name| name.is_empty() || !name.chars().all(word)) {
            problems.add("location", "must be an Azure region name such as \"uksouth\"");
        }
        if !self.clusters_service.is_empty() && HostPort::parse(&self.clusters_service).is_none() {
            problems.add("clusters_service", "must be host:port, or empty");
        }
        if self.max_connections == 0 {
            problems.add("max_connections", "must be at least 1");
        }
        if self.max_body.get() == 0 {
            problems.add("max_body", "must be at least 1B");
        }
        if self.body_budget.get() < self.max_body.get() {
            problems.add("body_budget", "must be at least max_body");
        }
    }
}
