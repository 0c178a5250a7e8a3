use std::time::Duration;

use super::*;

/// The time in which a used-up allowance of frames becomes full again.
const REFILL: Duration = Duration::from_secs((ALLOWANCE / PER_SECOND) as u64);

const NOTHING: ReadResult = ReadResult { is_whole: false, is_greedy: false };
const WHOLE: ReadResult = ReadResult { is_whole: true, is_greedy: false };
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;

fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
    let length_bytes = u32::try_from(length).unwrap().to_be_bytes();
    let mut bytes = vec![length_bytes[1], length_bytes[2], length_bytes[3], kind, flags, 0, 0, 0, 1];
    bytes.resize(HEAD_BYTES + length, 0xff);
    bytes
}

fn opened() -> Frames {
    let mut frames = Frames::new(100);
    assert_eq!(frames.read(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", unasked), Ok(NOTHING));
    frames
}

fn unasked() -> Instant {
    panic!("the clock is not needed")
}

/// The number of times that a client can send `bytes` before the connection is ended, at most 5,000.
fn endured(bytes: &[u8]) -> usize {
    let (mut frames, now) = (opened(), Instant::now());
    (0..5000).take_while(|_| frames.read(bytes, || now).is_ok()).count()
}

#[test]
fn floods_of_frames_without_a_request_end_the_connection() {
    for (kind, length) in [(PRIORITY, 5), (WINDOW_UPDATE, 4), (PING, 8), (RST_STREAM, 4), (0xfa, 0), (DATA, 0)] {
        assert_eq!(endured(&frame(kind, 0, length)), 1000, "{kind}");
    }
    assert_eq!(endured(&frame(SETTINGS, 0, 6)), 20);
    assert_eq!(endured(&frame(0xfa, 0, 16 << 10)), 15, "large ones of an unknown type");
    assert_eq!(endured(&frame(PING, 0, 8).repeat(1001)), 0, "in one piece");
    assert_eq!(endured(&[frame(HEADERS, END_HEADERS, 50), frame(RST_STREAM, 0, 4)].concat()), 1000);
}

/// Complete requests with their window updates and stream ends never count as a flood, however many come.
#[test]
fn requests_and_their_windows_are_no_flood() {
    let review = [frame(HEADERS, END_HEADERS, 50), frame(DATA, 0, 900), frame(DATA, END_STREAM, 0)].concat();
    assert_eq!(endured(&review), 5000);
    let beside = [frame(RST_STREAM, 0, 4), frame(PING, 0, 8), frame(WINDOW_UPDATE, 0, 4)].concat();
    assert_eq!(endured(&[review, beside].concat()), 5000);
    let (mut frames, now) = (opened(), Instant::now());
    for _ in 0..5000 {
        frames.sent(4 << 10);
        assert_eq!(frames.read(&frame(WINDOW_UPDATE, 0, 4).repeat(2), || now), Ok(NOTHING));
    }
}

#[tokio::test(start_paused = true)]
async fn time_pays_for_pings() {
    let mut frames = opened();
    let pings = frame(PING, 0, 8).repeat(1000);
    frames.read(&pings, Instant::now).unwrap();
    tokio::time::advance(REFILL).await;
    frames.read(&pings, Instant::now).unwrap();
    tokio::time::advance(REFILL / 2).await;
    assert_eq!(frames.read(&pings, Instant::now), Err(Flood::Frames));
}

/// The result does not depend on how the bytes of the frames are divided into reads.
#[test]
fn a_request_is_whole_with_its_last_frame() {
    let head = frame(HEADERS, END_HEADERS, 50);
    let whole = [&head[..], &frame(DATA, 0, 20), &frame(DATA, END_STREAM, 3)].concat();
    for piece in [1, 2, 9, 10, 58, whole.len()] {
        let mut frames = opened();
        let seen: Vec<bool> = whole.chunks(piece).map(|piece| frames.read(piece, unasked).unwrap().is_whole).collect();
        assert_eq!(seen.iter().filter(|seen| **seen).count(), 1, "{piece}");
        let at = seen.iter().position(|seen| *seen).unwrap() * piece;
        assert!(at + piece >= whole.len() - 3, "{piece}: {at}");
    }
    let mut frames = opened();
    assert_eq!(frames.read(&head, unasked), Ok(NOTHING));
    assert_eq!(frames.read(&frame(HEADERS, END_STREAM | END_HEADERS, 50), unasked), Ok(WHOLE));
}

/// A client that learns late that HPACK's table has size 0 gets a GOAWAY. If the client still stores values after the
/// GOAWAY, its connection is ended.
#[test]
fn heads_that_are_kept_are_few() {
    let inserting = |flags: u8, beside: &[u8], padding: usize| {
        let part = [beside, &[0x82, 0x40, 1, b'x', 1, b'y'], &vec![0x40; padding]].concat();
        let mut bytes = frame(HEADERS, END_HEADERS | END_STREAM | flags, part.len());
        bytes.splice(HEAD_BYTES.., part);
        bytes
    };
    for head in [inserting(0, &[], 0), inserting(PADDED | WITH_PRIORITY, &[9, 0x40, 0x40, 0x40, 0x40, 0x40], 9)] {
        let mut frames = opened();
        for number in 1..=40 {
            let seen = frames.read(&head, unasked).unwrap();
            assert_eq!(seen, ReadResult { is_whole: true, is_greedy: number > 20 }, "{number}");
        }
        assert_eq!(frames.read(&head, unasked), Err(Flood::Table));
    }
    let padding_alone = {
        let part = [&[3, 0x82][..], &[0x40, 0x40, 0x40]].concat();
        let mut bytes = frame(HEADERS, END_HEADERS | END_STREAM | PADDED, part.len());
        bytes.splice(HEAD_BYTES.., part);
        bytes
    };
    let mut frames = opened();
    for _ in 0..100 {
        assert_eq!(frames.read(&padding_alone, unasked), Ok(WHOLE));
    }
}

/// Each frame of a head with stored values counts, because each frame may keep a buffer alive.
#[test]
fn each_frame_of_a_head_that_is_kept_counts() {
    let part = |kind: u8, flags: u8, part: &[u8]| {
        let mut bytes = frame(kind, flags, part.len());
        bytes.splice(HEAD_BYTES.., part.iter().copied());
        bytes
    };
    let insertion = [0x40, 1, b'x', 1, b'y'];
    let twice = [part(HEADERS, END_STREAM, &insertion), part(CONTINUATION, END_HEADERS, &insertion)].concat();
    let cut = [part(HEADERS, END_STREAM, &insertion[..3]), part(CONTINUATION, END_HEADERS, &insertion[3..])].concat();
    for (head, expected) in [(twice, 2), (cut, 1)] {
        for piece in 1..=head.len() {
            let mut frames = opened();
            head.chunks(piece).for_each(|piece| assert!(frames.read(piece, unasked).is_ok()));
            assert_eq!(frames.kept_heads, expected, "{piece}");
        }
    }
}

#[test]
fn a_head_that_never_ends_is_refused() {
    let mut frames = opened();
    assert_eq!(frames.read(&frame(HEADERS, END_HEADERS, 100), unasked), Ok(NOTHING));
    assert_eq!(frames.read(&frame(HEADERS, 0, 60), unasked), Ok(NOTHING));
    assert_eq!(frames.read(&frame(CONTINUATION, 0, 40), unasked), Ok(NOTHING));
    assert_eq!(frames.read(&frame(CONTINUATION, END_HEADERS, 1), unasked), Err(Flood::Head));
}
