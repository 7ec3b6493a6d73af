//! Where the administration of a running cloud is, and the key to it: one file for its owner alone.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The file in the cloud's directory.
const FILE: &str = "admin.json";

/// How the administration of a cloud is reached. The key is new with every start.
#[derive(Clone, Serialize, Deserialize)]
pub struct AdminAccess {
    pub address: SocketAddr,
    pub key: String,
}

impl AdminAccess {
    /// Access to a cloud that starts now.
    pub(crate) fn generate(listener: SocketAddr) -> Self {
        let ip = match listener.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let key = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Self { address: SocketAddr::new(ip, listener.port()), key }
    }

    /// Reads what a cloud wrote into its directory.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let text = std::fs::read(dir.join(FILE))?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }

    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        aro_files::replace(&dir.join(FILE), &serde_json::to_vec(self).map_err(io::Error::other)?)
    }

    /// After a stop there is nothing to reach.
    pub(crate) fn remove(dir: &Path) -> io::Result<()> {
        match std::fs::remove_file(dir.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Whether a request carries the key. Takes the same time for every wrong key of the right length.
    pub(crate) fn admits(&self, given: &str) -> bool {
        let (own, given) = (self.key.as_bytes(), given.as_bytes());
        own.len() == given.len() && own.iter().zip(given).fold(0, |wrong, (a, b)| wrong | (a ^ b)) == 0
    }
}

impl std::fmt::Debug for AdminAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AdminAccess({})", self.address)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_key_of_this_start_is_admitted() {
        let listener = SocketAddr::from(([0, 0, 0, 0], 8440));
        let (first, second) = (AdminAccess::generate(listener), AdminAccess::generate(listener));
        assert_eq!(first.address, SocketAddr::from(([127, 0, 0, 1], 8440)));
        assert!(first.admits(&first.key) && !first.admits(&second.key) && !first.admits(""));
        assert!(!format!("{first:?}").contains(&first.key));
    }

    #[test]
    fn the_file_is_for_its_owner_alone_and_goes_with_the_cloud() {
        let dir = tempfile::tempdir().unwrap();
        let access = AdminAccess::generate(SocketAddr::from(([127, 0, 0, 1], 1)));
        access.write(dir.path()).unwrap();
        let mode = std::fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(access.admits(&AdminAccess::read(dir.path()).unwrap().key));
        AdminAccess::remove(dir.path()).unwrap();
        AdminAccess::remove(dir.path()).unwrap();
        assert!(AdminAccess::read(dir.path()).is_err());
    }
}
