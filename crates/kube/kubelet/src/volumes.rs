//! The files of a pod whose containers really run.
//!
//! Secrets, config maps, tokens and fields become files of a directory per volume. A change replaces all files of a
//! volume in one step: they are links through one link, `..data`, as on any node.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use aro_base::{Secret, Timestamp};
use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume};
use kube::ResourceExt as _;
use sha2::{Digest as _, Sha256};

use crate::environment::{Place, Trouble, field_of};
use crate::host_paths::HostPaths;
use crate::sources::Sources;

/// A file of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    bytes: Vec<u8>,
    mode: u32,
}

type Files = BTreeMap<String, File>;

/// The volumes of a pod, by name.
#[derive(Debug, Clone, Default)]
pub struct Volumes {
    pub paths: BTreeMap<String, PathBuf>,
    /// When something in them has to be made anew at the latest.
    pub renew: Option<Timestamp>,
    /// Whether something in them may change.
    pub changing: bool,
    /// Tokens by volume and path, and when each has to be made anew.
    tokens: BTreeMap<(String, String), (Secret<String>, Timestamp)>,
}

const MODE: i32 = 0o644;
const TOKEN_LIFE: i64 = 3600;

/// Makes the volumes of a pod under its directory, or brings them up to date from what they were before. Trouble comes
/// with the volume's name.
pub async fn prepare(
    pod: &Pod,
    dir: &Path,
    place: &Place<'_>,
    sources: &Sources,
    host_paths: &HostPaths,
    before: &Volumes,
    now: Timestamp,
) -> Result<Volumes, (String, Trouble)> {
    let mut made = Volumes::default();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    for volume in volumes {
        let path = dir.join("volumes").join(&volume.name);
        let real = one(pod, volume, path, place, sources, host_paths, before, now, &mut made).await;
        let real = real.map_err(|trouble| (volume.name.clone(), trouble))?;
        made.paths.insert(volume.name.clone(), real);
    }
    Ok(made)
}

#[expect(clippy::too_many_arguments, reason = "what a volume is made of")]
async fn one(
    pod: &Pod,
    volume: &Volume,
    path: PathBuf,
    place: &Place<'_>,
    sources: &Sources,
    host_paths: &HostPaths,
    before: &Volumes,
    now: Timestamp,
    made: &mut Volumes,
) -> Result<PathBuf, Trouble> {
    let namespace = pod.namespace().unwrap_or_default();
    let mut files = Files::new();
    if let Some(claim) = &volume.persistent_volume_claim {
        let bound = sources.claim(&namespace, &claim.claim_name).await?.map_err(Trouble::Missing)?;
        return host_paths.of_persistent_volume(&bound.volume, &bound.path).map_err(Trouble::Missing);
    }
    if let Some(host) = &volume.host_path {
        return host_paths.check(&host.path).map_err(Trouble::Missing);
    }
    if volume.empty_dir.is_some() || volume.ephemeral.is_some() {
        blocking(move || aro_files::create_dir(&path).map(|()| path)).await
    } else {
        if let Some(secret) = &volume.secret {
            let name = secret.secret_name.clone().unwrap_or_default();
            let mode = secret.default_mode.unwrap_or(MODE);
            add_secret(
                &mut files,
                &namespace,
                &name,
                secret.items.as_deref(),
                secret.optional,
                mode,
                sources,
            )
            .await?;
        } else if let Some(map) = &volume.config_map {
            let mode = map.default_mode.unwrap_or(MODE);
            add_map(&mut files, &namespace, &map.name, map.items.as_deref(), map.optional, mode, sources)
                .await?;
        } else if let Some(fields) = &volume.downward_api {
            add_fields(&mut files, pod, fields.items.as_deref(), fields.default_mode.unwrap_or(MODE), place)?;
        } else if let Some(projected) = &volume.projected {
            let mode = projected.default_mode.unwrap_or(MODE);
            for source in projected.sources.iter().flatten() {
                if let Some(secret) = &source.secret {
                    let items = secret.items.as_deref();
                    add_secret(&mut files, &namespace, &secret.name, items, secret.optional, mode, sources)
                        .await?;
                }
                if let Some(map) = &source.config_map {
                    let items = map.items.as_deref();
                    add_map(&mut files, &namespace, &map.name, items, map.optional, mode, sources).await?;
                }
                if let Some(fields) = &source.downward_api {
                    add_fields(&mut files, pod, fields.items.as_deref(), mode, place)?;
                }
                if let Some(token) = &source.service_account_token {
                    let key = (volume.name.clone(), token.path.clone());
                    let known = before.tokens.get(&key).filter(|(_, renew)| now < *renew).cloned();
                    let (text, renew) = if let Some(known) = known {
                        known
                    } else {
                        let life = token.expiration_seconds.unwrap_or(TOKEN_LIFE);
                        let (text, expires) = sources.token(pod, token.audience.as_deref(), life).await?;
                        // Well before it ends.
                        let left = expires.duration_since(now);
                        (Secret::new(text), now.saturating_add(left * 4 / 5).unwrap_or(expires))
                    };
                    made.renew = Some(made.renew.map_or(renew, |known| known.min(renew)));
                    let bytes = text.expose().clone().into_bytes();
                    made.tokens.insert(key, (text, renew));
                    put(&mut files, &token.path, bytes, mode)?;
                }
            }
        } else {
            return Err(Trouble::Missing(format!(
                "the volume \"{}\" is of a type that virtual nodes cannot mount",
                volume.name
            )));
        }
        made.changing = true;
        blocking(move || write(&path, &files).map(|()| path)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Trouble> {
    let done = tokio::task::spawn_blocking(work).await;
    let failed =
        |error: &dyn std::fmt::Display| Trouble::Missing(format!("its files cannot be written: {error}"));
    done.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
}

async fn add_secret(
    files: &mut Files,
    namespace: &str,
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: i32,
    sources: &Sources,
) -> Result<(), Trouble> {
    let secret = sources.secret(namespace, name).await?;
    let data =
        secret.map(|secret| secret.data.into_iter().flatten().map(|(key, value)| (key, value.0)).collect());
    add(files, data, items, optional, mode, &format!("secret \"{name}\""))
}

async fn add_map(
    files: &mut Files,
    namespace: &str,
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: i32,
    sources: &Sources,
) -> Result<(), Trouble> {
    let data = sources.config_map(namespace, name).await?.map(|map| {
        let texts = map.data.into_iter().flatten().map(|(key, value)| (key, value.into_bytes()));
        let binary = map.binary_data.into_iter().flatten().map(|(key, value)| (key, value.0));
        texts.chain(binary).collect()
    });
    add(files, data, items, optional, mode, &format!("configmap \"{name}\""))
}

/// All keys, or the ones that are asked for under the names that are asked for.
fn add(
    files: &mut Files,
    data: Option<BTreeMap<String, Vec<u8>>>,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: i32,
    what: &str,
) -> Result<(), Trouble> {
    let Some(mut data) = data else {
        return if optional == Some(true) {
            Ok(())
        } else {
            Err(Trouble::Missing(format!("{what} not found")))
        };
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return data.into_iter().try_for_each(|(key, bytes)| put(files, &key, bytes, mode));
    };
    for item in items {
        match data.remove(&item.key) {
            Some(bytes) => put(files, &item.path, bytes, item.mode.unwrap_or(mode))?,
            None if optional == Some(true) => {}
            None => return Err(Trouble::Missing(format!("{what} has no key \"{}\"", item.key))),
        }
    }
    Ok(())
}

fn add_fields(
    files: &mut Files,
    pod: &Pod,
    items: Option<&[DownwardAPIVolumeFile]>,
    mode: i32,
    place: &Place<'_>,
) -> Result<(), Trouble> {
    for item in items.unwrap_or_default() {
        let path = item.field_ref.as_ref().map(|field| field.field_path.as_str()).unwrap_or_default();
        let value = field_of(pod, path, place).unwrap_or_default();
        put(files, &item.path, value.into_bytes(), item.mode.unwrap_or(mode))?;
    }
    Ok(())
}

/// Names come from users: none may lead out of the volume.
fn put(files: &mut Files, path: &str, bytes: Vec<u8>, mode: i32) -> Result<(), Trouble> {
    let plain =
        !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || path.starts_with("..") {
        return Err(Trouble::Missing(format!("\"{path}\" is no path inside a volume")));
    }
    // Containers run as the user of this process: bits for others would only open the file to the machine's other users.
    let mode = aro_files::owner_only(u32::try_from(mode).unwrap_or(0o600));
    files.insert(path.to_owned(), File { bytes, mode });
    Ok(())
}

/// Makes a directory hold these files and no others, in one step.
fn write(dir: &Path, files: &Files) -> std::io::Result<()> {
    let version = format!("..{}", fingerprint(files));
    let data = dir.join("..data");
    if std::fs::read_link(&data).is_ok_and(|current| current == Path::new(&version)) {
        return Ok(());
    }
    let new = dir.join(&version);
    if new.exists() {
        // An earlier process did not get to the end of it.
        std::fs::remove_dir_all(&new)?;
    }
    aro_files::create_dir(&new)?;
    for (name, file) in files {
        let path = new.join(name);
        if let Some(parent) = path.parent() {
            aro_files::create_dir(parent)?;
        }
        aro_files::options().write(true).create_new(true).open(&path)?.write_all(&file.bytes)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(file.mode))?;
    }
    let before = std::fs::read_link(&data).ok();
    let link = dir.join("..data_new");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&version, &link)?;
    std::fs::rename(&link, &data)?;
    let wanted: std::collections::BTreeSet<&str> =
        files.keys().map(|name| name.split('/').next().unwrap_or(name)).collect();
    for name in &wanted {
        let link = dir.join(name);
        if std::fs::symlink_metadata(&link).is_err() {
            std::os::unix::fs::symlink(Path::new("..data").join(name), &link)?;
        }
    }
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !wanted.contains(&*name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    if let Some(before) = before {
        std::fs::remove_dir_all(dir.join(before))?;
    }
    Ok(())
}

fn fingerprint(files: &Files) -> String {
    let mut hash = Sha256::new();
    for (name, file) in files {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update(file.mode.to_le_bytes());
        hash.update((file.bytes.len() as u64).to_le_bytes());
        hash.update(&file.bytes);
    }
    hash.finalize().iter().take(12).fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        let mut files = Files::new();
        for (name, text) in list {
            assert!(put(&mut files, name, text.as_bytes().to_vec(), 0o640).is_ok());
        }
        files
    }

    fn read(dir: &Path, name: &str) -> Option<String> {
        std::fs::read_to_string(dir.join(name)).ok()
    }

    #[test]
    fn files_are_replaced_together_and_what_is_gone_goes() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(dir, &files(&[("tls.crt", "one"), ("tls.key", "one"), ("sub/deep", "x")])).unwrap();
        assert_eq!(read(dir, "tls.crt").as_deref(), Some("one"));
        assert_eq!(read(dir, "sub/deep").as_deref(), Some("x"));
        write(dir, &files(&[("tls.crt", "two"), ("tls.key", "two")])).unwrap();
        assert_eq!(
            (read(dir, "tls.crt").as_deref(), read(dir, "tls.key").as_deref()),
            (Some("two"), Some("two"))
        );
        assert!(read(dir, "sub/deep").is_none() && !dir.join("sub").exists());
        let mode = std::fs::metadata(dir.join("tls.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "for its owner alone, though the volume asks for 0640");
        let kept = std::fs::read_dir(dir).unwrap().count();
        assert_eq!(kept, 4, "two links, the data and its link");
        write(dir, &files(&[("tls.crt", "two"), ("tls.key", "two")])).unwrap();
    }

    #[test]
    fn no_name_leads_out_of_a_volume() {
        for path in ["../x", "/etc/passwd", "a/../../b", "", "..data", "."] {
            assert!(put(&mut Files::new(), path, Vec::new(), 0o644).is_err(), "{path}");
        }
    }
}
