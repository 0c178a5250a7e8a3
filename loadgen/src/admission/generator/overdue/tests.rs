use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use mio::Events;
use mio::event::Event;
use rustls::crypto::aws_lc_rs;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivatePkcs8KeyDer;
use serde_json::json;

use super::super::{Generator, Setup, slot_of};
use super::*;
use crate::admission::{Config, Counts, bench};
use crate::open_loop::Planned;
use crate::wire::Endpoint;

const TURN: Turn = Turn { overdue: true, more: true, connections: 0 };

#[test]
fn who_has_nothing_more_to_read_gives_up_at_once() {
    let mut overdue = Overdue::default();
    assert!(overdue.over(Turn { more: false, ..TURN }));
    assert!(!overdue.over(Turn { overdue: false, more: false, ..TURN }), "nobody's time is over");
    assert!(!overdue.over(Turn { overdue: false, ..TURN }));
    assert!(!overdue.over(TURN), "not while there is more");
    assert!(overdue.over(Turn { more: false, ..TURN }));
}

/// Whatever data comes, timed-out calls are given up after as many loops as the thread needs to read all waiting data.
/// The count of loops starts again for later calls.
#[test]
fn what_never_ends_keeps_nobody_alive() {
    let mut overdue = Overdue::default();
    let mut turns = |connections| (0..1_000_000).take_while(|_| !overdue.over(Turn { connections, ..TURN })).count();
    assert_eq!([turns(0), turns(0), turns(10 * EVENTS)], [17, 17, 27]);
    overdue.over(TURN);
    overdue.over(Turn { overdue: false, ..TURN });
    assert_eq!((0..100).take_while(|_| !overdue.over(TURN)).count(), 17, "an earlier wait does not count");
}

/// Starts a webhook that answers each request on command, with `bytes` bytes.
fn webhook(bytes: usize) -> (Endpoint, mpsc::Sender<()>) {
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .unwrap();
    // The server sends only answers.
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mutate", listener.local_addr().unwrap());
    let (told, orders) = mpsc::channel();
    std::thread::spawn(move || {
        let (tcp, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), tcp);
        let (mut seen, mut buffer) = (String::new(), vec![0; 64 << 10]);
        while !seen.ends_with('}') {
            let read = stream.read(&mut buffer).unwrap();
            seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        let uid = &seen.split_once(r#""uid":""#).unwrap().1[..36];
        let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": uid, "allowed": true}});
        let answer = answer.to_string() + &" ".repeat(bytes);
        orders.recv().unwrap();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{answer}", answer.len()).as_bytes()).unwrap();
        stream.flush().unwrap();
        // Until the test is over.
        let _ = orders.recv();
    });
    (Endpoint::new(&url, "", &certified.cert.pem(), b"http/1.1").unwrap(), told)
}

/// Makes a generator that has sent one call.
fn sent(endpoint: &Endpoint) -> (Generator, Events) {
    let config: Config = serde_json::from_value(json!({"rate": "1/s"})).unwrap();
    let plan = bench::plan_of_one(&config, 1, Duration::from_secs(1), 4096).unwrap();
    let setup = Setup::new(&config, endpoint, Arc::clone(plan.corpus()), 1).unwrap();
    let source =
        Planned::at_times(plan.requests().take(1).map(|(_, request)| (Duration::ZERO, request)), Instant::now());
    let mut generator = Generator::new(setup, source, Arc::default(), Arc::default()).unwrap().0;
    let mut events = Events::with_capacity(EVENTS);
    while generator.calls.iter().all(|(_, call)| call.place.is_none()) {
        generator.turn(&mut events).unwrap();
    }
    (generator, events)
}

/// Whether the event is about a connection that can be read.
fn is_answer(event: &Event) -> bool {
    slot_of(event.token()).is_some() && event.is_readable()
}

fn counts(generator: &Generator) -> Counts {
    let recorder = std::mem::take(&mut *generator.shared.recorder.lock());
    recorder.finish((1, 0), &generator.setup.corpus, false).counts
}

/// If the thread stands still until an hour after a call's timeout, an answer that is already in the socket counts.
#[test]
fn an_answer_that_is_there_counts_however_late_it_is_looked_at() {
    let (endpoint, answer) = webhook(0);
    let (mut generator, mut events) = sent(&endpoint);
    answer.send(()).unwrap();
    // Other events, such as room to write, are handled in time.
    while !generator.wake(&mut events).unwrap() || !events.iter().any(is_answer) {
        generator.act(&events, Instant::now);
    }
    generator.act(&events, || Instant::now() + Duration::from_hours(1));
    let counts = counts(&generator);
    assert_eq!((counts.allowed, counts.timeout), (1, 0));
}

/// If no answer is in the socket after the same hour, the call has timed out.
#[test]
fn a_call_without_an_answer_is_over_after_the_same_stall() {
    let (endpoint, _silent) = webhook(0);
    let (mut generator, mut events) = sent(&endpoint);
    events.clear();
    generator.act(&events, Instant::now);
    assert_eq!(generator.calls.len(), 1, "its time is not over");
    generator.act(&events, || Instant::now() + Duration::from_hours(1));
    let counts = counts(&generator);
    assert_eq!((counts.allowed, counts.timeout), (0, 1));
}
