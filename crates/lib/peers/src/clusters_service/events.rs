//! The event feed: long polls from a cursor.

use std::time::Duration;

use aro_ocm::event::{EventList, MAX_WAIT_SECONDS, PATH};
use http::Method;

use super::{ClustersService, read, with_query};
use crate::error::CallError;

/// What the feed answers.
pub type EventPage = EventList;

/// What a long poll may take beyond the time that the server waits.
const SLACK: Duration = Duration::from_secs(10);

impl ClustersService {
    /// The feed's end as of now: follow from there, then list, and nothing is missed.
    pub async fn latest_cursor(&self) -> Result<String, CallError> {
        let page: EventPage = self.get(PATH).await?;
        Ok(page.cursor)
    }

    /// The next changes after a cursor; empty if there was none within `wait`. [`CallError::Gone`] asks to start over.
    pub async fn events_after(&self, cursor: &str, wait: Duration) -> Result<EventPage, CallError> {
        let wait = wait.min(Duration::from_secs(MAX_WAIT_SECONDS));
        let seconds = wait.as_secs().to_string();
        let path = with_query(PATH, [("after", cursor), ("timeout", seconds.as_str())]);
        let (_, body) = self.exchange(Method::GET, &path, None, wait + SLACK).await?;
        read(&body)
    }
}
