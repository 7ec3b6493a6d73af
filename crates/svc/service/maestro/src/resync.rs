//! Resync: after a lost connection each side lists what it has, and the other sends what is missing.
//!
//! Agents request specs ([`SpecResponder`]). The server requests statuses ([`StatusRequester`]), after its own connect and
//! after each of an agent's. Both read pages of rows, publish concurrently, and fit every message into a packet. Agents are
//! answered in turn ([`request_queue`]), so that none blocks the others.

mod request_queue;
mod spec_responder;
mod status_requester;

pub use spec_responder::SpecResponder;
pub use status_requester::StatusRequester;

use aro_runtime::Fault;
use aro_store::{Page, PageToken};

use crate::rows::{Bundle, Row, Rows};

/// Rows read at once.
const PAGE: usize = 200;

async fn read_page(
    rows: &Rows,
    consumer: &str,
    after: Option<PageToken>,
) -> Result<(Vec<Row<Bundle>>, Option<PageToken>), Fault> {
    let page = rows.of_consumer(consumer, Page { size: PAGE, after }).await;
    page.map_err(|error| Fault::caused("read a consumer's bundles", error))
}
