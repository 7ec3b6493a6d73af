//! The configuration of embedded Kubernetes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use aro_runtime::{ByteSize, Period, Problems, Section};

aro_runtime::section! {
    /// Embedded Kubernetes: logical clusters behind one listener.
    pub struct KubeConfig in "kube" {
        /// Where the API servers listen. TLS always; the name a client asks for tells which cluster it means.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 6443)),
        /// The clusters that are there from the start. Made when they are missing.
        pub clusters: Vec<String> = vec!["svc".to_owned(), "mgmt-1".to_owned()],
        /// Clusters are reached as `<name>.<domain>`, by TLS server name.
        pub domain: String = "kube.localhost".to_owned(),
        /// Whether the workload controllers run: Deployments, StatefulSets, Jobs, Services, the scheduler. Off where other controllers run.
        pub workloads: bool = true,
        /// How many virtual nodes each of these clusters has. What is bound to them runs in this process, or is simulated.
        pub nodes: u32 = 1,
        /// Directories of this machine that pods may mount as hostPath volumes, with everything below. None by default: containers
        /// run with the permissions of this process.
        pub host_paths: Vec<PathBuf> = Vec::new(),
        /// How long a node may be silent before it counts as lost.
        pub node_grace: Period = Period::secs(50),
        /// How many events per resource a watch may fall behind before it has to list again.
        pub watch_history: usize = 16_384,
        /// How many bytes of events are kept for watches, of all clusters together. Beyond that the longest histories are cut.
        pub watch_history_bytes: ByteSize = ByteSize::mib(256),
        /// How long events are kept for watches and for lists in pages. A watch from before that has to list again.
        pub watch_history_age: Period = Period::secs(600),
        /// How large a request body may be.
        pub max_body: ByteSize = ByteSize::mib(3),
        /// How long a request body may take to arrive.
        pub body_timeout: Period = Period::secs(30),
        /// How many bytes of request bodies may be in memory at once; a request beyond that gets 429. One cluster may use a quarter of it.
        pub body_budget: ByteSize = ByteSize::mib(256),
        /// How many connections are served at once; more wait for a while.
        pub max_connections: usize = 20_000,
        /// How many connections may be in their TLS handshake at once; a further one ends the oldest handshake.
        pub max_handshakes: usize = 1024,
        /// How many connections one address may have; further ones are closed.
        pub max_connections_per_peer: usize = 1000,
        /// The same for a loopback address, which all clients on this machine share.
        pub max_loopback_connections: usize = 20_000,
        /// How many requests one HTTP/2 connection may have at once, watches included.
        pub max_streams: u32 = 250,
        /// How long a connection may take for its handshake and to send its request headers.
        pub header_timeout: Period = Period::secs(15),
        /// How long requests under way may take to finish when the process stops. Watches end at once.
        pub drain: Period = Period::secs(20),
    }
}

impl Section for KubeConfig {
    fn examine(&self, problems: &mut Problems) {
        if self.nodes > 0 && !self.workloads {
            problems.add("nodes", "must be 0 when kube.workloads is off: nothing would be scheduled to them");
        }
        if self.nodes > 10_000 {
            problems.add("nodes", "must be at most 10000");
        }
        for name in &self.clusters {
            if !is_name(name) {
                problems
                    .add("clusters", "must be DNS labels: lower-case letters, digits and dashes, at most 63");
            }
        }
        let mut sorted = self.clusters.clone();
        sorted.sort();
        sorted.dedup();
        if sorted.len() != self.clusters.len() {
            problems.add("clusters", "must not name a cluster twice");
        }
        if self.host_paths.iter().any(|path| !path.is_absolute()) {
            problems.add("host_paths", "must be absolute paths");
        }
        if self.domain.split('.').any(|label| !is_name(label)) {
            problems.add("domain", "must be a DNS name such as \"kube.localhost\"");
        }
        if self.watch_history == 0 {
            problems.add("watch_history", "must be at least 1");
        }
        for (key, value) in [
            ("max_connections", self.max_connections),
            ("max_handshakes", self.max_handshakes),
            ("max_connections_per_peer", self.max_connections_per_peer),
            ("max_loopback_connections", self.max_loopback_connections),
            ("max_streams", self.max_streams as usize),
        ] {
            if value == 0 {
                problems.add(key, "must be at least 1");
            }
        }
        if self.body_budget.get() < self.max_body.get() {
            problems.add("body_budget", "must be at least max_body");
        }
        if self.max_body.get() == 0 {
            problems.add("max_body", "must be at least 1B");
        }
    }
}

/// A DNS label.
pub(crate) fn is_name(name: &str) -> bool {
    let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= 63
        && name.chars().all(sound)
        && !name.starts_with('-')
        && !name.ends_with('-')
}
