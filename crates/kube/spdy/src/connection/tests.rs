use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn pair() -> (Connection, Connection) {
    (Connection::new(Side::Client, Limits::default()), Connection::new(Side::Server, Limits::default()))
}

/// Carries what one side wrote to the other.
fn carry(from: &mut Connection, to: &mut Connection) -> Vec<Event> {
    to.receive(&from.take_output()).unwrap()
}

fn data(stream: u32, bytes: &'static [u8], fin: bool) -> Event {
    Event::Data { stream, bytes: Bytes::from_static(bytes), fin }
}

#[test]
fn a_stream_is_opened_answered_and_closed_from_both_ends() {
    let (mut client, mut server) = pair();
    let headers = Headers::new().with("port", "80");
    assert_eq!(client.open(headers.clone(), false), Some(1));
    assert_eq!(carry(&mut client, &mut server), [Event::Opened { stream: 1, headers, fin: false }]);
    server.reply(1);
    server.send(1, b"hello", false);
    assert_eq!(carry(&mut server, &mut client), [Event::Replied { stream: 1 }, data(1, b"hello", false)]);
    client.send(1, b"bye", true);
    assert_eq!(client.capacity(1), None);
    assert_eq!(carry(&mut client, &mut server), [data(1, b"bye", true)]);
    // One side is done; the other may go on.
    server.send(1, b"more", false);
    server.send(1, b"", true);
    assert_eq!(carry(&mut server, &mut client), [data(1, b"more", false), data(1, b"", true)]);
    assert_eq!((client.open_streams(), server.open_streams()), (0, 0));
}

#[test]
fn frames_of_gos_implementation_are_read() {
    // Two streams of a forwarded connection, as `spdystream` opens them.
    let hex = "800300010000003e0000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0\
        808614cb45e01c60616061c0c0c0c0590489c64c50f2663400000000ffff80030001000000180000\
        0003000000000000c2aa19540e2512d60b000000ffff";
    let bytes: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    let (_, mut server) = pair();
    let events = server.receive(&bytes).unwrap();
    for (event, (number, kind)) in events.iter().zip([(1, "error"), (3, "data")]) {
        let Event::Opened { stream, headers, fin: false } = event else { panic!("{event:?}") };
        assert_eq!(*stream, number);
        assert_eq!(headers.get("streamtype"), Some(kind));
        assert_eq!((headers.get("port"), headers.get("requestid")), (Some("8080"), Some("0")));
    }
    assert_eq!(events.len(), 2);
}

#[test]
fn a_stream_that_is_half_open_from_the_start_takes_no_data_from_there() {
    let (mut client, mut server) = pair();
    client.open(Headers::new(), true).unwrap();
    assert_eq!(
        carry(&mut client, &mut server),
        [Event::Opened { stream: 1, headers: Headers::new(), fin: true }]
    );
    server.reply(1);
    server.send(1, b"x", true);
    carry(&mut server, &mut client);
    assert_eq!((client.open_streams(), server.open_streams()), (0, 0));
}

#[test]
fn streams_beyond_the_limit_are_refused_and_cost_nothing() {
    let mut client = Connection::new(Side::Client, Limits::default());
    let mut server = Connection::new(Side::Server, Limits { streams: 2, ..Limits::default() });
    for _ in 0..3 {
        client.open(Headers::new(), false).unwrap();
    }
    assert_eq!(carry(&mut client, &mut server).len(), 2);
    assert_eq!(carry(&mut server, &mut client), [Event::Reset { stream: 5 }]);
    assert_eq!(server.open_streams(), 2);
}

#[test]
fn a_stream_number_that_is_not_theirs_or_not_new_is_reset() {
    let mut server = Connection::new(Side::Server, Limits::default());
    let mut frames = Encoder::new();
    for stream in [2, 3, 3, 1] {
        let headers = Headers::new();
        frames.control(&Control::SynStream { stream, headers, fin: false, unidirectional: false });
    }
    let opened = server.receive(&frames.take()).unwrap();
    assert_eq!(opened, [Event::Opened { stream: 3, headers: Headers::new(), fin: false }]);
    assert_eq!(server.take_output().len(), 3 * 16);
}

#[test]
fn pings_of_the_other_side_are_answered_and_answers_are_not() {
    let (_, mut server) = pair();
    let mut frames = Encoder::new();
    frames.control(&Control::Ping(7));
    let ping = frames.take();
    server.receive(&ping).unwrap();
    assert_eq!(server.take_output(), ping);
    frames.control(&Control::Ping(8));
    server.receive(&frames.take()).unwrap();
    assert_eq!(server.output_len(), 0);
}

#[test]
fn windows_bind_once_the_other_side_moves_them() {
    let (mut client, mut server) = pair();
    client.open(Headers::new(), false);
    carry(&mut client, &mut server);
    assert_eq!(server.capacity(1), Some(usize::MAX));
    server.send(1, &vec![0; 60_000], false);
    let mut frames = Encoder::new();
    frames.control(&Control::WindowUpdate { stream: 1, delta: 1000 });
    assert_eq!(server.receive(&frames.take()).unwrap(), [Event::Window]);
    assert_eq!(server.capacity(1), Some(65_536 - 60_000 + 1000));
    frames.control(&Control::Settings(vec![(INITIAL_WINDOW_SIZE, 100)]));
    server.receive(&frames.take()).unwrap();
    assert_eq!(server.capacity(1), Some(0));
    frames.control(&Control::WindowUpdate { stream: 1, delta: 0x7fff_ffff });
    frames.control(&Control::WindowUpdate { stream: 1, delta: 0x7fff_ffff });
    assert!(server.receive(&frames.take()).unwrap().contains(&Event::Reset { stream: 1 }));
}

#[test]
fn what_is_consumed_is_given_back_in_large_steps() {
    let (mut client, mut server) = pair();
    client.open(Headers::new(), false);
    carry(&mut client, &mut server);
    server.consumed(1, 32_767);
    assert_eq!(server.output_len(), 0);
    server.consumed(1, 1);
    assert_eq!(carry(&mut server, &mut client), [Event::Window]);
    assert_eq!(client.capacity(1), Some(65_536 + 32_768));
}

#[test]
fn data_is_passed_on_before_its_frame_is_complete() {
    let (mut client, mut server) = pair();
    client.open(Headers::new(), false);
    carry(&mut client, &mut server);
    client.send(1, b"abcdef", true);
    let bytes = client.take_output();
    assert_eq!(server.receive(&bytes[..10]).unwrap(), [data(1, b"ab", false)]);
    assert_eq!(server.receive(&bytes[10..]).unwrap(), [data(1, b"cdef", true)]);
}

#[test]
fn data_after_the_end_resets_the_stream_and_data_for_nobody_is_dropped() {
    let (mut client, mut server) = pair();
    client.open(Headers::new(), true);
    carry(&mut client, &mut server);
    let mut frames = Encoder::new();
    frames.data(1, b"late", false);
    frames.data(99, b"unknown", false);
    assert_eq!(server.receive(&frames.take()).unwrap(), [Event::Reset { stream: 1 }]);
}

#[test]
fn nonsense_ends_the_connection_with_a_goodbye() {
    for (bytes, error) in [
        (&b"GET / HTTP/1.1\r\n"[..], None),
        (&[0x80, 2, 0, 1, 0, 0, 0, 0], Some(Error::Version(2))),
        (&[0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff], Some(Error::TooLong(0x00ff_ffff))),
        (&[0x80, 3, 0, 6, 0, 0, 0, 2, 0, 0], Some(Error::Malformed(6))),
        (&[0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1], Some(Error::Malformed(3))),
        (&[0x80, 3, 0, 4, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff], Some(Error::Malformed(4))),
    ] {
        let (mut client, mut server) = pair();
        assert_eq!(server.receive(bytes).err(), error, "{bytes:?}");
        if error.is_some() {
            assert_eq!(client.receive(&server.take_output()).unwrap(), [Event::GoAway]);
        }
    }
}

#[test]
fn after_a_goodbye_nothing_is_opened_from_either_side() {
    let (mut client, mut server) = pair();
    server.go_away();
    server.go_away();
    assert_eq!(carry(&mut server, &mut client), [Event::GoAway]);
    client.open(Headers::new(), false);
    assert_eq!(carry(&mut client, &mut server), []);
    assert_eq!(server.open(Headers::new(), false), None);
}

/// Frames that are right, or nearly so.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let control = (0_u16..12, any::<u8>(), prop::collection::vec(any::<u8>(), 0..40));
    let control = control.prop_map(|(kind, flags, body)| {
        let mut bytes = vec![0x80, 3];
        bytes.extend(kind.to_be_bytes());
        bytes.extend([flags, 0, 0, body.len() as u8]);
        bytes.extend(body);
        bytes
    });
    let opening =
        (1_u32..20, "[a-z]{1,8}", ".{0,20}", any::<bool>()).prop_map(|(stream, name, value, fin)| {
            let mut frames = Encoder::new();
            let headers = Headers::new().with(&name, value);
            frames.control(&Control::SynStream { stream, headers, fin, unidirectional: false });
            frames.take().to_vec()
        });
    let data = (1_u32..20, prop::collection::vec(any::<u8>(), 0..50), any::<bool>());
    let data = data.prop_map(|(stream, bytes, fin)| {
        let mut frames = Encoder::new();
        frames.data(stream, &bytes, fin);
        frames.take().to_vec()
    });
    prop_oneof![control, opening, data, prop::collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #[test]
    fn no_input_panics_and_what_is_kept_is_bounded(frames in prop::collection::vec(frame(), 0..40), cut in 1_usize..50) {
        let limits = Limits { streams: 4, control: 256, headers: 1024 };
        let mut server = Connection::new(Side::Server, limits);
        for piece in frames.concat().chunks(cut) {
            match server.receive(piece) {
                Ok(events) => for event in events {
                    if let Event::Opened { stream, .. } = event {
                        server.reply(stream);
                        server.send(stream, b"x", stream % 3 == 0);
                    }
                },
                Err(_) => break,
            }
            prop_assert!(server.open_streams() <= limits.streams);
            prop_assert!(server.decoder.kept() < 256 + 8 + 50);
            server.take_output();
        }
    }

    #[test]
    fn what_is_sent_arrives_however_it_is_cut(messages in prop::collection::vec((0_u32..3, prop::collection::vec(any::<u8>(), 0..300)), 0..30), cut in 1_usize..100) {
        let (mut client, mut server) = pair();
        let mut sent = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..3 {
            client.open(Headers::new().with("n", "v"), false).unwrap();
        }
        for (stream, bytes) in &messages {
            client.send(stream * 2 + 1, bytes, false);
            sent[*stream as usize].extend_from_slice(bytes);
        }
        let mut got = [Vec::new(), Vec::new(), Vec::new()];
        for piece in client.take_output().chunks(cut) {
            for event in server.receive(piece).unwrap() {
                if let Event::Data { stream, bytes, .. } = event {
                    got[(stream / 2) as usize].extend_from_slice(&bytes);
                }
            }
        }
        prop_assert_eq!(got, sent);
    }
}
