//! Which paths pass.

/// The longest tenant or cluster id; real ones have 36 and 32 characters.
const LONGEST_ID: usize = 64;
/// Digits of a key set's version.
const LONGEST_VERSION: usize = 5;

/// Whether a path is that of an OIDC document: tenant `[a-f0-9-]+`, cluster id `[a-z0-9]+`. There is nothing to decode: a path
/// with an escape does not pass.
pub(crate) fn is_document(path: &str) -> bool {
    let Some(path) = path.strip_prefix('/') else { return false };
    let Some((tenant, rest)) = path.split_once('/') else { return false };
    let Some((cluster, rest)) = rest.split_once('/') else { return false };
    is_tenant(tenant)
        && is_cluster(cluster)
        && (rest == ".well-known/openid-configuration" || is_key_set(rest))
}

fn is_tenant(text: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'f' | b'0'..=b'9' | b'-');
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(allowed)
}

fn is_cluster(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(allowed)
}

/// `openid/v<n>/jwks`.
fn is_key_set(text: &str) -> bool {
    let version = text.strip_prefix("openid/v").and_then(|rest| rest.strip_suffix("/jwks"));
    version.is_some_and(|version| {
        (1..=LONGEST_VERSION).contains(&version.len()) && version.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TENANT: &str = "33e01921-4d64-4f8c-a055-5bdaffd5e33d";

    #[test]
    fn only_the_two_documents_of_a_cluster_pass() {
        let long = "a".repeat(LONGEST_ID + 1);
        for (path, expected) in [
            (format!("/{TENANT}/2abc/.well-known/openid-configuration"), true),
            (format!("/{TENANT}/2abc/openid/v1/jwks"), true),
            (format!("/{TENANT}/2abc/openid/v12/jwks"), true),
            (format!("/{TENANT}/2abc/openid/v/jwks"), false),
            (format!("/{TENANT}/2abc/openid/v1/jwks/"), false),
            (format!("/{TENANT}/2abc/openid/vx/jwks"), false),
            (format!("/{TENANT}/2ABC/openid/v1/jwks"), false),
            (format!("/{}/2abc/openid/v1/jwks", TENANT.to_uppercase()), false),
            (format!("/{TENANT}/2abc/.well-known/other"), false),
            (format!("/{TENANT}/../.well-known/openid-configuration"), false),
            (format!("/{TENANT}/%2e%2e/.well-known/openid-configuration"), false),
            (format!("//{TENANT}/2abc/.well-known/openid-configuration"), false),
            (format!("/{TENANT}/{long}/openid/v1/jwks"), false),
            (format!("/{TENANT}"), false),
            ("/".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_document(&path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics_and_what_passes_has_no_special_characters(path in "/[a-f0-9-]{0,4}/[a-z0-9%.]{0,4}/.{0,40}") {
            if is_document(&path) {
                prop_assert!(!path.contains(['%', '?', '#', '\\', ' ']) && !path.contains(".."));
            }
        }
    }
}
