//! What the images are that run for real.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aro_kube_node_api::PodIdentity;
use aro_runtime::{Fault, Readiness, Scope};
use futures::future::BoxFuture;

/// Whose container wants to run an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload<'a> {
    /// The cluster of the pod.
    pub cluster: &'a str,
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// The service account of the pod.
    pub service_account: &'a str,
}

/// Something a container can run.
pub trait Image: Send + Sync + 'static {
    /// Whether this workload may run it. An image runs inside this process, with what the process can reach: a name in a pod's
    /// spec alone must not start it. The error is shown to the pod's owner.
    fn allow(&self, workload: &Workload<'_>) -> Result<(), String>;

    /// Starts it. Everything it does is a task of the scope: its failure ends the container, and closing the scope is how
    /// the container is stopped. Returns once its ports are bound; readiness may come later.
    fn start(&self, container: ContainerSpec, scope: Scope) -> BoxFuture<'static, Result<Started, Fault>>;
}

/// The images there are. Given by the composition, so that a kubelet knows no role.
pub trait Images: Send + Sync + 'static {
    /// The image of that name, if it is one of ours.
    fn find(&self, name: &str) -> Option<Arc<dyn Image>>;
}

/// Every image is simulated.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoImages;

impl Images for NoImages {
    fn find(&self, _name: &str) -> Option<Arc<dyn Image>> {
        None
    }
}

/// A container that runs.
#[derive(Debug, Clone, Default)]
pub struct Started {
    /// Where its ports really are.
    pub ports: BTreeMap<u16, SocketAddr>,
    /// Whether it can do its work.
    pub readiness: Readiness,
}

/// What a container is given.
#[derive(Debug, Clone)]
pub struct ContainerSpec {
    /// The cluster its pod is in, if it has a name.
    pub cluster: String,
    pub pod: PodIdentity,
    /// Whom its pod acts as.
    pub service_account: String,
    /// The container's name.
    pub name: String,
    pub image: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub mounts: Vec<Mount>,
    /// The ports it is expected to have.
    pub ports: Vec<u16>,
}

/// A directory the container sees under another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The path in the pod's spec.
    pub path: PathBuf,
    /// Where it really is.
    pub source: PathBuf,
    pub read_only: bool,
}

impl ContainerSpec {
    /// Where a path of the container's file system really is. Paths under no mount are not there.
    pub fn locate(&self, path: &Path) -> Option<PathBuf> {
        let inside = self.mounts.iter().filter_map(|mount| {
            path.strip_prefix(&mount.path).ok().map(|rest| (mount.path.components().count(), mount, rest))
        });
        let (_, mount, rest) = { inside }.max_by_key(|(depth, ..)| *depth)?;
        let escapes = rest.components().any(|part| matches!(part, std::path::Component::ParentDir));
        (!escapes)
            .then(|| if rest.as_os_str().is_empty() { mount.source.clone() } else { mount.source.join(rest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_under_the_deepest_mount_and_never_outside() {
        let mount =
            |path: &str, source: &str| Mount { path: path.into(), source: source.into(), read_only: true };
        let container = ContainerSpec {
            cluster: "svc".into(),
            pod: PodIdentity { namespace: "n".into(), name: "p".into(), uid: "u".into() },
            service_account: "default".into(),
            name: "c".into(),
            image: "aro/x".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            mounts: vec![mount("/etc/aro", "/data/1"), mount("/etc/aro/tls", "/data/2")],
            ports: Vec::new(),
        };
        let at = |path: &str| container.locate(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(at("/etc/aro/config.toml").as_deref(), Some("/data/1/config.toml"));
        assert_eq!(at("/etc/aro/tls/tls.crt").as_deref(), Some("/data/2/tls.crt"));
        assert_eq!(at("/etc/aro/tls").as_deref(), Some("/data/2"));
        assert_eq!(at("/etc/aro/../../passwd"), None);
        assert_eq!(at("/etc/passwd"), None);
    }
}
