//! The configuration file of Maestro's server and agents: YAML or JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aro_base::Secret;
use aro_pki::IdentityPaths;
use base64::Engine as _;
use serde::Deserialize;

use crate::options::{Credentials, LinkOptions};

/// The topics in the file, unparsed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicNames {
    pub source_events: String,
    pub agent_events: String,
    pub source_broadcast: Option<String>,
    pub agent_broadcast: Option<String>,
}

/// The content of the file.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    pub link: LinkOptions,
    pub topics: TopicNames,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    #[error("read `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{path}`: {reason}")]
    Content { path: PathBuf, reason: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileContent {
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

/// Seconds as a number, or as a string such as `60s`.
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
    /// Reads the file; options it does not set are those of [`LinkOptions::new`]. Blocks on the disk.
    pub fn from_file(path: &Path, client_id: impl Into<String>) -> Result<ConfigFile, ConfigFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigFileError::Read { path: path.to_owned(), source })?;
        read(&text, client_id.into())
            .map_err(|reason| ConfigFileError::Content { path: path.to_owned(), reason })
    }
}

fn read(text: &str, client_id: String) -> Result<ConfigFile, String> {
    let content: FileContent = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let mut link = LinkOptions::new(content.broker_host.clone(), client_id);
    if aro_net::HostPort::parse(&link.broker).is_none() {
        return Err(format!("brokerHost `{}` is not host:port", content.broker_host));
    }
    if let Some(seconds) = content.keep_alive {
        link.keep_alive = Duration::from_secs(seconds.clamp(1, 65_535));
    }
    if let Some(timeout) = &content.dial_timeout {
        let seconds = timeout.get().ok_or("dialTimeout is not a number of seconds")?;
        link.dial_timeout = Duration::from_secs(seconds.max(1));
    }
    link.credentials = credentials(&content)?;
    link.username = content.username;
    link.password = content.password;
    Ok(ConfigFile { link, topics: content.topics })
}

/// TLS is used if certificate and key are both given, inline or as files; inline data takes precedence.
fn credentials(content: &FileContent) -> Result<Option<Credentials>, String> {
    let certificate = (&content.client_cert_data, &content.client_cert_file);
    let key_data = content.client_key_data.as_ref().map(|key| key.expose().clone());
    let key = (&key_data, &content.client_key_file);
    let authorities = (&content.ca_data, &content.ca_file);
    let given = |(data, file): (&Option<String>, &Option<PathBuf>)| data.is_some() || file.is_some();
    if !given(certificate) || !given(key) {
        return Ok(None);
    }
    if !given(authorities) {
        return Err(
            "clientCertFile and clientKeyFile need caFile (or caData): the broker's certificate could not be verified"
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
        certificate: load_pem("clientCertData", certificate)?,
        key: Secret::new(load_pem("clientKeyData", key)?),
        authorities: load_pem("caData", authorities)?,
    }))
}

fn load_pem(name: &str, (data, file): (&Option<String>, &Option<PathBuf>)) -> Result<String, String> {
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
    fn file_with_certificates_enables_tls_and_keeps_its_topics() {
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
    fn json_is_parsed_and_an_authority_alone_stays_plain() {
        let text = r#"{"brokerHost": "127.0.0.1:1883", "caFile": "/tls/ca.crt"}"#;
        let file = read(text, "me".to_owned()).unwrap();
        assert!(file.link.credentials.is_none());
    }

    #[test]
    fn inline_data_takes_precedence_over_files() {
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
    fn invalid_setting_is_named() {
        for (text, expected) in [
            ("{}", "brokerHost"),
            ("brokerHost: nowhere", "not host:port"),
            ("{brokerHost: 'b:1', clientCertFile: /c, clientKeyFile: /k}", "caFile"),
            ("{brokerHost: 'b:1', clientCertData: '!', clientKeyFile: /k, caFile: /c}", "clientCertData"),
        ] {
            let reason = read(text, "me".to_owned()).unwrap_err();
            assert!(reason.contains(expected), "{text}: {reason}");
        }
    }
}
