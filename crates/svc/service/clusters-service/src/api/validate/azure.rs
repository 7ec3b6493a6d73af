//! The Azure part of a cluster.

use std::collections::HashMap;

use aro_arm::ResourceId;
use aro_ocm::{Azure, AzureOperatorsAuthenticationManagedIdentities, Code, KeyManagementMode};
use url::Url;

use super::Found;
use crate::api::requirements::{Plane, is_known_operator, required_operators};

const SUBNET: &str = "Microsoft.Network/virtualNetworks/subnets";
const NSG: &str = "Microsoft.Network/networkSecurityGroups";
const IDENTITY: &str = "Microsoft.ManagedIdentity/userAssignedIdentities";

/// The longest names of Azure that end up in ids of documents.
const MAX_NAME: usize = 90;

/// The subscription and the managed resource group, which resource ids are compared with.
struct Place<'a> {
    subscription: Option<&'a str>,
    managed_group: Option<&'a str>,
}

/// `complete` demands the identities that every cluster needs.
pub(super) fn check(found: &mut Found, azure: &Azure, complete: bool) {
    name(found, "azure.tenant_id", azure.tenant_id.as_ref());
    let subscription = name(found, "azure.subscription_id", azure.subscription_id.as_ref());
    let group = name(found, "azure.resource_group_name", azure.resource_group_name.as_ref());
    name(found, "azure.resource_name", azure.resource_name.as_ref());
    let field = "azure.managed_resource_group_name";
    let managed_group = name(found, field, azure.managed_resource_group_name.as_ref());
    if let (Some(group), Some(managed)) = (group, managed_group)
        && group.eq_ignore_ascii_case(managed)
    {
        found.invalid(field, format!("'{field}' must differ from 'azure.resource_group_name'"));
    }
    let place = Place { subscription, managed_group };

    let subnet = azure.subnet_resource_id.as_ref();
    if let Some(text) = found.text("azure.subnet_resource_id", subnet) {
        resource(found, "azure.subnet_resource_id", text, SUBNET, &place);
    }
    for (field, value, kind) in [
        ("azure.network_security_group_resource_id", &azure.network_security_group_resource_id, NSG),
        ("azure.vnet_integration_subnet_resource_id", &azure.vnet_integration_subnet_resource_id, SUBNET),
    ] {
        found.not_empty(field, value.as_ref());
        if let Some(text) = value.as_deref().filter(|text| !text.is_empty()) {
            resource(found, field, text, kind, &place);
        }
    }
    same_network(found, azure);
    encryption(found, azure);
    match azure.identities() {
        Some(identities) => self::identities(found, identities, azure, &place, complete),
        None if complete => found.required("azure.operators_authentication.managed_identities"),
        None => {}
    }
    if let Some(registry) = &azure.container_registry {
        let credentials = registry.credentials.as_ref();
        let kind = credentials.and_then(|one| one.r#type.as_deref());
        if kind != Some("ManagedIdentity") {
            let field = "azure.container_registry.credentials.type";
            found.add(Code::UnsupportedValue, field, format!("'{field}' must be 'ManagedIdentity'"));
        }
        let identity = credentials.and_then(|one| one.managed_identity.as_ref());
        let field = "azure.container_registry.credentials.managed_identity.resource_id";
        if let Some(text) = found.text(field, identity.and_then(|identity| identity.resource_id.as_ref())) {
            resource(found, field, text, IDENTITY, &place);
        }
    }
}

/// A name that becomes a segment of ids.
fn name<'a>(found: &mut Found, field: &str, value: Option<&'a String>) -> Option<&'a str> {
    let text = found.text(field, value)?;
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '(' | ')');
    if text.len() > MAX_NAME || !text.chars().all(good) {
        let reason =
            format!("'{field}' must have at most {MAX_NAME} letters, digits, '-', '_', '.', '(' and ')'");
        found.invalid(field, reason);
        return None;
    }
    Some(text)
}

/// A resource id of a type, in the cluster's subscription and outside of its managed resource group.
fn resource(found: &mut Found, field: &str, text: &str, kind: &str, place: &Place<'_>) -> Option<ResourceId> {
    let id = ResourceId::parse(text).ok().filter(|id| id.is_type(kind));
    let Some(id) = id else {
        let shown = aro_ocm::shape::shortened(text);
        found.invalid(field, format!("'{field}' value '{shown}' is not a resource id of type '{kind}'"));
        return None;
    };
    if let (Some(mine), Some(its)) = (place.subscription, id.subscription())
        && !mine.eq_ignore_ascii_case(its)
    {
        found.invalid(field, format!("'{field}' must be in subscription '{mine}', not in '{its}'"));
    }
    if let (Some(managed), Some(its)) = (place.managed_group, id.resource_group())
        && managed.eq_ignore_ascii_case(its)
    {
        found.invalid(field, format!("'{field}' must not be in the managed resource group '{managed}'"));
    }
    Some(id)
}

fn same_network(found: &mut Found, azure: &Azure) {
    let network = |text: Option<&String>| ResourceId::parse(text?).ok()?.parent();
    let (nodes, integration) = (
        network(azure.subnet_resource_id.as_ref()),
        network(azure.vnet_integration_subnet_resource_id.as_ref()),
    );
    if let (Some(nodes), Some(integration)) = (nodes, integration) {
        let field = "azure.vnet_integration_subnet_resource_id";
        if nodes != integration {
            found.invalid(field, format!("'{field}' must be in the virtual network of the nodes' subnet"));
        }
        if azure.subnet_resource_id.as_deref().map(str::to_lowercase)
            == azure.vnet_integration_subnet_resource_id.as_deref().map(str::to_lowercase)
        {
            found.invalid(field, format!("'{field}' must differ from 'azure.subnet_resource_id'"));
        }
    }
}

fn encryption(found: &mut Found, azure: &Azure) {
    const FIELD: &str = "azure.etcd_encryption.data_encryption";
    let Some(data) = azure.etcd_encryption.as_ref().and_then(|etcd| etcd.data_encryption.as_ref()) else {
        return;
    };
    let customer = data.customer_managed.as_ref();
    match data.key_management_mode {
        None => found.required(&format!("{FIELD}.key_management_mode")),
        Some(KeyManagementMode::PlatformManaged) if customer.is_some() => found.add(
            Code::Conflicting,
            &format!("{FIELD}.customer_managed"),
            "a platform managed key takes no 'customer_managed'",
        ),
        Some(KeyManagementMode::PlatformManaged) => {}
        Some(KeyManagementMode::CustomerManaged) => {
            let key = customer.and_then(|one| one.kms.as_ref()).and_then(|kms| kms.active_key.as_ref());
            let Some(key) = key else {
                return found.required(&format!("{FIELD}.customer_managed.kms.active_key"));
            };
            for (member, value) in [
                ("key_vault_name", &key.key_vault_name),
                ("key_name", &key.key_name),
                ("key_version", &key.key_version),
            ] {
                found.text(&format!("{FIELD}.customer_managed.kms.active_key.{member}"), value.as_ref());
            }
        }
    }
}

fn identities(
    found: &mut Found,
    given: &AzureOperatorsAuthenticationManagedIdentities,
    azure: &Azure,
    place: &Place<'_>,
    complete: bool,
) {
    const FIELD: &str = "azure.operators_authentication.managed_identities";
    let url = given.managed_identities_data_plane_identity_url.as_deref().unwrap_or_default();
    let url_field = format!("{FIELD}.managed_identities_data_plane_identity_url");
    if url.is_empty() {
        if complete {
            found.required(&url_field);
        }
    } else if !Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "https" | "http")) {
        found.invalid(&url_field, format!("'{url_field}' is not a URL"));
    }
    let control = given.control_plane_operators_managed_identities.iter().flatten();
    let control: Vec<(&String, Option<&String>)> =
        control.map(|(operator, one)| (operator, one.resource_id.as_ref())).collect();
    let data = given.data_plane_operators_managed_identities.iter().flatten();
    let data: Vec<(&String, Option<&String>)> =
        data.map(|(operator, one)| (operator, one.resource_id.as_ref())).collect();

    let mut users: HashMap<String, String> = HashMap::new();
    let mut one = |found: &mut Found, field: &str, id: Option<&String>| {
        let Some(text) = found.text(field, id) else { return };
        let Some(id) = resource(found, field, text, IDENTITY, place) else { return };
        if let Some(other) = users.insert(id.to_lower(), field.to_owned()) {
            found.add(Code::Duplicate, field, format!("'{field}' is the identity that '{other}' has"));
        }
    };
    for (plane, member, operators) in [
        (Plane::Control, "control_plane_operators_managed_identities", &control),
        (Plane::Data, "data_plane_operators_managed_identities", &data),
    ] {
        for (operator, id) in operators {
            let field = format!("{FIELD}.{member}.{operator}");
            if is_known_operator(plane, operator) {
                one(found, &format!("{field}.resource_id"), *id);
            } else {
                found.add(
                    Code::UnsupportedValue,
                    &field,
                    format!("'{operator}' is not an operator with an identity"),
                );
            }
        }
        if complete {
            let needs_kms = azure.kms().is_some();
            for operator in required_operators(plane, needs_kms) {
                if !operators.iter().any(|(known, _)| *known == operator) {
                    found.required(&format!("{FIELD}.{member}.{operator}"));
                }
            }
        }
    }
    let field = format!("{FIELD}.service_managed_identity.resource_id");
    match given.service_managed_identity.as_ref() {
        Some(service) => one(found, &field, service.resource_id.as_ref()),
        None if complete => found.required(&field),
        None => {}
    }
}
