//! What is accepted.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::AuthError;
use crate::claims::Claims;

/// The v1 authority; its issuers are `https://sts.windows.net/<tenant>/`.
const V1: &str = "https://sts.windows.net/";
/// The v2 authority; its issuers are `https://login.microsoftonline.com/<tenant>/v2.0`.
const V2: &str = "https://login.microsoftonline.com/";

/// Issuers that are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Issuer {
    /// Both issuers of one Entra tenant, v1 and v2.
    Tenant(String),
    /// Both issuers of every Entra tenant: for services that customers of any tenant call.
    AnyTenant,
    /// This issuer and no other, compared exactly; its tokens need no tenant.
    Exact(String),
}

/// What a token must fulfil.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Issuers; one must match.
    pub issuers: Vec<Issuer>,
    /// Audiences; one must match. Slashes at the end do not count: clients ask for `https://management.azure.com`,
    /// `https://management.azure.com/` and, by a doubled slash in a scope, `https://management.azure.com//`.
    pub audiences: Vec<String>,
    /// Ids of the applications that may call; `None` accepts all.
    pub applications: Option<BTreeSet<String>>,
    /// Whether only an application's own token (`idtyp` is `app`) is accepted, never one of a user.
    pub application_tokens_only: bool,
    /// How far the clocks of issuer and verifier may differ.
    pub clock_skew: Duration,
    /// The largest token looked at, in bytes.
    pub max_token: usize,
}

impl Rules {
    /// Tokens of these issuers for these audiences, with a clock skew of five minutes and at most 32 KiB.
    pub fn new(
        issuers: impl IntoIterator<Item = Issuer>,
        audiences: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            issuers: issuers.into_iter().collect(),
            audiences: audiences.into_iter().map(Into::into).collect(),
            applications: None,
            application_tokens_only: false,
            clock_skew: Duration::from_mins(5),
            max_token: 32 * 1024,
        }
    }

    /// Accepts these applications only.
    pub fn for_applications(mut self, ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.applications = Some(ids.into_iter().map(|id| id.into().to_ascii_lowercase()).collect());
        self
    }

    /// Accepts applications' own tokens only.
    pub fn for_application_tokens(mut self) -> Self {
        self.application_tokens_only = true;
        self
    }

    /// Checks the issuer against the tenant of the token.
    pub(crate) fn check_issuer(&self, issuer: &str, tenant: Option<&str>) -> Result<(), AuthError> {
        let accepted = self.issuers.iter().any(|rule| match rule {
            Issuer::Exact(exact) => exact == issuer,
            Issuer::AnyTenant => same_tenant(tenant_of(issuer), tenant),
            Issuer::Tenant(wanted) => {
                same_tenant(tenant_of(issuer), tenant) && same_tenant(Some(wanted), tenant)
            }
        });
        if accepted { Ok(()) } else { Err(AuthError::WrongIssuer) }
    }

    /// The first of the token's audiences that is accepted.
    pub(crate) fn find_audience<'a>(&self, of_token: &'a [String]) -> Result<&'a str, AuthError> {
        let accepted = |audience: &&'a String| {
            let audience = without_slashes(audience);
            self.audiences.iter().any(|own| !audience.is_empty() && without_slashes(own) == audience)
        };
        of_token.iter().find(accepted).map(String::as_str).ok_or(AuthError::WrongAudience)
    }

    /// Checks the application and the type of the token.
    pub(crate) fn check_application(&self, claims: &Claims) -> Result<(), AuthError> {
        if let Some(accepted) = &self.applications {
            let own = claims.app_id.as_ref().map(|id| id.to_ascii_lowercase());
            if !own.is_some_and(|own| accepted.contains(&own)) {
                return Err(AuthError::WrongApplication);
            }
        }
        match self.application_tokens_only && !claims.is_application() {
            true => Err(AuthError::NotApplicationToken),
            false => Ok(()),
        }
    }
}

fn without_slashes(audience: &str) -> &str {
    audience.trim_end_matches('/')
}

/// The tenant that an Entra issuer names; `None` for every other issuer.
fn tenant_of(issuer: &str) -> Option<&str> {
    let tenant = match issuer.strip_prefix(V1) {
        Some(rest) => rest.strip_suffix('/').unwrap_or(rest),
        None => issuer.strip_prefix(V2)?.strip_suffix("/v2.0")?,
    };
    let id = |c: char| c.is_ascii_hexdigit() || c == '-';
    (!tenant.is_empty() && tenant.chars().all(id)).then_some(tenant)
}

fn same_tenant(one: Option<&str>, other: Option<&str>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: &str = "33e01921-4d64-4f8c-a055-5bdaffd5e33d";
    const OTHER: &str = "00000000-0000-0000-0000-000000000001";

    #[test]
    fn both_entra_issuers_of_the_tenant_are_accepted_and_no_others() {
        let rules = Rules::new([Issuer::Tenant(TENANT.to_owned())], ["a"]);
        for (issuer, accepted) in [
            (format!("https://sts.windows.net/{TENANT}/"), true),
            (format!("https://sts.windows.net/{TENANT}"), true),
            (format!("https://login.microsoftonline.com/{TENANT}/v2.0"), true),
            (format!("https://sts.windows.net/{}/", TENANT.to_uppercase()), true),
            (format!("https://login.microsoftonline.com/{TENANT}"), false),
            (format!("https://login.microsoftonline.com/{TENANT}/v2.0/"), false),
            (format!("https://sts.windows.net/{OTHER}/"), false),
            (format!("http://sts.windows.net/{TENANT}/"), false),
            (format!("https://sts.windows.net.example.com/{TENANT}/"), false),
            (format!("https://sts.windows.net/{TENANT}/x/"), false),
            ("https://sts.windows.net//".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(rules.check_issuer(&issuer, Some(TENANT)).is_ok(), accepted, "{issuer}");
        }
    }

    #[test]
    fn issuer_and_claims_must_name_the_same_tenant() {
        let rules = Rules::new([Issuer::AnyTenant], ["a"]);
        let issuer = format!("https://sts.windows.net/{OTHER}/");
        assert_eq!(rules.check_issuer(&issuer, Some(OTHER)), Ok(()));
        assert_eq!(rules.check_issuer(&issuer, Some(TENANT)), Err(AuthError::WrongIssuer));
        assert_eq!(rules.check_issuer(&issuer, None), Err(AuthError::WrongIssuer));
    }

    #[test]
    fn an_exact_issuer_needs_no_tenant() {
        let rules = Rules::new([Issuer::Exact("https://idp.example.com".to_owned())], ["a"]);
        assert_eq!(rules.check_issuer("https://idp.example.com", None), Ok(()));
        assert_eq!(rules.check_issuer("https://idp.example.com/", None), Err(AuthError::WrongIssuer));
    }

    #[test]
    fn slashes_at_the_end_of_an_audience_do_not_count() {
        let rules = Rules::new([Issuer::AnyTenant], ["https://management.azure.com", "/"]);
        for (audience, accepted) in [
            ("https://management.azure.com", true),
            ("https://management.azure.com/", true),
            ("https://management.azure.com//", true),
            ("https://management.azure.com/x", false),
            ("https://management.core.windows.net/", false),
            ("", false),
            ("/", false),
        ] {
            assert_eq!(rules.find_audience(&[audience.to_owned()]).is_ok(), accepted, "{audience}");
        }
        assert_eq!(rules.find_audience(&[]), Err(AuthError::WrongAudience));
        let several = ["x".to_owned(), "https://management.azure.com/".to_owned()];
        assert_eq!(rules.find_audience(&several), Ok("https://management.azure.com/"));
    }
}
