use proptest::prelude::*;

use super::super::request::Head;
use super::incoming::REPLIES_MAX_BYTES;
use super::*;

mod floods;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
/// The header block with only `:status: 200`, in HPACK.
const OK: &[u8] = &[0x88];

/// The bytes of a frame from the server.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn setting(identifier: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&identifier.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

/// A session, the head of its requests, and the body of every call.
struct Client {
    session: Session,
    head: Head,
    body: Vec<u8>,
    now: Instant,
}

impl Client {
    fn with_body(bytes: usize) -> Self {
        let fields = [
            (":authority", "a:1"),
            (":path", "/m"),
            ("user-agent", "u"),
            ("accept", "*/*"),
            ("content-type", "j"),
            ("accept-encoding", "gzip"),
        ];
        let now = Instant::now();
        let body = (0..bytes).map(|i| u8::try_from(i % 251).unwrap()).collect();
        Self { session: Session::new(now), head: Head::new(fields), body, now }
    }

    /// A session after client and server have sent prefaces and settings.
    fn welcomed(bytes: usize) -> Self {
        let mut client = Self::with_body(bytes);
        client.output();
        client.hear(&frame(SETTINGS, 0, 0, &[])).unwrap();
        assert_eq!(kinds(&client.output()), [(SETTINGS, 0)]);
        client
    }

    fn open(&mut self, call: usize) -> u32 {
        self.session.open(call, &self.head, self.body.len())
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.session.feed(bytes, self.now).map_err(|failure| failure.text)
    }

    /// All output that the session has now, in as many writes as needed.
    fn output(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        loop {
            let (begin, end) = self.body.split_at(self.body.len() / 2);
            self.session.fill(|_| [begin, &[], end]);
            if self.session.out().is_empty() {
                return said;
            }
            said.extend_from_slice(self.session.out());
            self.session.written(true);
        }
    }

    fn ended(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(ended) = self.session.next_ended() {
            texts.push(match ended {
                Ended::Answer { call, place } => {
                    let (seen, begun) = self.session.answer(place);
                    assert!(begun.is_some());
                    let text = format!("{call}: {} {}", seen.status, String::from_utf8_lossy(seen.body));
                    self.session.release(place);
                    text
                }
                Ended::Failed { call, failure } => format!("{call} failed: {}", failure.text),
                Ended::Unprocessed { call, failure } => format!("{call} again: {}", failure.text),
            });
        }
        texts
    }
}

/// Type and stream of each frame in the output, without the preface.
fn kinds(said: &[u8]) -> Vec<(u8, u32)> {
    frames(said).into_iter().map(|(kind, _, stream, _)| (kind, stream)).collect()
}

fn frames(said: &[u8]) -> Vec<(u8, u8, u32, &[u8])> {
    let mut rest = said.strip_prefix(frame::PREFACE).unwrap_or(said);
    let mut frames = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        assert!(length <= PAYLOAD_MAX_BYTES);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        frames.push((head[3], head[4], stream, &behind[..length]));
        rest = &behind[length..];
    }
    assert!(rest.is_empty());
    frames
}

/// The client first sends preface, settings and a larger flow-control window, then the request, and acknowledges the
/// server's settings.
#[test]
fn the_first_words() {
    let mut client = Client::with_body(5);
    assert_eq!(client.open(7), 1);
    let said = client.output();
    assert!(said.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    assert_eq!(kinds(&said), [(SETTINGS, 0), (WINDOW_UPDATE, 0), (HEADERS, 1), (DATA, 1)]);
    assert_eq!(frames(&said)[3], (DATA, END_STREAM, 1, &[0, 1, 2, 3, 4][..]));
    client.hear(&frame(SETTINGS, 0, 0, &[])).unwrap();
    assert_eq!(frames(&client.output()), [(SETTINGS, 1, 0, &[][..])]);
}

/// Answers may be cut, padded, continued or interleaved; each reaches its call.
#[test]
fn answers_find_their_calls() {
    let answers = [
        frame(HEADERS, END_HEADERS, 3, OK),
        frame(HEADERS, 0, 1, &[]),
        frame(CONTINUATION, 0, 1, &[]),
        frame(CONTINUATION, END_HEADERS, 1, OK),
        frame(DATA, 0, 3, b"thr"),
        frame(DATA, PADDED | END_STREAM, 1, b"\x03one\0\0\0"),
        frame(DATA, 0, 3, b""),
        frame(DATA, 0, 3, b"ee"),
        // Trailers.
        frame(HEADERS, END_HEADERS | END_STREAM, 3, b"\x00\x01a\x01b"),
    ];
    let mut wire = answers.concat();
    // An interim answer comes before the real one of stream 5, which has a priority and no body.
    wire.extend(frame(HEADERS, END_HEADERS, 5, b"\x08\x03100"));
    wire.extend(frame(HEADERS, END_HEADERS | END_STREAM | PRIORITY, 5, b"\0\0\0\x01\x05\x89"));
    // An unknown type.
    wire.extend(frame(0x77, 0xff, 9, b"?"));
    let cuts = (0..wire.len()).map(|cut| vec![&wire[..cut], &wire[cut..]]);
    for pieces in cuts.chain([wire.chunks(1).collect()]) {
        let mut client = Client::welcomed(0);
        for call in [10, 30, 50] {
            client.open(call);
        }
        for piece in pieces {
            client.hear(piece).unwrap();
        }
        assert_eq!(client.ended(), ["10: 200 one", "30: 200 three", "50: 204 "]);
        assert_eq!(client.session.open_count(), 0);
    }
}

/// Bodies are sent up to the flow-control windows of stream and connection, and further when these windows grow.
#[test]
fn windows_are_obeyed() {
    let mut client = Client::welcomed(40_000);
    client.open(0);
    client.open(1);
    let sent = |said: &[u8]| {
        let data = frames(said).into_iter().filter(|(kind, ..)| *kind == DATA);
        let mut bytes = [0; 2];
        for (_, _, stream, payload) in data {
            bytes[(stream / 2) as usize] += payload.len();
        }
        bytes
    };
    assert_eq!(sent(&client.output()), [40_000, 65_535 - 40_000], "the connection's window");
    client.hear(&frame(WINDOW_UPDATE, 0, 0, &1_000u32.to_be_bytes())).unwrap();
    assert_eq!(sent(&client.output()), [0, 1_000]);
    // The window of streams becomes smaller than the sent part of the second.
    client.hear(&setting(4, 10_000)).unwrap();
    client.hear(&frame(WINDOW_UPDATE, 0, 0, &1_000_000u32.to_be_bytes())).unwrap();
    assert_eq!(sent(&client.output()), [0, 0]);
    client.hear(&frame(WINDOW_UPDATE, 0, 3, &20_000u32.to_be_bytes())).unwrap();
    assert_eq!(sent(&client.output()), [0, 30_000 - 26_535]);
    assert_eq!(client.session.cancel(3), Awaited::Window);
    client.hear(&setting(4, 1 << 20)).unwrap();
    assert_eq!(kinds(&client.output()), [(RST_STREAM, 3), (SETTINGS, 0)]);
    assert_eq!(client.session.cancel(1), Awaited::Head);
}

/// A stream whose flow-control window is used up does not stop the body of another stream.
#[test]
fn a_stalled_stream_lets_others_pass() {
    let mut client = Client::welcomed(10);
    client.hear(&setting(4, 0)).unwrap();
    client.open(0);
    client.open(1);
    assert_eq!(kinds(&client.output()), [(SETTINGS, 0), (HEADERS, 1), (HEADERS, 3)]);
    client.hear(&frame(WINDOW_UPDATE, 0, 3, &10u32.to_be_bytes())).unwrap();
    assert_eq!(frames(&client.output()), [(DATA, END_STREAM, 3, &client.body[..])]);
}

/// With any flow-control windows, the body arrives whole and in order.
#[test]
fn bodies_are_whole() {
    let mut client = Client::welcomed(70_001);
    client.hear(&setting(4, 333)).unwrap();
    client.open(0);
    let mut body = Vec::new();
    let mut ended = false;
    while !ended {
        for (kind, flags, _, payload) in frames(&client.output()) {
            if kind == DATA {
                body.extend_from_slice(payload);
                ended = flags & END_STREAM != 0;
            }
        }
        for stream in [0, 1] {
            client.hear(&frame(WINDOW_UPDATE, 0, stream, &997u32.to_be_bytes())).unwrap();
        }
    }
    assert_eq!(body, client.body);
}

/// The flow-control window for received data is given back, so that a server never has to wait.
#[test]
fn received_data_is_given_back() {
    let mut client = Client::welcomed(0);
    let mut given = [0u64; 2];
    let mut received = 0u64;
    let piece = vec![b' '; 16 << 10];
    for call in 0..20 {
        let id = client.open(call);
        client.hear(&frame(HEADERS, END_HEADERS, id, OK)).unwrap();
        for _ in 0..(4 << 20) / piece.len() {
            client.hear(&frame(DATA, 0, id, &piece)).unwrap();
            received += piece.len() as u64;
            for (kind, _, stream, payload) in frames(&client.output()) {
                if kind == WINDOW_UPDATE {
                    given[usize::from(stream > 0)] += u64::from(u32::from_be_bytes(payload.try_into().unwrap()));
                }
            }
        }
        client.hear(&frame(DATA, END_STREAM, id, b"")).unwrap();
    }
    assert!(received - given[0] <= u64::from(CONNECTION_WINDOW_BYTES) / 2, "{received} {given:?}");
    assert!(given[1] > 0);
    assert!(client.ended().iter().all(|text| text.contains(": 200 ")));
}

/// An error in one answer ends only the call of that answer.
#[test]
fn a_bad_answer_ends_its_stream_only() {
    for (frames, expected) in [
        (vec![frame(RST_STREAM, 0, 1, &2u32.to_be_bytes())], "0 failed: the server reset the stream: INTERNAL_ERROR"),
        (vec![frame(RST_STREAM, 0, 1, &7u32.to_be_bytes())], "0 again: the server reset the stream: REFUSED_STREAM"),
        (vec![frame(DATA, END_STREAM, 1, b"x")], "0 failed: the answer is malformed: its body came before its head"),
        (
            vec![frame(HEADERS, END_HEADERS | END_STREAM, 1, &[])],
            "0 failed: the answer is malformed: it has no :status",
        ),
        (
            vec![frame(HEADERS, END_HEADERS, 1, OK), frame(HEADERS, END_HEADERS, 1, &[])],
            "0 failed: the answer is malformed: headers came in the middle of its body",
        ),
        (
            vec![frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x08\x03103")],
            "0 failed: the answer is malformed: it is an interim answer and ends",
        ),
        (
            vec![frame(HEADERS, END_HEADERS, 1, b"\x88\x5c\x015"), frame(DATA, END_STREAM, 1, b"abc")],
            "0 failed: the body broke off: 3 bytes of 5 came",
        ),
        (
            vec![frame(HEADERS, END_HEADERS, 1, b"\x88\x5c\x0a1073741824")],
            "0 failed: the body is larger than 4 MiB (Content-Length: 1073741824)",
        ),
    ] {
        let mut client = Client::welcomed(0);
        client.open(0);
        client.open(1);
        client.output();
        for frame in frames {
            client.hear(&frame).unwrap();
        }
        client.hear(&frame(HEADERS, END_HEADERS | END_STREAM, 3, OK)).unwrap();
        assert_eq!(client.ended(), [expected, "1: 200 "]);
        // Later data for the ended stream is skipped.
        client.hear(&frame(HEADERS, END_HEADERS, 1, OK)).unwrap();
        client.hear(&frame(DATA, END_STREAM, 1, b"late")).unwrap();
        client.hear(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])).unwrap();
        assert_eq!(client.ended(), <[&str; 0]>::default());
    }
}

/// If the server violates HTTP/2, it gets the code of the violation, and the failure has its reason.
#[test]
fn what_breaks_the_connection() {
    let long = frame(HEADERS, 0, 1, &vec![0; 16 << 10]);
    let more = frame(CONTINUATION, 0, 1, &vec![0; 16 << 10]);
    let flood = [long, more.repeat(32)].concat();
    for (bytes, code, text) in [
        (frame(PING, 0, 0, b"short"), 6, "PING is not 8 bytes long"),
        (frame(PING, 0, 1, &[0; 8]), 1, "a frame of the connection names a stream"),
        (frame(DATA, 0, 0, b"x"), 1, "a frame of a stream names none"),
        (frame(DATA, PADDED, 1, b"\x05x"), 1, "a frame has more padding than content"),
        (frame(DATA, 0, 9, b"x"), 1, "a frame names a stream that was never opened"),
        (frame(HEADERS, END_HEADERS, 2, OK), 1, "a frame names a stream that was never opened"),
        (frame(HEADERS, PRIORITY, 1, b"abc"), 6, "HEADERS is too short for the priority"),
        (frame(HEADERS, END_HEADERS, 1, &[0x80]), 9, "a field is in no table"),
        ([frame(HEADERS, 0, 1, &[]), frame(PING, 0, 0, &[0; 8])].concat(), 1, "a header block is interrupted"),
        (frame(CONTINUATION, 4, 1, &[]), 1, "a header block goes on that never began"),
        (flood, 11, "the head of an answer is larger than 512 KiB"),
        (frame(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), 1, "it pushes"),
        (frame(RST_STREAM, 0, 1, &[0]), 6, "RST_STREAM is not 4 bytes long"),
        (frame(SETTINGS, 0, 0, &[0; 5]), 6, "SETTINGS has a length that it cannot have"),
        (frame(SETTINGS, 1, 0, &[0; 6]), 6, "SETTINGS has a length that it cannot have"),
        (setting(4, 1 << 31), 3, "a window is larger than 2^31-1"),
        (frame(WINDOW_UPDATE, 0, 0, &[0; 4]), 1, "a window grows by nothing"),
        (frame(WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]), 3, "a window grows beyond 2^31-1"),
        (frame(WINDOW_UPDATE, 0, 1, &[0x7f, 255, 255, 255]), 3, "a window grows beyond 2^31-1"),
        (frame(GOAWAY, 0, 0, &[0; 7]), 6, "GOAWAY is too short"),
        (b"\x00\x40\x01\x00\x00\x00\x00\x00\x01".to_vec(), 6, "a frame is longer than 16 KiB"),
    ] {
        let mut client = Client::welcomed(0);
        client.open(0);
        client.output();
        let said = client.hear(&bytes).unwrap_err();
        assert!(said.contains(text) && said.starts_with("the server does not keep to HTTP/2: "), "{said}");
        let out = client.session.out().to_vec();
        let (kind, _, stream, payload) = *frames(&out).last().unwrap();
        assert_eq!((kind, stream, payload), (GOAWAY, 0, &[0, 0, 0, 0, 0, 0, 0, code][..]), "{text}");
    }
}

#[test]
fn another_protocol_is_told_as_such() {
    for bytes in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &frame(PING, 0, 0, &[0; 8]), &[0; 64]] {
        let said = Client::with_body(0).hear(bytes).unwrap_err();
        assert!(said.starts_with("what came is no HTTP/2: "), "{said}");
    }
}

/// More DATA than allowed ends the connection before it fills the memory.
#[test]
fn own_windows_are_enforced() {
    let mut client = Client::welcomed(0);
    for call in 0..4 {
        let id = client.open(call);
        client.hear(&frame(HEADERS, END_HEADERS, id, OK)).unwrap();
    }
    // Padding counts, and is given back like other data.
    for _ in 0..1000 {
        client.hear(&frame(DATA, PADDED, 1, &[vec![255, b'x'], vec![0; 255]].concat())).unwrap();
    }
    let mut grant = Grant::new(WINDOW_BYTES);
    assert!(grant.use_up(WINDOW_BYTES + 1).is_err());
}

/// After GOAWAY, calls that the server has not processed may be sent again, other calls continue, and no new call
/// begins.
#[test]
fn goaway_parts_what_was_taken_from_what_was_not() {
    let mut client = Client::welcomed(0);
    for call in 0..3 {
        client.open(call);
    }
    let last = [&3u32.to_be_bytes()[..], &0u32.to_be_bytes(), b"bye"].concat();
    client.hear(&frame(GOAWAY, 0, 0, &last)).unwrap();
    assert!(client.session.retired());
    assert_eq!(client.ended(), ["2 again: the server did not take the request: GOAWAY NO_ERROR: `bye`"]);
    client.hear(&frame(HEADERS, END_HEADERS | END_STREAM, 1, OK)).unwrap();
    client.session.fail_all(&Failure::http("the server closed it".to_owned()), false);
    assert_eq!(
        client.ended(),
        ["0: 200 ", "1 failed: the connection broke before an answer: the server closed it (GOAWAY NO_ERROR: `bye`)"]
    );
}

/// If the connection breaks, only calls that were never written may use another connection.
#[test]
fn only_what_was_not_written_is_sent_again() {
    let mut client = Client::welcomed(0);
    client.open(0);
    client.output();
    client.open(1);
    client.session.fail_all(&Failure::http("gone".to_owned()), true);
    let broke = "the connection broke before an answer: gone";
    assert_eq!(client.ended(), [format!("0 failed: {broke}"), format!("1 again: {broke}")]);
}

/// If an answer is complete before its request, the request ends, and the connection continues.
#[test]
fn an_early_answer_ends_the_request() {
    let mut client = Client::welcomed(100_000);
    client.open(0);
    client.output();
    client.hear(&frame(HEADERS, END_HEADERS | END_STREAM, 1, OK)).unwrap();
    assert_eq!(client.ended(), ["0: 200 "]);
    client.hear(&frame(WINDOW_UPDATE, 0, 0, &1_000_000u32.to_be_bytes())).unwrap();
    assert_eq!(frames(&client.output()), [(RST_STREAM, 0, 1, &8u32.to_be_bytes()[..])]);
}

/// The limit of streams is the server's limit, or HTTP/2's usual limit until the server's settings come.
#[test]
fn room_is_what_the_server_allows() {
    let mut client = Client::welcomed(0);
    assert_eq!(client.session.streams_max(), 100);
    client.hear(&setting(3, 7)).unwrap();
    assert_eq!(client.session.streams_max(), 7);
}

/// PINGs are answered, and a server that sends PINGs without end and reads nothing is cut off.
#[test]
fn pings_are_answered_within_bounds() {
    let mut client = Client::welcomed(0);
    client.hear(&frame(PING, 0, 0, b"12345678")).unwrap();
    assert_eq!(frames(&client.output()), [(PING, 1, 0, &b"12345678"[..])]);
    let ping = frame(PING, 0, 0, b"12345678");
    let asked = (0..1_000_000).take_while(|_| client.hear(&ping).is_ok()).count();
    assert!((1_000..100_000).contains(&asked), "{asked}");
    assert!(client.session.out().len() <= REPLIES_MAX_BYTES + 64);
}

/// A server that is silent for a long time gets a PING, and is given up if it does not answer.
#[test]
fn silence_is_noticed() {
    let mut client = Client::welcomed(0);
    let at = |seconds: u64| client.now + Duration::from_secs(seconds);
    let times = [at(29), at(30), at(44), at(45)];
    client.session.check(times[0]).unwrap();
    assert!(client.session.out().is_empty());
    client.session.check(times[1]).unwrap();
    client.session.check(times[2]).unwrap();
    assert_eq!(kinds(&client.output()), [(PING, 0)]);
    assert_eq!(client.session.check(times[3]), Err("no answer to a PING in 15 s"));
    client.hear(&frame(PING, 1, 0, b"longhaul")).unwrap();
    client.session.check(client.now + Duration::from_secs(29)).unwrap();
}

/// The server's header table is used after its size is known, and the indices in later requests lead to the fields of
/// the head.
#[test]
fn requests_become_shorter_once_the_server_has_spoken() {
    let mut client = Client::with_body(0);
    let length = |client: &mut Client| {
        client.output();
        client.open(0);
        frames(&client.output())[0].3.len()
    };
    let literal = length(&mut client);
    client.hear(&frame(SETTINGS, 0, 0, &[])).unwrap();
    let teaching = length(&mut client);
    let taught = length(&mut client);
    assert_eq!((taught, length(&mut client)), (8 + 4, 8 + 4));
    assert!(literal > taught && teaching > taught);
    client.hear(&setting(1, 0)).unwrap();
    assert_eq!(length(&mut client), literal);
}

proptest! {
    /// For any input, however it is cut, the session does not panic, and every call ends exactly once.
    #[test]
    fn anything_may_come(
        frames in prop::collection::vec((0u8..11, any::<u8>(), 0u32..12, prop::collection::vec(any::<u8>(), 0..24)), 0..40),
        cut in 1usize..40,
    ) {
        let mut client = Client::welcomed(50);
        for call in 0..5 {
            client.open(call);
        }
        let wire: Vec<u8> = frames.iter().flat_map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload)).collect();
        let mut ended = Vec::new();
        for piece in wire.chunks(cut) {
            let heard = client.hear(piece);
            ended.extend(client.ended());
            client.output();
            if heard.is_err() {
                break;
            }
        }
        client.session.fail_all(&Failure::http("over".to_owned()), false);
        ended.extend(client.ended());
        let mut calls: Vec<_> = ended.iter().map(|text| text.split([' ', ':']).next().unwrap().to_owned()).collect();
        calls.sort();
        prop_assert_eq!(calls, ["0", "1", "2", "3", "4"]);
        prop_assert_eq!(client.session.open_count(), 0);
    }

    /// Random bytes that are no frames cause no panic.
    #[test]
    fn any_bytes_may_come(bytes: Vec<u8>) {
        let mut client = Client::welcomed(0);
        let _ = client.hear(&bytes);
    }
}
