//! The identities that the operators of a version need.

words! {
    /// When an identity is needed.
    Required {
        Always = "always",
        OnEnablement = "on_enablement",
    }
}

objects! {
    /// The identities that clusters need.
    ManagedIdentitiesRequirements {
        kind: String,
        id: String,
        href: String,
        control_plane_operators_identities: Vec<OperatorIdentityRequirement>,
        data_plane_operators_identities: Vec<OperatorIdentityRequirement>,
    }

    /// The identity that an operator needs.
    OperatorIdentityRequirement {
        operator_name: String,
        required: Required,
        min_openshift_version: String,
        max_openshift_version: String,
        role_definitions: Vec<RoleDefinition>,
        service_accounts: Vec<ServiceAccount>,
    }

    /// A role that an identity needs.
    RoleDefinition {
        name: String,
        resource_id: String,
    }

    /// A service account that uses an identity.
    ServiceAccount {
        name: String,
        namespace: String,
    }
}
