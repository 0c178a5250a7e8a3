//! `Event`: a notice for people about an object; the APIs `v1` and `events.k8s.io` show the same events.

mod forms;

use serde_json::Value;

use super::print::{Printer, Row, age};
use super::{Bare, Generation, Kind, Mirror, Names};

pub(super) const EVENT: Kind = Kind {
    short_names: &["ev"],
    about: "Something that happened to an object, for people to read. Kept for a while only.",
    messages: &[
        "Event 1:metadata:ObjectMeta 2:involvedObject:ObjectReference 3:reason:s 4:message:s 5:source:EventSource \
         6:firstTimestamp:T 7:lastTimestamp:T 8:count:i 9:type:s 10:eventTime:U 11:series:EventSeries 12:action:s \
         13:related:ObjectReference 14:reportingComponent:s! 15:reportingInstance:s!",
        "EventSource 1:component:s 2:host:s",
        "EventSeries 1:count:i 2:lastObservedTime:U",
    ],
    selectable: &[
        ("involvedObject.kind", &[]),
        ("involvedObject.namespace", &[]),
        ("involvedObject.name", &[]),
        ("involvedObject.uid", &[]),
        ("involvedObject.apiVersion", &[]),
        ("involvedObject.resourceVersion", &[]),
        ("involvedObject.fieldPath", &[]),
        ("reason", &[]),
        ("reportingComponent", &[]),
        ("type", &[]),
        // An event without a source was reported by its controller.
        ("source", &["/source/component", "/reportingComponent"]),
    ],
    printer: PRINTER,
    bare: BARE,
    defaults: forms::fill,
    names: Names::LongPath,
    plain_finalizers: true,
    check: forms::check,
    generation: Generation::None,
    created_by_update: true,
    uncached: true,
    ..Kind::namespaced("", &["v1"], "events", "Event")
};

pub(super) const EVENTS_EVENT: Kind = Kind {
    short_names: &["ev"],
    about: EVENT.about,
    messages: &["EventsEvent 1:metadata:ObjectMeta 2:eventTime:U 3:series:EventSeries 4:reportingController:s \
         5:reportingInstance:s 6:action:s 7:reason:s 8:regarding:ObjectReference 9:related:ObjectReference 10:note:s \
         11:type:s 12:deprecatedSource:EventSource 13:deprecatedFirstTimestamp:T 14:deprecatedLastTimestamp:T \
         15:deprecatedCount:i"],
    message_of: &[("events.k8s.io/v1", "EventsEvent")],
    // In the order of the original resource, because these facts are the original's.
    selectable: &[
        ("regarding.kind", &[]),
        ("regarding.namespace", &[]),
        ("regarding.name", &[]),
        ("regarding.uid", &[]),
        ("regarding.apiVersion", &[]),
        ("regarding.resourceVersion", &[]),
        ("regarding.fieldPath", &[]),
        ("reason", &[]),
        ("reportingController", &[]),
        ("type", &[]),
    ],
    printer: PRINTER,
    mirror: Some(Mirror { of: "events", to_stored: forms::to_stored, from_stored: forms::from_stored }),
    bare: BARE,
    check: forms::check_newer,
    check_new: forms::check_new,
    check_update: forms::check_update,
    generation: Generation::None,
    created_by_update: true,
    uncached: true,
    ..Kind::namespaced("events.k8s.io", &["v1"], "events", "Event")
};

/// How to remove and restore the fields of an event that no client set. `managedFields` names fields as in the version
/// that the client used; fields that no client set have no owner.
const BARE: Option<Bare> = Some(Bare { unfill: forms::unfill, fill: forms::fill });

/// The columns of events in their special order: the name is last.
const PRINTER: Printer = Printer {
    columns: "Last Seen, Type, Reason, Object, Subobject+, Source+, Message, First Seen+, Count+, Name+",
    cells,
};

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
