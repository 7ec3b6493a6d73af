//! W3C trace context: reading it from a request, writing it to the next one.
//!
//! The header is parsed here and not by a propagator of the tracing libraries, because it is on the path of every
//! request: no allocation, no global.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The request header that carries the caller's position in a trace.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The request header with vendors' additions to it.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// The response header that tells the caller which span served it.
pub const TRACERESPONSE: HeaderName = HeaderName::from_static("traceresponse");

/// The caller's position in a trace, if the headers carry a valid one.
pub fn extract(headers: &HeaderMap) -> Option<SpanContext> {
    let (trace_id, span_id, flags) = parse(headers.get(TRACEPARENT)?.as_bytes())?;
    let state = headers.get(TRACESTATE).and_then(|state| state.to_str().ok());
    let state = state.and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
    Some(SpanContext::new(trace_id, span_id, flags, true, state))
}

/// Makes a span the child of a caller's span.
pub fn set_parent(span: &Span, parent: SpanContext) {
    // Fails when no exporter is installed or the span is disabled; then there is no tree to hang it in.
    let _ = span.set_parent(Context::new().with_remote_span_context(parent));
}

/// Writes the current span into the headers of an outgoing request. Does nothing when traces are not exported.
pub fn inject(headers: &mut HeaderMap) {
    let context = Span::current().context();
    let span = context.span();
    if let Some(value) = header_value(span.span_context()) {
        headers.insert(TRACEPARENT, value);
        let state = span.span_context().trace_state().header();
        if let (false, Ok(state)) = (state.is_empty(), HeaderValue::try_from(state)) {
            headers.insert(TRACESTATE, state);
        }
    }
}

/// A span as a header value; `None` if it is not part of a trace.
pub fn header_value(span: &SpanContext) -> Option<HeaderValue> {
    if !span.is_valid() {
        return None;
    }
    let text = format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags().to_u8() & 1);
    HeaderValue::try_from(text).ok()
}

/// `00-<32 hex>-<16 hex>-<2 hex>`; later versions may append fields, version `ff` is forbidden.
fn parse(text: &[u8]) -> Option<(TraceId, SpanId, TraceFlags)> {
    let dashes = [2, 35, 52].iter().all(|index| text.get(*index) == Some(&b'-'));
    let version = hex(text.get(0..2)?)?;
    let ends_well = text.len() == 55 || (version > 0 && text.get(55) == Some(&b'-'));
    if !dashes || !ends_well || version == 0xff {
        return None;
    }
    let trace_id = u128::from(hex(text.get(3..19)?)?) << 64 | u128::from(hex(text.get(19..35)?)?);
    let span_id = hex(text.get(36..52)?)?;
    let flags = hex(text.get(53..55)?)?;
    (trace_id != 0 && span_id != 0).then_some((
        TraceId::from(trace_id),
        SpanId::from(span_id),
        TraceFlags::new(flags as u8 & 1),
    ))
}

/// Lower-case hexadecimal, as the specification demands.
fn hex(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |value, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(value << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(traceparent: &str) -> HeaderMap {
        HeaderMap::from_iter([(TRACEPARENT, HeaderValue::try_from(traceparent).unwrap())])
    }

    #[test]
    fn a_valid_header_round_trips() {
        let span = extract(&headers(EXAMPLE)).unwrap();
        assert!(span.is_remote() && span.is_sampled());
        assert_eq!(header_value(&span).unwrap(), EXAMPLE);
    }

    #[test]
    fn a_later_version_may_have_more_fields() {
        assert!(extract(&headers(&format!("{}-future", EXAMPLE.replacen("00", "01", 1)))).is_some());
    }

    #[test]
    fn anything_else_starts_a_new_trace() {
        for text in [
            "",
            "00",
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replacen("00", "ff", 1),
            &EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000000"),
            &EXAMPLE.replace("00f067aa0ba902b7", "0000000000000000"),
            &format!("{EXAMPLE}-extra"),
            &EXAMPLE.replace('-', "_"),
        ] {
            assert_eq!(extract(&headers(text)), None, "{text}");
        }
        assert_eq!(extract(&HeaderMap::new()), None);
    }
}
