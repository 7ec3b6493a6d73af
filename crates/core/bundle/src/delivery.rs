//! The times of a delivery, which our agent reports with a status.
//!
//! The original agent does not report them; then the status alone shows that the version was received.

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Attribute, Event};

/// When a version of a bundle reached which stage on the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The digest of the data that was received.
    pub hash: String,
    /// When it was received.
    pub received: Timestamp,
    /// When all of it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Timestamp>,
    /// When the status was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Timestamp>,
}

impl Delivery {
    /// The extension that carries it.
    pub const EXTENSION: &'static str = "delivery";

    /// Sets it on an event.
    pub fn attach(&self, event: &mut Event) {
        if let Ok(text) = serde_json::to_string(self) {
            event.others.insert(Self::EXTENSION.to_owned(), Attribute::Text(text));
        }
    }

    /// Decodes it from an event, if it is present and valid.
    pub fn of(event: &Event) -> Option<Self> {
        serde_json::from_str(event.other(Self::EXTENSION)?).ok()
    }
}
