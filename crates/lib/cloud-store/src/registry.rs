//! What a token of a container registry permits: the actions of its scope map, to clients with one of its passwords.

use aro_base::Timestamp;
use serde_json::Value;

use crate::Resource;

/// The actions (`repositories/<repository>/content/read`) that a token permits to a client with this password. `None`: the token
/// is disabled, the password is wrong or has ended, or the token has another scope map.
pub fn permitted_actions(
    token: &Resource,
    scope_map: &Resource,
    password: &str,
    now: Timestamp,
) -> Option<Vec<String>> {
    let property = |name: &str| token.properties().and_then(|properties| properties.get(name)?.as_str());
    let enabled = property("status").is_none_or(|status| status.eq_ignore_ascii_case("enabled"));
    let own = property("scopeMapId").is_some_and(|id| id.eq_ignore_ascii_case(&scope_map.id));
    let known = token.secrets.iter().any(|secret| secret.is(password, now));
    if !(enabled && own && known) || token.deleting {
        return None;
    }
    let actions = scope_map.properties().and_then(|properties| properties.get("actions"));
    let actions = actions.and_then(Value::as_array).into_iter().flatten();
    Some(actions.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Whether actions permit one (`content/read`) in a repository. A repository of an action may end with `*`; a lone `**` or `*`
/// is every repository.
pub fn permits(actions: &[String], repository: &str, action: &str) -> bool {
    actions.iter().any(|permitted| {
        let Some(rest) = permitted.strip_prefix("repositories/") else { return false };
        let Some(pattern) = rest.strip_suffix(action).and_then(|rest| rest.strip_suffix('/')) else {
            return false;
        };
        match pattern.trim_end_matches('*') {
            exact if exact.len() == pattern.len() => exact == repository,
            prefix => repository.starts_with(prefix),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::ResourceSecret;

    fn resource(id: &str, properties: Value) -> Resource {
        Resource {
            id: id.to_owned(),
            body: json!({"properties": properties}).as_object().cloned().unwrap(),
            created: Timestamp::UNIX_EPOCH,
            changed: Timestamp::UNIX_EPOCH,
            created_by: None,
            references: BTreeSet::new(),
            secrets: Vec::new(),
            operation: None,
            deleting: false,
        }
    }

    #[test]
    fn a_token_permits_what_its_scope_map_says_to_clients_with_its_password() {
        let map = resource("/r/scopeMaps/m", json!({"actions": ["repositories/ocp/content/read"]}));
        let (secret, password) = ResourceSecret::digested("password1", Timestamp::UNIX_EPOCH, None).unwrap();
        let mut token = resource("/r/tokens/t", json!({"scopeMapId": "/R/scopemaps/M", "status": "enabled"}));
        token.secrets = vec![secret];
        let permitted = |token: &Resource, map: &Resource, password: &str| {
            permitted_actions(token, map, password, Timestamp::UNIX_EPOCH)
        };
        let actions = permitted(&token, &map, password.expose()).unwrap();
        assert!(permits(&actions, "ocp", "content/read"));
        assert!(!permits(&actions, "ocp", "content/write") && !permits(&actions, "ocp2", "content/read"));
        assert_eq!(permitted(&token, &map, "wrong"), None);
        let other = resource("/r/scopeMaps/other", json!({"actions": ["repositories/*/content/read"]}));
        assert_eq!(permitted(&token, &other, password.expose()), None);
        token.body = json!({"properties": {"scopeMapId": "/r/scopeMaps/m", "status": "disabled"}})
            .as_object()
            .cloned()
            .unwrap();
        assert_eq!(permitted(&token, &map, password.expose()), None);
    }

    #[test]
    fn repositories_of_actions_may_be_patterns() {
        let actions =
            ["repositories/team/*/content/read".to_owned(), "repositories/*/metadata/read".to_owned()];
        assert!(permits(&actions, "team/a/b", "content/read"));
        assert!(!permits(&actions, "teams", "content/read"));
        assert!(permits(&actions, "any", "metadata/read"));
        assert!(!permits(&actions, "any", "content/delete"));
    }
}
