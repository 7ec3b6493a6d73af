//! Provision shards: management clusters that clusters are placed on.

use crate::{Reference, Time};

words! {
    /// Whether a shard receives clusters: only an active one does.
    ShardStatus {
        Maintenance = "maintenance",
        Active = "active",
        Offline = "offline",
    }

    /// How a shard is used.
    ShardTopology {
        Shared = "shared",
    }
}

objects! {
    /// A provision shard.
    ProvisionShard {
        kind: String,
        id: String,
        href: String,
        cloud_provider: Reference,
        region: Reference,
        topology: ShardTopology,
        status: ShardStatus,
        azure_shard: AzureShard,
        maestro_config: ProvisionShardMaestroConfig,
        /// The last name of the AKS cluster's resource id. Read only.
        management_cluster: String,
        creation_timestamp: Time,
        last_update_timestamp: Time,
    }

    /// The Azure part of a shard.
    AzureShard {
        aks_management_cluster_resource_id: String,
        public_dns_zone_resource_id: String,
        cx_secrets_key_vault_url: String,
        cx_managed_identities_key_vault_url: String,
        cx_secrets_key_vault_managed_identity_client_id: String,
    }

    /// How the shard's cluster is reached through Maestro.
    ProvisionShardMaestroConfig {
        consumer_name: String,
        rest_api_config: ServerUrl,
        grpc_api_config: ServerUrl,
    }

    /// Where a server is.
    ServerUrl {
        url: String,
    }
}

impl ProvisionShard {
    /// The name of the AKS cluster, as its resource id ends.
    pub fn management_cluster_name(&self) -> Option<&str> {
        let id = self.azure_shard.as_ref()?.aks_management_cluster_resource_id.as_deref()?;
        id.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// The Maestro consumer.
    pub fn consumer(&self) -> Option<&str> {
        self.maestro_config.as_ref()?.consumer_name.as_deref()
    }
}
