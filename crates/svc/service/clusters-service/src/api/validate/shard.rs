//! Provision shards.

use aro_arm::ResourceId;
use aro_net::HostPort;
use aro_ocm::{Code, ProvisionShard, ShardStatus};
use url::Url;

use super::Found;

/// The domains of key vaults.
const VAULT_DOMAINS: [&str; 4] =
    ["vault.azure.net", "vault.azure.cn", "vault.usgovcloudapi.net", "vault.microsoftazure.de"];

/// Everything that is wrong with a new provision shard.
pub(in crate::api) fn shard(shard: &ProvisionShard) -> Found {
    let mut found = Found::default();
    let id = |reference: &Option<aro_ocm::Reference>| reference.as_ref().and_then(|one| one.id.clone());
    found.text("region.id", id(&shard.region).as_ref());
    if id(&shard.cloud_provider).is_some_and(|cloud| cloud != "azure") {
        found.add(Code::UnsupportedValue, "cloud_provider.id", "'cloud_provider.id' must be 'azure'");
    }
    if shard.status.is_some_and(|status| status != ShardStatus::Maintenance) {
        let reason = "a new provision shard has the status 'maintenance'; change it with PATCH";
        found.add(Code::UnsupportedValue, "status", reason);
    }
    azure(&mut found, shard);
    maestro(&mut found, shard);
    found
}

fn azure(found: &mut Found, shard: &ProvisionShard) {
    let Some(azure) = &shard.azure_shard else { return found.required("azure_shard") };
    for (field, value, kind) in [
        (
            "azure_shard.aks_management_cluster_resource_id",
            &azure.aks_management_cluster_resource_id,
            "Microsoft.ContainerService/managedClusters",
        ),
        (
            "azure_shard.public_dns_zone_resource_id",
            &azure.public_dns_zone_resource_id,
            "Microsoft.Network/dnszones",
        ),
    ] {
        if let Some(text) = found.text(field, value.as_ref())
            && !ResourceId::parse(text).is_ok_and(|id| id.is_type(kind))
        {
            found.invalid(field, format!("'{field}' must be a resource id of type '{kind}'"));
        }
    }
    for (field, value) in [
        ("azure_shard.cx_secrets_key_vault_url", &azure.cx_secrets_key_vault_url),
        ("azure_shard.cx_managed_identities_key_vault_url", &azure.cx_managed_identities_key_vault_url),
    ] {
        if let Some(text) = found.text(field, value.as_ref())
            && !is_vault(text)
        {
            found.invalid(
                field,
                format!("'{field}' must be a key vault URL such as 'https://name.vault.azure.net/'"),
            );
        }
    }
    let field = "azure_shard.cx_secrets_key_vault_managed_identity_client_id";
    found.text(field, azure.cx_secrets_key_vault_managed_identity_client_id.as_ref());
}

fn is_vault(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let Some((name, domain)) = url.host_str().and_then(|host| host.split_once('.')) else { return false };
    url.scheme() == "https"
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.port().is_none()
        && url.username().is_empty()
        && !name.is_empty()
        && VAULT_DOMAINS.contains(&domain)
}

fn maestro(found: &mut Found, shard: &ProvisionShard) {
    let Some(maestro) = &shard.maestro_config else { return found.required("maestro_config") };
    found.text("maestro_config.consumer_name", maestro.consumer_name.as_ref());
    let (rest, grpc) = ("maestro_config.rest_api_config.url", "maestro_config.grpc_api_config.url");
    let rest_url = maestro.rest_api_config.as_ref().and_then(|config| config.url.as_ref());
    let grpc_url = maestro.grpc_api_config.as_ref().and_then(|config| config.url.as_ref());
    let rest_place = found.text(rest, rest_url).and_then(|text| {
        let place = rest_place(text);
        if place.is_none() {
            found.invalid(rest, format!("'{rest}' must be '<scheme>://<host>:<port>'"));
        }
        place
    });
    if let Some(text) = found.text(grpc, grpc_url) {
        if text.contains("://") || text.contains('/') || HostPort::parse(text).is_none() {
            found.invalid(grpc, format!("'{grpc}' must be '<host>:<port>' without a scheme"));
        } else if rest_place.as_deref() == Some(text) {
            found.add(
                Code::Conflicting,
                grpc,
                format!("'{grpc}' and '{rest}' must have different hosts or ports"),
            );
        }
    }
}

/// `host:port` of a REST URL, which names its port.
fn rest_place(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let place = rest.strip_suffix('/').unwrap_or(rest);
    (matches!(scheme, "http" | "https")
        && !place.contains(['/', '?', '#', '@'])
        && HostPort::parse(place).is_some())
    .then(|| place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vault_urls_name_a_vault_and_nothing_else() {
        assert!(is_vault("https://cx-1.vault.azure.net/") && is_vault("https://cx-1.vault.azure.net"));
        for text in [
            "http://cx.vault.azure.net/",
            "https://a.b.vault.azure.net/",
            "https://cx.vault.azure.net/secrets",
            "https://cx.vault.azure.net/?x=1",
            "https://cx.example.com/",
            "https://vault.azure.net/",
            "cx",
        ] {
            assert!(!is_vault(text), "{text}");
        }
    }

    #[test]
    fn rest_urls_name_scheme_host_and_port() {
        assert_eq!(rest_place("http://maestro.maestro:8000").as_deref(), Some("maestro.maestro:8000"));
        for text in ["maestro:8000", "http://maestro", "http://maestro:8000/api", "grpc://x:1"] {
            assert_eq!(rest_place(text), None, "{text}");
        }
    }
}
