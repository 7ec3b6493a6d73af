//! Which directories of the host pods may mount.
//!
//! Containers run inside this process, with its permissions: a path in a pod's spec is a path that the process can read.

use std::path::{Component, Path, PathBuf};

/// The directories that volumes may be in.
#[derive(Debug, Clone, Default)]
pub struct HostPaths {
    /// Directories that host path volumes may name, with everything below. Empty: none.
    pub allowed: Vec<PathBuf>,
    /// Where the persistent volumes that were provisioned here are, each in a directory of its name.
    pub provisioned: Option<PathBuf>,
}

impl HostPaths {
    /// The path of a host path volume.
    pub fn check(&self, path: &str) -> Result<PathBuf, String> {
        let refused = || format!("hostPath \"{path}\" is not among the host paths that this node allows");
        let found = Path::new(path);
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !found.is_absolute() || !found.components().all(plain) {
            return Err(refused());
        }
        let allowed = self.allowed.iter().any(|root| {
            found.starts_with(root) && {
                // A link below an allowed directory may lead out of it.
                let real = |path: &Path| std::fs::canonicalize(path).ok();
                real(found).is_none_or(|found| real(root).is_some_and(|root| found.starts_with(root)))
            }
        });
        if allowed { Ok(found.to_owned()) } else { Err(refused()) }
    }

    /// The path of a persistent volume: one that was provisioned here, or a host path that is allowed. A volume names its
    /// own directory: a user that can create one could name any.
    pub fn of_persistent_volume(&self, volume: &str, path: &str) -> Result<PathBuf, String> {
        let own = self.provisioned.as_ref().and_then(|root| below(root, volume));
        match own {
            // Compared as text: `a/../b` is not `b` here.
            Some(own) if own.as_os_str() == path => Ok(own),
            _ => self.check(path),
        }
    }
}

/// A path below a directory. `None`: it leads out.
pub fn below(dir: &Path, path: &str) -> Option<PathBuf> {
    let plain =
        !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    plain.then(|| dir.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_paths_are_refused_unless_they_are_below_an_allowed_directory() {
        assert!(HostPaths::default().check("/etc").is_err());
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
        let paths = HostPaths { allowed: vec![dir.path().to_owned()], provisioned: None };
        let check = |path: &Path| paths.check(path.to_str().unwrap());
        assert_eq!(check(&inside), Ok(inside.clone()));
        assert!(check(&dir.path().join("not-yet")).is_ok());
        for path in ["..", "inside/../..", "link"] {
            assert!(check(&dir.path().join(path)).is_err(), "{path}");
        }
        for path in ["/etc", "/", "", "etc", "inside"] {
            assert!(paths.check(path).is_err(), "{path}");
        }
    }

    #[test]
    fn persistent_volumes_are_used_where_they_were_provisioned_only() {
        let paths = HostPaths { allowed: Vec::new(), provisioned: Some("/data/volumes".into()) };
        assert!(paths.of_persistent_volume("pvc-1", "/data/volumes/pvc-1").is_ok());
        for (volume, path) in [
            ("pvc-1", "/data/volumes/pvc-2"),
            ("pvc-1", "/etc"),
            ("../../etc", "/data/volumes/../../etc"),
            ("", "/data/volumes/"),
        ] {
            assert!(paths.of_persistent_volume(volume, path).is_err(), "{volume} at {path}");
        }
    }

    #[test]
    fn a_sub_path_stays_in_its_volume() {
        let dir = Path::new("/v");
        assert_eq!(below(dir, "a/b"), Some("/v/a/b".into()));
        for path in ["../x", "/etc", "a/../../b", ""] {
            assert_eq!(below(dir, path), None, "{path}");
        }
    }
}
