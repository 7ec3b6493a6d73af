//! The configuration of the local cloud.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use aro_runtime::{ByteSize, Period, Problems, Section};
use uuid::Uuid;

aro_runtime::section! {
    /// The local cloud: ARM, Entra ID, Microsoft Graph and managed identities under Azure's host names.
    pub struct AzureLocalConfig in "azure_local" {
        /// Where it listens, with TLS by the authority in `dir`.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8440)),
        /// Where its authority and the customer's credentials are written. Not set: `azure-local` in the data directory.
        pub dir: Option<PathBuf> = None,
        /// The tenant of the service.
        pub service_tenant: String = "5e2c0000-0000-4000-8000-000000000001".to_owned(),
        /// The subscriptions of the service, as `name=GUID`; the service's principal owns them. A region sets its own.
        pub service_subscriptions: Vec<String> =
            vec!["hcp-dev-svc=5e2c0000-0000-4000-8000-000000000011".to_owned()],
        /// The tenant of the customer.
        pub customer_tenant: String = "c0570000-0000-4000-8000-000000000002".to_owned(),
        /// The customer's subscription, empty at first; the customer's service principal owns it.
        pub customer_subscription: String = "c0570000-0000-4000-8000-000000000012".to_owned(),
        /// Resource providers behind ARM, as `Namespace=http://host:port`; their requests are forwarded with the headers that
        /// ARM adds.
        pub resource_providers: Vec<String> = Vec::new(),
        /// How long long-running operations take.
        pub operation_time: Period = Period::secs(0),
        /// How large a request body may be.
        pub max_body: ByteSize = ByteSize::mib(4),
        /// How many bytes of request bodies may be in memory at once.
        pub body_budget: ByteSize = ByteSize::mib(64),
        /// How long a request body may take to arrive.
        pub body_timeout: Period = Period::secs(30),
        /// How large a blob, or one block of it, may be.
        pub max_blob: ByteSize = ByteSize::mib(64),
        /// How many bytes of blobs an account may hold.
        pub blob_budget: ByteSize = ByteSize::mib(1024),
        /// How long a resource provider may take to answer.
        pub forward_timeout: Period = Period::secs(60),
        /// The region's CONNECT proxy: documents of federated token issuers in the region's zones are fetched through it.
        pub proxy: Option<SocketAddr> = None,
        /// Set this to fetch documents of federated token issuers from public addresses, too. Otherwise only issuers that the
        /// local cloud or the region serves are trusted, and nothing leaves the machine.
        pub fetch_from_internet: bool = false,
        /// How much memory the log of mutations may take.
        pub mutation_log: ByteSize = ByteSize::mib(16),
        /// The seed of the random decisions of fault rules: the same rules and requests give the same faults.
        pub fault_seed: u64 = 1,
    }
}

impl Section for AzureLocalConfig {
    fn examine(&self, problems: &mut Problems) {
        for (key, value) in [
            ("service_tenant", &self.service_tenant),
            ("customer_tenant", &self.customer_tenant),
            ("customer_subscription", &self.customer_subscription),
        ] {
            if Uuid::try_parse(value).is_err() {
                problems.add(key, "must be a GUID");
            }
        }
        for subscription in &self.service_subscriptions {
            if let Err(reason) = crate::accounts::parse_subscription(subscription) {
                problems.add("service_subscriptions", reason);
            }
        }
        for provider in &self.resource_providers {
            if let Err(reason) = crate::forward::parse(provider) {
                problems.add("resource_providers", reason);
            }
        }
        if self.max_body.get() == 0 {
            problems.add("max_body", "must be at least 1B");
        }
        if self.body_budget.get() < self.max_body.get() {
            problems.add("body_budget", "must be at least max_body");
        }
    }
}
