//! Tests of the faults that end the stream of a watch, and of the time at which they end it.

use mock_faults::{Code, Fault, FaultId, Http2Code, Name, Nth, Then, When};
use serde_json::json;
use units::Span;

use super::{ID, causes, fault, harness_is_spared, hits, watch, with, write};
use crate::PACKAGES;
use crate::client::{Lines, Protocol};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// The end of a stream: `Ok` for a clean end, or the text of the error.
async fn end(lines: &mut Lines) -> Result<(), String> {
    match lines.next().await {
        Ok(None) => Ok(()),
        Ok(Some(line)) => panic!("one more line: {line}"),
        Err(error) => Err(causes(&error)),
    }
}

#[tokio::test]
async fn a_stream_ends_cleanly_and_a_new_one_works() {
    let world = crate::client::World::aimed().await;
    for (number, protocol) in (0..).zip(BOTH) {
        let mut cut = watch(&world, protocol, "subject").await;
        let mut spared = watch(&world, protocol, "harness").await;
        world.server.faults().begin(FaultId(number), &fault(Name::WatchEnd)).unwrap();
        world.server.faults().end(FaultId(number));
        end(&mut cut).await.unwrap();
        let name = format!("after-{number}");
        let mut again = watch(&world, protocol, "subject").await;
        write(&world, &name).await;
        assert_eq!((spared.event().await.1, again.event().await.1), (name.clone(), name));
        assert_eq!(world.server.faults().hits(FaultId(number)), 1);
    }
}

/// A momentary fault ends the watches that are open when it begins, and no later watches, however long the fault stays
/// active. A fault with a duration also ends later watches.
#[tokio::test]
async fn a_moment_strikes_what_is_open_and_nothing_that_comes_later() {
    let world = crate::client::World::aimed().await;
    let moment = Fault::new(Name::WatchEnd, Span::from_secs(0));
    let lasting = Fault { lasts: Some(Span::from_secs(60)), ..moment.clone() };
    for (number, protocol) in (0..).zip(BOTH) {
        let (id, next) = (FaultId(number), FaultId(number + 10));
        let mut cut = watch(&world, protocol, "subject").await;
        world.server.faults().begin(id, &moment).unwrap();
        end(&mut cut).await.unwrap();
        let mut again = watch(&world, protocol, "subject").await;
        let name = format!("behind-{number}");
        write(&world, &name).await;
        assert_eq!(again.event().await.1, name);
        assert_eq!(world.server.faults().hits(id), 1);
        world.server.faults().end(id);
        world.server.faults().begin(next, &lasting).unwrap();
        end(&mut again).await.unwrap();
        let mut late = watch(&world, protocol, "subject").await;
        end(&mut late).await.unwrap();
        assert_eq!(world.server.faults().hits(next), 2);
        world.server.faults().end(next);
    }
}

/// A fault can end every second watch, or watches with certain numbers; the others continue.
#[tokio::test]
async fn watches_are_chosen_by_their_number() {
    let every: Fault = serde_json::from_str(r#"{"name": "watch-end", "at": "0s", "every": "2nd"}"#).unwrap();
    let list: Fault = serde_json::from_str(r#"{"name": "watch-end", "at": "0s", "nth": [2, 4]}"#).unwrap();
    for (chosen, ended) in [(every, [2, 4, 6].as_slice()), (list, &[2, 4])] {
        let world = with(&chosen).await;
        for number in 1..=6 {
            let mut lines = watch(&world, Protocol::Http1, "subject").await;
            if ended.contains(&number) {
                end(&mut lines).await.unwrap();
            } else {
                let name = format!("seen-{number}");
                write(&world, &name).await;
                assert_eq!(lines.event().await.1, name);
            }
        }
        assert_eq!(world.server.faults().hits(ID), ended.len() as u64);
    }
}

#[tokio::test]
async fn http2_says_the_code_that_was_asked_for() {
    let codes = [(None, 2), (Some(Http2Code::Cancel), 8), (Some(Http2Code::EnhanceYourCalm), 11)];
    for (code, number) in codes {
        let reset = Fault { after_events: Some(1), ..fault(Name::WatchReset) }.set("code", code.map(Code::Http2));
        let world = with(&reset).await;
        let mut client = world.client(Protocol::Http2, "subject").await;
        let mut cut = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", world.server.revision())).await;
        write(&world, "one").await;
        assert_eq!(cut.event().await.1, "one", "what was sent before arrives");
        let broken = cut.next().await.unwrap_err();
        let mut chain = std::iter::successors(Some(&broken as &dyn std::error::Error), |error| error.source());
        let spoken = chain.find_map(|error| error.downcast_ref::<h2::Error>()?.reason());
        assert_eq!(spoken.map(u32::from), Some(number), "RST_STREAM with the code of RFC 9113");
        assert_eq!(client.get(PACKAGES).await.0, 200, "the connection and its other streams live on");
    }
}

#[tokio::test]
async fn a_reset_waits_for_events_and_what_was_sent_before_arrives() {
    for protocol in BOTH {
        let world = with(&Fault { after_events: Some(3), ..fault(Name::WatchReset) }).await;
        for name in ["one", "two"] {
            write(&world, name).await;
        }
        let mut client = world.client(protocol, "subject").await;
        // Two initial events count, so the third one is the first that is live.
        let mut lines = client.watch(&format!("{PACKAGES}?watch=1")).await;
        assert_eq!((lines.event().await.1, lines.event().await.1), ("one".to_owned(), "two".to_owned()));
        assert_eq!(world.server.faults().hits(ID), 0);
        harness_is_spared(&world, "three").await;
        assert_eq!(lines.event().await.1, "three");
        assert!(end(&mut lines).await.is_err());
        hits(&world, ID, 1).await;
    }
}

#[tokio::test]
async fn a_connection_closes_without_the_end_of_the_body_and_without_tls_saying_so() {
    for protocol in BOTH {
        let world = with(&Fault { after_events: Some(1), ..fault(Name::WatchEof) }).await;
        let mut client = world.client(protocol, "subject").await;
        let mut lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", world.server.revision())).await;
        write(&world, "one").await;
        assert_eq!(lines.event().await.1, "one");
        let why = end(&mut lines).await.unwrap_err();
        assert!(why.contains("close_notify") || why.contains("unexpected EOF"), "FIN, not RST: {why}");
        assert!(!why.contains("reset by peer"), "{why}");
        assert!(client.try_send(http::Method::GET, PACKAGES, "").await.is_err(), "the connection is gone");
        harness_is_spared(&world, "two").await;
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

#[tokio::test]
async fn a_connection_closes_in_the_middle_of_a_line() {
    for protocol in BOTH {
        let world = with(&fault(Name::WatchEof).set("midLine", true)).await;
        let mut lines = watch(&world, protocol, "subject").await;
        assert_eq!(world.server.faults().hits(ID), 0, "there is no line yet");
        let cut = write(&world, "one").await;
        let half = lines.piece().await.unwrap().expect("half a line");
        assert!(half.starts_with(b"{\"type\":\"ADDED\"") && !half.ends_with(b"\n"));
        assert!(serde_json::from_slice::<serde_json::Value>(&half).is_err());
        assert!(lines.piece().await.is_err());
        let delivery = world.server.delivery("subject", super::RESOURCE, cut);
        assert_eq!(delivery, mock_kube::Delivery::Withheld { fault: ID });
    }
}

#[tokio::test]
async fn an_error_event_says_what_it_was_told_and_ends_the_stream() {
    let world = crate::client::World::aimed().await;
    let cases =
        [(None, None, 410, "Expired"), (Some(500), None, 500, "InternalError"), (Some(410), Some("Gone"), 410, "Gone")];
    for (number, (code, reason, status, word)) in (0..).zip(cases) {
        for protocol in BOTH {
            let error =
                fault(Name::ErrorEvent).set("code", code.map(Code::Status)).set("reason", reason.map(str::to_owned));
            let mut lines = watch(&world, protocol, "subject").await;
            world.server.faults().begin(FaultId(number), &error).unwrap();
            world.server.faults().end(FaultId(number));
            let line = lines.next().await.unwrap().expect("the error");
            assert_eq!((&line["type"], &line["object"]["code"]), (&json!("ERROR"), &json!(status)));
            assert_eq!((&line["object"]["kind"], &line["object"]["reason"]), (&json!("Status"), &json!(word)));
            end(&mut lines).await.unwrap();
        }
        assert_eq!(world.server.faults().hits(FaultId(number)), 2);
    }
}

#[tokio::test]
async fn after_an_error_event_the_stream_may_stay_open_without_a_byte() {
    for protocol in BOTH {
        let error = Fault { nth: Some(Nth::one(1)), ..fault(Name::ErrorEvent) }
            .set("code", Code::Status(500))
            .set("then", Then::Hold);
        let world = with(&error).await;
        let mut held = watch(&world, protocol, "subject").await;
        assert_eq!(held.next().await.unwrap().unwrap()["object"]["code"], json!(500));
        let mut second = watch(&world, protocol, "subject").await;
        let kept_back = write(&world, "one").await;
        assert_eq!(second.event().await.1, "one", "only the first watch was meant");
        assert!(held.is_silent(std::time::Duration::from_millis(100)).await);
        assert_eq!(world.server.faults().hits(ID), 1);
        assert_eq!(world.server.traffic("subject").watches_open, 2, "{kept_back} is kept back, the stream is open");
    }
}

#[tokio::test]
async fn only_the_nth_request_is_meant_and_only_with_its_query() {
    let nth = Fault { nth: Some(Nth::Range { from: 2, to: Some(3) }), ..fault(Name::WatchEnd) };
    let world = with(&nth).await;
    let mut ended = Vec::new();
    for number in 0..4 {
        let mut lines = watch(&world, Protocol::Http1, "subject").await;
        let name = format!("n{number}");
        write(&world, &name).await;
        ended.push(lines.next().await.unwrap().is_none());
    }
    assert_eq!(ended, [false, true, true, false]);
    assert_eq!(world.server.faults().hits(ID), 2);
    let query = Fault { query: Some("allowWatchBookmarks=true".to_owned()), ..fault(Name::WatchEnd) };
    world.server.faults().begin(FaultId(8), &query).unwrap();
    let mut without = watch(&world, Protocol::Http1, "subject").await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    let from = world.server.revision();
    let mut asking = client.watch(&format!("{PACKAGES}?watch=1&allowWatchBookmarks=true&resourceVersion={from}")).await;
    end(&mut asking).await.unwrap();
    write(&world, "last").await;
    assert_eq!(without.event().await.1, "last");
    assert_eq!(world.server.faults().hits(FaultId(8)), 1);
}

#[tokio::test]
async fn an_endpoint_can_be_chosen_and_a_count_is_kept() {
    let world = crate::client::World::aimed().await;
    let replica = world.server.replica(([127, 0, 0, 1], 0).into()).await.unwrap();
    let there = Fault { endpoint: Some(1), count: Some(1), ..fault(Name::WatchEnd) };
    world.server.faults().begin(ID, &there).unwrap();
    let resume = format!("{PACKAGES}?watch=1&resourceVersion={}", world.server.revision());
    let mut here = world.client(Protocol::Http1, "subject").await.watch(&resume).await;
    let mut cut = world.client_of(replica.address(), "subject").await.watch(&resume).await;
    end(&mut cut).await.unwrap();
    let mut second = world.client_of(replica.address(), "subject").await.watch(&resume).await;
    write(&world, "one").await;
    assert_eq!((here.event().await.1, second.event().await.1), ("one".to_owned(), "one".to_owned()));
    assert_eq!(world.server.faults().hits(ID), 1);
    let detail = world.server.faults().take_hits().remove(0).detail;
    assert!(
        detail.starts_with("watch ") && detail.contains("of packages.longhaul.dev by subject on connection"),
        "{detail}"
    );
}

#[tokio::test]
async fn a_silent_watch_may_begin_after_events_and_meets_those_that_open_before_the_subject() {
    let silent = Fault { after_events: Some(1), ..Fault { at: None, ..fault(Name::SilentWatch) } };
    let world = with(&silent).await;
    let mut client = world.client(Protocol::Http2, "subject").await;
    let from = world.server.revision();
    let mut lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={from}")).await;
    write(&world, "one").await;
    assert_eq!(lines.event().await.1, "one");
    let withheld = write(&world, "two").await;
    hits(&world, ID, 1).await;
    assert!(lines.is_silent(std::time::Duration::from_millis(50)).await);
    assert_eq!(client.get(PACKAGES).await.0, 200, "other streams of the connection flow");
    let delivery = world.server.delivery("subject", super::RESOURCE, withheld);
    assert_eq!(delivery, mock_kube::Delivery::Withheld { fault: ID });
}

#[test]
fn settings_are_read_as_people_write_them() {
    let read = |text: &str| serde_json::from_str::<Fault>(text).map_err(|error| error.to_string());
    let one =
        read(r#"{"name": "watch-reset", "nth": 2, "code": "enhance-your-calm", "when": {"hit": "a", "plus": "1s"}}"#);
    let one = one.unwrap();
    assert_eq!(one.nth, Some(Nth::one(2)));
    assert_eq!(serde_json::to_value(&one).unwrap()["code"], "enhance-your-calm");
    assert_eq!(one.when, Some(When::hit("a", Some(Span::from_secs(1)))));
    let range = read(r#"{"name": "http-error", "nth": {"from": 2, "to": 7}, "retryAfter": "1s"}"#).unwrap();
    assert_eq!(range.nth, Some(Nth::Range { from: 2, to: Some(7) }));
    for fault in [&one, &range] {
        let text = serde_json::to_string(fault).unwrap();
        assert_eq!(&read(&text).unwrap(), fault, "what is written is read again");
    }
    let wrong = [
        (r#"{"name": "error-event", "code": "cancel"}"#, "write the status as a number"),
        (r#"{"name": "watch-reset", "code": 410}"#, "write an HTTP/2 error"),
        (r#"{"name": "http-error", "status": 200}"#, "400 to 599"),
        (r#"{"name": "http-error", "nth": 0}"#, "counted from 1"),
        (r#"{"name": "http-error", "afterEvents": 1}"#, "belongs to faults on watches"),
        (r#"{"name": "watch-end", "on": "list"}"#, "belongs to faults on requests"),
        (r#"{"name": "split", "delay": "1s"}"#, "`delay-answer`, `hold-headers`, `net-latency`"),
        (r#"{"name": "compact", "resource": "pods"}"#, "no meaning for `compact`"),
        (r#"{"name": "watch-end", "at": "1s", "when": {"hit": "a"}}"#, "exclude each other"),
        (r#"{"name": "watch-410", "form": "old"}"#, "write `http`, `stream` or `both`"),
        (r#"{"name": "hold-buffer", "bytes": "1GiB"}"#, "no proxy has a buffer"),
    ];
    for (text, part) in wrong {
        let error = read(text).unwrap().check().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(read(r#"{"name": "watch-end", "nth": {"form": 2}}"#).unwrap_err().contains("form"));
    assert!(read(r#"{"name": "watch-reset", "code": "calm"}"#).unwrap_err().contains("calm"));
}
