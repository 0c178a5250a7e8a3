//! The table of disturbances for watch clients: each is a few ordinary faults at known times.
//!
//! Owns the real situation behind each row, and which rows only few clients survive. An API server, a proxy or a network
//! can do what a row does. Does no I/O.

use serde_json::{Value, json};

use super::course::{Course, FAULT_MS};

/// One row of the table.
pub(crate) struct Row {
    /// The name in reports.
    pub(crate) name: &'static str,
    /// The disturbance with its cause; `{}` is the plural of the resource.
    pub(super) situation: &'static str,
    pub(super) faults: fn(&str, u64) -> Vec<Value>,
    pub(super) course: Course,
    /// Whether many correct clients do not survive it, so that the user must ask for it.
    pub(super) is_rare: bool,
    /// Whether the faults act on another watched resource than the judged one.
    pub(super) of_another: bool,
    /// How late events may be, in milliseconds, if the disturbance does not hold them.
    pub(super) on_time_ms: Option<u64>,
    /// Whether no version may be observed twice.
    pub(super) once: bool,
    /// How long a request has no answer, in milliseconds; then events may be late by less than that.
    pub(super) lasts_ms: u64,
}

/// The usual values of a row.
const ROW: Row = Row {
    name: "",
    situation: "",
    faults: |_, _| Vec::new(),
    course: Course::Standard,
    is_rare: false,
    of_another: false,
    on_time_ms: None,
    once: false,
    lasts_ms: 0,
};

/// How long a request has no answer, in milliseconds.
const UNANSWERED_MS: u64 = 9000;
/// How late events may be that nothing holds, in milliseconds.
const ON_TIME_MS: u64 = 2000;
/// Events that are held before a 410, so that a list must repair a gap, in milliseconds.
const GAP_MS: u64 = 600;

/// A fault at a time in milliseconds after the usual one; a negative number is before it.
fn at(after_ms: i64, mut fault: Value) -> Value {
    let ms = i64::try_from(FAULT_MS).unwrap_or_default() + after_ms;
    fault["at"] = format!("{ms}ms").into();
    fault
}

fn lasting(ms: u64, mut fault: Value) -> Value {
    fault["for"] = format!("{ms}ms").into();
    fault
}

fn end(of: &str, after_ms: i64) -> Value {
    at(after_ms, json!({"name": "watch-end", "resource": of}))
}

/// Refuses requests of these kinds from just before the usual time on.
fn refused(of: &str, on: &Value, status: u16) -> Value {
    at(-50, json!({"name": "http-error", "resource": of, "on": on, "status": status}))
}

/// Events are held, then the history is compacted: only a list shows what happened.
fn gap(of: &str, form: &str) -> Vec<Value> {
    let held = lasting(GAP_MS, json!({"name": "silent-watch", "resource": of}));
    vec![at(0, held), at(700, json!({"name": "watch-410", "resource": of, "form": form}))]
}

fn restored(of: &str, newer: &str) -> Vec<Value> {
    vec![at(0, json!({"name": "rewind", "resource": of, "age": "1s", "newer": newer, "watches": "cut"}))]
}

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "410 in the stream",
        situation: "Events of {} are held for 600 ms, and then a watch ends with 410 in its stream: the history is compacted.",
        faults: |of, _| gap(of, "stream"),
        ..ROW
    },
    Row {
        name: "410 as HTTP status",
        situation: "Events of {} are held for 600 ms, and then watches are refused with 410: the history is compacted.",
        faults: |of, _| gap(of, "http"),
        ..ROW
    },
    Row {
        name: "silent watch",
        situation: "The watch of {} stays open and sends nothing more: an API server that hangs.",
        faults: |of, _| vec![at(0, json!({"name": "silent-watch", "resource": of}))],
        ..ROW
    },
    Row {
        name: "silent connection",
        situation: "The connection of the watch of {} carries no byte any more: a load balancer is replaced.",
        faults: |of, _| vec![at(0, json!({"name": "freeze", "resource": of}))],
        ..ROW
    },
    Row {
        name: "silent network",
        situation: "No open connection carries bytes any more: a firewall forgets its connections.",
        faults: |_, _| vec![at(0, json!({"name": "net-freeze"}))],
        ..ROW
    },
    Row {
        name: "new watches silent",
        situation: "For 3 s each watch of {} is silent: an API server that is overloaded.",
        faults: |of, _| {
            vec![at(0, lasting(3000, json!({"name": "silent-watch", "resource": of, "newStreams": "silent"})))]
        },
        ..ROW
    },
    Row {
        name: "watch without an answer",
        situation: "The watch of {} is silent, and the next one has no answer: an API server that hangs.",
        faults: |of, lasts| {
            let none = json!({"name": "no-answer", "resource": of, "on": "watch", "count": 1});
            vec![at(0, json!({"name": "silent-watch", "resource": of})), at(0, lasting(lasts, none))]
        },
        lasts_ms: UNANSWERED_MS,
        ..ROW
    },
    Row {
        name: "list without an answer",
        situation: "The watch of {} ends with 410, and the next list has no answer: an API server that hangs.",
        faults: |of, lasts| {
            let none = json!({"name": "no-answer", "resource": of, "on": "list", "count": 1});
            vec![
                at(0, json!({"name": "watch-410", "resource": of, "form": "stream"})),
                at(-100, lasting(lasts, none)),
            ]
        },
        lasts_ms: UNANSWERED_MS,
        ..ROW
    },
    Row {
        name: "silence before the first event",
        situation: "Before the first object of {} exists, the watch's connection carries no byte any more: a load balancer is replaced.",
        faults: |of, _| {
            vec![
                json!({"name": "no-bookmarks", "resource": of}),
                json!({"name": "freeze", "resource": of, "at": "1s"}),
            ]
        },
        course: Course::Empty,
        ..ROW
    },
    Row {
        name: "no object at first",
        situation: "No object of {} exists when the client starts: a new cluster.",
        course: Course::Empty,
        ..ROW
    },
    Row {
        name: "clean end",
        situation: "The watch of {} ends cleanly: its time is over.",
        faults: |of, _| vec![end(of, 0)],
        once: true,
        ..ROW
    },
    Row {
        name: "end of the connection",
        situation: "The connection of the watch of {} is closed in the middle of the body: a proxy restarts.",
        faults: |of, _| vec![at(0, json!({"name": "watch-eof", "resource": of}))],
        ..ROW
    },
    Row {
        name: "end within a line",
        situation: "The connection of the watch of {} is closed in the middle of an event: a proxy restarts.",
        faults: |of, _| vec![at(0, json!({"name": "watch-eof", "resource": of, "midLine": true}))],
        ..ROW
    },
    Row {
        name: "reset",
        situation: "The watch of {} is reset: a node with a proxy is lost.",
        faults: |of, _| vec![at(0, json!({"name": "watch-reset", "resource": of}))],
        ..ROW
    },
    Row {
        name: "error in the stream, then silence",
        situation: "The watch of {} sends an ERROR event with 500 and stays open: an API server that fails.",
        faults: |of, _| {
            vec![at(0, json!({"name": "error-event", "resource": of, "code": 500, "then": "hold", "count": 1}))]
        },
        ..ROW
    },
    Row {
        name: "410 in the stream, then silence",
        situation: "The watch of {} sends an ERROR event with 410 and stays open: an API server behind a proxy.",
        faults: |of, _| {
            vec![at(0, json!({"name": "error-event", "resource": of, "code": 410, "then": "hold", "count": 1}))]
        },
        ..ROW
    },
    Row {
        name: "watch refused once",
        situation: "The watch of {} ends, and the next one is refused with 500: etcd changes its leader.",
        faults: |of, _| {
            let mut once = refused(of, &json!("watch"), 500);
            once["count"] = 1.into();
            vec![once, end(of, 0)]
        },
        ..ROW
    },
    Row {
        name: "watch refused often",
        situation: "The watch of {} ends, and six watches are refused with 500: etcd has no leader.",
        faults: |of, _| {
            let mut often = refused(of, &json!("watch"), 500);
            often["count"] = 6.into();
            vec![often, end(of, 0)]
        },
        ..ROW
    },
    Row {
        name: "unavailable for a while",
        situation: "The watch of {} ends, and lists and watches are refused with 503 for 2 s: an API server restarts.",
        faults: |of, _| vec![lasting(2000, refused(of, &json!(["list", "watch"]), 503)), end(of, 0)],
        ..ROW
    },
    Row {
        name: "too many requests",
        situation: "The watch of {} ends, and lists and watches are refused with 429 for 1.5 s: priority and fairness.",
        faults: |of, _| {
            let mut busy = lasting(1500, refused(of, &json!(["list", "watch"]), 429));
            busy["retryAfter"] = "1s".into();
            vec![busy, end(of, 0)]
        },
        ..ROW
    },
    Row {
        name: "list refused after 410",
        situation: "Events of {} are held, the history is compacted, and the next list is refused with 429: a busy API server.",
        faults: |of, _| {
            let busy = json!({"name": "http-error", "resource": of, "on": "list", "status": 429, "retryAfter": "1s", "count": 1});
            let mut all = gap(of, "both");
            all.push(at(0, busy));
            all
        },
        ..ROW
    },
    Row {
        name: "refused connections",
        situation: "The connection of the watch of {} closes, and new ones are refused for 1.5 s: an API server restarts.",
        faults: |of, _| {
            let refused = json!({"name": "refuse-connections", "how": "reset"});
            vec![at(0, lasting(1500, refused)), at(100, json!({"name": "watch-eof", "resource": of}))]
        },
        ..ROW
    },
    Row {
        name: "forbidden for a while",
        situation: "The watch of {} ends, and requests are refused with 403 for 1.5 s: a role is replaced.",
        faults: |of, _| vec![lasting(1500, refused(of, &json!("any"), 403)), end(of, 0)],
        ..ROW
    },
    Row {
        name: "kind not served",
        situation: "The watch of {} ends, and the kind is not served for 1.5 s: a definition is replaced.",
        faults: |of, _| {
            let mut absent = lasting(1500, refused(of, &json!("any"), 404));
            absent["body"] = "text".into();
            vec![absent, end(of, 0)]
        },
        ..ROW
    },
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
        is_rare: true,
        ..ROW
    },
    Row {
        name: "store restored, revisions too large",
        situation: "The store is restored from a backup, and later revisions of {} are refused as too large: etcd is repaired.",
        faults: |of, _| restored(of, "too-large"),
        course: Course::Restore,
        is_rare: true,
        ..ROW
    },
    Row {
        name: "store restored, 410",
        situation: "The store is restored from a backup, and later revisions of {} are refused with 410: etcd is repaired.",
        faults: |of, _| restored(of, "gone"),
        course: Course::Restore,
        is_rare: true,
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
        is_rare: true,
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
        faults: |of, _| {
            vec![at(0, lasting(GAP_MS, json!({"name": "event-dropped", "resource": of, "count": 4})))]
        },
        is_rare: true,
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
        is_rare: true,
        of_another: true,
        on_time_ms: Some(ON_TIME_MS),
        ..ROW
    },
    Row {
        name: "another kind fails",
        situation: "From the start, all requests for {} are refused with 500: a conversion webhook that fails.",
        faults: |of, _| vec![json!({"name": "http-error", "resource": of, "on": "any", "status": 500})],
        course: Course::Later,
        is_rare: true,
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
        faults: |of, _| {
            vec![json!({"name": "initial-end-held", "resource": of, "delay": "1500ms", "count": 1})]
        },
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
        faults: |of, _| {
            vec![at(-1500, lasting(4000, json!({"name": "watch-end", "resource": of, "afterEvents": 1})))]
        },
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
