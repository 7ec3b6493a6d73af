//! Role assignments that exist before any caller may write one.

use std::collections::BTreeSet;

use aro_arm::ResourceId;
use aro_arm_server::Failure;
use aro_cloud_store::Resource;
use serde_json::json;
use uuid::Uuid;

use crate::cloud::{Cloud, assignment_of, object};

/// The type of role assignments.
const ASSIGNMENTS: &str = "Microsoft.Authorization/roleAssignments";
const NAMESPACE: &str = "Microsoft.Authorization";

impl Cloud {
    /// Assigns a role at a subscription, as a document like any other assignment: callers list it and may delete it. An
    /// equal assignment under another name counts.
    pub async fn ensure_subscription_role(
        &self,
        subscription: &str,
        principal: &str,
        role: &str,
    ) -> Result<(), Failure> {
        let scope = ResourceId::of_subscription(subscription);
        let text = format!("{}|{principal}|{role}", scope.to_lower());
        let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes()).to_string();
        let id = ResourceId::in_subscription(subscription, NAMESPACE, &[("roleAssignments", &name)]);
        if self.find(ASSIGNMENTS, &id).await?.is_some() {
            return Ok(());
        }
        let definition = ResourceId::in_subscription(subscription, NAMESPACE, &[("roleDefinitions", role)]);
        let properties = json!({
            "roleDefinitionId": definition, "principalId": principal, "principalType": "ServicePrincipal",
        });
        let now = self.now();
        let resource = Resource {
            id: id.to_string(),
            body: object(json!({ "properties": properties })),
            created: now,
            changed: now,
            created_by: None,
            references: BTreeSet::new(),
            secrets: Vec::new(),
            operation: None,
            deleting: false,
        };
        if self.grants().exists(&assignment_of(&id, &resource, now)) {
            return Ok(());
        }
        let op = self.write_op(ASSIGNMENTS, &id, None, &resource)?;
        self.commit(&id, vec![op]).await?;
        self.index(ASSIGNMENTS, &resource);
        Ok(())
    }
}
