//! Tests of frames that HTTP/2 allows but that have no content: a few are accepted, an endless number ends the
//! connection.

use super::*;

const PRIORITY_FRAME: u8 = 2;
const ACK: u8 = 1;
/// The number of unsolicited frames after which a flood is cut off, with a tolerance for the start of each flood.
const PUT_UP_WITH: std::ops::RangeInclusive<usize> = 9_900..=10_100;

/// Each flood of frames without content ends the connection with the same error after [`PUT_UP_WITH`] frames, without a
/// timeout.
#[test]
fn every_flood_is_cut_off() {
    let window = |stream| frame(WINDOW_UPDATE, 0, stream, &1u32.to_be_bytes());
    let head = frame(HEADERS, END_HEADERS, 1, OK);
    let over = frame(RST_STREAM, 0, 3, &[0, 0, 0, 8]);
    for (what, begin, again) in [
        ("empty data", head.clone(), frame(DATA, 0, 1, b"")),
        ("padding", head, frame(DATA, PADDED, 1, b"\x04\0\0\0\0")),
        ("interim answers", vec![], frame(HEADERS, END_HEADERS, 1, b"\x08\x03103")),
        ("empty continuations", frame(HEADERS, 0, 1, b""), frame(CONTINUATION, 0, 1, b"")),
        ("pings", vec![], frame(PING, 0, 0, b"12345678")),
        ("answers to pings", vec![], frame(PING, ACK, 0, b"12345678")),
        ("settings", vec![], frame(SETTINGS, 0, 0, &[])),
        ("settings that change", vec![], setting(4, 1000)),
        ("acknowledgements", vec![], frame(SETTINGS, ACK, 0, &[])),
        ("windows of the connection", vec![], window(0)),
        ("windows of a stream", vec![], window(1)),
        ("priorities", vec![], frame(PRIORITY_FRAME, 0, 1, &[0; 5])),
        ("unknown frames", vec![], frame(0x77, 0, 0, b"")),
        ("farewells", vec![], frame(GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0])),
        ("ends of a stream that is over", over.clone(), over.clone()),
        ("heads of a stream that is over", over.clone(), frame(HEADERS, END_HEADERS, 3, OK)),
        ("data of a stream that is over", over, frame(DATA, 0, 3, b"x")),
    ] {
        let mut client = Client::welcomed(0);
        client.open(0);
        client.open(1);
        client.output();
        client.hear(&begin).unwrap();
        // The calls themselves may be answered with a few.
        let mut count = 0;
        let said = loop {
            if let Err(said) = client.hear(&again) {
                break said;
            }
            count += 1;
            assert!(count < 1_000_000, "{what}");
            // The replies are read, so that none pile up.
            if count % 1_000 == 0 {
                client.output();
            }
        };
        assert!(said.contains("it sends frame after frame that brings nothing (ENHANCE_YOUR_CALM)"), "{what}: {said}");
        let asked = 2 * 64;
        assert!(PUT_UP_WITH.contains(&(count - asked.min(count))), "{what}: {count}");
        let out = client.session.out().to_vec();
        let (kind, _, stream, payload) = *frames(&out).last().unwrap();
        assert_eq!((kind, stream, payload), (GOAWAY, 0, &[0, 0, 0, 0, 0, 0, 0, 11][..]), "{what}");
        assert!(client.session.at_fault());
    }
}

/// A server may send many frames without content as long as calls go on, because each sent request allows some.
#[test]
fn talk_about_calls_is_no_flood() {
    let mut client = Client::welcomed(20_000);
    for call in 0..5_000 {
        let id = client.open(call);
        client.output();
        for stream in [0, id] {
            for _ in 0..5 {
                client.hear(&frame(WINDOW_UPDATE, 0, stream, &4_000u32.to_be_bytes())).unwrap();
            }
        }
        client.hear(&frame(PING, 0, 0, b"12345678")).unwrap();
        client.hear(&frame(HEADERS, END_HEADERS, id, OK)).unwrap();
        client.hear(&frame(DATA, 0, id, b"")).unwrap();
        client.hear(&frame(DATA, END_STREAM, id, b"")).unwrap();
        assert_eq!(client.ended(), [format!("{call}: 200 ")]);
    }
}

/// An answer in single bytes is accepted, however long it is.
#[test]
fn small_pieces_are_no_flood() {
    let mut client = Client::welcomed(0);
    client.open(0);
    client.hear(&frame(HEADERS, END_HEADERS, 1, OK)).unwrap();
    for _ in 0..100_000 {
        client.hear(&frame(DATA, 0, 1, b"x")).unwrap();
    }
    client.hear(&frame(DATA, END_STREAM, 1, b"")).unwrap();
    assert_eq!(client.ended()[0].len(), "0: 200 ".len() + 100_000);
}
