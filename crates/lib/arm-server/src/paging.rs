//! Lists: one page of a collection and the link to the next one.

use aro_store::PageToken;
use http::StatusCode;
use serde::Serialize;

use crate::answer::Answer;
use crate::caller::Caller;

/// A page as the wire has it, keys in alphabetical order.
#[derive(Serialize)]
struct ListBody<'a, T> {
    #[serde(rename = "nextLink", skip_serializing_if = "Option::is_none")]
    next_link: Option<String>,
    value: &'a [T],
}

/// A whole collection on one page.
pub fn whole<T: Serialize>(items: &[T]) -> Answer {
    Answer::json(StatusCode::OK, &ListBody { next_link: None, value: items })
}

/// One page, with the link to the next one if there is one. The link repeats the parameters of the request.
pub fn page<T: Serialize>(caller: &Caller, items: &[T], next: Option<&PageToken>) -> Answer {
    let next_link = next.map(|token| caller.url().next_page(token.as_str()));
    Answer::json(StatusCode::OK, &ListBody { next_link, value: items })
}
