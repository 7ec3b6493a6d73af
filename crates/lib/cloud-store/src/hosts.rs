//! The Azure host names that lead to azure-local, and those of Front Door.

use std::net::Ipv4Addr;

/// Host names of Azure that the local cloud answers for. A leading `*` stands for one label or more: a static website is
/// `<account>.<zone>.web.core.windows.net`. Certificates differ there: a wildcard in one covers a single label.
pub const AZURE_HOSTS: &[&str] = &[
    "management.azure.com",
    "login.microsoftonline.com",
    "login.windows.net",
    "sts.windows.net",
    "graph.microsoft.com",
    "*.vault.azure.net",
    "*.blob.core.windows.net",
    "*.web.core.windows.net",
    "*.azurecr.io",
    "*.authorization.azure.net",
    "*.identity.azure.net",
];

/// The domain of Front Door's endpoints: `<endpoint>.azurefd.net`.
pub const FRONT_DOOR_DOMAIN: &str = "azurefd.net";

/// The address of every Front Door endpoint. Reserved for documentation (RFC 5737), so that no network routes it; the region's
/// proxy knows the listener behind it.
pub const FRONT_DOOR_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// Whether a host name is one of [`AZURE_HOSTS`]. Case and a dot at the end do not matter.
pub fn is_azure_host(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    AZURE_HOSTS.iter().any(|pattern| match pattern.strip_prefix('*') {
        None => *pattern == host,
        Some(suffix) => host.strip_suffix(suffix).is_some_and(are_labels),
    })
}

/// Whether a text is one label or several, none of them empty.
fn are_labels(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.split('.').all(|label| !label.is_empty() && label.chars().all(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_hosts_match_as_a_whole_and_wildcards_need_a_label() {
        for (host, expected) in [
            ("management.azure.com", true),
            ("Management.Azure.COM.", true),
            ("x.management.azure.com", false),
            ("management.azure.com.example.com", false),
            ("myvault.vault.azure.net", true),
            (".vault.azure.net", false),
            ("vault.azure.net", false),
            ("evilvault.azure.net", false),
            ("account.z33.web.core.windows.net", true),
            ("a..web.core.windows.net", false),
            ("a/b.blob.core.windows.net", false),
            ("", false),
            (".", false),
        ] {
            assert_eq!(is_azure_host(host), expected, "{host}");
        }
    }
}
