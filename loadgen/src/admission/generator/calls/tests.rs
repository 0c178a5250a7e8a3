use std::net::TcpListener;
use std::sync::Arc;

use serde_json::json;

use super::super::Setup;
use super::*;
use crate::admission::{Config, bench};
use crate::open_loop::Planned;
use crate::wire::Endpoint;

/// The list of deadlines skips those of ended calls, even if another call has the same key, and does not grow with
/// them.
#[test]
fn only_calls_under_way_have_deadlines() {
    let call = |serial| Call {
        serial,
        place: None,
        planned: Instant::now(),
        begun: Instant::now(),
        request: plan::Request { template: 0, uid: [0; 36] },
        tries: 0,
        acquired: None,
        first_byte: None,
    };
    let (mut deadlines, mut calls, begin) = (Deadlines::default(), Slab::new(), Instant::now());
    let at = |second: u64| begin + Duration::from_secs(second);
    for serial in 0..10_000 {
        let key = calls.insert(call(serial));
        deadlines.push(at(serial), key, serial, &calls);
        if serial < 9_998 {
            calls.remove(key);
        }
    }
    assert!(deadlines.0.capacity() < 2 * Deadlines::ROOM, "{}", deadlines.0.capacity());
    assert_eq!(deadlines.next(&calls), Some(at(9_998)), "its predecessors had the same place");
    assert_eq!(deadlines.expired(at(9_997), &calls), None);
    let first = deadlines.expired(at(9_998), &calls).unwrap();
    assert_eq!((calls[first].serial, deadlines.expired(at(9_998), &calls)), (9_998, None));
    calls.remove(first);
    assert_eq!(deadlines.next(&calls), Some(at(9_999)));
}

fn generator(endpoint: &Endpoint) -> Generator {
    let config: Config = serde_json::from_value(json!({"rate": "1/s"})).unwrap();
    let plan = bench::plan_of_one(&config, 1, Duration::from_hours(1), 4096).unwrap();
    let setup = Setup::new(&config, endpoint, Arc::clone(plan.corpus()), 1).unwrap();
    let source = Planned::at_times(plan.requests(), Instant::now());
    Generator::new(setup, source, Arc::default(), Arc::default()).unwrap().0
}

/// A call that never got a connection leaves the queue when it times out, so a later call with the same key is not
/// mistaken for it.
#[test]
fn a_call_that_is_over_waits_for_nothing() {
    // Accepted by the kernel, never by a server.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mutate", deaf.local_addr().unwrap());
    let ca = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem();
    let endpoint = Endpoint::new(&url, "", &ca, b"http/1.1").unwrap();
    let mut generator = generator(&endpoint);
    let request = plan::Request { template: 0, uid: [b'0'; 36] };
    let begun = Instant::now();
    generator.begin(&Due { planned: begun, item: request }, begun);
    assert_eq!((generator.calls.len(), generator.pool.waiting.len()), (1, 1));
    generator.expire(begun);
    assert_eq!(generator.calls.len(), 1, "it is not over yet");
    generator.expire(begun + Duration::from_mins(1));
    assert_eq!((generator.calls.len(), generator.pool.waiting.len()), (0, 0));
    let recorder = std::mem::take(&mut *generator.shared.recorder.lock());
    let interval = recorder.finish((1, 0), &generator.setup.corpus, false);
    assert_eq!((interval.counts.sent, interval.counts.timeout), (1, 1));

    generator.last_due();
    assert!(generator.source.due(begun + Duration::from_hours(2), 0).is_none(), "nothing is planned after the stop");
}

/// The phases of a call add up to its whole time. The time to open a connection before the planned time of a call does
/// not count for the call.
#[test]
fn phases_add_up() {
    let planned = Instant::now() + Duration::from_hours(1);
    let at = |ms: u64| planned + Duration::from_millis(ms);
    let before = planned.checked_sub(Duration::from_millis(10)).unwrap();
    let call = |opening| Call {
        serial: 0,
        place: None,
        planned,
        begun: at(1),
        request: plan::Request { template: 0, uid: [0; 36] },
        tries: 1,
        acquired: Some((at(30), opening)),
        first_byte: Some(at(50)),
    };
    let phases = |opening| {
        let phases = call(opening).phases(at(60));
        assert_eq!(phases.response(), Duration::from_millis(60));
        [phases.queue, phases.connect, phases.tls, phases.wait, phases.body].map(|time| time.as_millis())
    };
    let opening = |begun, connected, open| Some(Opening { begun, connected: Some(connected), open: Some(open) });
    assert_eq!(phases(None), [30, 0, 0, 20, 10]);
    assert_eq!(phases(opening(at(5), at(15), at(30))), [5, 10, 15, 20, 10]);
    assert_eq!(phases(opening(before, at(5), at(30))), [0, 5, 25, 20, 10]);
    assert_eq!(phases(opening(before, before, at(30))), [0, 0, 30, 20, 10]);
    let waiting = Call { acquired: None, first_byte: None, ..call(None) }.phases(at(60));
    assert_eq!((waiting.queue, waiting.response()), (Duration::from_millis(60), Duration::from_millis(60)));
}
