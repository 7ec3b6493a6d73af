//! Break-glass credentials.

use crate::{Sensitive, Time};

words! {
    /// The state of a break-glass credential.
    BreakGlassCredentialStatus {
        Created = "created",
        Issued = "issued",
        Failed = "failed",
        Expired = "expired",
        AwaitingRevocation = "awaiting_revocation",
        Revoked = "revoked",
    }
}

objects! {
    /// An administrator's credential of a cluster, valid for a day.
    BreakGlassCredential {
        kind: String,
        id: String,
        href: String,
        username: String,
        status: BreakGlassCredentialStatus,
        kubeconfig: Sensitive,
        expiration_timestamp: Time,
        revocation_timestamp: Time,
    }
}
