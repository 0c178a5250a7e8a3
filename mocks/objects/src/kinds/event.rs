//! `Event`: a notice for people about an object; the APIs `v1` and `events.k8s.io` show the same events.

mod forms;

use serde_json::Value;

use super::print::{Cells, Row, age};
use super::{Bare, Generation, Kind, Mirror, Names};

pub(super) const EVENT: Kind = Kind {
    about: "Something that happened to an object, for people to read. Kept for a while only.",
    selectable: &[
        // An event without a source was reported by its controller.
        ("source", &["/source/component", "/reportingComponent"]),
    ],
    cells: CELLS,
    bare: BARE,
    defaults: forms::fill,
    names: Names::LongPath,
    plain_finalizers: true,
    check: forms::check,
    generation: Generation::None,
    created_by_update: true,
    uncached: true,
    ..Kind::of("events")
};

pub(super) const EVENTS_EVENT: Kind = Kind {
    about: EVENT.about,
    selectable: &[
        ("regarding.apiVersion", &["/involvedObject/apiVersion"]),
        ("regarding.fieldPath", &["/involvedObject/fieldPath"]),
        ("regarding.kind", &["/involvedObject/kind"]),
        ("regarding.name", &["/involvedObject/name"]),
        ("regarding.namespace", &["/involvedObject/namespace"]),
        ("regarding.resourceVersion", &["/involvedObject/resourceVersion"]),
        ("regarding.uid", &["/involvedObject/uid"]),
        ("reportingController", &["/reportingComponent"]),
    ],
    cells: CELLS,
    mirror: Some(Mirror { of: "events", to_stored: forms::to_stored, from_stored: forms::from_stored }),
    bare: BARE,
    check: forms::check_newer,
    check_new: forms::check_new,
    check_update: forms::check_update,
    generation: Generation::None,
    created_by_update: true,
    uncached: true,
    ..Kind::of("events.events.k8s.io")
};

/// How to remove and restore fields of an event that no client set. Such fields have no owner in `managedFields`, which
/// names fields as in the client's API.
const BARE: Option<Bare> = Some(Bare { unfill: forms::unfill, fill: forms::fill });

/// The cells of events, whose columns have a special order: the name is last.
const CELLS: Cells = cells;

fn cells(row: &Row<'_>) -> Vec<Value> {
    let text = |pointer: &str| row.text(pointer);
    let or = |one: &'static str, other: &'static str| if text(one).is_empty() { text(other) } else { text(one) };
    let first = or("/firstTimestamp", "/eventTime");
    let counted = |pointer: &str| row.at(pointer).and_then(Value::as_i64);
    let (last, count) = match row.at("/series") {
        Some(Value::Object(_)) => (text("/series/lastObservedTime"), counted("/series/count").unwrap_or(0)),
        _ if text("/lastTimestamp").is_empty() => (first, counted("/count").unwrap_or(1)),
        _ => (text("/lastTimestamp"), counted("/count").unwrap_or(1)),
    };
    let kind = text("/involvedObject/kind").to_lowercase();
    let name = text("/involvedObject/name");
    let object = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let source = [or("/source/component", "/reportingComponent"), or("/source/host", "/reportingInstance")];
    let source = if source[1].is_empty() { source[0].to_owned() } else { source.join(", ") };
    vec![
        age(last, row.now).into(),
        text("/type").into(),
        text("/reason").into(),
        object.into(),
        text("/involvedObject/fieldPath").into(),
        source.into(),
        text("/message").trim().into(),
        age(first, row.now).into(),
        count.into(),
        row.name(),
    ]
}
