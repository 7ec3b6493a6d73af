//! The event feed: what changed, in commit order, at least once.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the feed is served.
pub const PATH: &str = "/api/aro/v1/events";

/// The longest wait of one request, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 60;

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Continue here after this event.
    pub cursor: String,
    /// The object's address.
    pub href: String,
    /// The object's kind.
    pub kind: String,
    /// The generation of its desired state; 0 for a deletion.
    pub generation: u64,
    /// Whether the object is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The object as the API shows it, with its status; absent for a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
}

/// An answer of the feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventList {
    /// `EventList`.
    pub kind: String,
    /// The changes.
    pub items: Vec<Event>,
    /// Continue here.
    pub cursor: String,
}

impl EventList {
    /// An answer.
    pub fn new(items: Vec<Event>, cursor: String) -> Self {
        Self { kind: "EventList".to_owned(), items, cursor }
    }
}
