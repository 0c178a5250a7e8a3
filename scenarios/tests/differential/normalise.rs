//! Makes the answers of different servers comparable.
//!
//! This module replaces the values that a server chooses: uids, revisions, times, generated names, and the texts of
//! messages. The first uid of a sequence is `U1` on every server, the first revision `R1`. With these names, a
//! comparison depends on whether a revision stays or changes, but not on its number.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::driver::{LAST, Raw};
use crate::sequence::Step;

/// The replaced values of one sequence.
pub struct Normaliser {
    namespace: String,
    uids: BTreeMap<String, String>,
    revisions: BTreeMap<String, String>,
    generated: BTreeMap<String, String>,
}

/// Answers in which all chosen values are replaced. The messages of the answers are kept separately and only printed.
pub struct Normal {
    pub answers: Vec<Value>,
    pub messages: Vec<String>,
}

/// Normalises all answers of a sequence.
pub fn normalise(steps: &[Step], raws: &[Raw], namespace: &str) -> Normal {
    let mut state = Normaliser {
        namespace: namespace.to_owned(),
        uids: BTreeMap::new(),
        revisions: BTreeMap::new(),
        generated: BTreeMap::new(),
    };
    let mut normal = Normal { answers: vec![Value::Null; raws.len()], messages: vec![String::new(); raws.len()] };
    // Watches come last: the answers to the writes define the names of their objects.
    let order = |watch: bool| (0..raws.len()).filter(move |index| steps[*index].is_watch() == watch);
    for index in order(false).chain(order(true)) {
        let (answer, message) = state.answer(&steps[index], &raws[index]);
        normal.answers[index] = answer;
        normal.messages[index] = message;
    }
    normal
}

impl Normaliser {
    fn answer(&mut self, step: &Step, raw: &Raw) -> (Value, String) {
        match raw {
            Raw::Unsaid(word) => (json!({"unsaid": word}), String::new()),
            Raw::Answer { status, media, body } => {
                let value = serde_json::from_slice::<Value>(body);
                let message = match &value {
                    Ok(value) => value["message"].as_str().unwrap_or_default().to_owned(),
                    Err(_) => String::from_utf8_lossy(body).trim().chars().take(300).collect(),
                };
                let body = value.map_or(Value::Null, |value| self.value(value));
                (json!({"status": status, "media": media, "body": body}), message)
            }
            Raw::Events { media, lines } => {
                let events: Vec<Value> = lines
                    .iter()
                    .map(|line| serde_json::from_slice(line).unwrap_or_else(|_| json!({"type": "not JSON"})))
                    .collect();
                let message = events.iter().filter_map(|event| event["object"]["message"].as_str());
                let message = message.collect::<Vec<_>>().join("; ");
                (json!({"status": 200, "media": media, "events": self.events(step, events)}), message)
            }
        }
    }

    fn events(&mut self, step: &Step, mut events: Vec<Value>) -> Vec<Value> {
        // The times of bookmarks depend on chance, but one comes before the planned end of a watch. Objects that end
        // other watches are the driver's own.
        let last = events.iter().rposition(|event| event["type"] == "BOOKMARK");
        let ends = step.last.is_none() && step.path.contains("allowWatchBookmarks=true");
        let mut index = 0;
        events.retain(|event| {
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
            let shown = ends && Some(index) == last;
            index += 1;
            (event["type"] != "BOOKMARK" || shown) && !name.starts_with(LAST)
        });
        for event in events.iter_mut().filter(|event| event["type"] == "BOOKMARK") {
            event["object"]["metadata"]["resourceVersion"] = Value::from("<revision>");
        }
        let revision = |event: &Value| -> u64 {
            let text = event["object"]["metadata"]["resourceVersion"].as_str();
            text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
        };
        // A watch from now or from "any" begins with the existing objects, in no order ("Kubernetes API concepts").
        if !step.path.contains("resourceVersion=") || step.path.contains("resourceVersion=0") {
            events.sort_by_key(revision);
        }
        events
            .into_iter()
            .map(|event| json!({"type": event["type"], "object": self.value(event["object"].clone())}))
            .collect()
    }

    fn value(&mut self, mut value: Value) -> Value {
        let kind = value["kind"].as_str().unwrap_or_default().to_owned();
        if kind == "Status" {
            return self.status(&value);
        }
        let is_list =
            kind.ends_with("List") && value.get("items").is_some_and(|items| items.is_array() || items.is_null());
        if is_list || kind == "Table" {
            return self.list(value);
        }
        self.metadata(&mut value);
        self.text(value)
    }

    fn list(&mut self, mut value: Value) -> Value {
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for (key, word) in [("resourceVersion", "<revision>"), ("continue", "<token>")] {
                if let Some(text) = meta.get_mut(key) {
                    *text = Value::from(word);
                }
            }
        }
        for key in ["items", "rows"] {
            for item in value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                let object = if key == "rows" { item.get_mut("object") } else { Some(item) };
                if let Some(object) = object {
                    self.metadata(object);
                }
            }
        }
        for row in value.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
            for cell in row.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten() {
                if cell.as_str().is_some_and(is_age) {
                    *cell = Value::from("<age>");
                } else if cell.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()) {
                    *cell = Value::from("<time>");
                }
            }
        }
        // Descriptions are documentation.
        for column in value.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
            column["description"] = Value::Null;
        }
        self.text(value)
    }

    /// Normalises a `Status` object. The message of the `Status` is removed, because it is text for users; all fields
    /// for programs stay.
    fn status(&mut self, value: &Value) -> Value {
        let mut details = value["details"].clone();
        if let Some(causes) = details.get_mut("causes").and_then(Value::as_array_mut) {
            for cause in causes.iter_mut().filter_map(Value::as_object_mut) {
                cause.remove("message");
            }
            causes.sort_by_key(Value::to_string);
            // The number of repetitions of a field does not matter to programs.
            causes.dedup();
        }
        if let Some(uid) = details.get_mut("uid") {
            *uid = number(&mut self.uids, "U", uid);
        }
        let mut status = Map::new();
        for key in ["status", "reason", "code"] {
            status.extend(value.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        status.insert("details".to_owned(), self.text(details));
        if value["metadata"]["continue"].is_string() {
            status.insert("continue".to_owned(), Value::from("<token>"));
        }
        Value::Object(status)
    }

    fn metadata(&mut self, value: &mut Value) {
        let conditions = value.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            if let Some(time) = condition.get_mut("lastTransitionTime").filter(|time| time.is_string()) {
                *time = Value::from("<time>");
            }
        }
        let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        meta.remove("managedFields");
        for key in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(time) = meta.get_mut(key).filter(|time| time.is_string()) {
                *time = Value::from("<time>");
            }
        }
        if let Some(uid) = meta.get_mut("uid") {
            *uid = number(&mut self.uids, "U", uid);
        }
        if let Some(revision) = meta.get_mut("resourceVersion").filter(|revision| *revision != "<revision>") {
            *revision = number(&mut self.revisions, "R", revision);
        }
        let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (prefix, name) = (text("generateName"), text("name"));
        // A name that the client chose is not replaced.
        if !prefix.is_empty() && name.len() == prefix.chars().take(58).count() + 5 {
            let next = format!("<generated {}>", self.generated.len() + 1);
            self.generated.entry(name).or_insert(next);
        }
    }

    /// Replaces a text that is a generated name, and the namespace inside a text.
    fn text(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(match self.generated.get(&text) {
                Some(word) => word.clone(),
                None => text.replace(&self.namespace, "NS"),
            }),
            Value::Array(list) => list.into_iter().map(|value| self.text(value)).collect(),
            Value::Object(map) => Value::Object(map.into_iter().map(|(key, value)| (key, self.text(value))).collect()),
            other => other,
        }
    }
}

/// Whether a table cell shows an age: `5s`, `3m20s`, `2y291d`.
fn is_age(text: &str) -> bool {
    let digits = text.starts_with(|first: char| first.is_ascii_digit());
    digits
        && text.ends_with(['s', 'm', 'h', 'd', 'y'])
        && text.chars().all(|c| c.is_ascii_digit() || "smhdy".contains(c))
}

/// The replacement of a value that a server chose: a letter, and the value's position in the order of first appearance.
fn number(known: &mut BTreeMap<String, String>, letter: &str, value: &Value) -> Value {
    let text = value.as_str().unwrap_or_default().to_owned();
    let next = format!("{letter}{}", known.len() + 1);
    Value::from(known.entry(text).or_insert(next).clone())
}
