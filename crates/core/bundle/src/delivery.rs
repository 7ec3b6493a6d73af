//! What an agent tells about a delivery, besides the status itself.
//!
//! Agents of others do not tell it; then the status alone says that the version arrived.

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Attribute, Event};

/// When a version of a bundle got how far on the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The digest of the data that was received.
    pub hash: String,
    /// When it came in.
    pub received: Timestamp,
    /// When all of it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Timestamp>,
    /// When the status was read off the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Timestamp>,
}

impl Delivery {
    /// The extension it travels in.
    pub const EXTENSION: &'static str = "delivery";

    /// Puts it on an event.
    pub fn attach(&self, event: &mut Event) {
        if let Ok(text) = serde_json::to_string(self) {
            event.others.insert(Self::EXTENSION.to_owned(), Attribute::Text(text));
        }
    }

    /// Reads it off an event, if it is there and can be read.
    pub fn of(event: &Event) -> Option<Self> {
        serde_json::from_str(event.other(Self::EXTENSION)?).ok()
    }
}
