//! The configuration of embedded Kubernetes.

use std::net::{Ipv4Addr, SocketAddr};

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
        /// How long a node may be silent before it counts as lost.
        pub node_grace: Period = Period::secs(50),
        /// How many events per resource a watch may fall behind before it has to list again.
        pub watch_history: usize = 16_384,
        /// How large a request body may be.
        pub max_body: ByteSize = ByteSize::mib(3),
        /// How many connections are served at once; more wait to be accepted.
        pub max_connections: usize = 20_000,
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
        if self.domain.split('.').any(|label| !is_name(label)) {
            problems.add("domain", "must be a DNS name such as \"kube.localhost\"");
        }
        if self.watch_history == 0 {
            problems.add("watch_history", "must be at least 1");
        }
        if self.max_connections == 0 {
            problems.add("max_connections", "must be at least 1");
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
