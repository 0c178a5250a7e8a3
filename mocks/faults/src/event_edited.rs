//! `event-edited`: fields of events differ from the committed fields, as after a broken cache or a proxy that rewrites.
//! The placeholder `${other}` stands for the same field's value in the newest event of another object on the same
//! watch. An event whose fields already have the values is sent unchanged and is no hit. A hit is one changed event.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::settings::keys;
use super::{ActiveFault, Behaviour, Effect, Error, EventLine, Fault, Flow, Item, PlayedRow, Row, Scene, Stream};
use facts::Change;

keys! {
    pub struct Keys {
        set "set": BTreeMap<String, Value> = ("", "JSON pointers into the object with new values; `null` removes a field, `\"${other}\"` copies another object's"),
        change "change": Change = ("any", "`added`, `modified`, `deleted`"),
    }
}

pub(super) const ROW: PlayedRow = Row::watches("event-edited", "Fields of events are rewritten on their way.")
    .takes::<Keys>()
    .once()
    .refuses(needs_fields)
    .sees("events have other values in these fields")
    .drawn(3, Some(1))
    .hit("an event")
    .played(|fault| Box::new(EventEdited { set: Arc::new(fault.keys::<Keys>().set.unwrap_or_default()) }));

/// The placeholder for the value that another object has in the same field.
const OTHER: &str = "${other}";
/// The JSON pointer to an object's UID.
const UID: &str = "/metadata/uid";
/// The field that the fault edits if it has no arguments, as in a random draw: the field gets another object's
/// revision.
const REVISION: &str = "/metadata/resourceVersion";
/// Maximum number of fields that one fault edits.
const FIELDS_MAX: usize = 20;

#[derive(Debug)]
pub(super) struct EventEdited {
    set: Arc<BTreeMap<String, Value>>,
}

impl Behaviour for EventEdited {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let mut set = Arc::clone(&self.set);
        if set.is_empty() {
            set = Arc::new(BTreeMap::from([(REVISION.to_owned(), Value::from(OTHER))]));
        }
        let (active, change) = (scene.active.clone(), scene.fault.keys::<Keys>().change);
        stream.attach(Box::new(Editing { active, change, set, last: None, before: None }));
    }
}

/// The values that one object has in the edited fields.
#[derive(Debug)]
struct EditedFields {
    uid: Value,
    fields: BTreeMap<String, Value>,
}

#[derive(Debug)]
struct Editing {
    active: ActiveFault,
    change: Option<Change>,
    set: Arc<BTreeMap<String, Value>>,
    /// The object in the newest event; `before` is the object in the newest event about another object.
    last: Option<EditedFields>,
    before: Option<EditedFields>,
}

impl Effect for Editing {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let Item::Event(mut event) = item else { return out.push(item) };
        if !self.active.is_over()
            && let Ok(mut whole) = serde_json::from_slice::<Value>(&event.line)
            && let Some(object) = whole.get_mut("object")
        {
            self.remember(object);
            let wanted = self.change.is_none_or(|wanted| wanted == event.change);
            if wanted && !event.initial && self.edit(object) {
                self.send(&mut event, &whole, flow);
            }
        }
        out.push(Item::Event(event));
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}

impl Editing {
    fn remember(&mut self, object: &Value) {
        let uid = object.pointer(UID).cloned().unwrap_or_default();
        let fields = self.set.keys().filter_map(|at| Some((at.clone(), object.pointer(at)?.clone()))).collect();
        let last = self.last.replace(EditedFields { uid, fields });
        if let (Some(last), Some(now)) = (last, &self.last)
            && last.uid != now.uid
        {
            self.before = Some(last);
        }
    }

    /// Edits an object and returns whether it changed. If no other object is known for a placeholder, the value stays.
    fn edit(&self, object: &mut Value) -> bool {
        let mut changed = false;
        for (at, value) in self.set.iter() {
            let value = if value == OTHER {
                match self.before.as_ref().and_then(|other| other.fields.get(at)) {
                    Some(value) => value,
                    None => continue,
                }
            } else {
                value
            };
            changed |= put(object, at, value);
        }
        changed
    }

    fn send(&self, event: &mut EventLine, whole: &Value, flow: &Flow<'_>) {
        let Ok(mut line) = serde_json::to_vec(whole) else { return };
        line.push(b'\n');
        let revision = event.revision;
        let fields: Vec<&str> = self.set.keys().map(String::as_str).collect();
        let detail =
            || format!("revision {revision} sent with another {} on {}", fields.join(", "), flow.stream.describe());
        if self.active.strike(detail) {
            event.line = Bytes::from(line);
        }
    }
}

/// Sets or removes the value at a JSON pointer, if the parent object exists. Returns whether the object changed.
fn put(object: &mut Value, at: &str, value: &Value) -> bool {
    let Some((parent, key)) = at.rsplit_once('/') else { return false };
    let key = key.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(map)) if value.is_null() => map.remove(&key).is_some(),
        Some(Value::Object(map)) => map.insert(key, value.clone()).is_none_or(|old| old != *value),
        Some(Value::Array(list)) => match key.parse::<usize>().ok().and_then(|place| list.get_mut(place)) {
            Some(old) => std::mem::replace(old, value.clone()) != *value,
            None => false,
        },
        _ => false,
    }
}

fn needs_fields(fault: &Fault) -> Result<(), Error> {
    let wrong = |given: String, instead| Err(Error::Value { key: "set", given, instead });
    let Some(set) = fault.keys::<Keys>().set else { return Ok(()) };
    if set.is_empty() || set.len() > FIELDS_MAX {
        return wrong(
            format!("{} fields", set.len()),
            "write 1 to 20, for example `{/metadata/resourceVersion: \"${other}\"}`",
        );
    }
    match set.keys().find(|at| !at.starts_with('/')) {
        Some(at) => wrong(at.clone(), "write a JSON pointer into the object, for example `/metadata/resourceVersion`"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edited(set: Value, objects: &[Value]) -> Vec<(bool, Value)> {
        let faults = super::super::Faults::new(1);
        let id = super::super::FaultId(1);
        faults.begin(id, &Fault::armed(super::super::Name::EventEdited)).unwrap();
        let active = faults.core.inner.lock().active_of(id).unwrap();
        let set = Arc::new(serde_json::from_value(set).unwrap());
        let mut editing = Editing { active, change: None, set, last: None, before: None };
        let edit = |object: &Value| {
            let mut object = object.clone();
            editing.remember(&object);
            (editing.edit(&mut object), object)
        };
        objects.iter().map(edit).collect()
    }

    fn object(uid: &str, revision: &str) -> Value {
        json!({"metadata": {"uid": uid, "resourceVersion": revision}, "spec": {"ports": [1, 2]}})
    }

    #[test]
    fn the_revision_is_that_of_another_object_once_there_is_one() {
        let set = json!({"/metadata/resourceVersion": "${other}"});
        let seen =
            edited(set, &[object("a", "1"), object("a", "2"), object("b", "3"), object("b", "4"), object("a", "5")]);
        let revisions: Vec<_> =
            seen.iter().map(|(changed, it)| (*changed, &it["metadata"]["resourceVersion"])).collect();
        let expected = [(false, "1"), (false, "2"), (true, "2"), (true, "2"), (true, "4")];
        assert_eq!(
            revisions,
            expected.map(|(changed, revision)| (changed, Box::leak(Box::new(json!(revision))) as &Value))
        );
    }

    #[test]
    fn fields_are_set_taken_away_and_left_where_nothing_would_change() {
        let set = |at: &str, value: Value| edited(json!({at: value}), &[object("a", "1")]).remove(0);
        assert_eq!(set("/metadata/uid", json!("z")), (true, object("z", "1")));
        assert_eq!(set("/metadata/uid", json!("a")), (false, object("a", "1")));
        assert_eq!(set("/spec/ports/1", json!(7)).1["spec"]["ports"], json!([1, 7]));
        assert_eq!(set("/spec/ports/9", json!(7)), (false, object("a", "1")));
        assert_eq!(set("/status/phase", json!("x")), (false, object("a", "1")), "nothing to put it into");
        assert_eq!(set("/spec", Value::Null), (true, json!({"metadata": {"uid": "a", "resourceVersion": "1"}})));
        assert_eq!(set("/metadata/annotations", json!({})).1["metadata"]["annotations"], json!({}));
    }
}
