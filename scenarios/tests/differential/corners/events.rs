//! Sequences of requests to both APIs of events, `v1` and `events.k8s.io/v1`.

use serde_json::json;

use crate::generator::Kind;
use crate::sequence::{Sequence, Step};

pub fn all() -> Vec<Sequence> {
    let one = |name: &str, steps: Vec<Step>| Sequence { name: name.to_owned(), steps };
    vec![
        one("an event in both forms", both()),
        one("selected events", selected()),
        one("events that are wrong", wrong()),
    ]
}

fn both() -> Vec<Step> {
    let (core, newer) = (Kind::Event.path(), Kind::NewerEvent.path());
    let watch = |path: &str, last| Step {
        last: Some(last),
        ..Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{list}}"))
    };
    let series = json!({"series": {"count": 7, "lastObservedTime": "2024-02-03T06:05:09.000001Z"}});
    vec![
        Step::get(&core[..]),
        watch(&core, Kind::Event.object("", 0)),
        watch(&newer, Kind::NewerEvent.object("", 0)),
        Step::post(&core[..], Kind::Event.object("old", 0)),
        Step::get(format!("{newer}/old")),
        Step::post(&newer[..], Kind::NewerEvent.object("new", 0)),
        Step::get(format!("{core}/new")),
        Step::get(&core[..]),
        Step::get(&newer[..]),
        Step::post(&newer[..], Kind::NewerEvent.object("old", 0)),
        Step::patch(format!("{newer}/new"), "merge-patch", series.clone()),
        Step::patch(format!("{newer}/new"), "merge-patch", json!({"note": "changed"})),
        Step::patch(format!("{core}/new"), "merge-patch", json!({"message": "changed"})),
        Step::patch(format!("{core}/old"), "strategic-merge-patch", json!({"count": 2})),
        Step::patch(format!("{newer}/old"), "strategic-merge-patch", series),
        Step::put(format!("{core}/made"), Kind::Event.object("made", 1)),
        Step::put(format!("{newer}/made-too"), Kind::NewerEvent.object("made-too", 1)),
        Step::get(&newer[..])
            .accepting("application/json;as=Table;g=meta.k8s.io;v=v1,application/json")
            .accepting("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        Step::delete(format!("{core}/new")),
        Step::get(format!("{newer}/new")),
        Step::delete(format!("{newer}/old?dryRun=All")),
        Step::delete(format!("{newer}/old")),
        Step::get(format!("{core}/old")),
        Step::delete(&newer[..]),
        Step::get(&core[..]),
    ]
}

fn selected() -> Vec<Step> {
    let (core, newer) = (Kind::Event.path(), Kind::NewerEvent.path());
    let mut steps = vec![
        Step::post(&core[..], Kind::Event.object("a", 0)),
        Step::post(&core[..], Kind::Event.object("b", 1)),
        Step::post(&newer[..], Kind::NewerEvent.object("c", 0)),
    ];
    for selector in [
        "involvedObject.name%3Dp",
        "involvedObject.kind%3DNode",
        "reason%3DFailed",
        "type%3DNormal",
        "source%3Dkubelet",
        "source%3Dexample.com/one",
        "regarding.name%3Dp",
    ] {
        steps.push(Step::get(format!("{core}?fieldSelector={selector}")));
    }
    for selector in [
        "regarding.name%3Dp",
        "regarding.kind%3DNode",
        "reason%3DPulled",
        "type%3DWarning",
        "source%3Dkubelet",
        "involvedObject.name%3Dp",
    ] {
        steps.push(Step::get(format!("{newer}?fieldSelector={selector}")));
    }
    steps
}

fn wrong() -> Vec<Step> {
    let mut steps = Vec::new();
    for flaw in 0..6 {
        for kind in [Kind::Event, Kind::NewerEvent] {
            steps.push(Step::post(kind.path(), kind.broken("a", 17 + flaw * 18)));
        }
    }
    // Each API accepts only its own fields.
    steps.push(Step::post(Kind::Event.path(), Kind::NewerEvent.object("a", 0)));
    let mut misplaced = Kind::Event.object("a", 0);
    misplaced["apiVersion"] = json!("events.k8s.io/v1");
    steps.push(Step::post(Kind::NewerEvent.path(), misplaced));
    steps
}
