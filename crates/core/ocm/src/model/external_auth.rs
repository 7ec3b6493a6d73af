//! External auths: identity providers of a cluster's API server.

use crate::{ExternalAuthStatus, Items, Sensitive, Switch};

words! {
    /// Whether user names get a prefix.
    PrefixPolicy {
        Default = "",
        Prefix = "Prefix",
        NoPrefix = "NoPrefix",
    }

    /// Whether a client has a secret.
    ClientType {
        Public = "public",
        Confidential = "confidential",
    }
}

objects! {
    /// The external auths of a cluster, as an object of their own.
    ExternalAuthConfig {
        kind: String,
        id: String,
        href: String,
        enabled: bool,
        state: Switch,
        external_auths: Items<ExternalAuth>,
    }

    /// An external auth.
    ExternalAuth {
        kind: String,
        id: String,
        href: String,
        issuer: TokenIssuer,
        clients: Vec<ExternalAuthClientConfig>,
        claim: ExternalAuthClaim,
        status: ExternalAuthStatus,
    }

    /// Who issues tokens.
    TokenIssuer {
        url: String,
        ca: String,
        audiences: Vec<String>,
    }

    /// A component of the cluster that is a client of the issuer.
    ExternalAuthClientConfig {
        id: String,
        component: ClientComponent,
        extra_scopes: Vec<String>,
        r#type: ClientType,
        /// Accepted and not stored: it is not returned, and the secret is in the cluster.
        secret: Sensitive,
    }

    /// A component of the cluster.
    ClientComponent {
        name: String,
        namespace: String,
    }

    /// What claims mean.
    ExternalAuthClaim {
        mappings: TokenClaimMappings,
        validation_rules: Vec<TokenClaimValidationRule>,
    }

    /// How claims become users and groups.
    TokenClaimMappings {
        username: UsernameClaim,
        groups: GroupsClaim,
    }

    /// The claim with the user's name.
    UsernameClaim {
        claim: String,
        prefix: String,
        prefix_policy: PrefixPolicy,
    }

    /// The claim with the groups.
    GroupsClaim {
        claim: String,
        prefix: String,
    }

    /// A claim that a token must have.
    TokenClaimValidationRule {
        claim: String,
        required_value: String,
    }
}
