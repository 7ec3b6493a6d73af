//! Secrets of resources, and the actions that show and replace them: keys of storage accounts, passwords of registries and of
//! their tokens. The secret itself is in no answer but an action's.

use aro_arm::ResourceId;
use aro_arm_server::{Answer, Failure, retry_conflicts};
use aro_base::Timestamp;
use aro_cloud_store::{NoRandom, ResourceSecret};
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::cloud::{Cloud, Stored, property};
use crate::mutations::Change;
use crate::provider::CloudRequest;
use crate::refusal::Refusal;
use crate::spec::{ActionKind, SecretKind, TypeSpec};
use crate::types;
use crate::write::body_of;

const TOKENS: &str = "Microsoft.ContainerRegistry/registries/tokens";
/// The passwords of a token.
const TOKEN_PASSWORDS: [&str; 2] = ["password1", "password2"];

fn no_random(error: NoRandom) -> Failure {
    Failure::Unavailable(Box::new(error))
}

fn made(name: &str, kind: SecretKind, now: Timestamp) -> Result<ResourceSecret, Failure> {
    match kind {
        SecretKind::Key => ResourceSecret::key(name, now),
        SecretKind::Password => ResourceSecret::password(name, now),
    }
    .map_err(no_random)
}

/// The secrets of a resource that is written: those it has, and those of its type that it lacks.
pub(crate) fn complete(
    spec: &TypeSpec,
    old: Option<&Stored>,
    now: Timestamp,
) -> Result<Vec<ResourceSecret>, Failure> {
    let mut secrets = old.map(|old| old.value.secrets.clone()).unwrap_or_default();
    for (name, kind) in spec.secrets {
        if !secrets.iter().any(|secret| secret.name == *name) {
            secrets.push(made(name, *kind, now)?);
        }
    }
    Ok(secrets)
}

impl Cloud {
    /// An action on a resource.
    pub(crate) async fn act(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        kind: ActionKind,
        id: &ResourceId,
    ) -> Result<Answer, Failure> {
        match kind {
            ActionKind::ListKeys => {
                let secrets = self.secrets(spec, id).await?;
                Ok(Answer::json(StatusCode::OK, &shown_keys(&secrets)))
            }
            ActionKind::RegenerateKey => {
                let name = text_of(&body_of(&request.body)?, "keyName")?;
                let secrets = self.replace_secret(request, spec, id, &name, "keyName").await?;
                Ok(Answer::json(StatusCode::OK, &shown_keys(&secrets)))
            }
            ActionKind::ListCredentials => {
                let secrets = self.secrets(spec, id).await?;
                self.check_administrator(spec, id).await?;
                Ok(Answer::json(StatusCode::OK, &shown_passwords(id, &secrets)))
            }
            ActionKind::RegenerateCredential => {
                self.check_administrator(spec, id).await?;
                let name = text_of(&body_of(&request.body)?, "name")?;
                let secrets = self.replace_secret(request, spec, id, &name, "name").await?;
                Ok(Answer::json(StatusCode::OK, &shown_passwords(id, &secrets)))
            }
            ActionKind::GenerateCredentials => self.generate_credentials(request, id).await,
        }
    }

    async fn live_item(&self, full: &str, id: &ResourceId) -> Result<Stored, Failure> {
        let stored = self.find(full, id).await?.ok_or_else(|| Refusal::resource_not_found(id))?;
        match stored.value.deleting {
            true => Err(Refusal::being_deleted(id).into()),
            false => Ok(stored),
        }
    }

    /// The secrets of a resource. One that was written before its type had secrets gets them now.
    async fn secrets(
        &self,
        spec: &'static TypeSpec,
        id: &ResourceId,
    ) -> Result<Vec<ResourceSecret>, Failure> {
        retry_conflicts(|_| async move {
            let mut stored = self.live_item(spec.full, id).await?;
            let secrets = complete(spec, Some(&stored), self.now())?;
            if secrets != stored.value.secrets {
                stored.value.secrets.clone_from(&secrets);
                self.commit(id, vec![self.collection(spec.full).replace(&stored)?]).await?;
            }
            Ok(secrets)
        })
        .await
    }

    /// Makes a named secret anew; returns all of the resource.
    async fn replace_secret(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        id: &ResourceId,
        name: &str,
        member: &str,
    ) -> Result<Vec<ResourceSecret>, Failure> {
        let named =
            spec.secrets.iter().find(|(known, _)| known.eq_ignore_ascii_case(name) && is_shown(known));
        let (name, kind) = named.ok_or_else(|| {
            let names: Vec<&str> =
                spec.secrets.iter().map(|(name, _)| *name).filter(|name| is_shown(name)).collect();
            Refusal::member(member, &format!("must be one of '{}'", names.join("', '")))
        })?;
        retry_conflicts(|_| async move {
            let mut stored = self.live_item(spec.full, id).await?;
            let mut secrets = complete(spec, Some(&stored), self.now())?;
            secrets.retain(|secret| secret.name != *name);
            secrets.push(made(name, *kind, self.now())?);
            secrets.sort_by(|one, other| one.name.cmp(&other.name));
            stored.value.secrets.clone_from(&secrets);
            self.commit(id, vec![self.collection(spec.full).replace(&stored)?]).await?;
            self.record(request, Change::Updated, id);
            Ok(secrets)
        })
        .await
    }

    /// The administrator of a registry has passwords only if it is enabled.
    async fn check_administrator(&self, spec: &'static TypeSpec, id: &ResourceId) -> Result<(), Failure> {
        let stored = self.live_item(spec.full, id).await?;
        let enabled = stored.value.properties().and_then(|properties| properties.get("adminUserEnabled"));
        if enabled.and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        let message = format!("The admin user of the registry '{}' is disabled.", id.name());
        Err(Refusal::new(StatusCode::BAD_REQUEST, "AdminUserDisabled", message).into())
    }

    /// Makes passwords of a token of a registry; what is stored of them are digests.
    async fn generate_credentials(
        &self,
        request: &CloudRequest,
        registry: &ResourceId,
    ) -> Result<Answer, Failure> {
        let body = body_of(&request.body)?;
        let token = text_of(&body, "tokenId")?;
        let token = ResourceId::parse(&token).ok().filter(|token| {
            token.is_type(TOKENS)
                && token.parent().is_some_and(|parent| parent.to_lower() == registry.to_lower())
        });
        let token =
            &token.ok_or_else(|| Refusal::member("tokenId", "must be the id of a token of this registry"))?;
        let expires = match body.get("expiry").and_then(Value::as_str) {
            None => None,
            Some(text) => Some(
                text.parse::<Timestamp>()
                    .map_err(|_| Refusal::member("expiry", "must be a date and time"))?,
            ),
        };
        let names: Vec<&str> = match body.get("name").and_then(Value::as_str) {
            None => TOKEN_PASSWORDS.to_vec(),
            Some(name) => {
                let known = TOKEN_PASSWORDS.into_iter().find(|known| known.eq_ignore_ascii_case(name));
                vec![known.ok_or_else(|| Refusal::member("name", "must be 'password1' or 'password2'"))?]
            }
        };
        let spec = types::find(TOKENS).ok_or(Failure::NoRoute)?;
        let names = &names;
        retry_conflicts(|_| async move {
            let mut stored = self.live_item(spec.full, token).await?;
            let (now, mut shown) = (self.now(), Vec::new());
            for name in names {
                let (secret, password) = ResourceSecret::digested(name, now, expires).map_err(no_random)?;
                let mut password_shown = shown_times(&secret);
                password_shown["value"] = json!(password.expose());
                shown.push(password_shown);
                stored.value.secrets.retain(|known| known.name != *name);
                stored.value.secrets.push(secret);
            }
            let times: Vec<Value> = stored.value.secrets.iter().map(shown_times).collect();
            if let Some(properties) = stored.value.body.get_mut("properties").and_then(Value::as_object_mut) {
                let credentials = json!({"passwords": times, "certificates": []});
                properties.insert("credentials".to_owned(), credentials);
            }
            self.commit(token, vec![self.collection(spec.full).replace(&stored)?]).await?;
            self.record(request, Change::Updated, token);
            let username = token.name();
            Ok(Answer::json(StatusCode::OK, &json!({"username": username, "passwords": shown})))
        })
        .await
    }

    /// What a client of a registry may do that signs in with a token of it, by the token's scope map. `None`: there is no such
    /// registry or token, it is disabled, or the password is wrong or has ended.
    pub async fn registry_actions(
        &self,
        registry: &str,
        token: &str,
        password: &str,
    ) -> Result<Option<Vec<String>>, Failure> {
        let found = self.find_named("Microsoft.ContainerRegistry/registries", registry).await?;
        let Some(registry) = found.and_then(|found| ResourceId::parse(&found.id).ok()) else {
            return Ok(None);
        };
        let Some(token) = self.find(TOKENS, &registry.child("tokens", token)).await? else { return Ok(None) };
        let map = ResourceId::parse(property(&token.value, "scopeMapId")).ok();
        let Some(map) = map else { return Ok(None) };
        let Some(map) = self.find("Microsoft.ContainerRegistry/registries/scopeMaps", &map).await? else {
            return Ok(None);
        };
        Ok(aro_cloud_store::registry::permitted_actions(&token.value, &map.value, password, self.now()))
    }
}

/// The secret that signs user delegation keys is in no answer.
fn is_shown(name: &str) -> bool {
    name != "userDelegation"
}

fn text_of(body: &Map<String, Value>, name: &str) -> Result<String, Refusal> {
    body.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| Refusal::missing_member(name))
}

fn shown_keys(secrets: &[ResourceSecret]) -> Value {
    let shown = secrets.iter().filter(|secret| is_shown(&secret.name));
    let keys: Vec<Value> = shown
        .map(|secret| {
            json!({
                "keyName": secret.name, "value": secret.exposed(), "permissions": "FULL",
                "creationTime": secret.created.to_string(),
            })
        })
        .collect();
    json!({"keys": keys})
}

fn shown_passwords(id: &ResourceId, secrets: &[ResourceSecret]) -> Value {
    let passwords: Vec<Value> =
        secrets.iter().map(|secret| json!({"name": secret.name, "value": secret.exposed()})).collect();
    json!({"username": id.name(), "passwords": passwords})
}

/// A password of a token without its value.
fn shown_times(secret: &ResourceSecret) -> Value {
    let mut shown = json!({"name": secret.name, "creationTime": secret.created.to_string()});
    if let Some(expires) = secret.expires {
        shown["expiry"] = json!(expires.to_string());
    }
    shown
}
