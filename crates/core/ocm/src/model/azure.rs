//! What a cluster says about Azure.

use std::collections::BTreeMap;

words! {
    /// How nodes reach the internet.
    OutboundType {
        LoadBalancer = "load_balancer",
    }

    /// Who manages the key of etcd.
    KeyManagementMode {
        CustomerManaged = "customer_managed",
        PlatformManaged = "platform_managed",
    }

    /// How a customer's key encrypts etcd.
    EtcdEncryptionType {
        Kms = "kms",
    }

    /// Whether the key vault is reached over its public address.
    KmsVisibility {
        Public = "public",
        Private = "private",
    }
}

objects! {
    /// The Azure part of a cluster.
    Azure {
        tenant_id: String,
        subscription_id: String,
        resource_group_name: String,
        resource_name: String,
        managed_resource_group_name: String,
        subnet_resource_id: String,
        network_security_group_resource_id: String,
        vnet_integration_subnet_resource_id: String,
        nodes_outbound_connectivity: AzureNodesOutboundConnectivity,
        operators_authentication: AzureOperatorsAuthentication,
        etcd_encryption: AzureEtcdEncryption,
        container_registry: AzureContainerRegistry,
        /// Set by Clusters Service.
        oidc_issuer_url: String,
    }

    /// How nodes reach the internet.
    AzureNodesOutboundConnectivity {
        outbound_type: OutboundType,
    }

    /// With what operators authenticate.
    AzureOperatorsAuthentication {
        managed_identities: AzureOperatorsAuthenticationManagedIdentities,
    }

    /// The managed identities of a cluster.
    AzureOperatorsAuthenticationManagedIdentities {
        managed_identities_data_plane_identity_url: String,
        control_plane_operators_managed_identities: BTreeMap<String, AzureControlPlaneManagedIdentity>,
        data_plane_operators_managed_identities: BTreeMap<String, AzureDataPlaneManagedIdentity>,
        service_managed_identity: AzureServiceManagedIdentity,
    }

    /// The identity of an operator of the control plane. `client_id` and `principal_id` are set by Clusters Service.
    AzureControlPlaneManagedIdentity {
        resource_id: String,
        client_id: String,
        principal_id: String,
    }

    /// The identity of an operator on the nodes.
    AzureDataPlaneManagedIdentity {
        resource_id: String,
    }

    /// The identity by which the service works in the customer's subscription. `client_id` and `principal_id` are set by
    /// Clusters Service.
    AzureServiceManagedIdentity {
        resource_id: String,
        client_id: String,
        principal_id: String,
    }

    /// How etcd is encrypted.
    AzureEtcdEncryption {
        data_encryption: AzureEtcdDataEncryption,
    }

    /// How the data of etcd is encrypted.
    AzureEtcdDataEncryption {
        key_management_mode: KeyManagementMode,
        customer_managed: AzureEtcdDataEncryptionCustomerManaged,
    }

    /// Encryption by a customer's key.
    AzureEtcdDataEncryptionCustomerManaged {
        encryption_type: EtcdEncryptionType,
        kms: AzureKmsEncryption,
    }

    /// Encryption by a key in a key vault.
    AzureKmsEncryption {
        visibility: KmsVisibility,
        active_key: AzureKmsKey,
    }

    /// A key in a key vault.
    AzureKmsKey {
        key_vault_name: String,
        key_name: String,
        key_version: String,
    }

    /// The registry that nodes pull from with an identity.
    AzureContainerRegistry {
        credentials: AzureContainerRegistryCredentials,
    }

    /// The credentials of a registry.
    AzureContainerRegistryCredentials {
        r#type: String,
        managed_identity: AzureUserAssignedManagedIdentity,
    }

    /// A managed identity by its resource id.
    AzureUserAssignedManagedIdentity {
        resource_id: String,
    }
}

impl Azure {
    /// The managed identities, if any are given.
    pub fn identities(&self) -> Option<&AzureOperatorsAuthenticationManagedIdentities> {
        self.operators_authentication.as_ref()?.managed_identities.as_ref()
    }

    /// The customer's key of etcd, if there is one.
    pub fn kms(&self) -> Option<&AzureKmsEncryption> {
        self.etcd_encryption.as_ref()?.data_encryption.as_ref()?.customer_managed.as_ref()?.kms.as_ref()
    }
}
