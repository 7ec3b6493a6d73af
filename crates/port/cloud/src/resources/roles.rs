//! Role definitions and role assignments.

use aro_arm::ResourceId;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::Resource;
use crate::api_version::AUTHORIZATION;
use crate::arm::{ArmClient, Precondition};
use crate::error::{CloudError, Failure};

const NAMESPACE: &str = "Microsoft.Authorization";

/// A role definition.
pub type RoleDefinition = Resource<RoleDefinitionProperties>;
/// A role assignment.
pub type RoleAssignment = Resource<RoleAssignmentProperties>;

/// The members of a role definition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleDefinitionProperties {
    /// Its name for people.
    pub role_name: String,
    /// What it permits.
    #[serde(default)]
    pub permissions: Vec<Permission>,
}

/// What a role permits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Permission {
    /// On resources.
    pub actions: Vec<String>,
    /// Exceptions.
    pub not_actions: Vec<String>,
    /// On the data in them.
    pub data_actions: Vec<String>,
    /// Exceptions.
    pub not_data_actions: Vec<String>,
}

/// The members of a role assignment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleAssignmentProperties {
    /// The role.
    pub role_definition_id: String,
    /// The principal that has it.
    pub principal_id: String,
    /// Where.
    #[serde(default)]
    pub scope: String,
}

/// The kind of a principal. Naming it lets the cloud accept principals that are not known everywhere yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrincipalType {
    /// An application or a managed identity.
    ServicePrincipal,
    /// A person.
    User,
    /// A group.
    Group,
}

impl PrincipalType {
    fn as_str(self) -> &'static str {
        match self {
            Self::ServicePrincipal => "ServicePrincipal",
            Self::User => "User",
            Self::Group => "Group",
        }
    }
}

/// The name of an assignment, derived from what it assigns: the same assignment has the same name, however often it is made.
pub fn role_assignment_name(scope: &ResourceId, principal: &Uuid, role: &Uuid) -> Uuid {
    let text = format!("{}|{principal}|{role}", scope.to_lower());
    Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes())
}

impl ArmClient {
    /// Finds a role definition by its name for people.
    pub async fn find_role_definition(
        &self,
        scope: &ResourceId,
        role_name: &str,
    ) -> Result<Option<RoleDefinition>, CloudError> {
        let path = format!("{scope}/providers/{NAMESPACE}/roleDefinitions");
        let filter = format!("roleName eq '{}'", role_name.replace('\'', "''"));
        let found: Vec<RoleDefinition> = self.list(&path, AUTHORIZATION, &[("$filter", &filter)]).await?;
        Ok(found.into_iter().find(|role| role.properties.role_name.eq_ignore_ascii_case(role_name)))
    }

    /// Assigns a role (by the guid of its definition) on a scope. An equal assignment under another name counts.
    pub async fn ensure_role_assignment(
        &self,
        scope: &ResourceId,
        principal: &Uuid,
        principal_type: PrincipalType,
        role: &Uuid,
    ) -> Result<(), CloudError> {
        let id = self.assignment_id(scope, principal, role)?;
        if self.find::<RoleAssignment>(&id, AUTHORIZATION).await?.is_some() {
            return Ok(());
        }
        let Some(subscription) = scope.subscription() else {
            return Err(self.problem(scope, Failure::Mismatch("scope than one in a subscription")));
        };
        let definition =
            ResourceId::in_subscription(subscription, NAMESPACE, &[("roleDefinitions", &role.to_string())]);
        let properties = json!({
            "roleDefinitionId": definition,
            "principalId": principal,
            "principalType": principal_type.as_str(),
        });
        let body = json!({ "properties": properties });
        match self.put(&id, AUTHORIZATION, &body, &Precondition::None).await {
            Err(error) if error.code() == Some("RoleAssignmentExists") => Ok(()),
            written => written.map(drop),
        }
    }

    /// Lists the role assignments of a principal at, above and below a scope.
    pub async fn list_role_assignments(
        &self,
        scope: &ResourceId,
        principal: &Uuid,
    ) -> Result<Vec<RoleAssignment>, CloudError> {
        let path = format!("{scope}/providers/{NAMESPACE}/roleAssignments");
        let filter = format!("principalId eq '{principal}'");
        self.list(&path, AUTHORIZATION, &[("$filter", &filter)]).await
    }

    /// Removes an assignment that [`ArmClient::ensure_role_assignment`] made.
    pub async fn delete_role_assignment(
        &self,
        scope: &ResourceId,
        principal: &Uuid,
        role: &Uuid,
    ) -> Result<(), CloudError> {
        self.delete(&self.assignment_id(scope, principal, role)?, AUTHORIZATION).await
    }

    fn assignment_id(
        &self,
        scope: &ResourceId,
        principal: &Uuid,
        role: &Uuid,
    ) -> Result<ResourceId, CloudError> {
        let name = role_assignment_name(scope, principal, role).to_string();
        self.extension(scope, NAMESPACE, "roleAssignments", &name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_assignment_follows_from_its_content() {
        let scope = |text: &str| ResourceId::parse(text).unwrap();
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let name = role_assignment_name(&scope("/subscriptions/s/resourceGroups/G"), &a, &b);
        assert_eq!(name, role_assignment_name(&scope("/subscriptions/S/resourcegroups/g"), &a, &b));
        assert_ne!(name, role_assignment_name(&scope("/subscriptions/s/resourceGroups/h"), &a, &b));
        assert_ne!(name, role_assignment_name(&scope("/subscriptions/s/resourceGroups/G"), &b, &a));
    }
}
