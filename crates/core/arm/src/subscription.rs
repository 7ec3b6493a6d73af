//! Subscriptions as ARM notifies us of them.

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The life of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Registered,
    Unregistered,
    Warned,
    Suspended,
    Deleted,
}

impl State {
    pub const NAMES: [&'static str; 5] = ["Registered", "Unregistered", "Warned", "Suspended", "Deleted"];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "Registered",
            Self::Unregistered => "Unregistered",
            Self::Warned => "Warned",
            Self::Suspended => "Suspended",
            Self::Deleted => "Deleted",
        }
    }
}

/// A feature the subscription asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    pub name: String,
    pub state: String,
}

/// The members of `properties` we look at; the rest is kept as it came.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Properties {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_features: Option<Vec<Feature>>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A subscription as notified and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    pub state: State,
    pub registration_date: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<Properties>,
}

/// The feature that opens experimental settings.
const EXPERIMENTAL: &str = "Microsoft.RedHatOpenShift/ExperimentalReleaseFeatures";

impl Subscription {
    pub fn tenant_id(&self) -> Option<&str> {
        self.properties.as_ref()?.tenant_id.as_deref()
    }

    /// Whether experimental settings are open to this subscription.
    pub fn has_experimental_features(&self) -> bool {
        let features =
            self.properties.as_ref().and_then(|properties| properties.registered_features.as_deref());
        features.unwrap_or_default().iter().any(|feature| {
            feature.name.eq_ignore_ascii_case(EXPERIMENTAL)
                && feature.state.eq_ignore_ascii_case("Registered")
        })
    }
}

/// Whether a registration date is one.
pub fn is_date(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok()
        // ARM itself sends RFC 1123 dates here.
        || jiff::fmt::rfc2822::parse(text).is_ok()
}
