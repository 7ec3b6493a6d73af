//! The role's configuration.

use aro_runtime::{ByteSize, Period, Problems, Section};

aro_runtime::section! {
    /// The multicluster engine: the work agent of the management cluster itself.
    pub struct MceConfig in "mce" {
        /// Whether ManifestWorks are applied here. Disable it where another work agent does that.
        pub work_agent: bool = true,
        /// The namespace of the ManifestWorks, which is the name of the managed cluster.
        pub namespace: String = "local-cluster".to_owned(),
        /// The hub in the names of records of what was applied; the address of the hub, if empty. Keep it for the lifetime of the
        /// cluster: records of another hub are not touched.
        pub hub_id: String = String::new(),
        /// Works applied concurrently.
        pub workers: usize = 32,
        /// The largest JSON value in status feedback. The published definition of ManifestWorks allows no more than the
        /// default.
        pub max_json_raw: ByteSize = ByteSize::bytes(1024),
        /// How often a work is reconciled without an event of its objects.
        pub drift_check: Period = Period::secs(300),
    }
}

impl Section for MceConfig {
    fn examine(&self, problems: &mut Problems) {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.namespace.is_empty() || self.namespace.len() > 63 || !self.namespace.chars().all(word) {
            problems.add("namespace", "must be the name of a namespace such as \"local-cluster\"");
        }
        if self.workers == 0 {
            problems.add("workers", "must be at least 1");
        }
    }
}
