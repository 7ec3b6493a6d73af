//! Lists: their parameters, and a body that is streamed.

use std::future::Future;

use aro_base::chain;
use aro_store::Slice;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::StatusCode;

use super::fields::Fields;
use super::json_text;
use crate::fault::{Code, Fault};
use crate::search::{self, Table};

/// The largest page.
const MAX_SIZE: usize = 65_500;

/// The default page.
const DEFAULT_SIZE: usize = 100;

/// Approximate bytes per chunk of the body.
const CHUNK: usize = 128 * 1024;

/// What a list may take.
#[derive(Debug, Clone, Copy)]
struct Budget {
    /// Documents read first; how many are read after them is decided by their size.
    first: usize,
    /// Documents read at once.
    documents: usize,
    /// Their bytes, approximately.
    bytes: usize,
    /// Bytes of a page. A larger one is refused and not cut: clients take a page with fewer items than requested for the last.
    page: usize,
}

/// Every slice sorts the whole table again, so a list of thousands needs few of them.
const BUDGET: Budget =
    Budget { first: 16, documents: 8192, bytes: 16 * 1024 * 1024, page: 256 * 1024 * 1024 };

/// The parameters of a list.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) page: i64,
    pub(super) size: usize,
    pub(super) condition: Option<aro_store::Condition>,
    pub(super) order: Vec<aro_store::Order>,
    pub(super) fields: Option<Fields>,
}

impl Listing {
    /// Parses the parameters. A number that cannot be parsed is 0, as in the original.
    pub(super) fn read(query: Option<&str>, table: Table, known: &[&str]) -> Result<Self, Fault> {
        let pairs: Vec<(String, String)> = form(query.unwrap_or_default());
        let value = |name: &str| {
            let found = pairs.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        let number = |name: &str| value(name).map(|text| text.trim().parse::<i64>().unwrap_or(0));
        let size = number("size")
            .map_or(DEFAULT_SIZE, |size| usize::try_from(size).unwrap_or(MAX_SIZE).min(MAX_SIZE));
        Ok(Self {
            page: number("page").unwrap_or(1),
            size,
            condition: search::condition(table, value("search").unwrap_or_default())?,
            order: search::order(table, value("orderBy").unwrap_or_default())?,
            fields: Fields::read(value("fields").unwrap_or_default(), known)?,
        })
    }

    fn skip(&self) -> usize {
        let before = usize::try_from(self.page.saturating_sub(1)).unwrap_or(0);
        before.saturating_mul(self.size)
    }
}

/// The pairs of a query string; `+` is a blank, and invalid UTF-8 is replaced.
fn form(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    };
    query.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}

/// Streams a list. `read` returns a slice of it; `show` appends the JSON of one item; `weigh` is the size of one in memory;
/// `count` is called only if the first slices do not determine the total. These are read before the response starts, so that
/// their failure is an error response; a later failure ends the connection.
pub(super) async fn streamed<T, R, F>(
    kind: &str,
    count: impl Future<Output = Result<u64, Fault>>,
    listing: &Listing,
    read: R,
    weigh: fn(&T) -> usize,
    show: impl Fn(&T, &mut Vec<u8>) -> Result<(), Fault> + Send + Sync + 'static,
) -> Result<Response, Fault>
where
    T: Send + 'static,
    R: Fn(Slice) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<T>, Fault>> + Send,
{
    streamed_within(BUDGET, kind, count, listing, read, weigh, show).await
}

async fn streamed_within<T, R, F>(
    budget: Budget,
    kind: &str,
    count: impl Future<Output = Result<u64, Fault>>,
    listing: &Listing,
    read: R,
    weigh: fn(&T) -> usize,
    show: impl Fn(&T, &mut Vec<u8>) -> Result<(), Fault> + Send + Sync + 'static,
) -> Result<Response, Fault>
where
    T: Send + 'static,
    R: Fn(Slice) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<T>, Fault>> + Send,
{
    let mut writer = Writer::new(budget, listing, weigh);
    let mut start = Vec::new();
    while !writer.ended() && start.len() < CHUNK {
        writer.advance(&read, &show, &mut start).await?;
    }
    let total = match writer.total(listing.skip()) {
        Some(total) => total,
        None => count.await?,
    };
    writer.check_page(listing, total)?;
    let mut head =
        format!(r#"{{"kind":"{kind}","page":{},"total":{total},"items":["#, listing.page).into_bytes();
    head.append(&mut start);
    let state = Some((writer, head, read, show));
    let body = stream::try_unfold(state, |state| async move {
        let Some((mut writer, mut chunk, read, show)) = state else { return Ok::<_, Fault>(None) };
        while !writer.ended() && chunk.len() < CHUNK {
            writer.advance(&read, &show, &mut chunk).await?;
        }
        if writer.ended() {
            chunk.extend_from_slice(format!(r#"],"size":{}}}"#, writer.written).as_bytes());
            return Ok(Some((Bytes::from(chunk), None)));
        }
        Ok(Some((Bytes::from(chunk), Some((writer, Vec::new(), read, show)))))
    });
    Ok(json_text(StatusCode::OK, Body::from_stream(body)))
}

/// The state of a streamed list.
struct Writer<T> {
    budget: Budget,
    order: Vec<aro_store::Order>,
    items: std::vec::IntoIter<T>,
    weigh: fn(&T) -> usize,
    /// The next slice.
    skip: usize,
    left: usize,
    size: usize,
    /// Items read so far, and whether there are no more.
    read: usize,
    exhausted: bool,
    written: usize,
    /// Bytes written.
    bytes: usize,
}

impl<T> Writer<T> {
    fn new(budget: Budget, listing: &Listing, weigh: fn(&T) -> usize) -> Self {
        Self {
            budget,
            order: listing.order.clone(),
            items: Vec::new().into_iter(),
            weigh,
            skip: listing.skip(),
            left: listing.size,
            size: budget.first,
            read: 0,
            exhausted: false,
            written: 0,
            bytes: 0,
        }
    }

    fn ended(&self) -> bool {
        self.left == 0 && self.items.len() == 0
    }

    /// The total, if the list ended before the page did.
    fn total(&self, skipped: usize) -> Option<u64> {
        let known = self.exhausted && (self.read > 0 || skipped == 0);
        known.then(|| (skipped + self.read) as u64)
    }

    /// Refuses a page that is too large, judged by its first items.
    fn check_page(&self, listing: &Listing, total: u64) -> Result<(), Fault> {
        let after = usize::try_from(total).unwrap_or(usize::MAX).saturating_sub(listing.skip());
        let items = listing.size.min(after);
        let each = self.bytes / self.written.max(1);
        if each.saturating_mul(items) <= self.budget.page {
            return Ok(());
        }
        let fitting = (self.budget.page / each.max(1)).max(1);
        let mib = self.budget.page / (1024 * 1024);
        Err(Fault::new(
            Code::BadRequest,
            format!(
                "a page of {items} items is larger than {mib} MiB; request pages of size {fitting} or less"
            ),
        ))
    }

    /// Appends items until a chunk is full, or the next slice has to be read.
    async fn advance<R, F>(
        &mut self,
        read: &R,
        show: &impl Fn(&T, &mut Vec<u8>) -> Result<(), Fault>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault>
    where
        R: Fn(Slice) -> F,
        F: Future<Output = Result<Vec<T>, Fault>>,
    {
        if self.items.len() == 0 {
            self.fill(read).await?;
        }
        let before = out.len();
        while out.len() < CHUNK
            && let Some(item) = self.items.next()
        {
            let start = out.len();
            if self.written > 0 {
                out.push(b',');
            }
            match show(&item, out) {
                Ok(()) => self.written += 1,
                // One item that cannot be rendered must not hide the others.
                Err(error) => {
                    out.truncate(start);
                    tracing::error!(error = %chain(&error), "an item is missing from a list");
                }
            }
        }
        self.bytes += out.len() - before;
        if self.bytes > self.budget.page.saturating_mul(2) {
            return Err(Fault::new(
                Code::General,
                "the page exceeds the size limit; request a smaller `size`",
            ));
        }
        Ok(())
    }

    async fn fill<R, F>(&mut self, read: &R) -> Result<(), Fault>
    where
        R: Fn(Slice) -> F,
        F: Future<Output = Result<Vec<T>, Fault>>,
    {
        let size = self.left.min(self.size);
        if size == 0 {
            return Ok(());
        }
        let slice = Slice { order: self.order.clone(), skip: self.skip, size, ..Slice::default() };
        let items = read(slice).await?;
        self.skip = self.skip.saturating_add(size);
        self.exhausted = items.len() < size;
        self.left = if self.exhausted { 0 } else { self.left - size };
        self.read += items.len();
        let bytes: usize = items.iter().map(self.weigh).sum();
        // As many as fit if the next ones are as large. At most eight times as many as before: the first may be the small ones.
        let fitting = self.budget.bytes / (bytes / items.len().max(1)).max(1);
        self.size = fitting.min(self.size.saturating_mul(8)).clamp(1, self.budget.documents);
        self.items = items.into_iter();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_leniently_as_clients_know_it() {
        let read = |query: &str| {
            let listing = Listing::read(Some(query), Table::Bundles, &["id"]).unwrap();
            (listing.page, listing.size, listing.skip())
        };
        assert_eq!(read(""), (1, 100, 0));
        assert_eq!(read("page=3&size=10"), (3, 10, 20));
        assert_eq!(read("size=-1"), (1, 65_500, 0));
        assert_eq!(read("size=70000&page=x"), (0, 65_500, 0));
        assert_eq!(read("size=0"), (1, 0, 0));
        assert_eq!(read("size=many&page=-4"), (-4, 0, 0));
        assert_eq!(read("page=9223372036854775807&size=65500").2, usize::MAX);
    }

    const SMALL: Budget = Budget { first: 4, documents: 64, bytes: 10_000, page: 100_000 };

    /// Lists items of these sizes. Returns the response, and the most bytes that were read at once.
    async fn list(sizes: &[usize], query: &str) -> (Result<serde_json::Value, Fault>, usize) {
        let listing = Listing::read(Some(query), Table::Bundles, &["id"]).unwrap();
        let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let (all, noted) = (sizes.to_vec(), most.clone());
        let read = move |slice: Slice| {
            let items: Vec<usize> = all.iter().skip(slice.skip).take(slice.size).copied().collect();
            noted.fetch_max(items.iter().sum(), std::sync::atomic::Ordering::Relaxed);
            async move { Ok(items) }
        };
        let count = async { Ok(sizes.len() as u64) };
        let show = |size: &usize, out: &mut Vec<u8>| {
            out.extend_from_slice(format!("\"{}\"", "x".repeat(size - 2)).as_bytes());
            Ok(())
        };
        let answer = streamed_within(SMALL, "List", count, &listing, read, |size| *size, show).await;
        let body = match answer {
            Ok(response) => {
                let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
                Ok(serde_json::from_slice(&bytes).unwrap())
            }
            Err(fault) => Err(fault),
        };
        (body, most.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_list_is_whole_and_holds_a_bounded_number_of_bytes() {
        for (sizes, query) in [
            (vec![10; 500], "size=1000"),
            (vec![2000; 40], "size=40"),
            (vec![10; 500], "size=100&page=3"),
            (Vec::new(), ""),
            (vec![10; 3], "size=0"),
        ] {
            let listing = Listing::read(Some(query), Table::Bundles, &["id"]).unwrap();
            let expected = sizes.len().saturating_sub(listing.skip()).min(listing.size);
            let (body, most) = list(&sizes, query).await;
            let body = body.unwrap();
            assert_eq!(body["items"].as_array().unwrap().len(), expected, "{query}");
            assert_eq!((&body["size"], &body["total"]), (&expected.into(), &sizes.len().into()), "{query}");
            assert!(most <= SMALL.bytes, "{query}: {most} bytes at once");
        }
    }

    #[tokio::test]
    async fn a_page_beyond_the_byte_budget_is_refused_and_not_cut() {
        let (refused, most) = list(&vec![2000; 1000], "size=500").await;
        let fault = refused.unwrap_err();
        assert_eq!(fault.code, Code::BadRequest);
        assert!(fault.reason.contains("request pages of size"), "{}", fault.reason);
        assert!(most <= SMALL.bytes, "{most} bytes at once");
        let (fits, _) = list(&vec![2000; 1000], "size=40").await;
        assert_eq!(fits.unwrap()["size"], 40);
    }

    #[test]
    fn a_query_string_is_decoded() {
        assert_eq!(
            form("search=a+%3D+%27b%26c%27&x&=y&&bad=%zz%ff"),
            [("search", "a = 'b&c'"), ("x", ""), ("", "y"), ("bad", "%zz\u{fffd}")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
