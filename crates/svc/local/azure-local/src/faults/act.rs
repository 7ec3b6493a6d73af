//! Does to a request what was decided.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use super::decide::{Act, Plan};
use crate::connection::Cut;

/// Delays, refuses or cuts a request, or has it handled. `forbid` answers for a missing permission.
pub(crate) async fn act(
    plan: Plan,
    cut: Option<Cut>,
    forbid: impl FnOnce() -> Response,
    handle: impl Future<Output = Response>,
) -> Response {
    if !plan.delay.is_zero() {
        tokio::time::sleep(plan.delay).await;
    }
    match plan.act {
        Act::Pass => handle.await,
        Act::Throttle(after) => throttled(after),
        Act::ServerError => refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalServerError",
            "The server encountered an internal error. Please retry the request.",
        ),
        Act::PermissionMissing => forbid(),
        Act::Cut => ended(cut),
        Act::LostReply => {
            drop(handle.await);
            ended(cut)
        }
    }
}

/// Cuts the connection. The answer exists for the server only, which cannot write it any more.
fn ended(cut: Option<Cut>) -> Response {
    if let Some(cut) = cut {
        cut.cut();
    }
    refused(StatusCode::BAD_GATEWAY, "ConnectionCut", "The connection was cut.")
}

/// 429 as ARM answers it; parts of a second are in the header that Azure's clients know for them.
fn throttled(after: Duration) -> Response {
    let mut response = refused(
        StatusCode::TOO_MANY_REQUESTS,
        "SubscriptionRequestsThrottled",
        "Number of requests for the subscription exceeded the limit. Please try again after the time in the 'Retry-After' header.",
    );
    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    if after.subsec_nanos() > 0 {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        headers.insert(HeaderName::from_static("x-ms-retry-after-ms"), HeaderValue::from(millis));
    }
    response
}

fn refused(status: StatusCode, code: &'static str, message: &str) -> Response {
    let mut response =
        Response::new(Body::from(json!({"error": {"code": code, "message": message}}).to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("x-ms-error-code"), HeaderValue::from_static(code));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    async fn acted(act_: Act) -> (Response, bool) {
        let handled = AtomicBool::new(false);
        let handle = async {
            handled.store(true, Ordering::SeqCst);
            Response::new(Body::empty())
        };
        let plan = Plan { delay: Duration::ZERO, act: act_ };
        let forbid = || refused(StatusCode::FORBIDDEN, "AuthorizationFailed", "");
        let response = act(plan, Some(Cut::default()), forbid, handle).await;
        (response, handled.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn only_a_lost_reply_and_no_fault_let_a_request_take_effect() {
        for (act, status, handled) in [
            (Act::Pass, 200, true),
            (Act::LostReply, 502, true),
            (Act::Cut, 502, false),
            (Act::Throttle(Duration::from_secs(1)), 429, false),
            (Act::ServerError, 500, false),
            (Act::PermissionMissing, 403, false),
        ] {
            let (response, was_handled) = acted(act).await;
            assert_eq!((response.status().as_u16(), was_handled), (status, handled), "{act:?}");
        }
    }

    #[tokio::test]
    async fn a_throttled_client_learns_when_to_come_back() {
        let (response, _) = acted(Act::Throttle(Duration::from_secs(2))).await;
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        assert!(!response.headers().contains_key("x-ms-retry-after-ms"));
        let (response, _) = acted(Act::Throttle(Duration::from_millis(20))).await;
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        assert_eq!(response.headers()["x-ms-retry-after-ms"], "20");
    }

    #[tokio::test(start_paused = true)]
    async fn latency_comes_before_everything_else() {
        let before = tokio::time::Instant::now();
        let plan = Plan { delay: Duration::from_secs(3), act: Act::Pass };
        act(plan, None, || Response::new(Body::empty()), async { Response::new(Body::empty()) }).await;
        assert_eq!(before.elapsed(), Duration::from_secs(3));
    }
}
