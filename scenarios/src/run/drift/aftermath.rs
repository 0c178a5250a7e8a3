//! Observes whether the subject restores changed children before their parents are written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use loadgen::churn::Api;
use reports::record::Drifted;
use serde_json::{Map, Value};

use super::{ALONE_FOR, Plan};
use crate::clock::Clock;
use crate::run::end_state::children::{Known, holds, parent_of};
use crate::run::end_state::list::{Item, list};
use crate::scenario::Children;

/// Interval of the checks. A check lists parents and children.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A child that was deleted or edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    pub parent: String,
    pub child: String,
    /// Number of children of this parent before the change.
    pub had: u64,
    /// Time of the parent's next planned write. A restoration after this write proves nothing.
    pub until_ms: u64,
}

/// Children that one change deleted or edited.
pub(super) struct Aftermath {
    keys: Children,
    collection: String,
    edit: Option<Map<String, Value>>,
    taken: Vec<Taken>,
    resource: String,
    path: String,
    api: Api,
    clock: Clock,
}

impl Aftermath {
    pub(super) fn new(
        plan: &Plan,
        keys: Children,
        collection: String,
        edit: Option<Map<String, Value>>,
        taken: Vec<Taken>,
    ) -> Self {
        let Plan { resource, path, api, clock, .. } = plan.clone();
        Self { keys, collection, edit, taken, resource, path, api, clock }
    }

    /// Checks the children regularly until each child is restored, its parent is written or deleted, or the time is
    /// over.
    pub(super) async fn watch(mut self) -> Drifted {
        let mut drifted = Drifted::default();
        let deadline = Instant::now() + ALONE_FOR;
        while !self.taken.is_empty() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
            let parents = list(&self.api, &self.path, false).await;
            let children = list(&self.api, &self.collection, true).await;
            // If a list fails, the next check follows.
            let (Ok(parents), Ok(children)) = (parents, children) else { continue };
            let known = Known::of(&self.resource, &parents);
            let of = |child: &Item| parent_of(&self.keys, &known, child).map(str::to_owned);
            let now = Now::of(&parents, &children, of, self.edit.as_ref());
            self.taken.retain(|taken| now.still_open(taken, self.clock.now_ms(), &mut drifted));
        }
        drifted.overtaken += self.taken.len() as u64;
        drifted
    }
}

/// Children and parents in the lists of one check.
struct Now<'a> {
    parents: BTreeSet<&'a str>,
    /// Number of unedited children of each parent.
    whole: BTreeMap<String, u64>,
    uids: BTreeSet<&'a str>,
    /// Children that still have the edit.
    edited: BTreeSet<&'a str>,
    edits: bool,
}

impl<'a> Now<'a> {
    fn of(
        parents: &'a [Item],
        children: &'a [Item],
        of: impl Fn(&Item) -> Option<String>,
        edit: Option<&Map<String, Value>>,
    ) -> Self {
        let is_edited = |child: &Item| edit.is_some_and(|edit| holds(&child.object, edit));
        let mut whole = BTreeMap::new();
        for child in children.iter().filter(|child| !is_edited(child)) {
            if let Some(parent) = of(child) {
                *whole.entry(parent).or_default() += 1;
            }
        }
        Self {
            parents: parents.iter().map(|item| item.uid.as_str()).collect(),
            whole,
            uids: children.iter().map(|item| item.uid.as_str()).collect(),
            edited: children.iter().filter(|child| is_edited(child)).map(|child| child.uid.as_str()).collect(),
            edits: edit.is_some(),
        }
    }

    /// Returns whether the result of a child is still unknown. Adds a known result to `drifted`.
    fn still_open(&self, taken: &Taken, now_ms: u64, drifted: &mut Drifted) -> bool {
        if !self.parents.contains(taken.parent.as_str()) {
            drifted.gone += 1;
            return false;
        }
        // The check takes time, so a write during the check may have caused the result.
        if now_ms >= taken.until_ms {
            drifted.overtaken += 1;
            return false;
        }
        let child = taken.child.as_str();
        let undone = if self.edits { !self.edited.contains(child) } else { !self.uids.contains(child) };
        let is_restored = undone && self.whole.get(&taken.parent).copied().unwrap_or_default() >= taken.had;
        drifted.restored += u64::from(is_restored);
        !is_restored
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(uid: &str, of: &str, data: &str) -> Item {
        let meta = json!({"namespace": "n", "name": uid, "uid": uid, "resourceVersion": "1", "labels": {"of": of}});
        Item::of(json!({"metadata": meta, "data": {"a": data}})).unwrap()
    }

    fn of(child: &Item) -> Option<String> {
        child.object["metadata"]["labels"]["of"].as_str().map(str::to_owned)
    }

    fn taken() -> Taken {
        Taken { parent: "p".to_owned(), child: "a".to_owned(), had: 2, until_ms: 1000 }
    }

    /// The result of one check of child `a` of parent `p`, which had two children.
    fn look(children: &[Item], edit: Option<Value>, now_ms: u64) -> (bool, Drifted) {
        let edit = edit.map(|edit| edit.as_object().unwrap().clone());
        let mut drifted = Drifted::default();
        let parents = [item("p", "", "")];
        let open = Now::of(&parents, children, of, edit.as_ref()).still_open(&taken(), now_ms, &mut drifted);
        (open, drifted)
    }

    #[test]
    fn a_deleted_child_is_restored_when_there_are_as_many_as_before() {
        let (b, c) = (item("b", "p", "1"), item("c", "p", "1"));
        let restored = (false, Drifted { restored: 1, ..Drifted::default() });
        assert_eq!(look(&[b.clone(), c.clone()], None, 10), restored);
        assert_eq!(look(std::slice::from_ref(&b), None, 10), (true, Drifted::default()));
        assert_eq!(
            look(&[item("a", "p", "1"), b.clone(), c.clone()], None, 10),
            (true, Drifted::default()),
            "still going"
        );
        let late = (false, Drifted { overtaken: 1, ..Drifted::default() });
        assert_eq!(look(&[b, c], None, 1000), late, "the parent may have been written");
    }

    #[test]
    fn an_edited_child_is_restored_when_the_edit_is_gone() {
        let edit = || Some(json!({"data": {"a": "drifted"}}));
        let b = item("b", "p", "1");
        let restored = (false, Drifted { restored: 1, ..Drifted::default() });
        assert_eq!(look(&[item("a", "p", "drifted"), b.clone()], edit(), 10), (true, Drifted::default()));
        assert_eq!(look(&[item("a", "p", "1"), b.clone()], edit(), 10), restored);
        assert_eq!(
            look(std::slice::from_ref(&b), edit(), 10),
            (true, Drifted::default()),
            "thrown away is not restored"
        );
        assert_eq!(look(&[item("c", "p", "1"), b], edit(), 10), restored, "made anew is as good");
    }

    #[test]
    fn a_child_whose_parent_went_proves_nothing() {
        let mut drifted = Drifted::default();
        assert!(!Now::of(&[], &[], of, None).still_open(&taken(), 10, &mut drifted));
        assert_eq!(drifted, Drifted { gone: 1, ..Drifted::default() });
    }
}
