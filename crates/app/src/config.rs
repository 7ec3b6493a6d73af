//! The whole configuration: every section there is.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use aro_cloud::CloudConfig;
use aro_kube_apiserver::KubeConfig;
use aro_region_layout::RegionConfig;
use aro_runtime::config::{Loaded, Schema, Sources};
use aro_runtime::telemetry::TelemetryConfig;
use aro_runtime::{Checked, ConfigProblems, Period, Problems, Section};

use crate::cloud_access::CloudIdentityConfig;
use crate::{Registry, StoreConfig};

aro_runtime::section! {
    /// The process as a whole.
    pub struct ProcessConfig in "process" {
        /// Where data lives. Not set: `$XDG_DATA_HOME/aro`, else `~/.local/share/aro`.
        pub data_dir: Option<PathBuf> = None,
        /// How long everything together may take to become ready.
        pub start_timeout: Period = Period::secs(60),
        /// How long everything together may take to stop; tasks that are late are logged by name and aborted.
        pub grace: Period = Period::secs(35),
    }
}

impl Section for ProcessConfig {
    fn examine(&self, problems: &mut Problems) {
        if self.data_dir.as_ref().is_some_and(|dir| dir.as_os_str().is_empty()) {
            problems.add("data_dir", "must not be empty");
        }
        if self.start_timeout.get().is_zero() {
            problems.add("start_timeout", "must not be zero");
        }
    }
}

aro_runtime::section! {
    /// A region in one process (`aro up`).
    pub struct UpConfig in "up" {
        /// Roles that are not deployed, by name, for example because another build of them runs beside the region. Roles that
        /// call them see them as unreachable.
        pub without: Vec<String> = Vec::new(),
    }
}

impl Section for UpConfig {
    fn examine(&self, problems: &mut Problems) {
        if self.without.iter().any(String::is_empty) {
            problems.add("without", "must hold names of roles");
        }
    }
}

aro_runtime::section! {
    /// The Kubernetes cluster that a role works on when it is started alone (`aro maestro agent`, `aro mce`).
    pub struct ClusterConfig in "cluster" {
        /// A kubeconfig. Not set: the pod's own service account, or the usual kubeconfig of the user.
        pub kubeconfig: Option<PathBuf> = None,
        /// Which context of the kubeconfig. Not set: its current one.
        pub context: Option<String> = None,
    }
}

impl Section for ClusterConfig {
    fn examine(&self, problems: &mut Problems) {
        if self.context.as_deref() == Some("") {
            problems.add("context", "must not be empty");
        }
    }
}

aro_runtime::section! {
    /// The listener for operators and machines: `/metrics`, `/healthz`, `/readyz`.
    pub struct AdminConfig in "admin" {
        /// Where it listens. It does not authenticate callers: keep it on loopback or inside the pod network.
        pub listen: SocketAddr = ([127, 0, 0, 1], 8081).into(),
        /// Set this when the network lets only probes and scrapers reach `listen`. Required for any address but loopback.
        pub behind_network_policy: bool = false,
    }
}

impl Section for AdminConfig {
    fn examine(&self, problems: &mut Problems) {
        if !self.listen.ip().is_loopback() && !self.behind_network_policy {
            problems.add(
                "listen",
                "is not a loopback address, and this listener does not authenticate callers. Listen on 127.0.0.1, or set admin.behind_network_policy = true if only probes and scrapers can reach it",
            );
        }
    }
}

/// The configuration of a process: the sections of the process itself, checked, and those of every role.
#[derive(Debug, Clone)]
pub struct AppConfig {
    /// The roles there are.
    pub registry: Registry,
    /// The sources it was merged from: a role in a container has the same, and what the container adds.
    pub sources: Sources,
    /// Every section; roles take theirs from here.
    pub loaded: Arc<Loaded>,
    /// The process as a whole.
    pub process: Checked<ProcessConfig>,
    /// Logs and traces.
    pub telemetry: Checked<TelemetryConfig>,
    /// The listener for operators.
    pub admin: Checked<AdminConfig>,
    /// The document store.
    pub store: Checked<StoreConfig>,
    /// A region in one process.
    pub up: Checked<UpConfig>,
    /// Embedded Kubernetes.
    pub kube: Checked<KubeConfig>,
    /// The region and the names of its resources.
    pub region: Checked<RegionConfig>,
    /// The cluster that a role started alone works on.
    pub cluster: Checked<ClusterConfig>,
}

/// Every section there is, in the order of the reference.
pub fn schema(registry: Registry) -> Schema {
    let process = Schema::new()
        .with::<ProcessConfig>()
        .with::<TelemetryConfig>()
        .with::<AdminConfig>()
        .with::<UpConfig>()
        .with::<StoreConfig>()
        .with::<KubeConfig>()
        .with::<RegionConfig>();
    registry
        .iter()
        .fold(process, |schema, role| (role.section)(schema))
        .with::<ClusterConfig>()
        .with::<CloudConfig>()
        .with::<CloudIdentityConfig>()
}

impl AppConfig {
    /// Merges and checks the configuration of `aro`; reports all problems at once.
    pub fn load(sources: &Sources) -> Result<Self, ConfigProblems> {
        Self::of(Registry::ARO, sources)
    }

    /// Whether a region deploys a role.
    pub fn deploys(&self, role: &str) -> bool {
        self.registry.find(role).is_some() && !self.up.without.iter().any(|name| name == role)
    }

    /// The same for a program of other roles.
    pub fn of(registry: Registry, sources: &Sources) -> Result<Self, ConfigProblems> {
        let loaded = schema(registry).load(sources)?;
        let up: Checked<UpConfig> = loaded.section()?;
        if let Some(name) = up.without.iter().find(|name| registry.find(name).is_none()) {
            let message = format!("there is no role `{name}`");
            return Err(ConfigProblems::with_key("up.without", message));
        }
        Ok(Self {
            registry,
            sources: sources.clone(),
            process: loaded.section()?,
            telemetry: loaded.section()?,
            admin: loaded.section()?,
            store: loaded.section()?,
            up,
            kube: loaded.section()?,
            region: loaded.section()?,
            cluster: loaded.section()?,
            loaded: Arc::new(loaded),
        })
    }
}

#[cfg(test)]
mod tests {
    use aro_runtime::config::{SPECIAL, Target};

    use super::*;

    fn problems(sources: &Sources) -> Vec<String> {
        let problems = AppConfig::load(sources).unwrap_err();
        problems.iter().map(|problem| problem.key.clone()).collect()
    }

    #[test]
    fn the_defaults_and_both_profiles_are_valid() {
        for profile in [None, Some(aro_runtime::Profile::Dev), Some(aro_runtime::Profile::Prod)] {
            AppConfig::load(&Sources { profile, ..Sources::default() }).unwrap();
        }
    }

    #[test]
    fn every_section_and_key_is_documented_in_sentences() {
        for section in schema(Registry::ARO).reference() {
            assert!(section.about.ends_with('.'), "[{}]", section.table);
            for key in section.keys {
                assert!(key.doc.ends_with('.'), "{}.{}", section.table, key.name);
            }
        }
    }

    #[test]
    fn every_special_variable_stands_for_a_key_there_is() {
        let known: Vec<String> = schema(Registry::ARO)
            .reference()
            .iter()
            .flat_map(|section| section.keys.iter().map(move |key| format!("{}.{}", section.table, key.name)))
            .collect();
        for special in SPECIAL {
            if let Target::Key(key) = special.target {
                assert!(known.iter().any(|known| known == key), "{} -> {key}", special.name);
            }
        }
    }

    #[test]
    fn the_admin_listener_is_not_opened_to_the_network_without_a_policy() {
        let open = Sources::default().set("admin.listen", "0.0.0.0:8081");
        assert_eq!(problems(&open), ["admin.listen"]);
        AppConfig::load(&open.set("admin.behind_network_policy", "true")).unwrap();
    }

    #[test]
    fn the_frontend_is_not_opened_to_the_network_without_an_ingress() {
        let open = Sources::default().set("frontend.listen", "0.0.0.0:8443");
        assert_eq!(problems(&open), ["frontend.listen"]);
        AppConfig::load(&open.set("frontend.behind_ingress", "true")).unwrap();
    }
}
