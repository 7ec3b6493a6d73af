//! Certificates of a test: of one authority for the broker, servers and agents, and of another for sources and the gRPC
//! listener.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::Result;
use aro_base::{Clock as _, Secret, SignedDuration};
use aro_fixtures::BrokerFiles;
use aro_pki::{Authority, IdentityPaths, Leaf, Subject, Usage, Validity};
use aro_runtime::SystemClock;
use tempfile::TempDir;

/// An authority and a directory of the certificates it issued.
pub struct Pki {
    authority: Authority,
    dir: TempDir,
}

impl Pki {
    pub fn new() -> Result<Self> {
        let authority = Authority::generate("test", validity(DAY))?;
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("ca.crt"), authority.certificate())?;
        Ok(Self { authority, dir })
    }

    /// An authority whose `ca.crt` and `ca.key` are in a directory.
    pub fn of_authority(keys: &Path) -> Result<Self> {
        let key = Secret::new(std::fs::read_to_string(keys.join("ca.key"))?);
        let authority = Authority::load(&std::fs::read_to_string(keys.join("ca.crt"))?, &key)?;
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("ca.crt"), authority.certificate())?;
        Ok(Self { authority, dir })
    }

    pub fn bundle(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// The files of an identity; issued on first use.
    pub fn identity(&self, name: &str) -> Result<IdentityPaths> {
        let paths = self.paths(name);
        if paths.certificate.is_file() { Ok(paths) } else { self.issue(name, DAY) }
    }

    /// A new certificate for an identity, with a validity of the test's choice.
    pub fn issue(&self, name: &str, length: SignedDuration) -> Result<IdentityPaths> {
        let paths = self.paths(name);
        let issued = self.authority.issue(&Leaf {
            subject: Subject::new(name, Vec::<String>::new()),
            dns_names: vec!["localhost".to_owned()],
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            usage: Usage::Both,
            validity: validity(length),
        })?;
        std::fs::write(&paths.key, issued.key.expose())?;
        std::fs::write(&paths.certificate, issued.certificate)?;
        Ok(paths)
    }

    fn paths(&self, name: &str) -> IdentityPaths {
        let file = |what: &str| self.dir.path().join(format!("{name}.{what}"));
        IdentityPaths { certificate: file("crt"), key: file("key"), bundle: Some(self.bundle()) }
    }

    /// The files of a broker.
    pub fn broker(&self) -> Result<BrokerFiles> {
        let paths = self.identity("broker")?;
        Ok(BrokerFiles { certificate: paths.certificate, key: paths.key, authorities: self.bundle() })
    }
}

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn validity(length: SignedDuration) -> Validity {
    Validity::from_now(SystemClock.now(), length)
}

/// A path as a setting.
pub fn text(path: &Path) -> String {
    path.display().to_string()
}
