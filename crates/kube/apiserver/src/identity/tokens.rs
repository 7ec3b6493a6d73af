//! Tokens of service accounts: made on request, bound to what they are for, checked against what is still there.

use std::sync::Arc;

use aro_base::{Secret, SignedDuration, Timestamp};
use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::{FieldError, Status, go_quote};
use aro_pki::jws::{Algorithm, KeySet, SigningKey, VerifyingKey};
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::user::User;
use crate::cluster::{Cluster, rfc3339};
use crate::http::answer::{self, Answer};
use crate::rest::Call;

/// Who signs, and for whom tokens are by default.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
const DEFAULT: i64 = 3600;

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Vec<String>,
    exp: i64,
    iat: i64,
    nbf: i64,
    jti: String,
    #[serde(rename = "kubernetes.io")]
    bound: Bound,
}

#[derive(Debug, Serialize, Deserialize)]
struct Bound {
    namespace: String,
    serviceaccount: Named,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pod: Option<Named>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<Named>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<Named>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Named {
    name: String,
    uid: String,
}

/// A cluster's signing key, ready for use.
pub struct Signer {
    key: SigningKey,
    /// Its public half.
    keys: KeySet,
    /// Tokens whose signature was checked before: that takes longer than all the rest.
    seen: Cache<Box<str>, Arc<Claims>>,
}

/// Tokens remembered per cluster.
const REMEMBERED: usize = 1024;

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.key.key_id())
    }
}

impl Signer {
    pub fn new(key: &Secret<String>) -> Result<Self, String> {
        let key = SigningKey::from_pem(key, Algorithm::Es256).map_err(|error| error.to_string())?;
        let keys = KeySet::new(VerifyingKey::from_jwk(key.jwk()));
        Ok(Self { key, keys, seen: Cache::new(REMEMBERED) })
    }
}

/// Why a token names no user.
#[derive(Debug, thiserror::Error)]
pub enum Rejected {
    /// Not a token of this cluster.
    #[error("{0}")]
    Foreign(String),
    /// Issued for others.
    #[error("token audiences {} is invalid for the target audiences {}", quoted(.token), quoted(.target))]
    Audiences { token: Vec<String>, target: Vec<String> },
    /// No longer, or not yet.
    #[error("{0}")]
    Invalid(String),
}

/// A list as Go's `%q` shows it.
fn quoted(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|text| go_quote(text)).collect();
    format!("[{}]", list.join(" "))
}

/// Those of the requested audiences that something is for, in the order of the request.
pub fn intersect(audiences: &[String], requested: &[String]) -> Vec<String> {
    requested.iter().filter(|audience| audiences.contains(audience)).cloned().collect()
}

/// Checks a token: its signature, its time, its audience, and that the account and the object it is bound to still exist.
/// Answers with the requested audiences that it is for; there is at least one.
pub fn verify(
    cluster: &Arc<Cluster>,
    token: &str,
    requested: &[String],
) -> Result<(User, Vec<String>), Rejected> {
    let signer = cluster.signer().map_err(Rejected::Foreign)?;
    let claims = if let Some(claims) = signer.seen.get(token) {
        claims
    } else {
        let claims = Arc::new(signed_claims(signer, token).map_err(Rejected::Foreign)?);
        signer.seen.insert(token.into(), claims.clone());
        claims
    };
    let audiences = intersect(&claims.aud, requested);
    if audiences.is_empty() {
        return Err(Rejected::Audiences { token: claims.aud.clone(), target: requested.to_vec() });
    }
    Ok((still_good(cluster, &claims).map_err(Rejected::Invalid)?, audiences))
}

/// What a token says, if it is ours.
fn signed_claims(signer: &Signer, token: &str) -> Result<Claims, String> {
    let payload = signer.keys.verify(token).map_err(|error| error.to_string())?;
    let claims: Claims = serde_json::from_slice(&payload).map_err(|error| error.to_string())?;
    // The audience differs by who asks, and time passes: both are checked at every use.
    if claims.iss != ISSUER {
        return Err("the token has another issuer".to_owned());
    }
    Ok(claims)
}

/// Checks what may change while a token lives.
fn still_good(cluster: &Arc<Cluster>, claims: &Claims) -> Result<User, String> {
    let now = cluster.now().as_second();
    if now >= claims.exp {
        return Err("service account token has expired".to_owned());
    }
    if now + 10 < claims.nbf {
        return Err("service account token is not valid yet".to_owned());
    }
    let bound = &claims.bound;
    let namespace = &bound.namespace;
    let there = |watch_cache: &str, key: &str, named: &Named, what: &str| -> Result<(), String> {
        let found = cluster.store.watch_cache(watch_cache).get(key).map(|stored| stored.value());
        match found {
            None => Err(format!("{what} {:?} not found", named.name)),
            Some(object) if meta::uid(&object) != named.uid => {
                Err(format!("{what} UID ({}) does not match claim ({})", meta::uid(&object), named.uid))
            }
            Some(_) => Ok(()),
        }
    };
    there(
        "serviceaccounts",
        &format!("{namespace}/{}", bound.serviceaccount.name),
        &bound.serviceaccount,
        "serviceaccounts",
    )?;
    if let Some(pod) = &bound.pod {
        there("pods", &format!("{namespace}/{}", pod.name), pod, "pods")?;
    }
    if let Some(secret) = &bound.secret {
        there("secrets", &format!("{namespace}/{}", secret.name), secret, "secrets")?;
    }
    if let (Some(node), None) = (&bound.node, &bound.pod) {
        there("nodes", &node.name, node, "nodes")?;
    }
    let account = &bound.serviceaccount;
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let mut user = User::authenticated(format!("system:serviceaccount:{namespace}:{}", account.name), groups);
    user.uid.clone_from(&account.uid);
    user.extra
        .insert("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("JTI={}", claims.jti)]);
    for (key, named) in [("pod", &bound.pod), ("node", &bound.node)] {
        if let Some(named) = named {
            user.extra.insert(format!("authentication.kubernetes.io/{key}-name"), vec![named.name.clone()]);
            user.extra.insert(format!("authentication.kubernetes.io/{key}-uid"), vec![named.uid.clone()]);
        }
    }
    Ok(user)
}

/// `POST serviceaccounts/x/token`
pub fn request(mut call: Call) -> Result<Answer, Status> {
    if call.verb != "create" {
        return Err(crate::rest::method_not_allowed());
    }
    let mut review = call.read_other("authentication.k8s.io", "v1", "TokenRequest")?;
    let Some(account) = call.watch_cache.get(&call.key()) else { return Err(call.not_found()) };
    let account = account.value();
    super::nodes::restriction::token::admit(&call, &review)?;
    let asked = meta::get(&review, &["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or(DEFAULT);
    let mut errors = Vec::new();
    if asked < SHORTEST {
        errors.push(FieldError::invalid(
            "spec.expirationSeconds",
            asked,
            "may not specify a duration less than 10 minutes",
        ));
    }
    if asked > LONGEST {
        errors.push(FieldError::invalid(
            "spec.expirationSeconds",
            asked,
            "may not specify a duration larger than 2^32 seconds",
        ));
    }
    if !errors.is_empty() {
        let kind = aro_kube_apimachinery::GroupKind {
            group: "authentication.k8s.io".to_owned(),
            kind: "TokenRequest".to_owned(),
        };
        return Err(Status::invalid(&kind, "", &errors));
    }
    let audiences =
        meta::get(&review, &["spec", "audiences"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut audiences: Vec<String> = audiences.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    let mut bound = Bound {
        namespace: call.namespace.clone(),
        serviceaccount: Named { name: call.name.clone(), uid: meta::uid(&account).to_owned() },
        pod: None,
        secret: None,
        node: None,
    };
    bind(&call, &review, &mut bound)?;
    let now = call.now.as_second();
    let claims = Claims {
        iss: ISSUER.to_owned(),
        sub: format!("system:serviceaccount:{}:{}", call.namespace, call.name),
        aud: audiences.clone(),
        exp: now + asked,
        iat: now,
        nbf: now,
        jti: uuid::Uuid::new_v4().to_string(),
        bound,
    };
    let signer = call.cluster.signer().map_err(Status::internal)?;
    let token = signer.key.sign(&claims).map_err(Status::internal)?;
    meta::set(&mut review, &["spec", "audiences"], json!(audiences));
    meta::set(&mut review, &["spec", "expirationSeconds"], json!(asked));
    let until = call.now.saturating_add(SignedDuration::from_secs(asked)).unwrap_or(Timestamp::MAX);
    review["status"] = json!({"token": token, "expirationTimestamp": rfc3339(until)});
    meta::set(&mut review, &["metadata", "name"], json!(call.name));
    meta::set(&mut review, &["metadata", "namespace"], json!(call.namespace));
    meta::set(&mut review, &["metadata", "creationTimestamp"], json!(call.time()));
    Ok(answer::json(201, &review))
}

/// Binds a token to an object: it is worth nothing once that is gone.
fn bind(call: &Call, review: &Value, bound: &mut Bound) -> Result<(), Status> {
    let Some(reference) =
        meta::get(review, &["spec", "boundObjectRef"]).filter(|reference| reference.is_object())
    else {
        return Ok(());
    };
    let text = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let (watch_cache, key) = match kind {
        "Pod" => ("pods", format!("{}/{name}", call.namespace)),
        "Secret" => ("secrets", format!("{}/{name}", call.namespace)),
        "Node" => ("nodes", name.to_owned()),
        _ => {
            let message = format!(
                "cannot bind token for serviceaccount to object of type {}/{kind}",
                text("apiVersion")
            );
            return Err(Status::bad_request(message));
        }
    };
    let Some(object) = call.cluster.store.watch_cache(watch_cache).get(&key).map(|stored| stored.value())
    else {
        return Err(Status::not_found(&aro_kube_apimachinery::GroupResource::new("", watch_cache), name));
    };
    let uid = text("uid");
    if !uid.is_empty() && uid != meta::uid(&object) {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(&call.resource_name(), &call.name, why));
    }
    let named = Named { name: name.to_owned(), uid: meta::uid(&object).to_owned() };
    match kind {
        "Pod" => {
            let own = meta::get(&object, &["spec", "serviceAccountName"])
                .and_then(Value::as_str)
                .unwrap_or_default();
            if own != call.name {
                let why = format!(
                    "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                    call.name
                );
                return Err(Status::bad_request(why));
            }
            let node = meta::get(&object, &["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
            let node = call.cluster.store.watch_cache("nodes").get(node).map(|node| node.value());
            bound.node = node
                .map(|node| Named { name: meta::name(&node).to_owned(), uid: meta::uid(&node).to_owned() });
            bound.pod = Some(named);
        }
        "Secret" => bound.secret = Some(named),
        _ => bound.node = Some(named),
    }
    Ok(())
}

pub fn openid_configuration(_cluster: &Arc<Cluster>) -> Answer {
    answer::json(
        200,
        &json!({
            "issuer": ISSUER, "jwks_uri": format!("{ISSUER}/openid/v1/jwks"), "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"],
        }),
    )
}

pub fn jwks(cluster: &Arc<Cluster>) -> Answer {
    match cluster.signer() {
        Ok(signer) => {
            let body = json!({"keys": [signer.key.jwk()]}).to_string();
            answer::text(200, "application/jwk-set+json", body)
        }
        Err(error) => answer::status(&Status::internal(error)),
    }
}
