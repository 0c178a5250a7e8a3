//! The existing objects as the audit knows them from events, and their comparison with a list. Pure: no sockets, no
//! clock.
//!
//! Memory is proportional to the number of existing objects. resourceVersions are opaque and never ordered; the order
//! of events is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::event::Object;
use facts::{Change, Progress};

/// Maximum number of changes that are remembered while the watch is compared with the list at the end. If there are
/// more changes, clients have not stopped writing.
const MARKED_MAX: usize = 100_000;
/// Maximum number of disagreements that are kept in full; further disagreements are only counted.
pub(super) const NAMED_MAX: usize = 100;

/// An object on which the watch and the lists disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub problem: Problem,
}

/// The kind of a disagreement between the watch and the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The watch changed or deleted an object that it never added, or added an object that existed.
    OutOfTurn(Change),
    /// The watch showed a new uid under a name without a deletion of the previous object.
    Replaced {
        /// The uid that the watch showed before.
        earlier_uid: String,
    },
    /// The list at the end contains the object, but the watch never showed it.
    OnlyListed {
        /// The version in the list.
        resource_version: String,
    },
    /// The list at the end does not contain the object, but the watch never showed its deletion.
    OnlyWatched {
        /// The last version that the watch showed.
        resource_version: String,
    },
    /// The last version in the watch is not the version in the list at the end.
    VersionDiffers {
        /// The version in the list.
        listed: String,
        /// The last version that the watch showed.
        watched: String,
    },
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} (uid {}): ", self.namespace, self.name, self.uid)?;
        match &self.problem {
            Problem::OutOfTurn(Change::Added) => write!(f, "the watch added it although it was there"),
            Problem::OutOfTurn(change) => write!(f, "the watch sent {} without having added it", change.event_type()),
            Problem::Replaced { earlier_uid } => {
                write!(f, "the watch never showed that uid {earlier_uid} of the same name was deleted")
            }
            Problem::OnlyListed { resource_version } => {
                write!(f, "the last list has version {resource_version}, the watch never showed the object")
            }
            Problem::OnlyWatched { resource_version } => {
                write!(f, "gone from the last list, but the watch never showed its deletion after {resource_version}")
            }
            Problem::VersionDiffers { listed, watched } => {
                write!(f, "the last list has version {listed}, the watch stopped at {watched}")
            }
        }
    }
}

/// The state of a name: no object, or one version of an object.
type State = Option<Known>;
type ObjectName = (String, String);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    uid: String,
    resource_version: String,
    progress: Progress,
}

/// The existing objects as the watch shows them.
#[derive(Debug, Default)]
pub(super) struct History {
    objects: BTreeMap<ObjectName, Known>,
    /// For every name that changed since the call of [`History::mark`]: its state at that call, and each later state.
    marked: Option<BTreeMap<ObjectName, Vec<State>>>,
    marked_changes: usize,
    /// Number of events without a change.
    pub repeated: u64,
    /// Contradictions between events of the watch.
    pub out_of_turn: Vec<Disagreement>,
    pub out_of_turn_total: u64,
}

impl History {
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Handles an event of the watch; `false` if the event changes nothing.
    pub(super) fn event(&mut self, change: Change, object: &Object) -> bool {
        let place = (object.namespace.clone(), object.name.clone());
        let known = self.objects.get(&place);
        let problem = match (change, known) {
            (Change::Added | Change::Modified, Some(known)) if known.is(object) => {
                self.repeated += 1;
                return false;
            }
            (_, Some(known)) if known.uid != object.uid => Some(Problem::Replaced { earlier_uid: known.uid.clone() }),
            (Change::Added, None) | (Change::Modified | Change::Deleted, Some(_)) => None,
            (change, _) => Some(Problem::OutOfTurn(change)),
        };
        if let Some(problem) = problem {
            self.out_of_turn_total += 1;
            if self.out_of_turn.len() < NAMED_MAX {
                self.out_of_turn.push(disagreement(&place, &object.uid, problem));
            }
        }
        self.set(place, (change != Change::Deleted).then(|| Known::of(object)));
        true
    }

    /// Takes over a complete list and returns the changes since the last event; versions in between are lost.
    pub(super) fn relist(&mut self, list: Vec<Object>, resource_version: &str) -> Vec<(Change, Object)> {
        let mut changes = Vec::new();
        let mut listed = BTreeSet::new();
        let mut news = Vec::new();
        for object in list {
            let place = (object.namespace.clone(), object.name.clone());
            listed.insert(place.clone());
            match self.objects.get(&place) {
                Some(known) if known.is(&object) => {}
                Some(known) if known.uid == object.uid => news.push((Change::Modified, place, object)),
                Some(_) | None => news.push((Change::Added, place, object)),
            }
        }
        let replaced = news.iter().filter(|(change, ..)| *change == Change::Added).map(|(_, place, _)| place);
        let replaced: BTreeSet<ObjectName> =
            replaced.filter(|place| self.objects.contains_key(*place)).cloned().collect();
        let gone = self.objects.keys().filter(|place| !listed.contains(*place) || replaced.contains(*place));
        for place in gone.cloned().collect::<Vec<_>>() {
            if let Some(known) = self.set(place.clone(), None) {
                changes.push((Change::Deleted, known.into_object(place, resource_version)));
            }
        }
        for (change, place, object) in news {
            self.set(place, Some(Known::of(&object)));
            changes.push((change, object));
        }
        changes
    }

    /// From now on, every state is remembered for [`compare`](Self::compare).
    pub(super) fn mark(&mut self) {
        self.marked = Some(BTreeMap::new());
        self.marked_changes = 0;
    }

    /// Compares the history with a consistent list that was requested after [`mark`](Self::mark). An object agrees if
    /// the list contains a state that the watch showed since the mark. An object whose event is late disagrees until
    /// the event comes, so compare again.
    ///
    /// An error means that too many changes came since the mark to compare them.
    pub(super) fn compare(&self, list: &[Object]) -> Result<Vec<Disagreement>, usize> {
        let nothing = BTreeMap::new();
        let marked = self.marked.as_ref().unwrap_or(&nothing);
        if self.marked_changes > MARKED_MAX {
            return Err(self.marked_changes);
        }
        let mut found = Vec::new();
        let mut listed = BTreeSet::new();
        for object in list {
            let place = (object.namespace.clone(), object.name.clone());
            let known = self.objects.get(&place);
            let agrees = marked.get(&place).map_or_else(
                || known.is_some_and(|known| known.is(object)),
                |states| states.iter().flatten().any(|state| state.is(object)),
            );
            if !agrees {
                let listed = object.resource_version.clone();
                let problem = match known.filter(|known| known.uid == object.uid) {
                    Some(known) => Problem::VersionDiffers { listed, watched: known.resource_version.clone() },
                    None => Problem::OnlyListed { resource_version: listed },
                };
                found.push(disagreement(&place, &object.uid, problem));
            }
            listed.insert(place);
        }
        for (place, known) in self.objects.iter().filter(|(place, _)| !listed.contains(*place)) {
            if !marked.get(place).is_some_and(|states| states.contains(&None)) {
                let problem = Problem::OnlyWatched { resource_version: known.resource_version.clone() };
                found.push(disagreement(place, &known.uid, problem));
            }
        }
        Ok(found)
    }

    /// Changes the state of a name, and returns its previous state.
    fn set(&mut self, place: ObjectName, state: State) -> State {
        let before = match state.clone() {
            Some(known) => self.objects.insert(place.clone(), known),
            None => self.objects.remove(&place),
        };
        if let Some(marked) = &mut self.marked {
            self.marked_changes += 1;
            if self.marked_changes <= MARKED_MAX {
                marked.entry(place).or_insert_with(|| vec![before.clone()]).push(state);
            }
        }
        before
    }
}

impl Known {
    fn of(object: &Object) -> Self {
        Self { uid: object.uid.clone(), resource_version: object.resource_version.clone(), progress: object.progress }
    }

    fn is(&self, object: &Object) -> bool {
        self.uid == object.uid && self.resource_version == object.resource_version
    }

    fn into_object(self, (namespace, name): ObjectName, resource_version: &str) -> Object {
        Object {
            namespace,
            name,
            uid: self.uid,
            resource_version: resource_version.to_owned(),
            progress: self.progress,
            images: Vec::new(),
            fields: Vec::new(),
        }
    }
}

fn disagreement((namespace, name): &ObjectName, uid: &str, problem: Problem) -> Disagreement {
    Disagreement { namespace: namespace.clone(), name: name.clone(), uid: uid.to_owned(), problem }
}

#[cfg(test)]
mod tests;
