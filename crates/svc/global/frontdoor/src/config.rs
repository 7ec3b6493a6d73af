//! Front Door's configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use aro_pki::IdentityPaths;
use aro_runtime::{ByteSize, Period, Problems, Section};

use crate::origin::{LARGEST_DOCUMENT, OriginUrl};

aro_runtime::section! {
    /// Front Door: the public face of the clusters' OIDC documents.
    pub struct FrontdoorConfig in "frontdoor" {
        /// Where it listens, with TLS if there is a certificate.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8446)),
        /// Its certificate (PEM). Without it connections are plain, which is allowed on loopback only.
        pub cert_file: Option<PathBuf> = None,
        /// The certificate's key (PEM).
        pub key_file: Option<PathBuf> = None,
        /// How often the certificate files are checked; a rotated certificate is used from the next connection on.
        pub reread: Period = Period::secs(10),
        /// Where the documents are: a static website such as "https://account.z33.web.core.windows.net", or a container such
        /// as "https://account.blob.core.windows.net/$web". The role does not start without it.
        pub origin: Option<String> = None,
        /// Connect to this address instead of the one that the origin's name resolves to.
        pub connect_to: Option<SocketAddr> = None,
        /// The authorities of the origin's certificate (PEM). Required for an origin with https.
        pub ca_file: Option<PathBuf> = None,
        /// How long a request to the origin may take.
        pub origin_timeout: Period = Period::secs(10),
        /// Requests to the origin at once; further ones wait.
        pub max_origin_requests: usize = 64,
        /// How long a document is served without asking the origin.
        pub max_age: Period = Period::secs(300),
        /// How long a document is served after that while the origin fails.
        pub stale_if_error: Period = Period::secs(86_400),
        /// How much memory documents may take.
        pub cache: ByteSize = ByteSize::mib(64),
        /// How many connections are served at once; more wait for a while.
        pub max_connections: usize = 4096,
        /// How long a connection may take to send its request headers.
        pub header_timeout: Period = Period::secs(15),
        /// How long requests under way may take to finish when the process stops.
        pub drain: Period = Period::secs(15),
    }
}

impl FrontdoorConfig {
    /// The files of the listener's TLS identity; `None` for plain connections.
    pub(crate) fn tls(&self) -> Option<IdentityPaths> {
        let (certificate, key) = (self.cert_file.clone()?, self.key_file.clone()?);
        Some(IdentityPaths { certificate, key, bundle: None })
    }
}

impl Section for FrontdoorConfig {
    fn examine(&self, problems: &mut Problems) {
        match (&self.cert_file, &self.key_file) {
            (Some(_), None) => problems.add("cert_file", "goes together with key_file: set both, or none"),
            (None, Some(_)) => problems.add("key_file", "goes together with cert_file: set both, or none"),
            _ => {}
        }
        if self.tls().is_none() && !self.listen.ip().is_loopback() {
            problems.add(
                "listen",
                "is not a loopback address: without TLS the keys of clusters can be replaced on their way. Listen on 127.0.0.1, or set cert_file and key_file",
            );
        }
        if let Some(origin) = &self.origin {
            match OriginUrl::parse(origin) {
                None => problems.add("origin", "must be http(s)://host[:port][/container]"),
                Some(url) if url.tls && self.ca_file.is_none() => {
                    problems.add("ca_file", "is required for an origin with https");
                }
                Some(_) => {}
            }
        }
        for (key, value) in
            [("max_origin_requests", self.max_origin_requests), ("max_connections", self.max_connections)]
        {
            if value == 0 {
                problems.add(key, "must be at least 1");
            }
        }
        if self.cache.get() < LARGEST_DOCUMENT as u64 {
            problems.add("cache", "must be at least 1MiB");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_endanger_the_documents_are_refused() {
        let default = FrontdoorConfig::default;
        assert!(default().check().is_ok());
        let open = FrontdoorConfig { listen: "0.0.0.0:8446".parse().unwrap(), ..default() };
        assert!(open.check().is_err());
        let half = FrontdoorConfig { cert_file: Some("c.pem".into()), ..default() };
        assert!(half.check().is_err());
        let unverified = FrontdoorConfig { origin: Some("https://a.example.com".to_owned()), ..default() };
        assert!(unverified.clone().check().is_err());
        assert!(FrontdoorConfig { ca_file: Some("ca.pem".into()), ..unverified }.check().is_ok());
    }
}
