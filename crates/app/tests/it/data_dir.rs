//! Who may read what a region keeps.

use std::fs::{Permissions, set_permissions, symlink_metadata};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use aro_app::DataDir;

use crate::{sources, start};

/// Everything in a directory and the directory itself, with modes; links are left out.
fn walk(path: &Path, found: &mut Vec<(PathBuf, bool, u32)>) {
    let metadata = match symlink_metadata(path) {
        // A running region replaces files.
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        metadata => metadata.unwrap(),
    };
    if metadata.is_symlink() {
        return;
    }
    found.push((path.to_owned(), metadata.is_dir(), metadata.permissions().mode() & 0o7777));
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten() {
            walk(&entry.unwrap().path(), found);
        }
    }
}

/// What is not 0700 (directories) or 0600 (files).
fn too_wide(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk(dir, &mut found);
    let ends = |name: &str| found.iter().any(|(path, ..)| path.ends_with(name));
    for name in
        ["store/store.db", "store/store.db-wal", "store/lock", "kube/kubeconfig.yaml", "region/ca.key"]
    {
        assert!(ends(name), "{name} is where it is expected");
    }
    let log = found.iter().any(|(path, ..)| path.extension().is_some_and(|end| end == "log"));
    let volumes = found.iter().any(|(path, ..)| path.ends_with("tls.key"));
    assert!(log && volumes, "the log and the volumes of pods are looked at, too");
    let wanted = |is_dir: bool| if is_dir { 0o700 } else { 0o600 };
    let wide = found.into_iter().filter(|(_, is_dir, mode)| *mode != wanted(*is_dir));
    wide.map(|(path, _, mode)| format!("{mode:o} {}", path.display())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_user_can_read_anything_in_the_data_directory() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let app = start(&sources(), DataDir::kept(&data)).await.unwrap();
    assert_eq!(too_wide(&data), Vec::<String>::new());
    app.stop().await.unwrap();
    // As a release would have left it that did not care.
    let mut found = Vec::new();
    walk(&data, &mut found);
    for (path, is_dir, _) in found {
        set_permissions(path, Permissions::from_mode(if is_dir { 0o755 } else { 0o644 })).unwrap();
    }
    let app = start(&sources(), DataDir::kept(&data)).await.unwrap();
    assert_eq!(too_wide(&data), Vec::<String>::new());
    app.stop().await.unwrap();
}
