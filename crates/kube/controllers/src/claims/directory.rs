//! The directories of local volumes. The only place that touches the disk.
//!
//! Whatever an object says, nothing outside of the root is made or removed: the path is derived from the volume's name,
//! which must be one plain word, and an object that names another path is not ours.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::PersistentVolume;

/// The provisioner of local volumes.
pub const PROVISIONER: &str = "aro.dev/local";
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// The name of the volume that is made for a claim. `None` if the claim's uid is not a plain word.
pub fn volume_name(claim_uid: &str) -> Option<String> {
    let name = format!("pvc-{claim_uid}");
    is_plain(&name).then_some(name)
}

/// Whether a name is one plain part of a path.
fn is_plain(name: &str) -> bool {
    name.len() > 4
        && name.len() < 200
        && name.strip_prefix("pvc-").is_some_and(|rest| {
            rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        })
}

/// Where the directory of a volume with this name is.
pub fn path_of(root: &Path, name: &str) -> Option<PathBuf> {
    is_plain(name).then(|| root.join(name))
}

/// The directory of a volume that was made here. `None`: it was not, and nothing of it may be touched.
pub fn of_volume(root: &Path, volume: &PersistentVolume) -> Option<PathBuf> {
    let annotations = volume.metadata.annotations.as_ref()?;
    if annotations.get(PROVISIONED_BY).is_none_or(|by| by != PROVISIONER) {
        return None;
    }
    let expected = path_of(root, volume.metadata.name.as_deref()?)?;
    let told = &volume.spec.as_ref()?.host_path.as_ref()?.path;
    // Compared as text: `a/../b` is not `b` here.
    (expected.as_os_str() == told.as_str()).then_some(expected)
}

/// Makes a directory that only its owner may look into. One that is there already is as good.
pub fn make(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else has this name"))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => aro_files::create_dir(path),
        Err(error) => Err(error),
    }
}

/// Removes a directory with everything in it. Links are removed, not followed. One that is gone is as good.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    fn volume(name: &str, path: &str, by: &str) -> PersistentVolume {
        serde_json::from_value(json!({"metadata": {"name": name, "annotations": {PROVISIONED_BY: by}},
            "spec": {"hostPath": {"path": path}}}))
        .unwrap()
    }

    #[test]
    fn a_crafted_volume_has_no_directory_of_ours() {
        let root = Path::new("/data/volumes");
        let good = volume("pvc-1a", "/data/volumes/pvc-1a", PROVISIONER);
        assert_eq!(of_volume(root, &good), Some(PathBuf::from("/data/volumes/pvc-1a")));
        for (name, path, by) in [
            ("pvc-1a", "/", PROVISIONER),
            ("pvc-1a", "/data/volumes", PROVISIONER),
            ("pvc-1a", "/data/volumes/", PROVISIONER),
            ("pvc-1a", "/data/volumes/pvc-1a/", PROVISIONER),
            ("pvc-1a", "/data/volumes/pvc-1a/..", PROVISIONER),
            ("pvc-1a", "/data/volumes/pvc-2", PROVISIONER),
            ("pvc-1a", "/data/volumes/pvc-1a", "other.driver"),
            ("..", "/data/volumes/..", PROVISIONER),
            (".", "/data/volumes/.", PROVISIONER),
            ("", "/data/volumes/", PROVISIONER),
            ("pvc-", "/data/volumes/pvc-", PROVISIONER),
            ("pvc-../../etc", "/data/volumes/pvc-../../etc", PROVISIONER),
            ("etc", "/data/volumes/etc", PROVISIONER),
            ("/etc", "/etc", PROVISIONER),
        ] {
            assert_eq!(of_volume(root, &volume(name, path, by)), None, "{name} {path} {by}");
        }
    }

    proptest! {
        #[test]
        fn whatever_it_is_called_a_directory_is_directly_below_the_root(name in ".*", path in ".*") {
            let root = Path::new("/data/volumes");
            for found in [of_volume(root, &volume(&name, &path, PROVISIONER)), path_of(root, &name)].into_iter().flatten() {
                prop_assert_eq!(found.parent(), Some(root));
                prop_assert_eq!(found.components().count(), 4);
            }
        }
    }

    #[test]
    fn directories_are_private_survive_being_made_again_and_links_are_not_followed() {
        let dir = std::env::temp_dir().join(format!("aro-claims-{}", uuid::Uuid::now_v7().simple()));
        let (root, outside) = (dir.join("volumes"), dir.join("outside"));
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("precious"), "data").unwrap();
        let path = path_of(&root, "pvc-1").unwrap();
        make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("file"), "data").unwrap();
        std::os::unix::fs::symlink(&outside, path.join("link")).unwrap();
        make(&path).unwrap();
        assert!(path.join("file").exists());
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(!path.exists() && outside.join("precious").exists());
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        assert!(make(&path).is_err(), "a link is no directory of ours");
        let _ = remove(&path);
        assert!(outside.join("precious").exists());
        fs::remove_dir_all(&dir).unwrap();
    }
}
