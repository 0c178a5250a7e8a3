//! Removes fields that a manager applied before and no longer applies.
//!
//! Many fields are removed from one object in time proportional to their number. A removed list item leaves a mark in
//! its list, so that the other items keep their indices. At the end, the marks are removed from every list, innermost
//! lists first. Parents that become empty are removed too.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::owners::{Path, Places, Step};

/// The only field of the object that marks a removed item; real items have no field with this name.
const MARK: &str = "\u{0}gone";

/// A removal in progress, which [`Removal::finish`] ends.
pub(super) struct Removal<'a> {
    places: Places,
    /// Paths of lists with marks, grouped by the length of the path.
    marked: BTreeMap<usize, HashSet<Vec<Step>>>,
    /// Whether another manager owns a key field of an item.
    key_is_owned: &'a dyn Fn(&[Step]) -> bool,
}

impl<'a> Removal<'a> {
    pub(super) fn new(key_is_owned: &'a dyn Fn(&[Step]) -> bool) -> Self {
        Self { places: Places::default(), marked: BTreeMap::new(), key_is_owned }
    }

    /// Removes a field that a manager owned and no longer applies. If the field is the key of an item, the whole item
    /// is removed, with fields that have no owner, such as defaults. If another manager owns a key field of the item,
    /// the item stays with only its keys.
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

    /// Removes the marks from the list at `steps`.
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

    /// Whether an item has only its key left, and no manager owns the key.
    fn is_bare(&self, item: &Value, at: &[Step]) -> bool {
        let Some((step, _)) = at.split_last() else { return false };
        let only_key = item.as_object().is_some_and(|item| item.keys().all(|name| step.is_key(name)));
        only_key && !(self.key_is_owned)(at)
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}
