//! Watches that end, are silent or are refused.

use serde_json::json;

use super::super::course::Course;
use super::{ROW, Row, UNANSWERED_MS, at, end, gap, lasting, refused};

/// The rows, in the order of the page.
pub(super) const ROWS: &[Row] = &[
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
            vec![at(0, json!({"name": "watch-410", "resource": of, "form": "stream"})), at(-100, lasting(lasts, none))]
        },
        lasts_ms: UNANSWERED_MS,
        ..ROW
    },
    Row {
        name: "silence before the first event",
        situation: "Before the first object of {} exists, the watch's connection carries no byte any more: a load balancer is replaced.",
        faults: |of, _| {
            vec![json!({"name": "no-bookmarks", "resource": of}), json!({"name": "freeze", "resource": of, "at": "1s"})]
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
];
