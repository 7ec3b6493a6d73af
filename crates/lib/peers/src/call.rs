//! Who a call is made for: the headers by which a hop joins the trace and the logs of the request that caused it.

use aro_runtime::trace_context::{self, TRACEPARENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// What stands for itself in a value of the baggage header.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The request of a customer that a call is part of. Empty for the service's own work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallContext {
    /// ARM's correlation id.
    pub correlation_id: Option<String>,
    /// The client's own id of its request.
    pub client_request_id: Option<String>,
    /// The W3C trace parent as stored with the operation, for processes that do not export traces themselves.
    pub trace_parent: Option<String>,
}

impl CallContext {
    /// Adds the trace and the baggage to a request's headers.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        trace_context::inject(headers);
        if !headers.contains_key(TRACEPARENT)
            && let Some(parent) =
                self.trace_parent.as_deref().and_then(|parent| HeaderValue::try_from(parent).ok())
        {
            headers.insert(TRACEPARENT, parent);
        }
        let members = [
            ("aro.correlation_id", &self.correlation_id),
            ("aro.client.request_id", &self.client_request_id),
        ];
        let members: Vec<String> = members
            .iter()
            .filter_map(|(name, value)| {
                Some(format!("{name}={}", utf8_percent_encode(value.as_deref()?, PLAIN)))
            })
            .collect();
        if let (false, Ok(value)) = (members.is_empty(), HeaderValue::try_from(members.join(","))) {
            headers.insert(BAGGAGE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_and_trace_travel_with_a_call() {
        let context = CallContext {
            correlation_id: Some("c-1".to_owned()),
            client_request_id: Some("a b,c".to_owned()),
            trace_parent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
        };
        let mut headers = HeaderMap::new();
        context.write(&mut headers);
        assert_eq!(headers["baggage"], "aro.correlation_id=c-1,aro.client.request_id=a%20b%2Cc");
        assert_eq!(headers["traceparent"], context.trace_parent.as_deref().unwrap());
    }

    #[test]
    fn work_of_its_own_has_neither() {
        let mut headers = HeaderMap::new();
        CallContext::default().write(&mut headers);
        assert!(headers.is_empty());
    }
}
