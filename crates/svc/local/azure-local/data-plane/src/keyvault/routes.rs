//! The operations of Key Vault: path, data action and access-policy permission of each.

use http::Method;

use super::documents::Kind::{self, Certificate, Key, Secret};
use crate::guard::Action;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    SetSecret,
    GetSecret,
    CreateKey,
    ImportKey,
    UseKey(Usage),
    CreateCertificate,
    ImportCertificate,
    GetPolicy,
    UpdatePolicy,
    GetPending,
    DeletePending,
    ListIssuers,
    Get(Kind),
    Update(Kind),
    List(Kind),
    ListVersions(Kind),
    Delete(Kind),
    GetDeleted(Kind),
    ListDeleted(Kind),
    Recover(Kind),
    Purge(Kind),
}

/// What a key is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Encrypt,
    Decrypt,
    WrapKey,
    UnwrapKey,
    Sign,
    Verify,
}

/// One operation.
#[derive(Debug)]
pub(super) struct Route {
    method: Method,
    /// Segments; `*` stands for a name. Literals are compared without case.
    pattern: &'static [&'static str],
    pub operation: Operation,
    /// What the names are in: the scope of role assignments, the part of an access policy.
    pub collection: &'static str,
    pub action: Action,
    pub permission: &'static str,
}

macro_rules! routes {
    ($($method:ident $pattern:expr => $operation:expr, $collection:literal, $action:literal, $permission:literal;)*) => {
        &[$(Route {
            method: Method::$method,
            pattern: &$pattern,
            operation: $operation,
            collection: $collection,
            action: Action {
                name: concat!("Microsoft.KeyVault/vaults/", $action),
                is_data: true,
            },
            permission: $permission,
        }),*]
    };
}

use Operation as O;

/// The first match counts: literals come before names.
static ROUTES: &[Route] = routes! {
    PUT ["secrets", "*"] => O::SetSecret, "secrets", "secrets/setSecret/action", "set";
    GET ["secrets"] => O::List(Secret), "secrets", "secrets/readMetadata/action", "list";
    GET ["secrets", "*", "versions"] => O::ListVersions(Secret), "secrets", "secrets/readMetadata/action", "list";
    GET ["secrets", "*"] => O::GetSecret, "secrets", "secrets/getSecret/action", "get";
    GET ["secrets", "*", "*"] => O::GetSecret, "secrets", "secrets/getSecret/action", "get";
    PATCH ["secrets", "*"] => O::Update(Secret), "secrets", "secrets/update/action", "set";
    PATCH ["secrets", "*", "*"] => O::Update(Secret), "secrets", "secrets/update/action", "set";
    DELETE ["secrets", "*"] => O::Delete(Secret), "secrets", "secrets/delete", "delete";
    GET ["deletedsecrets"] => O::ListDeleted(Secret), "secrets", "secrets/readMetadata/action", "list";
    GET ["deletedsecrets", "*"] => O::GetDeleted(Secret), "secrets", "secrets/readMetadata/action", "get";
    POST ["deletedsecrets", "*", "recover"] => O::Recover(Secret), "secrets", "secrets/recover/action", "recover";
    DELETE ["deletedsecrets", "*"] => O::Purge(Secret), "secrets", "secrets/purge/action", "purge";

    POST ["keys", "*", "create"] => O::CreateKey, "keys", "keys/create/action", "create";
    PUT ["keys", "*"] => O::ImportKey, "keys", "keys/import/action", "import";
    GET ["keys"] => O::List(Key), "keys", "keys/read", "list";
    GET ["keys", "*", "versions"] => O::ListVersions(Key), "keys", "keys/read", "list";
    GET ["keys", "*"] => O::Get(Key), "keys", "keys/read", "get";
    GET ["keys", "*", "*"] => O::Get(Key), "keys", "keys/read", "get";
    PATCH ["keys", "*"] => O::Update(Key), "keys", "keys/update/action", "update";
    PATCH ["keys", "*", "*"] => O::Update(Key), "keys", "keys/update/action", "update";
    DELETE ["keys", "*"] => O::Delete(Key), "keys", "keys/delete", "delete";
    POST ["keys", "*", "encrypt"] => O::UseKey(Usage::Encrypt), "keys", "keys/encrypt/action", "encrypt";
    POST ["keys", "*", "decrypt"] => O::UseKey(Usage::Decrypt), "keys", "keys/decrypt/action", "decrypt";
    POST ["keys", "*", "wrapkey"] => O::UseKey(Usage::WrapKey), "keys", "keys/wrap/action", "wrapKey";
    POST ["keys", "*", "unwrapkey"] => O::UseKey(Usage::UnwrapKey), "keys", "keys/unwrap/action", "unwrapKey";
    POST ["keys", "*", "sign"] => O::UseKey(Usage::Sign), "keys", "keys/sign/action", "sign";
    POST ["keys", "*", "verify"] => O::UseKey(Usage::Verify), "keys", "keys/verify/action", "verify";
    POST ["keys", "*", "*", "encrypt"] => O::UseKey(Usage::Encrypt), "keys", "keys/encrypt/action", "encrypt";
    POST ["keys", "*", "*", "decrypt"] => O::UseKey(Usage::Decrypt), "keys", "keys/decrypt/action", "decrypt";
    POST ["keys", "*", "*", "wrapkey"] => O::UseKey(Usage::WrapKey), "keys", "keys/wrap/action", "wrapKey";
    POST ["keys", "*", "*", "unwrapkey"] => O::UseKey(Usage::UnwrapKey), "keys", "keys/unwrap/action", "unwrapKey";
    POST ["keys", "*", "*", "sign"] => O::UseKey(Usage::Sign), "keys", "keys/sign/action", "sign";
    POST ["keys", "*", "*", "verify"] => O::UseKey(Usage::Verify), "keys", "keys/verify/action", "verify";
    GET ["deletedkeys"] => O::ListDeleted(Key), "keys", "keys/read", "list";
    GET ["deletedkeys", "*"] => O::GetDeleted(Key), "keys", "keys/read", "get";
    POST ["deletedkeys", "*", "recover"] => O::Recover(Key), "keys", "keys/recover/action", "recover";
    DELETE ["deletedkeys", "*"] => O::Purge(Key), "keys", "keys/purge/action", "purge";

    GET ["certificates", "issuers"] => O::ListIssuers, "certificates", "certificatecas/read", "listissuers";
    POST ["certificates", "*", "create"] => O::CreateCertificate, "certificates", "certificates/create/action", "create";
    POST ["certificates", "*", "import"] => O::ImportCertificate, "certificates", "certificates/import/action", "import";
    GET ["certificates"] => O::List(Certificate), "certificates", "certificates/read", "list";
    GET ["certificates", "*", "versions"] => O::ListVersions(Certificate), "certificates", "certificates/read", "list";
    GET ["certificates", "*", "policy"] => O::GetPolicy, "certificates", "certificates/read", "get";
    PATCH ["certificates", "*", "policy"] => O::UpdatePolicy, "certificates", "certificates/update/action", "update";
    GET ["certificates", "*", "pending"] => O::GetPending, "certificates", "certificates/read", "get";
    DELETE ["certificates", "*", "pending"] => O::DeletePending, "certificates", "certificates/delete", "delete";
    GET ["certificates", "*"] => O::Get(Certificate), "certificates", "certificates/read", "get";
    GET ["certificates", "*", "*"] => O::Get(Certificate), "certificates", "certificates/read", "get";
    PATCH ["certificates", "*"] => O::Update(Certificate), "certificates", "certificates/update/action", "update";
    PATCH ["certificates", "*", "*"] => O::Update(Certificate), "certificates", "certificates/update/action", "update";
    DELETE ["certificates", "*"] => O::Delete(Certificate), "certificates", "certificates/delete", "delete";
    GET ["deletedcertificates"] => O::ListDeleted(Certificate), "certificates", "certificates/read", "list";
    GET ["deletedcertificates", "*"] => O::GetDeleted(Certificate), "certificates", "certificates/read", "get";
    POST ["deletedcertificates", "*", "recover"] => O::Recover(Certificate), "certificates", "certificates/recover/action", "recover";
    DELETE ["deletedcertificates", "*"] => O::Purge(Certificate), "certificates", "certificates/purge/action", "purge";
};

/// The operation of a request, and the names in its path.
pub(super) fn find(method: &Method, path: &str) -> Option<(&'static Route, Vec<String>)> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let matches = |route: &&Route| {
        route.method == *method
            && route.pattern.len() == parts.len()
            && route
                .pattern
                .iter()
                .zip(&parts)
                .all(|(known, part)| *known == "*" || known.eq_ignore_ascii_case(part))
    };
    let route = ROUTES.iter().find(matches)?;
    let names = route.pattern.iter().zip(&parts).filter(|(known, _)| **known == "*");
    Some((route, names.map(|(_, part)| (*part).to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_win_over_names_and_case_does_not_matter() {
        let operation =
            |method: Method, path: &str| find(&method, path).map(|(route, names)| (route.operation, names));
        assert_eq!(
            operation(Method::GET, "Certificates//c/Policy"),
            Some((Operation::GetPolicy, vec!["c".to_owned()]))
        );
        assert_eq!(
            operation(Method::GET, "secrets/a/0123"),
            Some((Operation::GetSecret, vec!["a".to_owned(), "0123".to_owned()]))
        );
        assert_eq!(
            operation(Method::GET, "secrets/a/versions"),
            Some((Operation::ListVersions(Secret), vec!["a".to_owned()]))
        );
        assert_eq!(operation(Method::PUT, "secrets/a/b"), None);
        assert_eq!(operation(Method::GET, ""), None);
    }

    #[test]
    fn every_route_names_an_action_of_its_collection() {
        for route in ROUTES {
            let action = route.action.name.strip_prefix("Microsoft.KeyVault/vaults/").unwrap();
            let collection = action.split('/').next().unwrap();
            let expected = if collection == "certificatecas" { "certificates" } else { collection };
            assert_eq!(route.collection, expected, "{route:?}");
        }
    }
}
