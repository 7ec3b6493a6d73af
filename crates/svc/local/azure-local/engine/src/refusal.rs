//! What the local cloud refuses, with Azure's codes and texts.
//!
//! One constructor per refusal: handlers decide which one applies, this file knows status, code and wording.

use aro_arm::ResourceId;
use aro_arm_server::{CodedError, Failure};
use http::StatusCode as S;

/// A refusal with a code of Azure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub CodedError);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Coded(Box::new(refusal.0))
    }
}

impl Refusal {
    /// Any code.
    pub fn new(status: S, code: &'static str, message: impl Into<String>) -> Self {
        Self(CodedError { status, code, message: message.into(), target: None, retry_after: None })
    }

    fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(S::BAD_REQUEST, code, message)
    }

    /// Names the member that is wrong.
    pub fn at(mut self, target: impl Into<String>) -> Self {
        self.0.target = Some(target.into());
        self
    }

    /// Asks the client to come back.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    pub fn subscription_not_found(subscription: &str) -> Self {
        Self::new(
            S::NOT_FOUND,
            "SubscriptionNotFound",
            format!("The subscription '{subscription}' could not be found."),
        )
    }

    pub fn group_not_found(group: &str) -> Self {
        Self::new(
            S::NOT_FOUND,
            "ResourceGroupNotFound",
            format!("Resource group '{group}' could not be found."),
        )
    }

    pub fn group_being_deleted(group: &str) -> Self {
        Self::new(
            S::CONFLICT,
            "ResourceGroupBeingDeleted",
            format!(
                "The resource group '{group}' is in deprovisioning state and cannot perform this operation."
            ),
        )
    }

    pub fn resource_not_found(id: &ResourceId) -> Self {
        let kind = format!("{}/{}", id.resource_type(), id.name());
        let place =
            id.resource_group().map(|group| format!(" under resource group '{group}'")).unwrap_or_default();
        Self::new(
            S::NOT_FOUND,
            "ResourceNotFound",
            format!(
                "The Resource '{kind}'{place} was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix"
            ),
        )
    }

    pub fn child_not_found(id: &ResourceId) -> Self {
        Self::new(S::NOT_FOUND, "NotFound", format!("Resource {id} not found."))
    }

    pub fn parent_not_found(parent: &ResourceId) -> Self {
        Self::new(
            S::NOT_FOUND,
            "ParentResourceNotFound",
            format!(
                "Failed to perform 'write' on resource(s) of type '{}', because the parent resource '{parent}' could not be found.",
                parent.resource_type()
            ),
        )
    }

    pub fn content(detail: &str) -> Self {
        Self::bad_request(
            "InvalidRequestContent",
            format!("The request content was invalid and could not be deserialized: '{detail}'."),
        )
    }

    pub fn member(path: &str, detail: &str) -> Self {
        Self::bad_request(
            "InvalidRequestContent",
            format!("The request content was invalid and could not be deserialized: 'Value of '{path}' {detail}.'."),
        )
        .at(path)
    }

    pub fn missing_member(path: &str) -> Self {
        Self::bad_request(
            "InvalidRequestContent",
            format!("The request content is not valid: the required property '{path}' is missing."),
        )
        .at(path)
    }

    pub fn parameter(path: &str, detail: impl Into<String>) -> Self {
        Self::bad_request("InvalidParameter", detail).at(path)
    }

    pub fn resource_name(name: &str, detail: &str) -> Self {
        Self::bad_request("InvalidResourceName", format!("Resource name {name} is invalid. {detail}"))
    }

    pub fn location_required() -> Self {
        Self::bad_request("LocationRequired", "The location property is required for this definition.")
    }

    pub fn location_not_available(location: &str, full: &str, locations: &str) -> Self {
        Self::bad_request(
            "LocationNotAvailableForResourceType",
            format!(
                "The provided location '{location}' is not available for resource type '{full}'. List of available regions for the resource type is '{locations}'."
            ),
        )
    }

    pub fn group_location(location: &str) -> Self {
        Self::bad_request(
            "LocationNotAvailableForResourceGroup",
            format!("The provided location '{location}' is not available for resource group."),
        )
    }

    pub fn location_changed(id: &ResourceId, old: &str, new: &str) -> Self {
        Self::new(
            S::CONFLICT,
            "InvalidResourceLocation",
            format!(
                "The resource '{}' already exists in location '{old}' in resource group '{}'. A resource with the same name cannot be created in location '{new}'. Please select a new resource name.",
                id.name(),
                id.resource_group().unwrap_or_default()
            ),
        )
    }

    pub fn group_location_changed(group: &str, old: &str, new: &str) -> Self {
        Self::new(
            S::CONFLICT,
            "InvalidResourceGroupLocation",
            format!(
                "Invalid resource group location '{new}'. The Resource group already exists in location '{old}'."
            ),
        )
        .at(group)
    }

    pub fn reference(target: &str, from: &ResourceId) -> Self {
        Self::bad_request(
            "InvalidResourceReference",
            format!(
                "Resource {target} referenced by resource {from} was not found. Please make sure that the referenced resource exists, and that both resources are in the same region."
            ),
        )
    }

    pub fn malformed_reference(path: &str, value: &str, target: &str) -> Self {
        Self::bad_request(
            "LinkedInvalidPropertyId",
            format!(
                "Property id '{value}' at path '{path}' is invalid. Expect fully qualified resource Id of type '{target}' that start with '/subscriptions/{{subscriptionId}}' or '/providers/{{resourceProviderNamespace}}/'."
            ),
        )
        .at(path)
    }

    pub fn in_use(code: &'static str, noun: &str, name: &str, by: &str) -> Self {
        Self::bad_request(code, format!("{noun} {name} is in use by {by} and cannot be deleted."))
    }

    pub fn precondition(message: impl Into<String>) -> Self {
        Self::new(S::PRECONDITION_FAILED, "PreconditionFailed", message)
    }

    pub fn deleted_vault(name: &str) -> Self {
        Self::new(
            S::CONFLICT,
            "ConflictError",
            format!(
                "A vault with the same name '{name}' already exists in deleted state. You need to either recover or purge existing key vault."
            ),
        )
    }

    pub fn name_taken(code: &'static str, name: &str) -> Self {
        Self::new(S::CONFLICT, code, format!("The name '{name}' is already in use."))
    }

    pub fn quota(code: &'static str, name: &str, limit: u32, location: &str) -> Self {
        Self::bad_request(
            code,
            format!(
                "Operation could not be completed as it results in exceeding approved {name} quota of {limit} in location {location}."
            ),
        )
    }

    pub fn authorization(client: &str, object_id: &str, action: &str, scope: &str) -> Self {
        Self::new(
            S::FORBIDDEN,
            "AuthorizationFailed",
            format!(
                "The client '{client}' with object id '{object_id}' does not have authorization to perform action '{action}' over scope '{scope}' or the scope is invalid. If access was recently granted, please refresh your credentials."
            ),
        )
    }

    pub fn linked_authorization(
        client: &str,
        object_id: &str,
        action: &str,
        scope: &str,
        linked: &str,
        on: &str,
    ) -> Self {
        Self::new(
            S::FORBIDDEN,
            "LinkedAuthorizationFailed",
            format!(
                "The client '{client}' with object id '{object_id}' has permission to perform action '{action}' on scope '{scope}'; however, it does not have permission to perform action(s) '{linked}' on the linked scope(s) '{on}' (respectively) or the linked scope(s) are invalid."
            ),
        )
    }

    pub fn namespace(namespace: &str) -> Self {
        Self::new(
            S::NOT_FOUND,
            "InvalidResourceNamespace",
            format!("The resource namespace '{namespace}' is invalid."),
        )
    }

    pub fn resource_type(namespace: &str, kind: &str, api_version: &str) -> Self {
        Self::new(
            S::NOT_FOUND,
            "InvalidResourceType",
            format!(
                "The resource type '{kind}' could not be found in the namespace '{namespace}' for api version '{api_version}'."
            ),
        )
    }

    pub fn api_version_missing() -> Self {
        Self::bad_request(
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )
    }

    pub fn api_version_malformed(given: &str) -> Self {
        Self::bad_request(
            "InvalidApiVersionParameter",
            format!(
                "The api-version '{given}' is invalid. An api-version is a date, such as '2024-07-01' or '2024-07-01-preview'."
            ),
        )
    }

    pub fn api_version(namespace: &str, kind: &str, given: &str, served: &str) -> Self {
        Self::bad_request(
            "NoRegisteredProviderFound",
            format!(
                "No registered resource provider found for API version '{given}' for type '{namespace}/{kind}'. The supported api-versions are '{served}'."
            ),
        )
    }

    pub fn unregistered(namespace: &str) -> Self {
        Self::new(
            S::CONFLICT,
            "MissingSubscriptionRegistration",
            format!(
                "The subscription is not registered to use namespace '{namespace}'. See https://aka.ms/rps-not-found for how to register subscriptions."
            ),
        )
    }

    pub fn being_deleted(id: &ResourceId) -> Self {
        Self::new(
            S::CONFLICT,
            "AnotherOperationInProgress",
            format!("Another operation on this or dependent resource is in progress: {id} is being deleted."),
        )
        .retry_after(1)
    }
}
