use super::*;

fn bounds() -> Bounds {
    Bounds { messages: 4, bytes: 10_000, window: 2, largest: 1000 }
}

fn entry(size: usize) -> Entry {
    let body = Bytes::from(vec![0; size]);
    Entry { parcel: Arc::new(Parcel { topic: "t".to_owned(), body, quality: 1 }), quality: 1, share: None }
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
fn the_clients_window_bounds_what_is_written() {
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
async fn a_client_that_does_not_keep_up_is_ended_by_number() {
    let outbox = Outbox::new(1, bounds());
    for _ in 0..4 {
        assert_eq!(outbox.put(entry(10)), Put::Queued);
    }
    assert_eq!(outbox.put(entry(10)), Put::Ended);
    assert_eq!(outbox.ended().await, QUOTA_EXCEEDED);
    assert!(!outbox.is_open());
}

#[test]
fn a_client_that_does_not_keep_up_is_ended_by_bytes() {
    let outbox = Outbox::new(1, Bounds { bytes: 1500, ..bounds() });
    assert_eq!(outbox.put(entry(900)), Put::Queued);
    assert_eq!(outbox.put(entry(900)), Put::Ended);
}

#[test]
fn what_the_client_cannot_take_is_left_out() {
    let outbox = Outbox::new(1, bounds());
    assert_eq!(outbox.put(entry(2000)), Put::TooLarge);
    assert!(outbox.is_open());
}

#[test]
fn what_was_not_acknowledged_is_given_back_in_order() {
    let outbox = Outbox::new(1, bounds());
    for size in [1, 2, 3] {
        outbox.put(entry(size));
    }
    packets(&outbox);
    outbox.acknowledged(1);
    let left: Vec<usize> = outbox.empty().iter().map(|entry| entry.parcel.body.len()).collect();
    assert_eq!(left, [2, 3]);
    assert_eq!(outbox.put(entry(1)), Put::Ended);
}
