use std::io;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)))
        .collect()
}

fn reply(repeat: Repeat, status: u16, pairs: &[(&'static str, &'static str)], body: &str) -> Verdict {
    let status = StatusCode::from_u16(status).unwrap();
    judge(repeat, &Outcome::Reply { status, headers: &headers(pairs), body: body.as_bytes() }, NOW)
}

fn lost() -> TransportError {
    TransportError::Lost { host: "h".into(), source: io::Error::other("reset").into() }
}

fn unreachable() -> TransportError {
    TransportError::Unreachable { host: "h".into(), source: io::Error::other("refused").into() }
}

#[test]
fn an_idempotent_request_is_repeated_after_every_transient_failure() {
    for status in [408, 429, 500, 502, 503, 504] {
        assert!(matches!(reply(Repeat::Always, status, &[], ""), Verdict::Again { .. }), "{status}");
    }
    for status in [200, 201, 202, 204, 400, 403, 404, 409, 412, 501] {
        assert_eq!(reply(Repeat::Always, status, &[], ""), Verdict::Accept, "{status}");
    }
    assert_eq!(
        judge(Repeat::Always, &Outcome::NoReply(&lost()), NOW),
        Verdict::Again { after: None, unapplied: false }
    );
}

#[test]
fn an_action_is_repeated_only_when_nothing_can_have_happened() {
    let once = Repeat::IfUnapplied;
    assert_eq!(judge(once, &Outcome::NoReply(&lost()), NOW), Verdict::Stop);
    let late = TransportError::Late { host: "h".into(), within: Duration::from_secs(1) };
    assert_eq!(judge(once, &Outcome::NoReply(&late), NOW), Verdict::Stop);
    assert_eq!(
        judge(once, &Outcome::NoReply(&unreachable()), NOW),
        Verdict::Again { after: None, unapplied: true }
    );
    assert!(matches!(reply(once, 429, &[], ""), Verdict::Again { unapplied: true, .. }));
    assert!(matches!(reply(once, 503, &[("retry-after", "2")], ""), Verdict::Again { unapplied: true, .. }));
    for status in [500, 502, 503, 504] {
        assert_eq!(reply(once, status, &[], ""), Verdict::Accept, "{status}");
    }
}

#[test]
fn a_reply_that_is_too_large_is_not_asked_for_again() {
    let large = TransportError::TooLarge { host: "h".into() };
    assert_eq!(judge(Repeat::Always, &Outcome::NoReply(&large), NOW), Verdict::Stop);
}

#[test]
fn a_conflict_is_repeated_only_if_it_passes() {
    let busy = r#"{"error":{"code":"AnotherOperationInProgress","message":"m"}}"#;
    assert!(matches!(reply(Repeat::Always, 409, &[], busy), Verdict::Again { unapplied: true, .. }));
    assert!(matches!(reply(Repeat::Always, 409, &[("retry-after", "1")], ""), Verdict::Again { .. }));
}

#[test]
fn tokens_and_roles_have_verdicts_of_their_own() {
    let body = r#"{"error":{"code":"AuthorizationFailed","message":"m"}}"#;
    assert_eq!(reply(Repeat::Always, 401, &[], ""), Verdict::Refresh);
    assert_eq!(reply(Repeat::Always, 403, &[], body), Verdict::MissingRole);
}

#[test]
fn delays_are_read_in_every_form() {
    for (pairs, expected) in [
        (&[("retry-after", "7")][..], Some(Duration::from_secs(7))),
        (&[("retry-after-ms", "250"), ("retry-after", "7")], Some(Duration::from_millis(250))),
        (&[("x-ms-retry-after-ms", "40")], Some(Duration::from_millis(40))),
        (&[("retry-after", "Thu, 01 Jan 1970 00:01:00 GMT")], Some(Duration::from_mins(1))),
        (&[("retry-after", "Wed, 01 Jan 1969 00:01:00 GMT")], Some(Duration::ZERO)),
        (&[("retry-after", "soon")], None),
        (&[], None),
    ] {
        assert_eq!(retry_after(&headers(pairs), NOW), expected, "{pairs:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_adds_a_bounded_share_of_requests() {
    let budget = RetryBudget::new(20);
    let retries = (0..1000)
        .filter(|_| {
            budget.deposit();
            budget.withdraw()
        })
        .count();
    assert!((200..=211).contains(&retries), "{retries}");
}

#[tokio::test(start_paused = true)]
async fn the_reserve_refills_with_time() {
    let budget = RetryBudget::new(0);
    assert_eq!((0..100).filter(|_| budget.withdraw()).count(), 10);
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!((0..100).filter(|_| budget.withdraw()).count(), 3);
    tokio::time::advance(Duration::from_hours(3)).await;
    assert_eq!((0..100).filter(|_| budget.withdraw()).count(), 10);
}
