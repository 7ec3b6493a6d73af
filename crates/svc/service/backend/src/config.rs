//! The backend's configuration.

use aro_net::HostPort;
use aro_runtime::{Period, Problems, Section};

aro_runtime::section! {
    /// The resource provider's backend.
    pub struct BackendConfig in "backend" {
        /// Where Clusters Service is, `host:port`.
        pub clusters_service: String = "clusters-service.cluster-service.svc:8000".to_owned(),
        /// How long one call to Clusters Service may take.
        pub call_deadline: Period = Period::secs(10),
        /// How long one request to the event feed waits for an event.
        pub event_wait: Period = Period::secs(30),
        /// Into how many shards the work is divided. An existing lease keeps its number.
        pub shards: usize = 32,
        /// A replica that does not renew its lease for so long is dead; the others take its shards.
        pub lease: Period = Period::secs(4),
        /// How many resources of each kind are worked on at once.
        pub concurrency: usize = 64,
        /// How long an update may take. Creation and deletion have deadlines of their own in their documents.
        pub update_deadline: Period = Period::secs(3600),
        /// How long a deletion waits for a create that may still be on its way to Clusters Service.
        pub create_grace: Period = Period::secs(15),
        /// How often clusters without a resource are looked for in Clusters Service.
        pub sweep_period: Period = Period::secs(3600),
        /// How old such a cluster must be before it is deleted.
        pub orphan_age: Period = Period::secs(3600),
    }
}

impl Section for BackendConfig {
    fn examine(&self, problems: &mut Problems) {
        if HostPort::parse(&self.clusters_service).is_none() {
            problems.add("clusters_service", "must be host:port");
        }
        for (key, value) in [("shards", self.shards), ("concurrency", self.concurrency)] {
            if value == 0 {
                problems.add(key, "must be at least 1");
            }
        }
        let periods = [
            ("call_deadline", self.call_deadline),
            ("event_wait", self.event_wait),
            ("lease", self.lease),
            ("sweep_period", self.sweep_period),
        ];
        for (key, value) in periods {
            if value.get().is_zero() {
                problems.add(key, "must be longer than zero");
            }
        }
        if self.create_grace.get() < self.call_deadline.get() {
            problems.add(
                "create_grace",
                "must be at least call_deadline: a create may be on its way for so long",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_is_not_shorter_than_a_call() {
        assert!(BackendConfig::default().check().is_ok());
        let short = BackendConfig { create_grace: Period::secs(1), ..BackendConfig::default() };
        assert!(short.check().unwrap_err().to_string().contains("create_grace"));
        let bad =
            BackendConfig { clusters_service: "nowhere".to_owned(), shards: 0, ..BackendConfig::default() };
        assert!(bad.check().is_err());
    }
}
