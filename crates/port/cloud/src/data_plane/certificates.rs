//! Certificates of a Key Vault, issued by the vault or by an authority that it knows.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::{below, found};
use crate::api_version::VAULT_SECRETS;
use crate::credential::Scope;
use crate::error::{CloudError, Failure};
use crate::pipeline::{Outgoing, Pipeline};
use crate::resources::Tags;

const AUDIENCE: &str = "https://vault.azure.net";

/// The certificates of one vault. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Certificates {
    pipeline: Pipeline,
    vault: Url,
}

/// A certificate as wanted. Key and certificate are in the vault's secret of the same name, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateSpec {
    /// The authority: `Self`, or one that the vault knows.
    pub issuer: String,
    /// The common name.
    pub common_name: String,
    /// The names that it is for.
    pub dns_names: Vec<String>,
    /// How long it is valid.
    pub months: u32,
    /// Its tags.
    pub tags: Tags,
}

impl CertificateSpec {
    fn body(&self) -> Value {
        json!({
            "policy": {
                "key_props": { "exportable": true, "kty": "EC", "crv": "P-256", "reuse_key": false },
                "secret_props": { "contentType": "application/x-pem-file" },
                "x509_props": {
                    "subject": format!("CN={}", self.common_name),
                    "sans": { "dns_names": self.dns_names },
                    "validity_months": self.months,
                },
                "issuer": { "name": self.issuer },
            },
            "tags": self.tags,
        })
    }
}

#[derive(Deserialize)]
struct Pending {
    #[serde(default)]
    status: String,
    error: Option<PendingError>,
}

#[derive(Deserialize)]
struct PendingError {
    code: Option<String>,
}

impl Certificates {
    pub(crate) fn new(pipeline: Pipeline, vault: Url) -> Self {
        Self { pipeline, vault }
    }

    /// Whether a certificate is issued.
    pub async fn is_issued(&self, name: &str) -> Result<bool, CloudError> {
        #[derive(Deserialize)]
        struct Certificate {
            cer: Option<String>,
        }
        let out = self.request(Method::GET, &["certificates", name])?;
        let certificate: Option<Certificate> = found(self.pipeline.call(&out).await)?;
        Ok(certificate.and_then(|certificate| certificate.cer).is_some_and(|cer| !cer.is_empty()))
    }

    /// Requests a certificate unless there is one; returns whether it is issued. An authority may take a while: ask again.
    pub async fn ensure(&self, name: &str, spec: &CertificateSpec) -> Result<bool, CloudError> {
        if self.is_issued(name).await? {
            return Ok(true);
        }
        let pending = self.request(Method::GET, &["certificates", name, "pending"])?;
        let running: Option<Pending> = found(self.pipeline.call(&pending).await)?;
        let running = match running {
            Some(running) if running.status == "inProgress" => running,
            _ => {
                let out = self.request(Method::POST, &["certificates", name, "create"])?;
                let target = out.target.clone();
                let out = out.with_json(&spec.body()).map_err(|_| {
                    let failure = Failure::Protocol("the policy cannot be JSON");
                    CloudError::new(&Method::POST, target, "", failure)
                })?;
                self.pipeline.call(&out).await?
            }
        };
        match (running.status.as_str(), running.error) {
            (_, Some(PendingError { code: Some(code) })) => {
                tracing::warn!(certificate = name, code, "certificate request failed");
                Ok(false)
            }
            ("completed", _) => Ok(true),
            _ => Ok(false),
        }
    }

    /// Deletes a certificate with its key and its secret. The vault keeps it recoverable for some days.
    pub async fn delete(&self, name: &str) -> Result<(), CloudError> {
        let out = self.request(Method::DELETE, &["certificates", name])?;
        found(self.pipeline.call::<serde::de::IgnoredAny>(&out).await).map(drop)
    }

    fn request(&self, method: Method, path: &[&str]) -> Result<Outgoing, CloudError> {
        let target = format!("{}/{}", self.vault.host_str().unwrap_or_default(), path.join("/"));
        let Some(mut url) = below(&self.vault, path) else {
            let failure = Failure::Protocol("the name of the certificate");
            return Err(CloudError::new(&method, target, "", failure));
        };
        url.query_pairs_mut().append_pair("api-version", VAULT_SECRETS);
        Ok(Outgoing::new(method, url, target).with_scope(Scope::new(AUDIENCE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_as_the_vault_reads_it() {
        let spec = CertificateSpec {
            issuer: "Self".to_owned(),
            common_name: "api.example".to_owned(),
            dns_names: vec!["api.example".to_owned()],
            months: 6,
            tags: Tags::new(),
        };
        let policy = &spec.body()["policy"];
        assert_eq!(policy["x509_props"]["subject"], "CN=api.example");
        assert_eq!(policy["x509_props"]["sans"]["dns_names"], json!(["api.example"]));
        assert_eq!(policy["issuer"]["name"], "Self");
    }
}
