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
use crate::fault::Fault;
use crate::search::{self, Table};

/// The largest page.
const MAX_SIZE: usize = 65_500;

/// The default page.
const DEFAULT_SIZE: usize = 100;

/// Documents in memory while a list is streamed.
const STRETCH: usize = 8192;

/// Approximate bytes per chunk of the body.
const CHUNK: usize = 128 * 1024;

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

/// Streams a list. `read` returns a slice of it; `show` appends the JSON of one item; `count` is called only if the first
/// slice does not determine the total. That slice is read before the response starts, so that its failure is an error
/// response; a later failure ends the connection.
pub(super) async fn streamed<T, R, F>(
    kind: &str,
    count: impl Future<Output = Result<u64, Fault>>,
    listing: &Listing,
    read: R,
    show: impl Fn(&T, &mut Vec<u8>) -> Result<(), Fault> + Send + Sync + 'static,
) -> Result<Response, Fault>
where
    T: Send + 'static,
    R: Fn(Slice) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<T>, Fault>> + Send,
{
    let order = listing.order.clone();
    let slice = move |skip, size| Slice { order: order.clone(), skip, size, ..Slice::default() };
    let mut writer = Writer {
        items: Vec::new().into_iter(),
        skip: listing.skip(),
        left: listing.size,
        written: 0,
        ended: false,
        head: String::new(),
    };
    writer.fill(&read, &slice).await?;
    let total = match writer.total(listing.skip()) {
        Some(total) => total,
        None => count.await?,
    };
    writer.head = format!(r#"{{"kind":"{kind}","page":{},"total":{total},"items":["#, listing.page);
    let body =
        stream::try_unfold((writer, read, slice, show), |(mut writer, read, slice, show)| async move {
            if writer.ended {
                return Ok::<_, Fault>(None);
            }
            let mut chunk = std::mem::take(&mut writer.head).into_bytes();
            while chunk.len() < CHUNK {
                if let Some(item) = writer.items.next() {
                    let before = chunk.len();
                    if writer.written > 0 {
                        chunk.push(b',');
                    }
                    match show(&item, &mut chunk) {
                        Ok(()) => writer.written += 1,
                        // One item that cannot be rendered must not hide the others.
                        Err(error) => {
                            chunk.truncate(before);
                            tracing::error!(error = %chain(&error), "an item is missing from a list");
                        }
                    }
                } else if writer.left > 0 {
                    writer.fill(&read, &slice).await?;
                } else {
                    chunk.extend_from_slice(format!(r#"],"size":{}}}"#, writer.written).as_bytes());
                    writer.ended = true;
                    break;
                }
            }
            Ok(Some((Bytes::from(chunk), (writer, read, slice, show))))
        });
    Ok(json_text(StatusCode::OK, Body::from_stream(body)))
}

/// The state of a streamed list.
struct Writer<T> {
    items: std::vec::IntoIter<T>,
    skip: usize,
    left: usize,
    written: usize,
    ended: bool,
    head: String,
}

impl<T> Writer<T> {
    /// The total, if the first slice determines it: fewer items than requested.
    fn total(&self, skipped: usize) -> Option<u64> {
        let read = self.items.len();
        let ended = self.skip > skipped && read < self.skip - skipped && (read > 0 || skipped == 0);
        ended.then(|| (skipped + read) as u64)
    }

    async fn fill<R, F>(&mut self, read: &R, slice: &impl Fn(usize, usize) -> Slice) -> Result<(), Fault>
    where
        R: Fn(Slice) -> F,
        F: Future<Output = Result<Vec<T>, Fault>>,
    {
        let size = self.left.min(STRETCH);
        let items = if size == 0 { Vec::new() } else { read(slice(self.skip, size)).await? };
        self.skip = self.skip.saturating_add(size);
        self.left = if items.len() < size { 0 } else { self.left - size };
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

    #[test]
    fn a_query_string_is_decoded() {
        assert_eq!(
            form("search=a+%3D+%27b%26c%27&x&=y&&bad=%zz%ff"),
            [("search", "a = 'b&c'"), ("x", ""), ("", "y"), ("bad", "%zz\u{fffd}")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
