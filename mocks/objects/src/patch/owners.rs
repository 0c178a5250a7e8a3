//! The owners of fields: `metadata.managedFields` in the notation `FieldsV1`.
//!
//! Owns the paths of fields and their notation in KEP-555: `f:name`, `k:{"name":"a"}`, `v:"x"`.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Map, Value, json};

use super::manager::Manager;
use crate::catalogue::Resource;
use crate::object;

/// One component of a path in an object: a field or a list item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Field(String),
    /// A step to the list item whose keys have these values.
    Key(Vec<(String, Value)>),
    /// A step to the item of a set with this value.
    Value(Value),
}

/// The path of a field or value that has an owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Path(pub Vec<Step>);

/// An index of list items by key, so that an item is found without reading a whole list. The index is valid for one
/// object, as long as only [`Path::set`] changes that object.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<Vec<Step>, HashMap<Value, usize>>);

/// All managers except one (usually the manager that applies now), each with the paths of its fields.
pub(super) struct Others<'a>(Vec<(&'a Entry, HashSet<&'a Path>)>);

#[derive(Debug, Default)]
pub(super) struct Owners {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    manager: String,
    operation: String,
    subresource: String,
    api_version: String,
    time: String,
    paths: Vec<Path>,
}

impl Step {
    pub(super) fn field(&self) -> Option<&str> {
        if let Self::Field(name) = self { Some(name) } else { None }
    }

    fn notation(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => format!("k:{}", Value::Object(keys.iter().cloned().collect())),
            Self::Value(value) => format!("v:{value}"),
        }
    }

    fn parse(notation: &str) -> Option<Self> {
        let (kind, rest) = notation.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                (!keys.is_empty()).then(|| Self::Key(keys.into_iter().collect()))
            }
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            _ => None,
        }
    }

    /// Whether the step leads to a list item that has `field` among its keys.
    pub(super) fn is_key(&self, field: &str) -> bool {
        matches!(self, Self::Key(keys) if keys.iter().any(|(key, _)| key == field))
    }

    /// The key of the item to which a step leads, if the step leads into a list. Several key fields form a JSON list.
    fn wanted(&self) -> Option<Cow<'_, Value>> {
        match self {
            Self::Field(_) => None,
            Self::Key(keys) => Some(match &keys[..] {
                [(_, wanted)] => Cow::Borrowed(wanted),
                several => Cow::Owned(several.iter().map(|(_, wanted)| wanted.clone()).collect()),
            }),
            Self::Value(wanted) => Some(Cow::Borrowed(wanted)),
        }
    }

    /// The key of a list item, with the same fields as the key in this step.
    fn known_by(&self, item: &Value) -> Option<Value> {
        match self {
            Self::Key(keys) => match &keys[..] {
                [(key, _)] => item.get(key).cloned(),
                several => several.iter().map(|(key, _)| part_of_key(item, key)).collect(),
            },
            _ => Some(item.clone()),
        }
    }
}

/// The value of one key field of a list item. In custom resources, absent key fields are already filled in; an absent
/// protocol of a port has a default.
fn part_of_key(item: &Value, key: &str) -> Option<Value> {
    item.get(key).cloned().or_else(|| (key == "protocol").then(|| Value::from("TCP")))
}

impl Places {
    /// The index in `list` of the item to which the last step of `path` leads. All items of a list have the same key
    /// fields, which the rules of the resource name.
    pub(super) fn of(&mut self, path: &[Step], list: &[Value]) -> Option<usize> {
        let (step, above) = path.split_last()?;
        if !self.0.contains_key(above) {
            let mut places = HashMap::new();
            for (index, item) in list.iter().enumerate() {
                if let Some(known_by) = step.known_by(item) {
                    places.entry(known_by).or_insert(index);
                }
            }
            self.0.insert(above.to_vec(), places);
        }
        self.0.get(above)?.get(&*step.wanted()?).copied()
    }

    fn add(&mut self, path: &[Step], index: usize) {
        if let Some((step, above)) = path.split_last()
            && let (Some(places), Some(wanted)) = (self.0.get_mut(above), step.wanted())
        {
            places.insert(wanted.into_owned(), index);
        }
    }

    /// Clears the index after items were removed.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

impl Path {
    pub(super) fn find<'a>(&self, value: &'a Value, places: &mut Places) -> Option<&'a Value> {
        self.0.iter().enumerate().try_fold(value, |at, (depth, step)| match step {
            Step::Field(name) => at.get(name),
            _ => at.as_array().and_then(|list| places.of(&self.0[..=depth], list).map(|index| &list[index])),
        })
    }

    /// Sets the value at the path, and creates missing parents.
    pub(super) fn set(&self, value: &mut Value, new: Value, places: &mut Places) {
        let mut at = value;
        for (depth, step) in self.0.iter().enumerate() {
            at = match step {
                Step::Field(name) => {
                    if !at.is_object() {
                        *at = json!({});
                    }
                    at.as_object_mut().expect("made an object above").entry(name.clone()).or_insert(Value::Null)
                }
                Step::Key(_) | Step::Value(_) => {
                    if !at.is_array() {
                        *at = json!([]);
                    }
                    let list = at.as_array_mut().expect("made a list above");
                    let index = places.of(&self.0[..=depth], list).unwrap_or_else(|| {
                        list.push(match step {
                            Step::Key(keys) => Value::Object(keys.iter().cloned().collect()),
                            Step::Value(wanted) => wanted.clone(),
                            Step::Field(_) => Value::Null,
                        });
                        places.add(&self.0[..=depth], list.len() - 1);
                        list.len() - 1
                    });
                    &mut list[index]
                }
            };
        }
        // Owning an empty object means that the object exists, not that it stays empty.
        if !(at.is_object() && new.as_object().is_some_and(Map::is_empty)) {
            *at = new;
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(keys) => {
                    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                    write!(f, "[{}]", keys.join(","))?;
                }
                Step::Value(value) => write!(f, "[={value}]")?,
            }
        }
        Ok(())
    }
}

/// Returns a version in which a manager owns fields, but which the custom resource's definition no longer has. If there
/// is one, the real server cannot convert the object into each owner's version: it refuses an apply, and other writes
/// remove all owners. (A built-in object loses only this owner.)
pub(super) fn gone_version<'a>(entries: &'a [Value], resource: &Resource) -> Option<&'a str> {
    if !resource.custom {
        return None;
    }
    let is_known = |version: &str| resource.versions.iter().any(|served| *served.api_version == *version);
    // A scale has a version of its own.
    let entries = entries.iter().filter(|entry| entry["subresource"] != "scale");
    entries.filter_map(|entry| entry["apiVersion"].as_str()).find(|version| !is_known(version))
}

impl Owners {
    pub(super) fn read(value: &Value) -> Self {
        let entries = value["metadata"]["managedFields"].as_array().into_iter().flatten();
        Self { entries: entries.map(Entry::read).collect() }
    }

    pub(super) fn write(self, value: &mut Value) {
        let entries: Vec<Value> =
            self.entries.iter().filter(|entry| !entry.paths.is_empty()).map(Entry::write).collect();
        object::metadata(value).insert("managedFields".to_owned(), Value::Array(entries));
    }

    pub(super) fn others(&self, manager: &str, subresource: &str) -> Others<'_> {
        let others = self.entries.iter().filter(|entry| !entry.is(manager, subresource));
        Others(others.map(|entry| (entry, entry.paths.iter().collect())).collect())
    }

    pub(super) fn take_from_others(&mut self, taken: &HashSet<&Path>, manager: &str, subresource: &str) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.is(manager, subresource)) {
            entry.paths.retain(|owned| !taken.contains(owned));
        }
    }

    pub(super) fn applied_by(&self, manager: &str, subresource: &str) -> Vec<Path> {
        let own = self.entries.iter().find(|entry| entry.is(manager, subresource));
        own.map(|entry| entry.paths.clone()).unwrap_or_default()
    }

    /// Records that a manager applied the fields at `paths`. `changes` says whether a value has changed.
    pub(super) fn record(&mut self, by: &Manager<'_>, paths: Vec<Path>, changes: bool) {
        let new: HashSet<&Path> = paths.iter().collect();
        let same =
            |entry: &Entry| entry.paths.len() == paths.len() && entry.paths.iter().collect::<HashSet<_>>() == new;
        // Applying the same again is no write, so the time of the entry stays.
        if !changes && self.entries.iter().any(|entry| entry.is(by.name, by.subresource) && same(entry)) {
            return;
        }
        self.entries.retain(|entry| !entry.is(by.name, by.subresource));
        self.entries.push(Entry {
            manager: by.name.to_owned(),
            operation: "Apply".to_owned(),
            subresource: by.subresource.to_owned(),
            api_version: by.api_version.to_owned(),
            time: object::seconds(by.now),
            paths,
        });
    }
}

impl Others<'_> {
    pub(super) fn own(&self, path: &Path) -> bool {
        self.0.iter().any(|(_, paths)| paths.contains(path))
    }

    /// Whether another manager owns a key field of the item.
    pub(super) fn own_key(&self, item: &[Step]) -> bool {
        let Some(Step::Key(keys)) = item.last() else { return false };
        keys.iter().any(|(key, _)| {
            let mut path = item.to_vec();
            path.push(Step::Field(key.clone()));
            self.own(&Path(path))
        })
    }

    /// The owners of a path, as conflict messages name them.
    pub(super) fn of(&self, path: &Path) -> impl Iterator<Item = String> {
        self.0.iter().filter(|(_, paths)| paths.contains(path)).map(|(entry, _)| entry.describe())
    }
}

impl Entry {
    fn is(&self, manager: &str, subresource: &str) -> bool {
        self.operation == "Apply" && self.manager == manager && self.subresource == subresource
    }

    /// The manager as conflict messages name it: `"kubectl-edit" using apps/v1`. A manager that used server-side apply
    /// is named without a version.
    fn describe(&self) -> String {
        let part = match self.subresource.as_str() {
            "" => String::new(),
            subresource => format!(" with subresource {subresource:?}"),
        };
        let using = if self.operation == "Update" { format!(" using {}", self.api_version) } else { String::new() };
        format!("{:?}{part}{using}", self.manager)
    }

    fn read(raw: &Value) -> Self {
        let text = |key: &str| raw[key].as_str().unwrap_or_default().to_owned();
        let mut paths = Vec::new();
        collect(&raw["fieldsV1"], &mut Vec::new(), &mut paths);
        Self {
            manager: text("manager"),
            operation: text("operation"),
            subresource: text("subresource"),
            api_version: text("apiVersion"),
            time: text("time"),
            paths,
        }
    }

    fn write(&self) -> Value {
        let mut fields = Map::new();
        for path in &self.paths {
            let mut at = &mut fields;
            for step in &path.0 {
                let next = at.entry(step.notation()).or_insert_with(|| json!({}));
                let Some(map) = next.as_object_mut() else { break };
                at = map;
                if let Step::Key(_) = step {
                    at.entry(".").or_insert_with(|| json!({}));
                }
            }
        }
        let mut entry = json!({
            "manager": self.manager, "operation": self.operation, "apiVersion": self.api_version, "time": self.time,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = Value::from(self.subresource.clone());
        }
        entry
    }
}

fn collect(fields: &Value, path: &mut Vec<Step>, out: &mut Vec<Path>) {
    let Some(map) = fields.as_object() else { return };
    let inner: Vec<(&String, &Value)> = map.iter().filter(|(key, _)| *key != ".").collect();
    if inner.is_empty() && !path.is_empty() {
        out.push(Path(path.clone()));
    }
    for (notation, below) in inner {
        if let Some(step) = Step::parse(notation) {
            path.push(step);
            collect(below, path, out);
            path.pop();
        }
    }
}
