//! What the role that runs the directory decides.

use aro_base::SignedDuration;
use uuid::Uuid;

/// The directory's settings.
#[derive(Debug, Clone)]
pub struct DirectorySettings {
    /// The host of the login endpoint in tokens, challenges and credentials.
    pub login_host: String,
    /// The host (with a port, if it has one) of the managed identity data plane: what capability URLs name.
    pub identity_host: String,
    /// The audience of tokens for the managed identity data plane.
    pub identity_audience: String,
    /// The one application that may call the managed identity data plane.
    pub identity_caller: Option<Uuid>,
    /// Further resources that tokens may be requested for, beside Azure's own and registered applications.
    pub audiences: Vec<String>,
    /// How long a signing key is used.
    pub key_rotation: SignedDuration,
    /// Refuse a client assertion that was used before. Off by default: MSAL for Python sends the same assertion for nine
    /// minutes, and Entra takes it.
    pub single_use_assertions: bool,
    /// How many failed attempts a client has in a minute.
    pub failures_per_minute: u32,
}

impl Default for DirectorySettings {
    fn default() -> Self {
        Self {
            login_host: "login.microsoftonline.com".to_owned(),
            identity_host: "uksouth.identity.azure.net".to_owned(),
            identity_audience: "https://dummy.org".to_owned(),
            identity_caller: None,
            audiences: Vec::new(),
            key_rotation: SignedDuration::from_hours(24 * 30),
            single_use_assertions: false,
            failures_per_minute: 30,
        }
    }
}
