//! Telling people and machines where things listen.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// One address a stack listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name: the role's, or `admin`.
    pub name: &'static str,
    /// The bound address.
    pub addr: SocketAddr,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// What is there.
    pub about: &'static str,
}

impl Endpoint {
    /// As a URL.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.addr)
    }
}

/// The endpoints as a table for people.
pub fn table(endpoints: &[Endpoint]) -> String {
    let name_width = endpoints.iter().map(|endpoint| endpoint.name.len()).max().unwrap_or(0);
    let url_width = endpoints.iter().map(|endpoint| endpoint.url().len()).max().unwrap_or(0);
    let mut text = String::new();
    for endpoint in endpoints {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {:name_width$}  {:url_width$}  {}",
            endpoint.name,
            endpoint.url(),
            endpoint.about
        );
    }
    text
}

/// Writes `{"name": "address"}` for machines. Appears at once and complete: readers never see half a file.
pub fn write_endpoints_file(path: &Path, endpoints: &[Endpoint]) -> io::Result<()> {
    let addresses: BTreeMap<_, _> = endpoints.iter().map(|endpoint| (endpoint.name, endpoint.addr)).collect();
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::NamedTempFile::new_in(dir)?;
    serde_json::to_writer(file.as_file(), &addresses)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints() -> [Endpoint; 2] {
        let addr = |port| SocketAddr::from(([127, 0, 0, 1], port));
        [
            Endpoint { name: "frontend", addr: addr(8443), scheme: "http", about: "ARM API" },
            Endpoint { name: "admin", addr: addr(81), scheme: "http", about: "metrics" },
        ]
    }

    #[test]
    fn the_table_lines_up() {
        assert_eq!(
            table(&endpoints()),
            "  frontend  http://127.0.0.1:8443  ARM API\n  admin     http://127.0.0.1:81    metrics\n"
        );
    }

    #[test]
    fn the_file_maps_names_to_addresses_and_replaces_an_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("endpoints.json");
        std::fs::write(&path, "old").unwrap();
        write_endpoints_file(&path, &endpoints()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, r#"{"admin":"127.0.0.1:81","frontend":"127.0.0.1:8443"}"#);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
