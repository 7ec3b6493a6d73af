//! The claims of a verified token.

use aro_base::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::AuthError;

/// Groups of one principal that a token holds; Entra puts at most 200 into one and refers to Graph beyond that.
const MOST_GROUPS: usize = 1000;

/// For whom a token was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenType {
    /// An application by itself (`idtyp` is `app`).
    Application,
    /// A user (`idtyp` is `user`).
    User,
    /// The issuer does not state it.
    Unstated,
}

/// What a verified token states about the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// `tid`: the caller's tenant.
    pub tenant_id: Option<String>,
    /// `oid`: the caller's object in its tenant.
    pub object_id: Option<String>,
    /// `sub`: the caller, as this audience knows it.
    pub subject: Option<String>,
    /// `appid` (v1) or `azp` (v2): the application that asked for the token.
    pub app_id: Option<String>,
    /// `appidacr` or `azpacr`: how the application proved itself (0 public, 1 secret, 2 certificate).
    pub app_id_acr: Option<String>,
    /// The audience that was accepted.
    pub audience: String,
    /// `iss`.
    pub issuer: String,
    /// `exp`.
    pub expires: Timestamp,
    /// `nbf`.
    pub not_before: Option<Timestamp>,
    /// `iat`.
    pub issued_at: Option<Timestamp>,
    /// `name`: for people to read.
    pub name: Option<String>,
    /// `upn`, `preferred_username` or `unique_name`: the user's sign-in name. For records, never for decisions.
    pub user_name: Option<String>,
    /// `groups`: object ids of the caller's groups.
    pub groups: Vec<String>,
    /// The caller is in more groups than the token holds; Graph has to be asked.
    pub groups_overage: bool,
    /// `roles`: roles of the application that were assigned to the caller.
    pub roles: Vec<String>,
    /// `scp`: delegated permissions, separated by spaces.
    pub scopes: Option<String>,
    /// `idtyp`.
    pub token_type: TokenType,
    /// `xms_mirid`: the resource id of the managed identity.
    pub managed_identity: Option<String>,
    /// `cnf.kid`: the thumbprint of the key that must sign requests with this token (proof of possession).
    pub confirmation_key: Option<String>,
}

impl Claims {
    /// Whether it is an application's own token. Issuers that state no type give users a `scp` and applications none; such a
    /// token counts as an application's if its subject is its object.
    pub fn is_application(&self) -> bool {
        match self.token_type {
            TokenType::Application => true,
            TokenType::User => false,
            TokenType::Unstated => {
                self.scopes.is_none()
                    && self.app_id.is_some()
                    && self.object_id.is_some()
                    && self.object_id == self.subject
            }
        }
    }

    /// Bytes of memory, roughly.
    pub(crate) fn size(&self) -> usize {
        let texts = [
            &self.tenant_id,
            &self.object_id,
            &self.subject,
            &self.app_id,
            &self.app_id_acr,
            &self.name,
            &self.user_name,
            &self.scopes,
            &self.managed_identity,
            &self.confirmation_key,
        ];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let lists = self.groups.iter().chain(&self.roles).map(|entry| entry.len() + size_of::<String>());
        size_of::<Self>() + texts + self.audience.len() + self.issuer.len() + lists.sum::<usize>()
    }
}

/// The payload as issuers write it.
#[derive(Debug, Deserialize)]
pub(crate) struct Payload {
    pub(crate) iss: String,
    pub(crate) aud: Audience,
    exp: NumericDate,
    nbf: Option<NumericDate>,
    iat: Option<NumericDate>,
    pub(crate) tid: Option<String>,
    oid: Option<String>,
    sub: Option<String>,
    appid: Option<String>,
    azp: Option<String>,
    appidacr: Option<String>,
    azpacr: Option<String>,
    name: Option<String>,
    upn: Option<String>,
    preferred_username: Option<String>,
    unique_name: Option<String>,
    groups: Option<Vec<String>>,
    hasgroups: Option<Value>,
    #[serde(rename = "_claim_names")]
    claim_names: Option<Value>,
    roles: Option<Vec<String>>,
    scp: Option<String>,
    idtyp: Option<String>,
    xms_mirid: Option<String>,
    cnf: Option<Value>,
}

/// One audience, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

/// Seconds since 1970; fractions are dropped.
#[derive(Debug, Clone, Copy, Deserialize)]
struct NumericDate(f64);

impl NumericDate {
    fn timestamp(self) -> Result<Timestamp, AuthError> {
        // The conversion saturates, and what is out of range is refused below.
        Timestamp::from_second(self.0 as i64).map_err(|_| AuthError::Malformed)
    }
}

impl Payload {
    /// Parses the payload of a token whose signature is verified.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, AuthError> {
        serde_json::from_slice(payload).map_err(|_| AuthError::Malformed)
    }

    /// The claims, for the audience that was accepted.
    pub(crate) fn into_claims(self, audience: String) -> Result<Claims, AuthError> {
        // One token names one application; a token that names two is not Entra's.
        if matches!((&self.appid, &self.azp), (Some(one), Some(two)) if !one.eq_ignore_ascii_case(two)) {
            return Err(AuthError::Malformed);
        }
        let token_type = match self.idtyp.as_deref() {
            None => TokenType::Unstated,
            Some("app") => TokenType::Application,
            Some(_) => TokenType::User,
        };
        let refers_to_graph = self.claim_names.as_ref().is_some_and(|names| names.get("groups").is_some())
            || self.hasgroups.is_some();
        let mut groups = self.groups.unwrap_or_default();
        let too_many = groups.len() > MOST_GROUPS;
        groups.truncate(MOST_GROUPS);
        let date = |date: Option<NumericDate>| date.map(NumericDate::timestamp).transpose();
        Ok(Claims {
            tenant_id: self.tid,
            object_id: self.oid,
            subject: self.sub,
            app_id: self.appid.or(self.azp),
            app_id_acr: self.appidacr.or(self.azpacr),
            audience,
            issuer: self.iss,
            expires: self.exp.timestamp()?,
            not_before: date(self.nbf)?,
            issued_at: date(self.iat)?,
            name: self.name,
            user_name: self.upn.or(self.preferred_username).or(self.unique_name),
            groups,
            groups_overage: refers_to_graph || too_many,
            roles: self.roles.unwrap_or_default(),
            scopes: self.scp,
            token_type,
            managed_identity: self.xms_mirid,
            confirmation_key: self.cnf.and_then(|cnf| cnf.get("kid")?.as_str().map(str::to_owned)),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(extra: Value) -> Result<Claims, AuthError> {
        let mut all = json!({"iss": "i", "aud": "a", "exp": 1_800_000_000});
        if let (Some(all), Value::Object(extra)) = (all.as_object_mut(), extra) {
            all.extend(extra);
        }
        Payload::parse(all.to_string().as_bytes())?.into_claims("a".to_owned())
    }

    #[test]
    fn v1_and_v2_names_of_the_application_lead_to_the_same_claim() {
        assert_eq!(claims(json!({"appid": "x"})).unwrap().app_id.as_deref(), Some("x"));
        assert_eq!(claims(json!({"azp": "x", "azpacr": "2"})).unwrap().app_id.as_deref(), Some("x"));
        assert_eq!(claims(json!({"appid": "x", "azp": "X"})).unwrap().app_id.as_deref(), Some("x"));
        assert_eq!(claims(json!({"appid": "x", "azp": "y"})), Err(AuthError::Malformed));
    }

    #[test]
    fn an_application_token_is_recognised_with_and_without_its_type() {
        for (extra, expected) in [
            (json!({"idtyp": "app"}), true),
            (json!({"idtyp": "user", "appid": "x", "oid": "o", "sub": "o"}), false),
            (json!({"appid": "x", "oid": "o", "sub": "o"}), true),
            (json!({"appid": "x", "oid": "o", "sub": "o", "scp": "user_impersonation"}), false),
            (json!({"appid": "x", "oid": "o", "sub": "pairwise"}), false),
            (json!({}), false),
        ] {
            assert_eq!(claims(extra.clone()).unwrap().is_application(), expected, "{extra}");
        }
    }

    #[test]
    fn groups_that_only_graph_knows_are_reported() {
        let some = claims(json!({"groups": ["g1", "g2"]})).unwrap();
        assert_eq!((some.groups.len(), some.groups_overage), (2, false));
        let referred = claims(json!({"_claim_names": {"groups": "src1"}})).unwrap();
        assert!(referred.groups.is_empty() && referred.groups_overage);
        let many: Vec<String> = (0..=MOST_GROUPS).map(|n| n.to_string()).collect();
        let cut = claims(json!({"groups": many})).unwrap();
        assert_eq!((cut.groups.len(), cut.groups_overage), (MOST_GROUPS, true));
    }

    #[test]
    fn payloads_that_no_issuer_writes_are_malformed() {
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"iss":"i","aud":"a"}"#,
            r#"{"iss":"i","exp":1}"#,
            r#"{"aud":"a","exp":1}"#,
            r#"{"iss":"i","aud":"a","exp":"1"}"#,
            r#"{"iss":"i","aud":7,"exp":1}"#,
            r#"{"iss":"i","aud":"a","exp":1,"exp":2}"#,
            r#"{"iss":1,"aud":"a","exp":1}"#,
        ] {
            assert!(Payload::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(claims(json!({"exp": 1e300})), Err(AuthError::Malformed));
        assert_eq!(claims(json!({"nbf": -1e300})), Err(AuthError::Malformed));
        assert_eq!(claims(json!({"exp": 1_800_000_000.9})).unwrap().expires.as_second(), 1_800_000_000);
    }
}
