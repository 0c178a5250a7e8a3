use serde_json::Value;

use super::session::{Done, Session};
use super::*;
use crate::socket::http2::raw::{self, Cutter, Frame};

fn endpoint() -> Endpoint {
    let ca = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    Endpoint::new("https://127.0.0.1:8443/mutate", "localhost", &ca, b"h2").unwrap()
}

/// For each request in `bytes`: the stream, whether the head is large, whether the head ends the request, and the body.
fn requests(bytes: &[u8]) -> Vec<(u32, bool, bool, Vec<u8>)> {
    let mut seen: Vec<(u32, bool, bool, Vec<u8>)> = Vec::new();
    let read = Cutter::new().feed(bytes, |frame| {
        match frame {
            Frame::Headers { stream, block, end, whole: true } => seen.push((stream, block.len() > 7000, end, vec![])),
            Frame::Data { stream, data, end, .. } => {
                let (last, _, ends, body) = seen.last_mut().unwrap();
                assert_eq!(*last, stream);
                body.extend_from_slice(data);
                *ends |= end;
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    });
    read.unwrap();
    seen
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head[..], &stream.to_be_bytes(), payload].concat()
}

/// A connection of the attack `openStreams` sends one whole request, then large heads without a body. A connection
/// never has more open streams than the server must allow.
#[test]
fn streams_are_opened_and_bring_no_body() {
    let script = Script::new(Name::OpenStreams, &endpoint(), "a:1");
    let (mut session, mut out) = (Session::new(&script), Vec::new());
    Session::greet(&mut out);
    assert!(out.starts_with(raw::PREFACE));
    out.clear();
    session.turn(&mut out);
    let first = requests(&out);
    assert_eq!((first[0].0, first[0].1, first[0].2), (1, false, true));
    assert_eq!(first.len(), 21);
    assert!(first[1..].iter().all(|(_, is_large, ends, body)| *is_large && !ends && body.is_empty()));
    for _ in 0..20 {
        session.turn(&mut out);
    }
    assert_eq!(session.take().streams, 240);
    out.clear();
    session.turn(&mut out);
    assert_eq!(out, b"");
    // The place of a stream that the server ends is taken by another one.
    let ends = [frame(3, 0, 3, &[0, 0, 0, 7]), frame(3, 0, 5, &[0, 0, 0, 8]), frame(3, 0, 5, &[0, 0, 0, 8])].concat();
    session.read(&ends, &mut out).unwrap();
    assert_eq!(session.take(), Done { refused: 1, reset: 1, ..Done::default() });
    session.turn(&mut out);
    assert_eq!(requests(&out).len(), 2);
}

/// Each body of the attack `unreadAnswers` is a whole review of one image, and fits into the window of the connection.
#[test]
fn answers_are_asked_for_within_the_window() {
    let script = Script::new(Name::UnreadAnswers, &endpoint(), "registry.test:5000/a:1");
    let (mut session, mut out) = (Session::new(&script), Vec::new());
    session.turn(&mut out);
    let asked = requests(&out);
    let review: Value = serde_json::from_slice(&asked[0].3).unwrap();
    let containers = review["request"]["object"]["spec"]["containers"].as_array().unwrap();
    assert_eq!((containers.len(), &containers[159]["image"]), (160, &Value::from("registry.test:5000/a:1")));
    assert!(asked.iter().all(|(_, _, ends, body)| *ends && *body == asked[0].3));
    let sent: usize = asked.iter().map(|(_, _, _, body)| body.len()).sum();
    assert!(sent <= 65_535, "{sent}");
    for _ in 0..50 {
        session.turn(&mut out);
    }
    let opened = usize::try_from(session.take().streams).unwrap();
    assert!(opened * asked[0].3.len() <= 65_535, "{opened} without an update of the window");
    let update = frame(8, 0, 0, &(1_u32 << 24).to_be_bytes());
    let answer = frame(1, 4, 1, &[0x88]);
    out.clear();
    session.read(&[update, answer].concat(), &mut out).unwrap();
    session.turn(&mut out);
    assert_eq!(requests(&out).len(), 5);
    assert_eq!(session.take(), Done { streams: 5, unread: 1, ..Done::default() });
}

#[test]
fn a_server_is_told_what_it_has_to_be_told() {
    let script = Script::new(Name::OpenStreams, &endpoint(), "a:1");
    let (mut session, mut out) = (Session::new(&script), Vec::new());
    session.read(&[frame(4, 0, 0, &[]), frame(6, 0, 0, b"12345678")].concat(), &mut out).unwrap();
    assert_eq!(out, [frame(4, 1, 0, &[]), frame(6, 1, 0, b"12345678")].concat());
    let goodbye = session.read(&frame(7, 0, 0, &[0; 8]), &mut out).unwrap_err();
    assert_eq!(goodbye, "the webhook said goodbye");
}

#[test]
fn attacks_that_make_no_sense_are_refused() {
    let read = |text: &str| serde_json::from_str::<Vec<Attack>>(text);
    let said = |text: &str| check(&read(text).unwrap()).map_or_else(|error| error.to_string(), |()| String::new());
    let one = r#"{"name": "open-streams", "at": "1s", "for": "5s"}"#;
    assert_eq!(said(&format!("[{one}]")), "");
    let twice = said(&format!("[{one}, {one}]"));
    assert_eq!(twice, "admission.attacks: names `open-streams` twice: keep one entry");
    let many = said(r#"[{"name": "unread-answers", "at": "1s", "for": "5s", "connections": 513}]"#);
    assert_eq!(many, "admission.attacks: `unread-answers`: connections is 513: write 1 to 512");
    let never = said(r#"[{"name": "unread-answers", "at": "1s", "for": "0s"}]"#);
    assert_eq!(never, "admission.attacks: `unread-answers` lasts for no time: write for example `for: 5s`");
    let through = r#"{"rate": "1/s", "through": "apiserver", "mix": {"createPod": 1}, "attacks": ["#;
    let config: crate::admission::Config = serde_json::from_str(&format!("{through}{one}]}}")).unwrap();
    let apiserver = config.check().unwrap_err().to_string();
    assert!(apiserver.starts_with("admission.attacks: needs load that is sent to the webhook itself"), "{apiserver}");
    assert!(read(r#"[{"name": "slow-loris", "at": "1s", "for": "5s"}]"#).is_err());
}
