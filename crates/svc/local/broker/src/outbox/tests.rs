use super::*;

fn bounds() -> Bounds {
    Bounds { messages: 4, bytes: 10_000, window: 2, largest: 1000 }
}

fn entry(size: usize) -> Entry {
    let body = Bytes::from(vec![0; size]);
    Entry { publication: Arc::new(Publication { topic: "t".to_owned(), body, qos: 1 }), qos: 1, share: None }
}

fn packets(outbox: &Outbox) -> usize {
    let mut out = BytesMut::new();
    outbox.take(&mut out);
    let mut count = 0;
    while let Ok(Some(_)) = wire::take_frame(&mut out, 1 << 20) {
        count += 1;
    }
    count
}

#[test]
fn client_window_bounds_what_is_written() {
    let outbox = Outbox::new(1, bounds());
    for _ in 0..4 {
        assert_eq!(outbox.put(entry(10)), Put::Queued);
    }
    assert_eq!(packets(&outbox), 2);
    assert_eq!(packets(&outbox), 0);
    assert!(outbox.acknowledged(1));
    assert!(!outbox.acknowledged(1), "twice");
    assert_eq!(packets(&outbox), 1);
}

#[tokio::test]
async fn slow_client_is_ended_by_message_count() {
    let outbox = Outbox::new(1, bounds());
    for _ in 0..4 {
        assert_eq!(outbox.put(entry(10)), Put::Queued);
    }
    assert_eq!(outbox.put(entry(10)), Put::Ended);
    assert_eq!(outbox.ended().await, QUOTA_EXCEEDED);
    assert!(!outbox.is_open());
}

#[test]
fn slow_client_is_ended_by_bytes() {
    let outbox = Outbox::new(1, Bounds { bytes: 1500, ..bounds() });
    assert_eq!(outbox.put(entry(900)), Put::Queued);
    assert_eq!(outbox.put(entry(900)), Put::Ended);
}

#[test]
fn packet_larger_than_the_client_accepts_is_skipped() {
    let outbox = Outbox::new(1, bounds());
    assert_eq!(outbox.put(entry(2000)), Put::TooLarge);
    assert!(outbox.is_open());
}

#[test]
fn unacked_messages_are_returned_in_order() {
    let outbox = Outbox::new(1, bounds());
    for size in [1, 2, 3] {
        outbox.put(entry(size));
    }
    packets(&outbox);
    outbox.acknowledged(1);
    let left: Vec<usize> = outbox.drain().iter().map(|entry| entry.publication.body.len()).collect();
    assert_eq!(left, [2, 3]);
    assert_eq!(outbox.put(entry(1)), Put::Ended);
}
