//! Secrets of a Key Vault.

use aro_base::Secret;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::{below, decode, found};
use crate::api_version::VAULT_SECRETS;
use crate::credential::Scope;
use crate::error::{CloudError, Failure};
use crate::pipeline::{Outgoing, Pipeline, Sent};
use crate::resources::Tags;
use crate::retry::Repeat;

const AUDIENCE: &str = "https://vault.azure.net";

/// The secrets of one vault. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Secrets {
    pipeline: Pipeline,
    vault: Url,
}

/// A secret as it is stored.
#[derive(Debug, Clone, Deserialize)]
pub struct VaultSecret {
    /// Its value.
    pub value: Secret<String>,
    /// Its URL, with the version.
    #[serde(default)]
    pub id: String,
    /// Its attributes.
    #[serde(default)]
    pub attributes: SecretAttributes,
    /// Its tags.
    #[serde(default)]
    pub tags: Option<Tags>,
}

/// Attributes of a secret. Times are seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretAttributes {
    /// Whether it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Not valid before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
    /// Not valid after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<i64>,
}

/// A secret as wanted.
#[derive(Debug, Clone)]
pub struct SecretSpec {
    /// Its value.
    pub value: Secret<String>,
    /// Its media type.
    pub content_type: Option<String>,
    /// Its attributes.
    pub attributes: SecretAttributes,
    /// Its tags.
    pub tags: Tags,
}

impl SecretSpec {
    /// A value without attributes.
    pub fn new(value: Secret<String>) -> Self {
        Self { value, content_type: None, attributes: SecretAttributes::default(), tags: Tags::new() }
    }

    fn is_stored(&self, stored: &VaultSecret) -> bool {
        let wanted = &self.attributes;
        let same = |wanted: Option<i64>, stored: Option<i64>| wanted.is_none() || wanted == stored;
        let tags = stored.tags.as_ref();
        stored.value == self.value
            && (wanted.enabled.is_none() || wanted.enabled == stored.attributes.enabled)
            && same(wanted.nbf, stored.attributes.nbf)
            && same(wanted.exp, stored.attributes.exp)
            && self.tags.iter().all(|(key, value)| tags.and_then(|tags| tags.get(key)) == Some(value))
    }
}

impl Secrets {
    pub(crate) fn new(pipeline: Pipeline, vault: Url) -> Self {
        Self { pipeline, vault }
    }

    /// Reads the newest version of a secret; `None` if there is none.
    pub async fn find(&self, name: &str) -> Result<Option<VaultSecret>, CloudError> {
        found(self.pipeline.call(&self.request(Method::GET, name)?).await)
    }

    /// Stores a secret. Each write makes a version: one that is stored already is not written again, nor after a lost
    /// reply.
    pub async fn ensure(&self, name: &str, spec: &SecretSpec) -> Result<VaultSecret, CloudError> {
        match self.find(name).await?.filter(|stored| spec.is_stored(stored)) {
            Some(stored) => Ok(stored),
            None => self.put(name, spec).await,
        }
    }

    /// Stores a secret that the caller has looked for: makes a version. It is not written twice after a lost reply.
    pub async fn put(&self, name: &str, spec: &SecretSpec) -> Result<VaultSecret, CloudError> {
        let out = self.request(Method::PUT, name)?;
        let mut progress = self.pipeline.progress();
        let mut body =
            json!({ "value": spec.value.expose(), "attributes": spec.attributes, "tags": spec.tags });
        if let Some(content_type) = &spec.content_type {
            body["contentType"] = content_type.as_str().into();
        }
        let mut sent = out
            .clone()
            .with_json(&body)
            .map_err(|_| progress.error(&out, Failure::Protocol("the secret cannot be JSON")))?;
        sent.repeat = Repeat::AfterLook;
        loop {
            match self.pipeline.send(&sent, &mut progress).await? {
                Sent::Reply(reply) => {
                    let reply = self.pipeline.accept(&sent, &progress, reply)?;
                    return decode(&sent, &progress, &reply);
                }
                Sent::Uncertain => {
                    if let Some(stored) = self.find(name).await?.filter(|stored| spec.is_stored(stored)) {
                        return Ok(stored);
                    }
                }
            }
        }
    }

    /// Deletes a secret with all its versions. The vault keeps it recoverable, and its name taken, for some days.
    pub async fn delete(&self, name: &str) -> Result<(), CloudError> {
        let out = self.request(Method::DELETE, name)?;
        found(self.pipeline.call::<serde::de::IgnoredAny>(&out).await).map(drop)
    }

    fn request(&self, method: Method, name: &str) -> Result<Outgoing, CloudError> {
        let target = format!("{}/secrets/{name}", self.vault.host_str().unwrap_or_default());
        let Some(mut url) = below(&self.vault, &["secrets", name]) else {
            return Err(CloudError::new(&method, target, "", Failure::Protocol("the name of the secret")));
        };
        url.query_pairs_mut().append_pair("api-version", VAULT_SECRETS);
        Ok(Outgoing::new(method, url, target).with_scope(Scope::new(AUDIENCE)))
    }
}
