//! The token issuer of a cluster: its keys in the vault, and the documents by which others verify its tokens.

use aro_base::Secret;
use aro_cloud::{Blobs, SecretAttributes, SecretSpec};
use aro_control::saga::StepError;
use aro_pki::KeyPem;
use aro_pki::jws::{Algorithm, SigningKey};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::{Azure, gone, step};
use crate::provisioning::target::Target;

/// The container that the storage account serves as a website.
const WEBSITE: &str = "$web";
const DISCOVERY: &str = ".well-known/openid-configuration";
const KEYS: &str = "openid/v1/jwks";

/// The keys that a cluster begins with.
#[derive(Debug, Clone)]
pub(crate) struct ClusterKeys {
    /// Signs the tokens of service accounts.
    pub(crate) service_account: KeyPem,
    /// The private half of the key for nodes.
    pub(crate) nodes: KeyPem,
    /// Its public half.
    pub(crate) nodes_public: String,
}

/// The keys as the vault holds them.
#[derive(Serialize, Deserialize)]
struct StoredKeys {
    service_account: String,
    nodes: String,
    nodes_public: String,
}

impl Azure {
    /// The keys of a cluster: those in the vault, or new ones that are put there.
    async fn keep_keys(&self, target: &Target) -> Result<ClusterKeys, StepError> {
        let (vault, name) = (self.vault(&target.certificates_vault), target.keys_secret());
        if let Some(stored) = vault.find(&name).await.map_err(|error| step(&error))? {
            return parse(&name, stored.value.expose());
        }
        let keys = self.keys.take().await?;
        let stored = StoredKeys {
            service_account: keys.service_account.expose().clone(),
            nodes: keys.nodes.expose().clone(),
            nodes_public: keys.nodes_public.clone(),
        };
        let spec = SecretSpec {
            value: Secret::new(json!(stored).to_string()),
            content_type: Some("application/json".to_owned()),
            attributes: SecretAttributes::default(),
            tags: target.tags(),
        };
        vault.put(&name, &spec).await.map_err(|error| step(&error))?;
        self.cache.lock().remove(&target.id);
        Ok(keys)
    }

    pub(super) async fn read_keys(&self, target: &Target) -> Result<ClusterKeys, StepError> {
        let (vault, name) = (self.vault(&target.certificates_vault), target.keys_secret());
        let stored = vault.find(&name).await.map_err(|error| step(&error))?;
        let stored = stored.ok_or_else(|| StepError::retry(format!("vault secret {name} not found")))?;
        parse(&name, stored.value.expose())
    }

    /// Publishes the documents of the issuer. They are written again only if they differ.
    pub(super) async fn publish_issuer(&self, target: &Target) -> Result<String, StepError> {
        let keys = self.keep_keys(target).await?;
        let signing = SigningKey::from_pem(&keys.service_account, Algorithm::Rs256)
            .map_err(|error| StepError::terminal(format!("signing key: {}", aro_base::chain(&error))))?;
        let documents = [(DISCOVERY, discovery(&target.issuer)), (KEYS, json!({ "keys": [signing.jwk()] }))];
        let blobs = self.website()?;
        let writes = documents.map(|(path, document)| {
            let (blobs, name) = (blobs.clone(), format!("{}/{path}", target.issuer_path));
            async move {
                let content = Bytes::from(document.to_string());
                if blobs.find(WEBSITE, &name).await?.is_some_and(|stored| stored == content) {
                    return Ok(());
                }
                blobs.put(WEBSITE, &name, "application/json", content).await
            }
        });
        futures::future::try_join_all(writes).await.map_err(|error| step(&error))?;
        Ok(target.issuer.clone())
    }

    pub(super) async fn withdraw_issuer(&self, target: &Target) -> Result<(), StepError> {
        let blobs = self.website()?;
        for path in [DISCOVERY, KEYS] {
            gone(blobs.delete(WEBSITE, &format!("{}/{path}", target.issuer_path)).await)?;
        }
        gone(self.vault(&target.certificates_vault).delete(&target.keys_secret()).await)
    }

    fn website(&self) -> Result<Blobs, StepError> {
        let url = self.access.layout.oidc_blobs();
        let url = Url::parse(&url).map_err(|error| StepError::terminal(format!("`{url}`: {error}")))?;
        Ok(self.cloud.blobs(self.access.service.clone(), url))
    }
}

fn parse(name: &str, text: &str) -> Result<ClusterKeys, StepError> {
    let stored: StoredKeys = serde_json::from_str(text).map_err(|_| {
        StepError::terminal(format!("vault secret {name} does not hold the keys of a cluster"))
    })?;
    Ok(ClusterKeys {
        service_account: Secret::new(stored.service_account),
        nodes: Secret::new(stored.nodes),
        nodes_public: stored.nodes_public,
    })
}

fn discovery(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/{KEYS}"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}
