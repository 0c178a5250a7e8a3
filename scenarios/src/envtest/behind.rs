//! Finds writes that were based on stale caches: the writing client had not yet received earlier commits. Does no I/O.
//!
//! Gives the result of `--stale`: either the suite is safe if caches lag by this many versions, or a certain cache was
//! stale at a certain write. The server knows which events it has sent, and so which versions a cache cannot have. A
//! write that the server refused did no harm.

use std::collections::{BTreeMap, HashMap};

use mock_envtest::{CommitLine, Manager, RequestLine, ShownBy, ShownLine};
use serde::Serialize;

use super::hot::is_of;
use super::planes::{Plane, ResourcePath};

/// Age in µs below which a version may still be in transit to each client, also without faults.
const ON_ITS_WAY_US: u64 = 5_000;
/// Maximum number of missing versions counted for one write.
const VERSIONS_MAX: usize = 64;
/// Maximum number of suspect writes kept: the most probably harmful writes first.
const SUSPECTS_MAX: usize = 200;
/// Number and alphabet of the characters that a server appends to `generateName`.
const GENERATED: (usize, &str) = (5, "bcdfghjklmnpqrstvwxz2456789");

/// Writes of clients with caches, and the versions that their caches lacked.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Behind {
    pub writes: u64,
    /// Number of writes while a cache was stale, by the number of missing versions.
    pub late_by: BTreeMap<usize, u64>,
    /// Writes that may have done harm, the most probably harmful first.
    pub suspects: Vec<Suspect>,
}

/// A write that was based on a stale read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Suspect {
    pub at_us: u64,
    /// Verb and object, such as `create secrets default/child-x7k2p`.
    pub write: String,
    /// The user agent of the client that wrote.
    pub client: String,
    /// Whether the client is known to be the manager.
    pub is_managers: bool,
    /// The kind whose cache was stale, and the watch that feeds this cache.
    pub cache: String,
    pub watch: u64,
    /// The number of versions that the cache lacked.
    pub versions: usize,
    /// The object of which the cache lacked a version: `secrets default/child-9fj2w`.
    pub unseen: String,
    /// The change that the cache lacked: `added`, `modified` or `deleted`.
    pub change: String,
    pub revision: u64,
    /// Age of the missing version at the time of the write.
    pub age_us: u64,
    /// Whether the client itself had written the missing version.
    pub was_own: bool,
    pub weight: Weight,
}

/// How probably a write was wrong because its client lacked a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Weight {
    /// The cache lacked a version of another kind than the written object.
    Elsewhere,
    /// The missing version is of the same kind and namespace, and the client itself had written it.
    Beside,
    /// The missing version is of the written object, or of an object with a generated name for the same purpose.
    Same,
}

/// The versions in a client's cache of one kind.
#[derive(Debug, Clone, Copy)]
struct Cache {
    through: u64,
    watch: u64,
    alive: bool,
}

type Client<'a> = (&'a str, &'a str);
type Key<'a> = (Client<'a>, &'a str, Option<&'a str>);

enum Moment<'a> {
    Commit(&'a CommitLine),
    Shown(&'a ShownLine),
    Write(&'a RequestLine),
}

impl Behind {
    /// Adds the writes in the traffic of one control plane.
    pub fn add(&mut self, plane: &Plane, manager: &Manager) {
        let wrote: HashMap<u64, Client<'_>> = plane
            .requests
            .iter()
            .filter(|one| one.method != "GET")
            .filter_map(|one| Some((one.revision?, client(one))))
            .collect();
        let made: HashMap<u64, &CommitLine> = plane.commits.iter().map(|commit| (commit.revision, commit)).collect();
        let mut walk = Walk { caches: BTreeMap::new(), commits: BTreeMap::new(), wrote, made };
        for moment in moments(plane, manager) {
            match moment {
                Moment::Commit(commit) => walk.commits.entry(&commit.resource).or_default().push(commit),
                Moment::Shown(shown) => walk.show(shown),
                Moment::Write(write) => self.write(&walk, write, manager),
            }
        }
        self.suspects.sort_by_key(|suspect| (std::cmp::Reverse(suspect.weight), suspect.at_us));
        self.suspects.truncate(SUSPECTS_MAX);
    }

    /// Adds the counts of another run of the suite.
    pub fn merge(&mut self, other: &Self) {
        self.writes += other.writes;
        for (versions, times) in &other.late_by {
            *self.late_by.entry(*versions).or_default() += times;
        }
    }

    /// The sentence for the case that all runs passed with caches up to `wanted` versions behind.
    pub fn proven(&self, wanted: u64, runs: u64) -> String {
        let times: u64 = self.late_by.values().sum();
        let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        let Some((most, _)) = self.late_by.last_key_value() else {
            return format!(
                "safety with a stale cache is not decided: none of the suite's {} writes in {runs} came while a cache was behind",
                self.writes
            );
        };
        let most = u64::try_from(*most).unwrap_or(u64::MAX).min(wanted);
        let versions = |number: u64| if number == 1 { "1 version".to_owned() } else { format!("{number} versions") };
        let mut text = format!(
            "safe with a cache {} behind: {times} of {} writes in {runs} came while a cache was behind, and every run passed",
            versions(most),
            self.writes
        );
        if most < wanted {
            text.push_str("; no write came while one was ");
            text.push_str(&versions(wanted));
            text.push_str(" behind");
        }
        text
    }

    /// The write in this interval of time that most probably did harm.
    pub fn culprit(&self, from_us: u64, to_us: u64) -> Option<&Suspect> {
        let suspects = self.suspects.iter().filter(|one| (from_us..=to_us).contains(&one.at_us));
        // If the client may be the test itself, only a write that cannot be intended is reported.
        suspects
            .filter(|one| one.weight == Weight::Same || one.is_managers)
            .max_by_key(|one| (one.weight, std::cmp::Reverse(one.at_us)))
    }

    fn write(&mut self, walk: &Walk<'_>, write: &RequestLine, manager: &Manager) {
        let Some(place) = ResourcePath::of(&write.path) else { return };
        let who = client(write);
        let mut caches = walk.caches.iter().filter(|((client, ..), cache)| *client == who && cache.alive).peekable();
        if caches.peek().is_none() {
            return;
        }
        self.writes += 1;
        let made = write.revision.and_then(|revision| walk.made.get(&revision).copied());
        let (mut most, mut worst) = (0, None);
        for ((_, resource, namespace), cache) in caches {
            let unseen = walk.unseen(resource, *namespace, cache.through, write.at_us);
            most = most.max(unseen.len());
            for commit in &unseen {
                let was_own = walk.wrote.get(&commit.revision) == Some(&who);
                let Some(weight) = weight(write, &place, made, commit, was_own) else { continue };
                let is_worse = worst.as_ref().is_none_or(|(known, ..): &(Weight, _, _, _, _)| weight > *known);
                if is_worse {
                    worst = Some((weight, *commit, *cache, unseen.len(), was_own));
                }
            }
        }
        if most > 0 {
            *self.late_by.entry(most).or_default() += 1;
        }
        let Some((weight, commit, cache, versions, was_own)) = worst.filter(|_| write.status < 400) else { return };
        if self.suspects.len() >= SUSPECTS_MAX * 4 {
            self.suspects.sort_by_key(|suspect| (std::cmp::Reverse(suspect.weight), suspect.at_us));
            self.suspects.truncate(SUSPECTS_MAX);
        }
        self.suspects.push(Suspect {
            at_us: write.at_us,
            write: named(write, &place, made),
            client: write.user_agent.clone(),
            is_managers: manager.is_known(),
            cache: commit.resource.clone(),
            watch: cache.watch,
            versions,
            unseen: object(commit),
            change: commit.change.clone(),
            revision: commit.revision,
            age_us: write.at_us.saturating_sub(commit.at_us),
            was_own,
            weight,
        });
    }
}

impl Suspect {
    /// A sentence that names the stale read and the write that was based on it.
    pub fn sentence(&self) -> String {
        let versions = if self.versions == 1 { "1 version".to_owned() } else { format!("{} versions", self.versions) };
        let by = if self.was_own { ", by itself" } else { "" };
        format!(
            "the write `{}` by `{}` was based on a read {versions} behind: its cache of {} did not have `{}` yet ({} at revision {}, {} \
             ms before{by})",
            self.write,
            self.client,
            self.cache,
            self.unseen,
            self.change,
            self.revision,
            self.age_us / 1000,
        )
    }
}

struct Walk<'a> {
    caches: BTreeMap<Key<'a>, Cache>,
    commits: BTreeMap<&'a str, Vec<&'a CommitLine>>,
    wrote: HashMap<u64, Client<'a>>,
    made: HashMap<u64, &'a CommitLine>,
}

impl<'a> Walk<'a> {
    fn show(&mut self, shown: &'a ShownLine) {
        let key =
            ((shown.user.as_str(), shown.user_agent.as_str()), shown.resource.as_str(), shown.namespace.as_deref());
        let (through, watch) = (shown.through, shown.watch);
        let cache = self.caches.entry(key).or_insert(Cache { through: 0, watch, alive: false });
        match shown.by {
            ShownBy::Begun | ShownBy::Snapshot => *cache = Cache { through, watch, alive: true },
            ShownBy::Event => cache.through = cache.through.max(through),
            ShownBy::Left if cache.watch == watch => cache.alive = false,
            // The watch resumes or lists again, or another watch has replaced it.
            ShownBy::Ended | ShownBy::Left => {}
        }
    }

    /// The versions after revision `through` that a cache has not received, the newest first.
    fn unseen(&self, resource: &str, namespace: Option<&str>, through: u64, now_us: u64) -> Vec<&'a CommitLine> {
        let all = self.commits.get(resource).map(Vec::as_slice).unwrap_or_default();
        let newer = all.iter().rev().take_while(|commit| commit.revision > through);
        let old_enough = newer.filter(|commit| commit.at_us + ON_ITS_WAY_US <= now_us);
        let within = old_enough.filter(|commit| namespace.is_none_or(|namespace| namespace == commit.namespace));
        within.take(VERSIONS_MAX).copied().collect()
    }
}

/// All events of a control plane in the order of time. A version that was sent at the time of a write counts as known.
fn moments<'a>(plane: &'a Plane, manager: &Manager) -> Vec<Moment<'a>> {
    let writes = plane.requests.iter().filter(|request| {
        matches!(request.method.as_str(), "POST" | "PUT" | "PATCH" | "DELETE")
            && !request.query.contains("dryRun")
            && is_of(manager, request)
    });
    let commits = plane.commits.iter().map(|commit| (commit.at_us, 0, Moment::Commit(commit)));
    let shown = plane.shown.iter().map(|shown| (shown.at_us, 1, Moment::Shown(shown)));
    let writes = writes.map(|write| (write.at_us, 2, Moment::Write(write)));
    let mut all: Vec<(u64, u8, Moment<'a>)> = commits.chain(shown).chain(writes).collect();
    all.sort_by_key(|(at_us, order, _)| (*at_us, *order));
    all.into_iter().map(|(_, _, moment)| moment).collect()
}

/// How probably a write was wrong because its client lacked the version `unseen`; `None` if write and version are
/// unrelated.
fn weight(
    write: &RequestLine,
    place: &ResourcePath<'_>,
    made: Option<&CommitLine>,
    unseen: &CommitLine,
    was_own: bool,
) -> Option<Weight> {
    let (namespace, name) = match made {
        Some(made) => (made.namespace.as_str(), Some(made.name.as_str())),
        None => (place.namespace.unwrap_or_default(), place.name),
    };
    if !unseen.namespace.is_empty() && !namespace.is_empty() && unseen.namespace != namespace {
        return None;
    }
    if !place.is_of(&unseen.resource) {
        return Some(Weight::Elsewhere);
    }
    let makes = write.method == "POST";
    let is_same = name.is_some_and(|name| if makes { are_siblings(name, &unseen.name) } else { name == unseen.name });
    Some(match () {
        () if is_same => Weight::Same,
        () if was_own && (makes || write.method == "DELETE") => Weight::Beside,
        () => Weight::Elsewhere,
    })
}

/// Whether a server may have generated both names from the same prefix.
fn are_siblings(one: &str, other: &str) -> bool {
    let prefix = |name: &str| -> Option<String> {
        let at = name.len().checked_sub(GENERATED.0).filter(|at| *at > 0 && name.is_char_boundary(*at))?;
        let (prefix, letters) = name.split_at(at);
        letters.chars().all(|letter| GENERATED.1.contains(letter)).then(|| prefix.to_owned())
    };
    one != other && prefix(one).is_some_and(|prefix_of_one| prefix(other) == Some(prefix_of_one))
}

fn named(write: &RequestLine, place: &ResourcePath<'_>, made: Option<&CommitLine>) -> String {
    let verb = match write.method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        _ => "delete",
    };
    let of_path = || {
        let parts: Vec<&str> = place.namespace.into_iter().chain(place.name).collect();
        format!("{} {}", place.resource(), parts.join("/")).trim_end().to_owned()
    };
    let object = made.map_or_else(of_path, object);
    format!("{verb} {object}")
}

fn object(commit: &CommitLine) -> String {
    let slash = if commit.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", commit.resource, commit.namespace, commit.name)
}

fn client(request: &RequestLine) -> Client<'_> {
    (&request.user, &request.user_agent)
}

#[cfg(test)]
mod tests;
