//! The role's configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use aro_event_service::Target;
use aro_net::HostPort;
use aro_ocm::names::Environment;
use aro_pki::{HalfGiven, IdentityPaths};
use aro_runtime::{Period, Problems, Section};
use url::Url;

aro_runtime::section! {
    /// Clusters Service.
    pub struct ClustersServiceConfig in "clusters_service" {
        /// The address of the REST API. It does not authenticate: keep it on loopback or inside a mesh.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8000)),
        /// Where `aro up --debug-ports` opens the REST API, which does not authenticate callers. Loopback only.
        pub debug_listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8001)),
        /// Set this if a mesh or a network policy protects `listen`. Required for any address but loopback.
        pub behind_mesh: bool = false,
        /// The environment's name: part of namespaces and of Maestro's source ids. 1 to 10 lower-case letters and digits.
        pub environment: String = "arohcpdev".to_owned(),
        /// The region of clusters that are accepted. Not set: every region that has a provision shard.
        pub region: Option<String> = None,
        /// How many clusters a provision shard takes.
        pub shard_capacity: usize = 100,
        /// How long one step of a pipeline may take before the operation fails with the step's cause.
        pub step_deadline: Period = Period::secs(1800),
        /// How long checks of the customer's resources are repeated before they fail.
        pub check_deadline: Period = Period::secs(900),
        /// Do no work in the cloud and in Maestro: clusters become ready at once. For tests of other roles.
        pub noop: bool = false,
        /// The address of Maestro's gRPC API, `host:port`.
        pub maestro_grpc: String = "maestro.maestro.svc:8090".to_owned(),
        /// The certificate (PEM) for Maestro. Without one the connection is plain.
        pub maestro_cert_file: Option<PathBuf> = None,
        /// The key (PEM) of that certificate.
        pub maestro_key_file: Option<PathBuf> = None,
        /// The authorities (PEM) of Maestro's certificate.
        pub maestro_ca_file: Option<PathBuf> = None,
        /// The update graph that versions are read from, as OpenShift's update service serves it. Not set: the embedded list.
        pub graph_url: Option<String> = None,
        /// How long versions that were read from the graph are used.
        pub graph_cache: Period = Period::secs(3600),
    }
}

impl ClustersServiceConfig {
    /// The environment.
    pub fn environment(&self) -> Result<Environment, String> {
        Environment::parse(&self.environment).map_err(|error| error.to_string())
    }

    /// The files of the TLS identity for Maestro; `None` for a plain connection.
    fn maestro_tls(&self) -> Result<Option<IdentityPaths>, HalfGiven> {
        IdentityPaths::of_settings(
            ("maestro_cert_file", &self.maestro_cert_file),
            ("maestro_key_file", &self.maestro_key_file),
            ("maestro_ca_file", &self.maestro_ca_file),
        )
    }

    /// Maestro's gRPC API.
    pub fn maestro(&self) -> Result<Target, HalfGiven> {
        let credentials = self.maestro_tls()?;
        Ok(Target { address: self.maestro_grpc.clone(), credentials, server_name: None })
    }
}

impl Section for ClustersServiceConfig {
    fn examine(&self, problems: &mut Problems) {
        if !self.listen.ip().is_loopback() && !self.behind_mesh {
            problems.add(
                "listen",
                "is not a loopback address, and the API does not authenticate. Listen on 127.0.0.1, or set clusters_service.behind_mesh = true if a mesh protects it",
            );
        }
        if !self.debug_listen.ip().is_loopback() {
            problems
                .add("debug_listen", "must be a loopback address: debug ports do not authenticate callers");
        }
        if let Err(error) = self.environment() {
            problems.add("environment", error);
        }
        if let Err(half) = self.maestro_tls() {
            problems.add(half.key, half.to_string());
        }
        if HostPort::parse(&self.maestro_grpc).is_none() {
            problems.add("maestro_grpc", "must be host:port");
        }
        if self.shard_capacity == 0 {
            problems.add("shard_capacity", "must be at least 1");
        }
        for (key, period) in [
            ("step_deadline", self.step_deadline),
            ("check_deadline", self.check_deadline),
            ("graph_cache", self.graph_cache),
        ] {
            if period.get().is_zero() {
                problems.add(key, "must not be zero");
            }
        }
        let is_http =
            |text: &String| Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if self.graph_url.as_ref().is_some_and(|text| !is_http(text)) {
            problems.add("graph_url", "must be an http or https URL");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(config: ClustersServiceConfig) -> Vec<String> {
        config.check().err().map(|all| all.iter().map(|one| one.key.clone()).collect()).unwrap_or_default()
    }

    #[test]
    fn unauthenticated_listener_outside_loopback_requires_behind_mesh() {
        assert!(problems(ClustersServiceConfig::default()).is_empty());
        let open = ClustersServiceConfig { listen: ([0, 0, 0, 0], 8000).into(), ..Default::default() };
        assert_eq!(problems(open.clone()), ["clusters_service.listen"]);
        assert!(problems(ClustersServiceConfig { behind_mesh: true, ..open }).is_empty());
    }

    #[test]
    fn names_and_addresses_are_checked() {
        let wrong = ClustersServiceConfig {
            environment: "Not An Environment".to_owned(),
            maestro_grpc: "nohost".to_owned(),
            maestro_cert_file: Some(PathBuf::from("/x")),
            graph_url: Some("ftp://x".to_owned()),
            shard_capacity: 0,
            ..Default::default()
        };
        let mut found = problems(wrong);
        found.sort_unstable();
        let expected = ["environment", "graph_url", "maestro_cert_file", "maestro_grpc", "shard_capacity"];
        assert_eq!(found, expected.map(|key| format!("clusters_service.{key}")));
    }
}
