//! The writes in the quiet time by object: number, changed fields, and clients. Does no I/O.
//!
//! The changed fields are the differences between two received versions of an object, so the first write after the load
//! names no field. Keeps the last version of at most [`OBJECTS_MAX`] objects in memory.

use std::collections::{BTreeMap, BTreeSet};

use facts::Change;
use loadgen::audit::{self, Source};
use reports::record::{self, FLIPS_MAX, Flip, REWRITTEN_MAX, Rewritten};
use serde_json::Value;

use super::Window;
use super::writers::{Writers, is_no_object};
use crate::run::field_managers::{self, FieldManager};

/// Maximum number of objects counted; fewer are enough to notice repeated writes.
const OBJECTS_MAX: usize = 500;
/// Maximum number of changed fields counted for one object.
const FIELDS_MAX: usize = 50;
/// Maximum number of changed fields counted for one write.
const CHANGES_MAX: usize = 20;
/// The annotation that leader election of older programs uses as its lease.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Fields that the control plane itself changes at every write.
const OF_EVERY_WRITE: [&str; 4] =
    ["/metadata/resourceVersion", "/metadata/managedFields", "/metadata/uid", "/metadata/creationTimestamp"];

/// Resource, namespace and name of a written object.
type Key = (String, String, String);

#[derive(Debug, Default)]
struct ObjectWrites {
    writes: u64,
    thirds: [u64; 3],
    first_ms: u64,
    last_ms: u64,
    fields: BTreeMap<String, u64>,
    generations: BTreeSet<i64>,
    managers: BTreeMap<String, u64>,
    last: Value,
}

#[derive(Debug)]
pub(super) struct Rewrites {
    window: Window,
    objects: BTreeMap<Key, ObjectWrites>,
    unread: Option<String>,
}

impl Rewrites {
    pub(super) fn new(window: Window) -> Self {
        Self { window, objects: BTreeMap::new(), unread: None }
    }

    /// Records that the watch missed some writes.
    pub(super) fn lost(&mut self, why: String) {
        self.unread.get_or_insert(why);
    }

    /// Records a version that the watch delivered at `t_ms`.
    pub(super) fn wrote(&mut self, t_ms: u64, entry: audit::Entry) {
        let audit::Entry { commit, progress, fields, source, .. } = entry;
        let object = fields.into_iter().next().unwrap_or_default();
        // A listed version was written at an unknown time.
        if source != Source::Watched || is_no_object(&commit.resource) || is_lease(&object) {
            return;
        }
        let named = (commit.resource.to_string(), commit.namespace.to_string(), commit.name.to_string());
        let key = match (commit.change, object["metadata"]["generateName"].as_str()) {
            // A child recreated under another name each time counts as one continuing write.
            (Change::Added, Some(prefix)) => (named.0, named.1, format!("{prefix}*")),
            (Change::Deleted, _) => return,
            _ => named,
        };
        if self.objects.len() >= OBJECTS_MAX && !self.objects.contains_key(&key) {
            return;
        }
        let seen = self.objects.entry(key).or_default();
        let changes = if seen.last.is_null() || commit.change == Change::Added {
            Vec::new()
        } else {
            let mut changes = Vec::new();
            differences(&seen.last, &object, "", &mut changes);
            changes
        };
        let manager = field_managers::owner(&object, changes.first().map_or("", String::as_str));
        let is_ours = manager.as_ref().is_none_or(|manager| !manager.is_of_kubernetes());
        if is_ours && (self.window.from_ms..=self.window.to_ms).contains(&t_ms) {
            seen.count(t_ms, self.window, &changes, manager);
            seen.generations.insert(progress.generation);
        }
        seen.last = object;
    }

    /// Returns the writes in the quiet time, with their clients if known.
    pub(super) fn finish(self, writers: Option<&Writers>) -> record::Quiet {
        let Window { from_ms, to_ms } = self.window;
        let mut rows: Vec<Rewritten> = Vec::new();
        for ((resource, namespace, name), seen) in self.objects.into_iter().filter(|(_, seen)| seen.writes > 0) {
            let asked = if name.ends_with('*') { "" } else { name.as_str() };
            let agent = writers.map(|writers| writers.of(&resource, &namespace, asked));
            if agent != Some(None) {
                rows.push(seen.row(resource, &namespace, &name, agent.flatten()));
            }
        }
        let is_lasting = |row: &Rewritten| row.thirds.iter().all(|writes| *writes > 0);
        let (writes, objects) = (rows.iter().map(|row| row.writes).sum(), rows.len() as u64);
        let lasting = rows.iter().filter(|row| is_lasting(row)).count() as u64;
        rows.sort_by(|a, b| {
            let order = |row: &Rewritten| (!is_lasting(row), std::cmp::Reverse(row.writes));
            order(a).cmp(&order(b)).then_with(|| (&a.resource, &a.object).cmp(&(&b.resource, &b.object)))
        });
        rows.truncate(REWRITTEN_MAX);
        let unread = self.unread;
        record::Quiet { from_ms, to_ms, unread, writes, objects, lasting, worst: rows, ..record::Quiet::default() }
    }
}

impl ObjectWrites {
    fn count(&mut self, t_ms: u64, window: Window, changes: &[String], manager: Option<FieldManager>) {
        if self.writes == 0 {
            self.first_ms = t_ms;
        }
        self.last_ms = t_ms;
        self.writes += 1;
        let length_ms = (window.to_ms - window.from_ms).max(1);
        let third = (3 * (t_ms - window.from_ms) / length_ms).min(2);
        self.thirds[usize::try_from(third).unwrap_or(2)] += 1;
        for field in changes {
            if self.fields.len() < FIELDS_MAX || self.fields.contains_key(field) {
                *self.fields.entry(field.clone()).or_default() += 1;
            }
        }
        if let Some(manager) = manager {
            *self.managers.entry(manager.shown()).or_default() += 1;
        }
    }

    fn row(self, resource: String, namespace: &str, name: &str, agent: Option<&str>) -> Rewritten {
        let mut fields: Vec<Flip> = self.fields.into_iter().map(|(field, times)| Flip { field, times }).collect();
        fields.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.field.cmp(&b.field)));
        fields.truncate(FLIPS_MAX);
        let object = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        Rewritten {
            resource,
            object,
            writes: self.writes,
            thirds: self.thirds,
            first_ms: self.first_ms,
            last_ms: self.last_ms,
            fields,
            respecified: self.generations.len() > 1,
            manager: self.managers.into_iter().max_by_key(|(_, times)| *times).map(|(name, _)| name),
            user_agent: agent.filter(|agent| !agent.is_empty()).map(str::to_owned),
        }
    }
}

fn is_lease(object: &Value) -> bool {
    object["metadata"]["annotations"].get(LEADER).is_some()
}

/// Adds the differences of two versions to `found`, as JSON pointers. A value that exists in only one version counts as
/// one difference.
fn differences(before: &Value, after: &Value, at: &str, found: &mut Vec<String>) {
    if before == after || found.len() >= CHANGES_MAX || OF_EVERY_WRITE.contains(&at) {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for key in keys {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (before.get(key), after.get(key)) {
                    (Some(before), Some(after)) => differences(before, after, &at, found),
                    _ if !OF_EVERY_WRITE.contains(&at.as_str()) => found.push(at),
                    _ => {}
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                differences(before, after, &format!("{at}/{index}"), found);
            }
        }
        _ => found.push(if at.is_empty() { "/".to_owned() } else { at.to_owned() }),
    }
    found.truncate(CHANGES_MAX);
}

#[cfg(test)]
mod tests;
