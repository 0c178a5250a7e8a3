//! Tests of the faults that change the events on a stream, or how the bytes of events are sent.

use std::time::{Duration, Instant};

use mock_faults::{Fault, Name};
use mock_kube::Delivery;
use serde_json::json;
use units::{Bytes, Span, Throughput};

use super::{ID, RESOURCE, fault, harness_is_spared, hits, watch, with, write};
use crate::client::{Lines, Protocol, World};
use crate::{PACKAGES, revision};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];
const LATE: Duration = Duration::from_millis(150);

const OFTEN: Duration = Duration::from_millis(50);
/// An interval so long that only the bookmark that closes the initial events is sent.
const NEVER: Duration = Duration::from_mins(10);

/// A server that sends bookmarks at this interval, and a watch of the subject with bookmarks and initial events.
async fn streaming(fault: &Fault, protocol: Protocol, bookmarks_every: Duration) -> (World, Lines) {
    let world = World::with(|config| config.bookmarks_every = bookmarks_every).await;
    world.server.faults().target_users(["subject"]);
    write(&world, "initial").await;
    world.server.faults().begin(ID, fault).unwrap();
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let lines = world.client(protocol, "subject").await.watch(&format!("{PACKAGES}?{query}")).await;
    (world, lines)
}

fn closes(line: &serde_json::Value) -> bool {
    line["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == json!("true")
}

#[tokio::test]
async fn events_are_late_and_in_order_and_the_end_of_the_fault_sends_them() {
    for protocol in BOTH {
        let world = with(&fault(Name::EventDelayed).set("delay", Span(LATE))).await;
        let mut lines = watch(&world, protocol, "subject").await;
        let began = Instant::now();
        harness_is_spared(&world, "one").await;
        write(&world, "two").await;
        assert_eq!((lines.event().await.1, lines.event().await.1), ("one".to_owned(), "two".to_owned()));
        assert!(began.elapsed() >= LATE);
        hits(&world, ID, 2).await;
        world.server.faults().end(ID);
        world.server.faults().begin(ID, &fault(Name::EventDelayed).set("delay", Span::from_secs(3600))).unwrap();
        let held = write(&world, "three").await;
        hits(&world, ID, 3).await;
        assert_eq!(world.server.delivery("subject", RESOURCE, held), Delivery::Withheld { fault: ID });
        assert!(lines.is_silent(Duration::from_millis(30)).await);
        world.server.faults().end(ID);
        assert_eq!(lines.event().await.1, "three");
    }
}

#[tokio::test]
async fn two_neighbours_change_places_once() {
    for protocol in BOTH {
        let world = with(&fault(Name::OutOfOrder)).await;
        let mut lines = watch(&world, protocol, "subject").await;
        for name in ["one", "two", "three"] {
            write(&world, name).await;
        }
        let seen = [lines.event().await.1, lines.event().await.1, lines.event().await.1];
        assert_eq!(seen, ["two", "one", "three"]);
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

#[tokio::test]
async fn an_event_without_a_neighbour_is_not_kept_for_ever() {
    let world = with(&fault(Name::OutOfOrder)).await;
    let mut lines = watch(&world, Protocol::Http1, "subject").await;
    write(&world, "alone").await;
    assert_eq!(lines.event().await.1, "alone");
    assert_eq!(world.server.faults().hits(ID), 0, "nothing was swapped");
}

#[tokio::test]
async fn a_line_breaks_off_and_the_next_one_is_whole() {
    for protocol in BOTH {
        let world = with(&fault(Name::TruncatedLine)).await;
        let mut lines = watch(&world, protocol, "subject").await;
        let broken = write(&world, "one").await;
        write(&world, "two").await;
        let half = lines.raw_line().await;
        assert!(half.starts_with(b"{\"type\":\"ADDED\""));
        assert!(serde_json::from_slice::<serde_json::Value>(&half).is_err(), "half an object is none");
        assert_eq!(lines.event().await.1, "two");
        assert_eq!(world.server.faults().hits(ID), 1);
        assert_eq!(world.server.delivery("subject", RESOURCE, broken), Delivery::Withheld { fault: ID });
    }
}

#[tokio::test]
async fn an_event_goes_out_byte_by_byte() {
    for protocol in BOTH {
        let world = with(&fault(Name::Split)).await;
        let mut lines = watch(&world, protocol, "subject").await;
        let mut harness = world.client(Protocol::Http1, "harness").await;
        let mut object = crate::package("one");
        object["spec"]["image"] = json!("žluť 漢字 🚀");
        harness.post(PACKAGES, &object).await;
        let mut whole = Vec::new();
        let mut most = 0;
        while whole.last() != Some(&b'\n') {
            let piece = lines.piece().await.unwrap().expect("one more piece");
            most = most.max(piece.len());
            whole.extend_from_slice(&piece);
        }
        // On HTTP/1.1 the reader may find several pieces at once, but never the whole.
        assert!(most < 16, "pieces of {most} bytes");
        let event: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(event["object"]["spec"]["image"], object["spec"]["image"]);
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

#[tokio::test]
async fn bytes_trickle_at_the_rate_that_was_asked_for() {
    let world = with(&fault(Name::SlowDrip).set("rate", Throughput { bytes_per_second: 2000 })).await;
    let mut lines = watch(&world, Protocol::Http2, "subject").await;
    harness_is_spared(&world, "one").await;
    let began = Instant::now();
    let line = lines.raw_line().await;
    let least = Duration::from_secs(line.len() as u64) / 2000 / 2;
    assert!(began.elapsed() >= least, "{} bytes in {:?}", line.len(), began.elapsed());
    write(&world, "two").await;
    assert_eq!(lines.event().await.1, "two");
    assert_eq!(world.server.faults().hits(ID), 1, "one stream");
}

#[tokio::test]
async fn several_events_are_one_piece_and_few_are_sent_after_a_while() {
    for protocol in BOTH {
        let world = with(&fault(Name::MergeLines)).await;
        let mut lines = watch(&world, protocol, "subject").await;
        for name in ["one", "two", "three"] {
            write(&world, name).await;
        }
        let piece = lines.piece().await.unwrap().unwrap();
        assert_eq!(piece.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(), 3);
        assert_eq!(world.server.faults().hits(ID), 1);
        write(&world, "alone").await;
        assert_eq!(lines.event().await.1, "alone");
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

#[tokio::test]
async fn a_buffer_holds_events_until_it_is_full_or_the_fault_ends() {
    for protocol in BOTH {
        let world = with(&fault(Name::HoldBuffer).set("bytes", Bytes(1024))).await;
        let mut lines = watch(&world, protocol, "subject").await;
        write(&world, "one").await;
        hits(&world, ID, 1).await;
        assert!(lines.is_silent(Duration::from_millis(50)).await);
        harness_is_spared(&world, "two").await;
        let mut written = 2;
        let newest = mock_kube::Wanted { revision: world.server.revision(), name: None, at_us: 0 };
        let size = world.server.wire("harness", &newest, 0)[0].text.len();
        while written * size < 2048 {
            written += 1;
            write(&world, &format!("n{written}")).await;
        }
        assert_eq!((lines.event().await.1, lines.event().await.1), ("one".to_owned(), "two".to_owned()));
        world.server.faults().end(ID);
        for number in 3..=written {
            assert_eq!(lines.event().await.1, format!("n{number}"), "what was held is sent");
        }
    }
}

#[tokio::test]
async fn even_the_headers_wait_in_the_buffer() {
    for protocol in BOTH {
        let held = fault(Name::HoldBuffer).set("bytes", Bytes(64)).set("headers", true);
        let world = with(&held).await;
        let mut client = world.client(protocol, "subject").await;
        let resume = format!("{PACKAGES}?watch=1&resourceVersion={}", world.server.revision());
        let mut opening = Box::pin(client.watch(&resume));
        assert!(tokio::time::timeout(LATE, &mut opening).await.is_err(), "no head yet");
        assert_eq!(world.server.traffic("subject").watches_open, 1);
        write(&world, "one").await;
        let mut lines = opening.await;
        assert_eq!(lines.event().await.1, "one");
    }
}

#[tokio::test]
async fn a_bookmark_runs_ahead_of_the_event_it_covers() {
    for protocol in BOTH {
        let world = with(&fault(Name::BookmarkAhead)).await;
        let from = world.server.revision();
        let mut client = world.client(protocol, "subject").await;
        let mut lines =
            client.watch(&format!("{PACKAGES}?watch=1&allowWatchBookmarks=true&resourceVersion={from}")).await;
        let mut without = watch(&world, protocol, "subject").await;
        let lost = write(&world, "lost").await;
        assert_eq!(lines.event().await, ("BOOKMARK".to_owned(), String::new(), lost));
        assert_eq!(lines.next().await.unwrap(), None, "a clean end");
        assert_eq!(without.event().await.1, "lost", "who did not ask for bookmarks gets none");
        let mut resumed = world.client(protocol, "subject").await;
        let mut resumed = resumed.watch(&format!("{PACKAGES}?watch=1&resourceVersion={lost}")).await;
        write(&world, "next").await;
        assert_eq!(resumed.event().await.1, "next");
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

#[tokio::test]
async fn bookmarks_that_were_asked_for_do_not_come() {
    let (world, mut lines) = streaming(&fault(Name::NoBookmarks), Protocol::Http1, OFTEN).await;
    assert_eq!(lines.event().await.1, "initial");
    assert!(closes(&lines.next().await.unwrap().unwrap()), "the end of the initial events is none of those");
    hits(&world, ID, 2).await;
    assert!(lines.is_silent(Duration::from_millis(120)).await);
    world.server.faults().end(ID);
    assert_eq!(lines.event().await.0, "BOOKMARK");
}

#[tokio::test]
async fn the_end_of_initial_events_lacks_its_mark() {
    for protocol in BOTH {
        let (world, mut lines) = streaming(&fault(Name::InitialEndMissing), protocol, NEVER).await;
        assert_eq!(lines.event().await.1, "initial");
        let bookmark = lines.next().await.unwrap().unwrap();
        assert_eq!((&bookmark["type"], closes(&bookmark)), (&json!("BOOKMARK"), false));
        assert_eq!(world.server.faults().hits(ID), 1);
        world.server.faults().end(ID);
        let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let mut healthy = world.client(protocol, "subject").await.watch(&format!("{PACKAGES}?{query}")).await;
        assert_eq!(healthy.event().await.1, "initial");
        assert!(closes(&healthy.next().await.unwrap().unwrap()));
    }
}

#[tokio::test]
async fn live_events_come_before_the_end_of_the_initial_ones() {
    for protocol in BOTH {
        let held = fault(Name::InitialEndHeld).set("delay", Span::from_millis(500));
        let (world, mut lines) = streaming(&held, protocol, NEVER).await;
        assert_eq!(lines.event().await.1, "initial");
        hits(&world, ID, 1).await;
        let mut harness = world.client(Protocol::Http1, "harness").await;
        let (_, deleted) = harness.delete(&format!("{PACKAGES}/initial")).await;
        assert_eq!(deleted["status"], json!("Success"));
        let (kind, name, gone) = lines.event().await;
        assert_eq!((kind.as_str(), name.as_str()), ("DELETED", "initial"), "before the end of the initial events");
        let end = lines.next().await.unwrap().unwrap();
        assert!(closes(&end), "{end}");
        assert!(revision(&end["object"]) >= gone, "a bookmark covers what was sent before");
        let excused = |gap: &mock_kube::Gap| gap.after == 0 && gap.through >= gone;
        let gaps = world.server.gaps("subject");
        assert!(gaps.iter().any(excused), "who waits for that end never tells of what was gone before: {gaps:?}");
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

/// If a fault sends lines in pieces, a line that fits into one piece is sent unchanged and counts no hit.
#[tokio::test]
async fn what_fits_one_piece_is_no_hit() {
    let world = with(&fault(Name::Split).set("bytes", Bytes(64 << 10))).await;
    let mut lines = watch(&world, Protocol::Http1, "subject").await;
    write(&world, "whole").await;
    assert_eq!(lines.event().await.1, "whole");
    assert_eq!(world.server.faults().hits(ID), 0);
}

#[tokio::test]
async fn effects_add_up_and_leave_nothing_behind() {
    let world = with(&Fault { count: Some(1), ..fault(Name::EventDropped) }).await;
    let split = fault(Name::Split).set("bytes", Bytes(64));
    world.server.faults().begin(mock_faults::FaultId(8), &split).unwrap();
    let mut lines = watch(&world, Protocol::Http1, "subject").await;
    write(&world, "dropped").await;
    write(&world, "split").await;
    assert_eq!(lines.event().await.1, "split");
    for id in [ID, mock_faults::FaultId(8)] {
        assert_eq!(world.server.faults().hits(id), 1);
        world.server.faults().end(id);
    }
    write(&world, "whole").await;
    assert_eq!(lines.piece().await.unwrap().unwrap().last(), Some(&b'\n'), "one piece again");
}
