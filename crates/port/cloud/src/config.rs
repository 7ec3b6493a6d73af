//! The `[cloud]` section.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use aro_runtime::{Period, Problems, Section};
use url::{Host, Url};

aro_runtime::section! {
    /// The cloud that the service runs in: Azure, or its local emulation.
    pub struct CloudConfig in "cloud" {
        /// The base URL of Azure Resource Manager.
        pub endpoint: String = "https://management.azure.com".to_owned(),
        /// The base URL that issues tokens; the tenant is appended.
        pub authority: String = "https://login.microsoftonline.com".to_owned(),
        /// The audience of tokens for Azure Resource Manager.
        pub audience: String = "https://management.azure.com/".to_owned(),
        /// Where every cloud host is dialled instead of its own address: the listener of the local emulation. Host names
        /// in TLS and HTTP stay the real ones.
        pub connect_to: Option<SocketAddr> = None,
        /// A PEM file with further trusted authorities. With `connect_to` they are the only ones.
        pub ca_file: Option<PathBuf> = None,
        /// How long one call may take, with all its attempts.
        pub deadline: Period = Period::secs(60),
        /// How long a long-running operation is followed.
        pub operation_deadline: Period = Period::secs(30 * 60),
        /// How many retries are allowed for each 100 calls, beyond a small reserve, so that an outage does not multiply
        /// the load.
        pub retry_budget: u32 = 20,
        /// How many requests a second are sent for one subscription.
        pub requests_per_second: u32 = 50,
    }
}

impl Section for CloudConfig {
    fn examine(&self, problems: &mut Problems) {
        for (key, text) in
            [("endpoint", &self.endpoint), ("authority", &self.authority), ("audience", &self.audience)]
        {
            if let Err(problem) = check_base_url(text) {
                problems.add(key, problem);
            }
        }
        if self.connect_to.is_some_and(|address| address.port() == 0) {
            problems.add("connect_to", "must name a port");
        }
        if self.connect_to.is_some() && self.ca_file.is_none() {
            problems.add(
                "ca_file",
                "must be set with connect_to: public authorities do not sign for the emulation",
            );
        }
        for (key, period) in [("deadline", self.deadline), ("operation_deadline", self.operation_deadline)] {
            if period.get().is_zero() {
                problems.add(key, "must be longer than zero");
            }
        }
        if self.operation_deadline < self.deadline {
            problems.add("operation_deadline", "must be at least deadline");
        }
        if self.retry_budget > 100 {
            problems.add("retry_budget", "must be at most 100: one retry for each call");
        }
        if self.requests_per_second == 0 {
            problems.add("requests_per_second", "must be at least 1");
        }
    }
}

/// Tokens travel in clear text on HTTP, so that only a loopback address may use it.
fn check_base_url(text: &str) -> Result<(), &'static str> {
    let url = Url::parse(text).map_err(|_| "must be a URL such as \"https://management.azure.com\"")?;
    let loopback = match url.host() {
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Domain(_)) => false,
        None => return Err("must name a host"),
    };
    if url.scheme() != "https" && !(url.scheme() == "http" && loopback) {
        return Err("must begin with https://");
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err("must have no query, fragment or user");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: impl FnOnce(&mut CloudConfig)) -> String {
        let mut config = CloudConfig::default();
        change(&mut config);
        config.check().err().map(|problems| problems.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_defaults_are_those_of_azure() {
        let config = CloudConfig::default().check().unwrap();
        assert_eq!(config.endpoint, "https://management.azure.com");
    }

    #[test]
    fn a_token_is_never_sent_in_clear_text_beyond_loopback() {
        assert!(
            problems(|config| config.endpoint = "http://management.azure.com".into()).contains("https://")
        );
        assert_eq!(problems(|config| config.endpoint = "http://127.0.0.1:8440".into()), "");
        assert!(problems(|config| config.authority = "login".into()).contains("cloud.authority"));
        assert!(problems(|config| config.audience = "https://a.b/?c".into()).contains("cloud.audience"));
    }

    #[test]
    fn the_emulation_needs_its_own_authority() {
        let local = Some(([127, 0, 0, 1], 8440).into());
        assert!(problems(|config| config.connect_to = local).contains("cloud.ca_file"));
        let complete = |config: &mut CloudConfig| {
            config.connect_to = local;
            config.ca_file = Some("ca.pem".into());
        };
        assert_eq!(problems(complete), "");
    }

    #[test]
    fn limits_of_zero_are_refused() {
        assert!(problems(|config| config.requests_per_second = 0).contains("at least 1"));
        assert!(problems(|config| config.deadline = Period::secs(0)).contains("cloud.deadline"));
        assert!(problems(|config| config.operation_deadline = Period::secs(1)).contains("at least deadline"));
    }
}
