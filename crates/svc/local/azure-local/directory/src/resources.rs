//! What tokens can be requested for.

use crate::DirectorySettings;
use crate::directory::ReadModel;

/// Azure's own resources, without the scheme. A leading `*.` stands for one account's name.
const AZURE: &[&str] = &[
    "management.azure.com",
    "management.core.windows.net",
    "graph.microsoft.com",
    "graph.windows.net",
    "vault.azure.net",
    "*.vault.azure.net",
    "managedhsm.azure.net",
    "storage.azure.com",
    "*.blob.core.windows.net",
    "*.queue.core.windows.net",
    "*.table.core.windows.net",
    "*.file.core.windows.net",
    "authorization.azure.net",
    "cosmos.azure.com",
    "*.documents.azure.com",
    "ossrdbms-aad.database.windows.net",
    "database.windows.net",
    "containerregistry.azure.net",
    "eventgrid.azure.net",
    "eventhubs.azure.net",
    "servicebus.azure.net",
    "monitor.azure.com",
    "prometheus.monitor.azure.com",
    "kusto.kusto.windows.net",
    "dns.azure.com",
];

/// Applications of Azure itself: Resource Manager, Graph, Kubernetes Service, Key Vault, Storage.
const AZURE_IDS: &[&str] = &[
    "797f4846-ba00-4fd7-ba43-dac1f8f63013",
    "00000003-0000-0000-c000-000000000000",
    "6dae42f8-4368-4678-94ff-3960e28e3630",
    "cfa8b339-82a2-471a-a3c9-0fc0be7a4093",
    "e406a681-f3d4-42a8-90b6-c2b029497af1",
];

/// A resource as a token names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    /// As it was requested.
    pub audience: String,
    /// The version of tokens for it.
    pub version: u8,
}

/// The resource of a scope. Client credentials take one scope, `<resource>/.default`; a resource that ends with a slash
/// gives two in a row.
pub(crate) fn resource_of_scope(scope: &str) -> Option<&str> {
    let mut scopes = scope.split_ascii_whitespace();
    let only = scopes.next()?;
    let resource = only.strip_suffix("/.default")?;
    (scopes.next().is_none() && !resource.is_empty()).then_some(resource)
}

/// A name to compare audiences by.
pub(crate) fn normal(audience: &str) -> String {
    audience.trim_end_matches('/').to_ascii_lowercase()
}

/// The resource of this name, if it exists.
pub(crate) fn find(name: &str, settings: &DirectorySettings, model: &ReadModel) -> Option<Resource> {
    let version = if is_azure(name) || is_configured(name, settings) {
        1
    } else {
        model.application_of_audience(&normal(name))?.token_version
    };
    Some(Resource { audience: name.to_owned(), version })
}

fn is_configured(name: &str, settings: &DirectorySettings) -> bool {
    let name = normal(name);
    settings.audiences.iter().chain([&settings.identity_audience]).any(|known| normal(known) == name)
}

fn is_azure(name: &str) -> bool {
    let name = normal(name);
    if AZURE_IDS.contains(&name.as_str()) {
        return true;
    }
    let Some(host) = name.strip_prefix("https://") else { return false };
    AZURE.iter().any(|known| match known.strip_prefix("*.") {
        None => *known == host,
        Some(parent) => {
            let account = host.strip_suffix(parent).and_then(|rest| rest.strip_suffix('.'));
            account.is_some_and(|account| !account.is_empty() && !account.contains(['.', '/']))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_names_one_resource_and_keeps_its_slash() {
        assert_eq!(resource_of_scope("https://vault.azure.net/.default"), Some("https://vault.azure.net"));
        assert_eq!(
            resource_of_scope("https://management.core.windows.net//.default"),
            Some("https://management.core.windows.net/")
        );
        for refused in
            ["", "/.default", "a/.default b/.default", "https://vault.azure.net/user_impersonation"]
        {
            assert_eq!(resource_of_scope(refused), None, "{refused}");
        }
    }

    #[test]
    fn azure_resources_are_known_by_host_and_one_account_name() {
        for known in [
            "https://management.azure.com",
            "https://Management.Core.Windows.net/",
            "https://a.vault.azure.net",
        ] {
            assert!(is_azure(known), "{known}");
        }
        for unknown in [
            "http://management.azure.com",
            "https://a.b.vault.azure.net",
            "https://.vault.azure.net",
            "https://example.com",
            "",
        ] {
            assert!(!is_azure(unknown), "{unknown}");
        }
    }
}
