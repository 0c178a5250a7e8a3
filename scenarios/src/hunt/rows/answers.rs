//! Answers, events and objects that are unusual.

use serde_json::json;

use super::super::course::Course;
use super::{GAP_MS, ON_TIME_MS, ROW, Rare, Row, at, end, lasting, restored};

/// The rows, in the order of the page.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "token replaced",
        situation: "The client's token is replaced, and then the watch of {} ends: a token expires.",
        faults: |of, _| vec![at(-500, json!({"name": "token-rotated"})), end(of, 0)],
        ..ROW
    },
    Row {
        name: "older list",
        situation: "The watch of {} ends with 410, and lists show an older state: an API server that lags.",
        faults: |of, _| {
            let old = lasting(2000, json!({"name": "stale-view", "resource": of, "on": "list"}));
            vec![at(0, old), at(1000, json!({"name": "error-event", "resource": of, "code": 410, "count": 1}))]
        },
        ..ROW
    },
    Row {
        name: "older server",
        situation: "The connection of the watch of {} closes, and new ones reach an API server that lags.",
        faults: |of, _| {
            let old = json!({"name": "stale-view", "resource": of, "on": "any", "connections": "new"});
            vec![at(0, lasting(2500, old)), at(800, json!({"name": "watch-eof", "resource": of}))]
        },
        ..ROW
    },
    Row {
        name: "small pages",
        situation: "Lists of {} come in pages of one object: an API server with its own limit.",
        faults: |of, _| vec![json!({"name": "forced-pages", "resource": of, "items": 1})],
        ..ROW
    },
    Row {
        name: "small pages after lost events",
        situation: "Events of {} are lost, the history is compacted, and lists come in pages: a watch cache starts again.",
        faults: |of, _| {
            let lost = lasting(500, json!({"name": "event-dropped", "resource": of, "count": 3}));
            let pages = json!({"name": "forced-pages", "resource": of, "items": 2});
            vec![pages, at(0, lost), at(600, json!({"name": "watch-410", "resource": of}))]
        },
        ..ROW
    },
    Row {
        name: "page expired",
        situation: "A page of a list of {} is refused with 410: its token has expired.",
        faults: |of, _| {
            let gone = json!({"name": "http-error", "resource": of, "on": "list", "query": "continue=", "status": 410, "count": 1});
            vec![json!({"name": "forced-pages", "resource": of, "items": 2}), gone]
        },
        ..ROW
    },
    Row {
        name: "store restored, watches silent",
        situation: "The store is restored from a backup, and watches from later revisions of {} are silent: etcd is repaired.",
        faults: |of, _| restored(of, "silent"),
        course: Course::Restore,
        rare: Some(Rare::RestoredStore),
        ..ROW
    },
    Row {
        name: "store restored, revisions too large",
        situation: "The store is restored from a backup, and later revisions of {} are refused as too large: etcd is repaired.",
        faults: |of, _| restored(of, "too-large"),
        course: Course::Restore,
        rare: Some(Rare::RestoredStore),
        ..ROW
    },
    Row {
        name: "store restored, 410",
        situation: "The store is restored from a backup, and later revisions of {} are refused with 410: etcd is repaired.",
        faults: |of, _| restored(of, "gone"),
        course: Course::Restore,
        rare: Some(Rare::RestoredStore),
        ..ROW
    },
    Row {
        name: "newest first",
        situation: "Lists of {} have the newest objects first, and the watch ends: the order is not promised.",
        faults: |of, _| vec![json!({"name": "unordered", "resource": of, "on": "any"}), end(of, 0)],
        ..ROW
    },
    Row {
        name: "empty watches",
        situation: "For 2 s each watch of {} ends at once without events: a proxy in front of an API server that restarts.",
        faults: |of, _| vec![at(0, lasting(2000, json!({"name": "empty-200", "resource": of}))), end(of, 50)],
        ..ROW
    },
    Row {
        name: "pieces of one byte",
        situation: "Events of {} arrive byte by byte: a proxy with small buffers.",
        faults: |of, _| vec![json!({"name": "split", "resource": of, "bytes": "1B", "pause": "0ms"})],
        ..ROW
    },
    Row {
        name: "pieces of 300 bytes",
        situation: "Events of {} arrive in pieces of 300 bytes: a proxy with small buffers.",
        faults: |of, _| vec![json!({"name": "split", "resource": of, "bytes": "300B", "pause": "5ms"})],
        ..ROW
    },
    Row {
        name: "several events in one piece",
        situation: "Several events of {} arrive in one piece: a proxy that collects bytes.",
        faults: |of, _| vec![json!({"name": "merge-lines", "resource": of})],
        ..ROW
    },
    Row {
        name: "half a line",
        situation: "Half of an event of {} arrives as a line, and then the next event: a proxy that loses bytes.",
        faults: |of, _| vec![at(0, json!({"name": "truncated-line", "resource": of, "count": 1}))],
        ..ROW
    },
    Row {
        name: "buffered watch",
        situation: "The first watch of {} sends nothing before 64 KiB are full, not even its headers: a proxy that buffers.",
        faults: |of, _| {
            vec![json!({"name": "hold-buffer", "resource": of, "bytes": "64KiB", "headers": true, "count": 1})]
        },
        ..ROW
    },
    Row {
        name: "slow bytes",
        situation: "For 2 s events of {} arrive at 2 KiB/s: a narrow network.",
        faults: |of, _| vec![at(0, lasting(2000, json!({"name": "slow-drip", "resource": of, "rate": "2KiB/s"})))],
        ..ROW
    },
    Row {
        name: "late events",
        situation: "For 2.5 s events of {} arrive 800 ms late: a busy API server.",
        faults: |of, _| vec![at(0, lasting(2500, json!({"name": "event-delayed", "resource": of, "delay": "800ms"})))],
        ..ROW
    },
    Row {
        name: "repeated events",
        situation: "The watch of {} ends, and the next one repeats four events: an API server with an older watch cache.",
        faults: |of, _| {
            let again = json!({"name": "event-repeated", "resource": of, "events": 4, "count": 1});
            vec![at(-100, again), end(of, 0)]
        },
        rare: Some(Rare::RepeatedEvents),
        once: true,
        ..ROW
    },
    Row {
        name: "lost events before a list",
        situation: "Events of {} are lost, and then the history is compacted: a watch cache starts again.",
        faults: |of, _| {
            let lost = lasting(GAP_MS, json!({"name": "event-dropped", "resource": of, "count": 4}));
            vec![at(0, lost), at(700, json!({"name": "watch-410", "resource": of}))]
        },
        ..ROW
    },
    Row {
        name: "lost events",
        situation: "Events of {} are lost, and nothing else happens: an error of a watch cache.",
        faults: |of, _| vec![at(0, lasting(GAP_MS, json!({"name": "event-dropped", "resource": of, "count": 4})))],
        rare: Some(Rare::LostEvents),
        ..ROW
    },
    Row {
        name: "quiet time",
        situation: "Nothing happens with {} for twelve seconds: a quiet cluster.",
        course: Course::Quiet,
        on_time_ms: Some(ON_TIME_MS),
        ..ROW
    },
    Row {
        name: "another kind forbidden",
        situation: "From the start, all requests for {} are refused with 403: a role without this kind.",
        faults: |of, _| vec![json!({"name": "http-error", "resource": of, "on": "any", "status": 403})],
        course: Course::Later,
        rare: Some(Rare::OtherKinds),
        of_another: true,
        on_time_ms: Some(ON_TIME_MS),
        ..ROW
    },
    Row {
        name: "another kind fails",
        situation: "From the start, all requests for {} are refused with 500: a conversion webhook that fails.",
        faults: |of, _| vec![json!({"name": "http-error", "resource": of, "on": "any", "status": 500})],
        course: Course::Later,
        rare: Some(Rare::OtherKinds),
        of_another: true,
        on_time_ms: Some(ON_TIME_MS),
        ..ROW
    },
    Row {
        name: "slow list",
        situation: "The answer to one list of {} takes 1.5 s: a busy API server.",
        faults: |of, _| {
            vec![at(0, json!({"name": "delay-answer", "resource": of, "on": "list", "delay": "1500ms", "count": 1}))]
        },
        ..ROW
    },
    Row {
        name: "slow watch",
        situation: "The first watch of {} begins 1.5 s late: a busy API server.",
        faults: |of, _| {
            vec![json!({"name": "delay-answer", "resource": of, "on": "watch", "delay": "1500ms", "count": 1})]
        },
        ..ROW
    },
    Row {
        name: "initial events end late",
        situation: "Live events of {} come before the bookmark that ends the initial events: a busy API server.",
        faults: |of, _| vec![json!({"name": "initial-end-held", "resource": of, "delay": "1500ms", "count": 1})],
        ..ROW
    },
    Row {
        name: "initial events without an end",
        situation: "The watch of {} ends with 410, and the next initial events have no end: an older API server.",
        faults: |of, _| {
            vec![
                at(-500, json!({"name": "initial-end-missing", "resource": of})),
                at(0, json!({"name": "watch-410", "resource": of})),
            ]
        },
        ..ROW
    },
    Row {
        name: "an end after each event",
        situation: "For 4 s each watch of {} ends after one event: a proxy with a short limit.",
        faults: |of, _| vec![at(-1500, lasting(4000, json!({"name": "watch-end", "resource": of, "afterEvents": 1})))],
        course: Course::Busy,
        ..ROW
    },
    Row {
        name: "410 again and again, watches open",
        situation: "For 4.5 s each watch of {} gets an ERROR event with 410 and stays open: a proxy in front of a busy API server.",
        faults: |of, _| {
            vec![at(-1500, lasting(4500, json!({"name": "error-event", "resource": of, "code": 410, "then": "hold"})))]
        },
        course: Course::Busy,
        ..ROW
    },
    Row {
        name: "compacted again and again",
        situation: "The history of {} is compacted nine times in 4 s: a cluster with many changes.",
        faults: |of, _| {
            let each = |number: i64| at(450 * number - 1500, json!({"name": "watch-410", "resource": of}));
            (0..9).map(each).collect()
        },
        course: Course::Busy,
        ..ROW
    },
    Row {
        name: "many objects come and go",
        situation: "Many objects of {} are created and deleted together: a large deployment.",
        course: Course::Names,
        ..ROW
    },
    Row {
        name: "large list",
        situation: "There are 3,000 objects of {}, and the history is compacted twice: a large cluster.",
        faults: |of, _| {
            let gone = json!({"name": "watch-410", "resource": of});
            vec![at(0, gone.clone()), at(1500, gone)]
        },
        course: Course::Large,
        ..ROW
    },
    Row {
        name: "large events",
        situation: "One object of {} of 96 KiB changes a hundred times a second: a program that writes too often.",
        course: Course::Fat,
        ..ROW
    },
    Row {
        name: "few streams",
        situation: "Each connection carries at most ten requests at a time: a proxy with a low limit.",
        faults: |_, _| vec![json!({"name": "max-streams", "streams": 10})],
        ..ROW
    },
];
