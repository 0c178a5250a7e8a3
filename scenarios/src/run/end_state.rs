//! The end state: after the drain, compares the subject's own state with a new list from the control plane.
//!
//! Owns how and how often the states of the subject and of the control plane are read. The subject's state comes from
//! its state page, or from the children that the subject keeps, or from its last observations. If the first available
//! source cannot be read, the state is unknown, and no other source is used instead. The judge decides whether the
//! state is right.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use loadgen::churn::Api;
use mock_faults::{ChildrenDriftKeys, Fault, Name};
use reports::ledger::Known;
use reports::record::{ChildrenState, EXAMPLES_MAX, EndState, IdeaSource, Left, Sees};
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::scenario::{Children, ControlPlaneKind, Scenario};

pub(super) mod children;
mod compare;
pub(super) mod list;
mod page;

use compare::Believed;
use list::{Item, list};
use page::{Page, Read};

/// Maximum time in which both states are read repeatedly while they differ, because the last writes may still be in
/// progress. More time is not needed, because the subject could catch up during the drain.
pub(super) const SETTLE_MAX: Duration = Duration::from_secs(5);
/// Pause before the states of subject and control plane are read again.
pub(super) const PAUSE: Duration = Duration::from_millis(250);
const CHURN_LABEL: &str = "longhaul.dev/churn";

/// A kind of children, with the edits that faults make to them.
type Kind = (Children, Vec<Map<String, Value>>);

pub(super) struct Reader {
    /// The churned resources: name and API path of each. Children have parents of the first resource.
    resources: Vec<(String, String)>,
    source: IdeaSource,
    page: Option<Page>,
    children: Vec<Kind>,
    /// JSON pointer to the generation that the subject repeats in an object.
    pointer: Option<String>,
    /// The reason why the witness's observations do not cover all objects, if they do not.
    partial: Option<String>,
    emptied: bool,
    /// Whether a garbage collector removes children of deleted owners.
    is_collected: bool,
    api: Api,
    clock: Clock,
}

/// The states of the control plane and of the subject at one time.
pub(super) struct Reading {
    items: Vec<Item>,
    /// Number of objects of the first churned resource.
    first: usize,
    /// Whether no object was written between the two lists of the control plane.
    still: bool,
    listed_ms: u64,
    read_ms: u64,
    /// The state that the subject reports; `None` if the subject was not asked.
    idea: Option<Result<Read, String>>,
    /// Children of each kind, with the time at which they were read.
    children: Vec<Result<(Vec<Item>, u64), String>>,
}

impl Reader {
    /// Returns `None` if no budget needs the end state. `health` is the address of the service's health pages.
    pub(super) fn of(scenario: &Scenario, health: Option<SocketAddr>, api: Api, clock: Clock) -> Option<Self> {
        let budget = scenario.budgets.events.as_ref()?;
        if budget.converged != Some(true) && budget.restored != Some(true) {
            return None;
        }
        let resources = all_churned(scenario);
        if resources.is_empty() {
            return None;
        }
        let subject = &scenario.subject;
        let page = match (&subject.world, health) {
            (Some(url), _) => Some(Page { objects: url.clone(), checksum: None }),
            (None, Some(health)) if subject.profile().is_service => Some(Page {
                objects: format!("http://{health}/debug/watch/objects"),
                checksum: Some(format!("http://{health}/debug/watch")),
            }),
            _ => None,
        };
        let source = match (&page, subject.children.is_empty()) {
            (Some(_), _) => IdeaSource::Endpoint,
            (None, false) => IdeaSource::Children,
            (None, true) => IdeaSource::Told,
        };
        Some(Self {
            resources,
            source,
            page,
            children: (0..subject.children.len())
                .map(|kind| (subject.children[kind].clone(), edits(scenario, kind)))
                .collect(),
            pointer: subject.witness.generation(),
            partial: (scenario.sees() != Sees::ALL).then(|| {
                format!(
                    "the witness `{}` does not report all objects that the subject keeps; name a page in `world`",
                    subject.witness.name()
                )
            }),
            emptied: !scenario.churn.is_empty()
                && scenario.churn.iter().all(|churn| churn.end == loadgen::churn::End::Empty),
            is_collected: scenario.control_plane.kind != ControlPlaneKind::Local,
            api,
            clock,
        })
    }

    /// Reads the state of the control plane and of the subject once. An error means that the control plane could not be
    /// read; the end state is then unknown.
    pub(super) async fn read(&self) -> anyhow::Result<Reading> {
        // Comparing children needs the specs of their parents, and generations are in whole objects.
        let whole = !self.children.is_empty() || self.pointer.is_some();
        let (before, _) = self.list(whole).await?;
        let idea = match &self.page {
            Some(page) => Some(self.ask(page, &before).await),
            None => None,
        };
        let read_ms = self.clock.now_ms();
        let mut children = Vec::with_capacity(self.children.len());
        for (keys, _) in &self.children {
            let path = loadgen::churn::collection_path(&keys.resource).context("no resource")?;
            let listed = list(&self.api, &path, true).await.map_err(|error| format!("{error:#}"));
            children.push(listed.map(|items| (items, self.clock.now_ms())));
        }
        let (items, first) = self.list(whole).await?;
        let version = |items: &[Item]| -> Vec<(String, String)> {
            items.iter().map(|item| (item.uid.clone(), item.revision.clone())).collect()
        };
        let still = version(&before) == version(&items);
        Ok(Reading { items, first, still, listed_ms: self.clock.now_ms(), read_ms, idea, children })
    }

    /// All objects of all resources, and the number of objects of the first resource.
    async fn list(&self, whole: bool) -> anyhow::Result<(Vec<Item>, usize)> {
        let (mut items, mut first) = (Vec::new(), 0);
        for (at, (_, path)) in self.resources.iter().enumerate() {
            items.append(&mut list(&self.api, path, whole).await?);
            if at == 0 {
                first = items.len();
            }
        }
        Ok((items, first))
    }

    fn resource(&self) -> String {
        self.resources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" and ")
    }

    /// Reads the subject's state page: first the checksum, which is cheap to read and usually enough. The checksum of a
    /// state page covers one resource.
    async fn ask(&self, page: &Page, listed: &[Item]) -> Result<Read, String> {
        let [(resource, _)] = &self.resources[..] else { return self.ask_for_all(page).await };
        let sum = page.checksum(resource).await?;
        if let Some(Read::Checksum(_, told)) = &sum
            && *told == page::checksum(listed)
        {
            return Ok(Read::Checksum(listed.len() as u64, told.clone()));
        }
        match (page.objects(resource).await?, sum) {
            // The page lists only the first objects; the checksum covers all objects.
            (Read::Objects(named), Some(Read::Checksum(all, told))) if (named.len() as u64) < all => {
                Ok(Read::Checksum(all, told))
            }
            (named, _) => Ok(named),
        }
    }

    async fn ask_for_all(&self, page: &Page) -> Result<Read, String> {
        // A line without a resource applies to every resource.
        let mut all = std::collections::BTreeMap::new();
        for (resource, _) in &self.resources {
            if let Read::Objects(objects) = page.objects(resource).await? {
                all.extend(objects.into_iter().map(|object| (object.uid.clone(), object)));
            }
        }
        Ok(Read::Objects(all.into_values().collect()))
    }

    /// Compares the objects that the control plane lists with the objects that the subject knows. An endpoint or the
    /// children of the subject show which objects it knows. Without both, the objects in `observed` count as known, each
    /// with its last observation.
    pub(super) fn compare(&self, reading: &Reading, observed: Vec<Known>, readings: u32) -> EndState {
        let Reading { items, listed_ms, read_ms, .. } = reading;
        let mut children = self.children(reading).into_iter();
        let mut state = EndState {
            resource: self.resource(),
            source: self.source,
            left: self.emptied.then(|| left(items)),
            listed_ms: *listed_ms,
            read_ms: *read_ms,
            readings,
            listed: items.len() as u64,
            believed: None,
            agrees: None,
            unread: None,
            differences: reports::record::Differences::default(),
            examples: Vec::new(),
            children: children.next(),
            more_children: children.collect(),
        };
        match self.source {
            IdeaSource::Endpoint => match &reading.idea {
                Some(Ok(read)) => take(&mut state, items, read),
                Some(Err(why)) => state.unread = Some(why.clone()),
                None => state.unread = Some("the subject was not asked".to_owned()),
            },
            IdeaSource::Children => {
                if state.all_children().any(|children| children.unread.is_some()) {
                    state.unread = Some("its children could not be read".to_owned());
                } else {
                    let agrees = state.all_children().all(|children| children.problems() == 0);
                    state.agrees = Some(agrees);
                }
            }
            IdeaSource::Told => {
                let observed = || {
                    observed.into_iter().filter(|observed| self.is_churned(&observed.resource)).map(believed).collect()
                };
                match (&self.pointer, &self.partial) {
                    (Some(path), _) => take(&mut state, items, &Read::Objects(compare::by_generation(items, path))),
                    (None, Some(why)) => state.unread = Some(why.clone()),
                    (None, None) => take(&mut state, items, &Read::Objects(observed())),
                }
            }
        }
        if state.agrees == Some(false) && !reading.still {
            state.agrees = None;
            state.unread = Some(format!("{} were still written when they were read", self.resource()));
        }
        state
    }

    fn is_churned(&self, resource: &str) -> bool {
        self.resources.iter().any(|(name, _)| name == resource)
    }

    /// Compares the children of each kind with the expected children.
    fn children(&self, reading: &Reading) -> Vec<ChildrenState> {
        type Listed = Result<(Vec<Item>, u64), String>;
        let compared = |((keys, edits), read): (&Kind, &Listed)| match read {
            Ok((items, listed_ms)) => {
                let parents = &reading.items[..reading.first];
                let state = children::compare(keys, edits, &self.resources[0].0, parents, items, self.is_collected);
                let moved = (!reading.still && state.problems() > 0)
                    .then(|| format!("{} were still written when they were read", self.resource()));
                ChildrenState { listed_ms: *listed_ms, unread: moved, ..state }
            }
            Err(why) => ChildrenState { unread: Some(why.clone()), ..ChildrenState::default() },
        };
        self.children.iter().zip(&reading.children).map(compared).collect()
    }
}

/// The edits that faults make to children of this kind.
fn edits(scenario: &Scenario, kind: usize) -> Vec<Map<String, Value>> {
    let drifts = scenario.faults.named(Name::ChildrenDrift).map(Fault::keys::<ChildrenDriftKeys>);
    let meant = drifts.filter(|keys| scenario.subject.children.meant(keys.children.as_deref()) == Some(kind));
    meant.filter_map(|keys| keys.edit).collect()
}

/// Name and API path of the first resource of the churn, or of the script if there is no churn.
pub(super) fn churned(scenario: &Scenario) -> Option<(String, String)> {
    all_churned(scenario).into_iter().next()
}

/// All churned resources, spelled as in scenarios.
pub(super) fn all_spelled(scenario: &Scenario) -> Vec<String> {
    let script = scenario.script.iter().map(|script| &script.resource).filter(|_| scenario.churn.is_empty());
    scenario.churn.iter().map(|churn| &churn.resource).chain(script).cloned().collect()
}

/// All resources of the churn, or of the script if there is no churn.
pub(super) fn all_churned(scenario: &Scenario) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for spelled in all_spelled(scenario) {
        if let (Some((name, _)), Some(path)) =
            (loadgen::churn::names(&spelled), loadgen::churn::collection_path(&spelled))
            && all.iter().all(|(known, _)| *known != name)
        {
            all.push((name, path));
        }
    }
    all
}

/// Whether reading the states again cannot change the result.
pub(super) fn is_settled(state: &EndState) -> bool {
    let left = state.left.as_ref().is_some_and(|left| left.objects > 0);
    let children = state.all_children().all(|children| children.unread.is_none() && children.problems() == 0);
    state.agrees == Some(true) && !left && children
}

fn take(state: &mut EndState, items: &[Item], read: &Read) {
    match read {
        // A checksum alone equals that of an earlier list, or comes from a page without all objects.
        Read::Checksum(objects, sum) => {
            state.believed = Some(*objects);
            state.agrees = Some(*sum == page::checksum(items));
        }
        Read::Objects(believed) => {
            state.believed = Some(believed.len() as u64);
            (state.differences, state.examples) = compare::compare(items, believed);
            state.agrees = Some(state.differences == reports::record::Differences::default());
        }
    }
}

fn believed(told: Known) -> Believed {
    Believed {
        namespace: told.namespace,
        name: told.name,
        uid: told.uid.to_string(),
        revision: told.revision.map(|revision| revision.to_string()),
    }
}

/// Counts the objects of the churn that still exist in the list.
fn left(items: &[Item]) -> Left {
    let churned = |item: &&Item| item.object["metadata"]["labels"].get(CHURN_LABEL).is_some_and(Value::is_string);
    let all: Vec<&Item> = items.iter().filter(churned).collect();
    Left { objects: all.len() as u64, examples: all.iter().take(EXAMPLES_MAX).map(|item| item.place()).collect() }
}
