//! The removal of fields that a manager applied before and no longer applies.
//!
//! Owns removing many places from one object in time proportional to their number. A removed item leaves a mark in its
//! list, so that all others keep their places. Every list is swept once at the end, the innermost first. Parents that
//! become empty are removed as well.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::owners::{Path, Places, Step};

/// The key of the mark; no client sends it as the only field of an item on purpose.
const MARK: &str = "\u{0}gone";

/// A removal in progress; [`Removal::finish`] ends it.
pub(super) struct Removal<'a> {
    places: Places,
    /// Lists with marks, by the length of their paths.
    marked: BTreeMap<usize, HashSet<Vec<Step>>>,
    /// Whether another manager owns a key of an item.
    key_is_owned: &'a dyn Fn(&[Step]) -> bool,
}

impl<'a> Removal<'a> {
    pub(super) fn new(key_is_owned: &'a dyn Fn(&[Step]) -> bool) -> Self {
        Self { places: Places::default(), marked: BTreeMap::new(), key_is_owned }
    }

    /// Removes a field that a manager owned and no longer wants. With the key of an item the whole item goes, including
    /// parts without an owner, such as defaults. An item keeps its keys if another manager owns one of them.
    pub(super) fn take(&mut self, value: &mut Value, path: &Path) {
        match path.0.as_slice() {
            [item @ .., Step::Field(name)] if item.last().is_some_and(|step| step.is_key(name)) => {
                if !(self.key_is_owned)(item) {
                    self.remove(value, item, 0);
                }
            }
            all => self.remove(value, all, 0),
        }
    }

    pub(super) fn finish(mut self, value: &mut Value) {
        while let Some((_, lists)) = self.marked.pop_last() {
            for list in lists {
                self.sweep(value, &list, 0);
            }
        }
    }

    fn mark(&mut self, list: &mut [Value], index: usize, above: &[Step]) {
        list[index] = json!({ MARK: true });
        self.marked.entry(above.len()).or_default().insert(above.to_vec());
    }

    fn remove(&mut self, value: &mut Value, steps: &[Step], depth: usize) {
        let Some(step) = steps.get(depth) else { return };
        let is_last = depth + 1 == steps.len();
        match step {
            Step::Field(name) => {
                let Some(object) = value.as_object_mut() else { return };
                if is_last {
                    object.remove(name);
                } else if let Some(inner) = object.get_mut(name) {
                    self.remove(inner, steps, depth + 1);
                    if is_empty(inner) {
                        object.remove(name);
                    }
                }
            }
            Step::Key(_) | Step::Value(_) => {
                let Some(list) = value.as_array_mut() else { return };
                let Some(index) = self.places.of(&steps[..=depth], list) else { return };
                if !is_last {
                    self.remove(&mut list[index], steps, depth + 1);
                }
                if is_last || self.is_bare(&list[index], &steps[..=depth]) {
                    self.mark(list, index, &steps[..depth]);
                }
            }
        }
    }

    /// Removes the marks from the list at the end of `steps`.
    fn sweep(&mut self, value: &mut Value, steps: &[Step], depth: usize) {
        let Some(step) = steps.get(depth) else {
            if let Some(list) = value.as_array_mut() {
                list.retain(|item| item.get(MARK).is_none());
            }
            return;
        };
        match step {
            Step::Field(name) => {
                let Some(object) = value.as_object_mut() else { return };
                if let Some(inner) = object.get_mut(name) {
                    self.sweep(inner, steps, depth + 1);
                    if is_empty(inner) {
                        object.remove(name);
                    }
                }
            }
            Step::Key(_) | Step::Value(_) => {
                let Some(list) = value.as_array_mut() else { return };
                let Some(index) = self.places.of(&steps[..=depth], list) else { return };
                self.sweep(&mut list[index], steps, depth + 1);
                if self.is_bare(&list[index], &steps[..=depth]) {
                    self.mark(list, index, &steps[..depth]);
                }
            }
        }
    }

    /// Whether only the key of an item is left, and no manager owns it.
    fn is_bare(&self, item: &Value, at: &[Step]) -> bool {
        let Some((step, _)) = at.split_last() else { return false };
        let only_key = item.as_object().is_some_and(|item| item.keys().all(|name| step.is_key(name)));
        only_key && !(self.key_is_owned)(at)
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}
