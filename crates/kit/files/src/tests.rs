use super::*;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_directory_and_its_parents_are_made_for_their_owner_alone() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("a/b");
    create_dir(&dir).unwrap();
    assert_eq!((mode(&dir), mode(&home.path().join("a"))), (0o700, 0o700));
}

#[test]
fn taking_a_directory_tightens_what_an_earlier_release_left_open() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    fs::create_dir_all(dir.join("sub")).unwrap();
    let files = [("store.db", 0o644, 0o600), ("sub/ca.key", 0o666, 0o600), ("sub/tool", 0o755, 0o700)];
    for (name, before, _) in files {
        fs::write(dir.join(name), "x").unwrap();
        chmod(&dir.join(name), before);
    }
    chmod(&dir, 0o755);
    chmod(&dir.join("sub"), 0o2775);
    take_dir(&dir).unwrap();
    assert_eq!((mode(&dir), mode(&dir.join("sub"))), (0o700, 0o700));
    for (name, _, after) in files {
        assert_eq!(mode(&dir.join(name)), after, "{name}");
    }
}

#[test]
fn what_a_link_leads_to_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let (dir, outside) = (home.path().join("data"), home.path().join("outside"));
    fs::create_dir(&dir).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "x").unwrap();
    chmod(&outside, 0o755);
    chmod(&outside.join("file"), 0o644);
    std::os::unix::fs::symlink(&outside, dir.join("dir")).unwrap();
    std::os::unix::fs::symlink(outside.join("file"), dir.join("file")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.join("dangling")).unwrap();
    take_dir(&dir).unwrap();
    assert_eq!((mode(&outside), mode(&outside.join("file"))), (0o755, 0o644));
}

#[test]
fn a_directory_that_several_users_share_is_refused_and_not_closed_to_them() {
    let home = tempfile::tempdir().unwrap();
    chmod(home.path(), 0o1777);
    let refused = take_dir(home.path()).unwrap_err().to_string();
    assert!(refused.contains("is shared by several users"), "{refused}");
    assert_eq!(mode(home.path()), 0o1777);
}

#[test]
fn a_replaced_file_is_private_whatever_the_old_one_was() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ca.key");
    for left in ["ca.key", "ca.key.new"] {
        fs::write(home.path().join(left), "half a ke").unwrap();
        chmod(&home.path().join(left), 0o644);
    }
    replace(&path, b"key").unwrap();
    assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (0o600, "key"));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn an_existing_file_is_tightened_and_keeps_its_content() {
    let home = tempfile::tempdir().unwrap();
    let (old, new) = (home.path().join("old"), home.path().join("new"));
    fs::write(&old, "content").unwrap();
    chmod(&old, 0o664);
    ensure_file(&old).unwrap();
    ensure_file(&new).unwrap();
    assert_eq!((mode(&old), mode(&new)), (0o600, 0o600));
    assert_eq!(fs::read_to_string(&old).unwrap(), "content");
}

#[test]
fn an_error_names_the_file() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "x").unwrap();
    let path = home.path().join("file/below");
    assert!(create_dir(&path).unwrap_err().to_string().contains("file/below"));
}
