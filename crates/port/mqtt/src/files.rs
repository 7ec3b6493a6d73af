//! The configuration file that Maestro's server and agents are started with: YAML or JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aro_base::Secret;
use aro_pki::IdentityPaths;
use base64::Engine as _;
use serde::Deserialize;

use crate::options::{Credentials, LinkOptions};

/// The topics such a file names, as they stand there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicNames {
    pub source_events: String,
    pub agent_events: String,
    pub source_broadcast: Option<String>,
    pub agent_broadcast: Option<String>,
}

/// What such a file says.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    pub link: LinkOptions,
    pub topics: TopicNames,
}

/// Why such a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    #[error("read `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{path}`: {why}")]
    Content { path: PathBuf, why: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    broker_host: String,
    username: Option<String>,
    password: Option<Secret<String>>,
    keep_alive: Option<u64>,
    dial_timeout: Option<Seconds>,
    ca_file: Option<PathBuf>,
    ca_data: Option<String>,
    client_cert_file: Option<PathBuf>,
    client_cert_data: Option<String>,
    client_key_file: Option<PathBuf>,
    client_key_data: Option<Secret<String>>,
    #[serde(default)]
    topics: TopicNames,
}

/// Seconds as a number, or as a text such as `60s`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(u64),
    Text(String),
}

impl Seconds {
    fn get(&self) -> Option<u64> {
        match self {
            Self::Number(seconds) => Some(*seconds),
            Self::Text(text) => text.strip_suffix('s').unwrap_or(text).parse().ok(),
        }
    }
}

impl LinkOptions {
    /// Reads such a file; what it does not say is as in [`LinkOptions::new`]. Blocks on the disk.
    pub fn from_file(path: &Path, client_id: impl Into<String>) -> Result<ConfigFile, ConfigFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigFileError::Read { path: path.to_owned(), source })?;
        read(&text, client_id.into()).map_err(|why| ConfigFileError::Content { path: path.to_owned(), why })
    }
}

fn read(text: &str, client_id: String) -> Result<ConfigFile, String> {
    let written: Written = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let mut link = LinkOptions::new(written.broker_host.clone(), client_id);
    if aro_net::HostPort::parse(&link.broker).is_none() {
        return Err(format!("brokerHost `{}` is not host:port", written.broker_host));
    }
    if let Some(seconds) = written.keep_alive {
        link.keep_alive = Duration::from_secs(seconds.clamp(1, 65_535));
    }
    if let Some(timeout) = &written.dial_timeout {
        let seconds = timeout.get().ok_or("dialTimeout is not a number of seconds")?;
        link.dial_timeout = Duration::from_secs(seconds.max(1));
    }
    link.credentials = credentials(&written)?;
    link.username = written.username;
    link.password = written.password;
    Ok(ConfigFile { link, topics: written.topics })
}

/// TLS is used when both a certificate and a key are there, however they are given; data wins over files.
fn credentials(written: &Written) -> Result<Option<Credentials>, String> {
    let certificate = (&written.client_cert_data, &written.client_cert_file);
    let key_data = written.client_key_data.as_ref().map(|key| key.expose().clone());
    let key = (&key_data, &written.client_key_file);
    let authorities = (&written.ca_data, &written.ca_file);
    let given = |(data, file): (&Option<String>, &Option<PathBuf>)| data.is_some() || file.is_some();
    if !given(certificate) || !given(key) {
        return Ok(None);
    }
    if !given(authorities) {
        return Err(
            "clientCertFile and clientKeyFile need caFile (or caData): the broker would not be known"
                .to_owned(),
        );
    }
    if let ((None, Some(certificate)), (None, Some(key)), (None, Some(bundle))) =
        (certificate, key, authorities)
    {
        return Ok(Some(Credentials::Files(IdentityPaths {
            certificate: certificate.clone(),
            key: key.clone(),
            bundle: Some(bundle.clone()),
        })));
    }
    Ok(Some(Credentials::Inline {
        certificate: content("clientCertData", certificate)?,
        key: Secret::new(content("clientKeyData", key)?),
        authorities: content("caData", authorities)?,
    }))
}

fn content(name: &str, (data, file): (&Option<String>, &Option<PathBuf>)) -> Result<String, String> {
    if let Some(data) = data {
        let decoded = base64::engine::general_purpose::STANDARD.decode(data.trim());
        let text = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        return text.ok_or_else(|| format!("{name} is not PEM in base64"));
    }
    let path = file.as_ref().ok_or_else(|| format!("{name} is missing"))?;
    std::fs::read_to_string(path).map_err(|error| format!("read `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_certificates_means_tls_and_its_topics_are_kept() {
        let text = "
brokerHost: maestro-mqtt.maestro:8883
keepAlive: 30
dialTimeout: 5s
caFile: /tls/ca.crt
clientCertFile: /tls/tls.crt
clientKeyFile: /tls/tls.key
topics:
  sourceEvents: sources/maestro/consumers/+/sourceevents
  agentEvents: sources/maestro/consumers/+/agentevents
";
        let file = read(text, "me".to_owned()).unwrap();
        assert!(matches!(file.link.credentials, Some(Credentials::Files(_))));
        assert_eq!(file.link.keep_alive, Duration::from_secs(30));
        assert_eq!(file.link.dial_timeout, Duration::from_secs(5));
        assert_eq!(file.topics.agent_events, "sources/maestro/consumers/+/agentevents");
        assert_eq!(file.topics.source_broadcast, None);
    }

    #[test]
    fn json_is_read_and_an_authority_alone_stays_plain() {
        let text = r#"{"brokerHost": "127.0.0.1:1883", "caFile": "/tls/ca.crt"}"#;
        let file = read(text, "me".to_owned()).unwrap();
        assert!(file.link.credentials.is_none());
    }

    #[test]
    fn data_wins_over_files() {
        let text = r#"{"brokerHost": "b:1", "caData": "Y2E=", "clientCertData": "Y2VydA==", "clientCertFile": "/x",
            "clientKeyData": "a2V5"}"#;
        let Some(Credentials::Inline { certificate, key, authorities }) =
            read(text, "me".to_owned()).unwrap().link.credentials
        else {
            panic!("not inline");
        };
        assert_eq!(
            (certificate.as_str(), key.expose().as_str(), authorities.as_str()),
            ("cert", "key", "ca")
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("{}", "brokerHost"),
            ("brokerHost: nowhere", "not host:port"),
            ("{brokerHost: 'b:1', clientCertFile: /c, clientKeyFile: /k}", "caFile"),
            ("{brokerHost: 'b:1', clientCertData: '!', clientKeyFile: /k, caFile: /c}", "clientCertData"),
        ] {
            let why = read(text, "me".to_owned()).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
