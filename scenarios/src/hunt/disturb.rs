//! The disturbances of a hunt: each is one or two ordinary faults, bound to a point of the subject.
//!
//! Owns the table of disturbances, with the real situation behind each. A disturbance never makes an API server do
//! anything that a real one cannot do. Does no I/O.

use serde_json::{Value, json};

use super::children::Child;
use super::points::Signature;
use super::rows::RowId;

/// How long events or requests are held, in milliseconds: longer than a reconcile and its first retries.
pub(crate) const HOLD_MS: u64 = 2000;
/// How late one answer is, in milliseconds: later than the event of the same write.
pub(crate) const LATE_MS: u64 = 700;
/// How late the answers are that outlive an object, in milliseconds: the shortest life of an object in the operations is
/// shorter.
const OUTLIVES_MS: u64 = 5000;
/// How long requests begin whose answers outlive an object, in milliseconds: all such answers arrive before the quiet.
const OUTLIVING_FOR: &str = "1500ms";
/// The age of an old state, in milliseconds.
const AGE_MS: u64 = 1500;
/// The verbs that an API server may answer from its cache. It reads a single object from etcd.
const OF_CACHE: [&str; 2] = ["list", "watch"];
/// The resource of the objects with which replicas elect a leader.
pub(crate) const LEASES: &str = "leases.coordination.k8s.io";

/// A kind of disturbance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Events of the written resource arrive late, others on time.
    HoldOwn,
    /// Events of another watched resource arrive late.
    HoldOther(String),
    /// The stream of the written resource is cut; the next list shows only the last state.
    Hide,
    /// The history of the written resource is compacted, so the client lists again and sees every object again.
    Replay,
    /// A custom resource is not served for a while.
    Absent(String),
    /// A relist is answered from an older state.
    OldList(String),
    /// The write is stored, and a reset arrives instead of the answer.
    LoseAnswer,
    /// The write is stored, and 504 arrives instead of the answer.
    AnswerTimeout,
    /// The event of a write arrives before its answer.
    EventFirst,
    /// The answers to creations arrive so late that an object may be gone again.
    Outlived,
    /// The write is refused once with a conflict.
    Conflict,
    /// The write is refused once with an error of the server.
    ServerError,
    /// All such writes are refused for a while with a conflict.
    Conflicts,
    /// All such writes are refused for a while with an error of the server.
    ServerErrors,
    /// All answers to such writes are slow.
    Slow,
    /// Somebody else deletes the children.
    ChildGone(Child),
    /// Somebody else edits the children.
    ChildEdited(Child),
    /// The Lease cannot be renewed for so many milliseconds, so the leader loses it.
    LeaseLost(u64),
    /// The process is killed after the write and starts again.
    Kill,
    /// One of several processes is killed after the write and starts again.
    KillOne(String),
    /// The process is killed after the write, and its first lists are older than what it had seen.
    KillOld,
    /// An hour of its own clock passes at once.
    Time,
    /// A disturbance of a watch client, at a known time.
    Watch(RowId),
}

/// The abilities of a run, and the length of a hold in milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Fits {
    /// Whether the run can kill the subject and start it again.
    pub(crate) kills: bool,
    /// Whether the subject's clock may jump.
    pub(crate) clock: bool,
    /// Whether the subject's requests are known, so that they can be disturbed as well as watches.
    pub(crate) requests: bool,
    pub(crate) hold_ms: u64,
    /// The children that somebody else may delete or edit.
    pub(crate) children: Vec<Child>,
    /// The time after which a leader that cannot renew its Lease has lost it, in milliseconds; `None` if the subject has no
    /// Lease, or if this takes too long.
    pub(crate) lease_ms: Option<u64>,
    /// The names of the subject's processes, if there are several.
    pub(crate) processes: Vec<String>,
}

/// A disturbance at one occurrence of a point.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Disturbance {
    pub(crate) kind: Kind,
    pub(crate) point: Signature,
    pub(crate) occurrence: u64,
    /// How long the disturbance lasts, in milliseconds.
    pub(crate) lasts_ms: u64,
}

impl Kind {
    /// The name of the disturbance in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::HoldOwn => "hold the written kind",
            Self::HoldOther(_) => "hold another kind",
            Self::Hide => "hide a state",
            Self::Replay => "replay",
            Self::Absent(_) => "absent API",
            Self::OldList(_) => "list an older state",
            Self::LoseAnswer => "lose an answer",
            Self::AnswerTimeout => "time out after the commit",
            Self::EventFirst => "event before answer",
            Self::Outlived => "life before answer",
            Self::Conflict => "conflict",
            Self::ServerError => "error of the server",
            Self::Conflicts => "conflicts for a while",
            Self::ServerErrors => "errors of the server for a while",
            Self::Slow => "slow answers",
            Self::ChildGone(_) => "delete children",
            Self::ChildEdited(_) => "edit children",
            Self::LeaseLost(_) => "lose the Lease",
            Self::Kill => "stop after a write",
            Self::KillOne(_) => "stop one process",
            Self::KillOld => "go back in time",
            Self::Time => "time",
            Self::Watch(id) => id.name(),
        }
    }

    /// The kinds that fit a point, for a subject that watches these resources.
    pub(crate) fn fitting(point: &Signature, watched: &[String], fits: &Fits) -> Vec<Self> {
        let Fits { kills, clock, requests, .. } = *fits;
        let is_watched = watched.contains(&point.resource);
        let mut kinds = Vec::new();
        if is_watched {
            let old = Self::OldList(point.resource.clone());
            kinds.extend([Self::HoldOwn, Self::Hide, Self::Replay, Self::EventFirst, old]);
            if point.verb == "create" {
                kinds.push(Self::Outlived);
            }
        }
        kinds.extend([Self::LoseAnswer, Self::AnswerTimeout, Self::ServerError, Self::ServerErrors, Self::Slow]);
        if matches!(point.verb.as_str(), "update" | "patch") {
            kinds.extend([Self::Conflict, Self::Conflicts]);
        }
        kinds.extend(watched.iter().filter(|other| **other != point.resource).cloned().map(Self::HoldOther));
        kinds.extend(watched.iter().filter(|other| is_custom(other)).cloned().map(Self::Absent));
        if kills {
            kinds.extend([Self::Kill, Self::KillOld]);
            kinds.extend(fits.processes.iter().cloned().map(Self::KillOne));
        }
        if clock {
            kinds.push(Self::Time);
        }
        for child in fits.children.iter().filter(|child| child.created_by == *point) {
            kinds.push(Self::ChildGone(child.clone()));
            kinds.extend(child.edit.is_some().then(|| Self::ChildEdited(child.clone())));
        }
        kinds.extend(fits.lease_ms.filter(|_| kills).map(Self::LeaseLost));
        kinds.retain(|kind| requests || matches!(kind, Self::HoldOwn | Self::HoldOther(_) | Self::Replay));
        kinds
    }

    /// Default length, in milliseconds.
    pub(crate) fn usual_ms(&self) -> u64 {
        match self {
            Self::EventFirst => LATE_MS,
            Self::Outlived => OUTLIVES_MS,
            _ => HOLD_MS,
        }
    }

    /// Whether another length makes another disturbance.
    pub(crate) fn has_length(&self) -> bool {
        matches!(
            self,
            Self::HoldOwn
                | Self::HoldOther(_)
                | Self::Hide
                | Self::Absent(_)
                | Self::OldList(_)
                | Self::Conflicts
                | Self::ServerErrors
                | Self::Slow
                | Self::EventFirst
                | Self::Outlived
        )
    }

    /// Whether a correct subject makes or deletes further objects: it acts on an old state, or makes a deleted child
    /// again. Then only the end counts.
    pub(crate) fn is_judged_by_end(&self) -> bool {
        matches!(self, Self::KillOld | Self::OldList(_) | Self::ChildGone(_) | Self::ChildEdited(_))
    }

    /// Whether the disturbance is at the last such write of a play: a later write of the same kind would hide that the
    /// subject gave up.
    pub(crate) fn is_at_last(&self) -> bool {
        matches!(self, Self::Conflicts | Self::ServerErrors)
    }

    /// Whether the length of a hold is the length of the disturbance. Refusals are not held longer by a faster clock: a
    /// subject that waits longer after each refusal would only need more time.
    pub(crate) fn is_hold(&self) -> bool {
        matches!(self, Self::HoldOwn | Self::HoldOther(_))
    }

    /// The row in the tables of watch clients.
    pub(crate) fn row(&self) -> Option<RowId> {
        match self {
            Self::Watch(id) => Some(*id),
            _ => None,
        }
    }

    /// The children that the disturbance changes.
    pub(crate) fn child(&self) -> Option<&Child> {
        match self {
            Self::ChildGone(child) | Self::ChildEdited(child) => Some(child),
            _ => None,
        }
    }

    /// Number of processes that the disturbance ends, for a subject with so many processes.
    pub(crate) fn ends(&self, processes: usize) -> usize {
        match self {
            Self::Kill | Self::KillOld | Self::LeaseLost(_) => processes,
            Self::KillOne(_) => 1,
            _ => 0,
        }
    }
}

impl Disturbance {
    /// The faults of the disturbance, as a scenario writes them.
    pub(crate) fn faults(&self) -> Vec<Value> {
        let Self { kind, point, occurrence, lasts_ms } = self;
        let (before, after) = (point.trigger(*occurrence, "before"), point.trigger(*occurrence, "after"));
        let lasts = format!("{lasts_ms}ms");
        let (resource, verb) = (&point.resource, &point.verb);
        let hold = |resource: &str| json!({"name": "silent-watch", "resource": resource, "newStreams": "silent", "heals": true, "for": lasts, "when": before});
        let refused = |status: u16| json!({"name": "http-error", "resource": resource, "on": verb, "status": status, "count": 1, "when": before});
        let old = |resource: &str| json!({"name": "stale-view", "resource": resource, "on": OF_CACHE, "cached": true, "age": format!("{AGE_MS}ms"), "for": lasts, "when": after});
        let refused_for = |status: u16| {
            json!({
                "name": "http-error", "resource": resource, "on": verb, "status": status, "for": lasts, "when": before
            })
        };
        let kill = || json!({"name": "process-kill", "when": after});
        match kind {
            Kind::HoldOwn => vec![hold(resource)],
            Kind::HoldOther(other) => vec![hold(other)],
            Kind::Hide => vec![
                json!({"name": "http-error", "resource": resource, "on": ["list", "watch"], "status": 503, "for": lasts, "when": before}),
                json!({"name": "watch-410", "resource": resource, "form": "stream", "when": before}),
            ],
            Kind::Replay => {
                vec![json!({"name": "watch-410", "resource": resource, "form": "stream", "when": after})]
            }
            Kind::Absent(other) => vec![
                json!({"name": "http-error", "resource": other, "on": ["list", "watch"], "status": 404, "body": "text", "for": lasts, "when": before}),
                json!({"name": "watch-end", "resource": other, "when": before}),
            ],
            Kind::OldList(other) => {
                vec![old(other), json!({"name": "watch-410", "resource": other, "form": "stream", "when": after})]
            }
            Kind::LoseAnswer => {
                vec![json!({"name": "answer-lost", "resource": resource, "on": verb, "count": 1, "when": before})]
            }
            Kind::AnswerTimeout => vec![
                json!({"name": "answer-lost", "resource": resource, "on": verb, "count": 1, "status": 504, "when": before}),
            ],
            Kind::EventFirst => vec![
                json!({"name": "delay-answer", "resource": resource, "on": verb, "delay": lasts, "count": 1, "when": before}),
            ],
            Kind::Outlived => vec![
                json!({"name": "delay-answer", "resource": resource, "on": verb, "delay": lasts, "for": OUTLIVING_FOR, "when": before}),
            ],
            Kind::Conflict => vec![refused(409)],
            Kind::ServerError => vec![refused(500)],
            Kind::Conflicts => vec![refused_for(409)],
            Kind::ServerErrors => vec![refused_for(500)],
            Kind::ChildGone(child) => vec![child.fault(None)],
            Kind::ChildEdited(child) => vec![child.fault(child.edit.as_deref())],
            Kind::LeaseLost(ms) => vec![
                json!({"name": "http-error", "resource": LEASES, "on": ["update", "patch"], "status": 500, "for": format!("{ms}ms"), "when": after}),
            ],
            Kind::Slow => vec![
                json!({"name": "delay-answer", "resource": resource, "on": verb, "delay": "300ms", "for": lasts, "when": before}),
            ],
            Kind::Kill => vec![kill()],
            Kind::KillOne(process) => vec![json!({"name": "process-kill", "process": process, "when": after})],
            Kind::KillOld => {
                let mut old =
                    json!({"name": "stale-view", "connections": "new", "on": OF_CACHE, "cached": true, "for": lasts});
                old["age"] = format!("{AGE_MS}ms").into();
                old["when"] = after.clone();
                vec![old, kill()]
            }
            Kind::Time => vec![json!({"name": "clock-jump", "ahead": "1h", "of": "all", "when": after})],
            Kind::Watch(id) => id.faults(resource, *lasts_ms),
        }
    }

    /// The disturbance as a sentence, with the real situation that makes it.
    pub(crate) fn describe(&self) -> String {
        let Self { kind, point, occurrence, lasts_ms } = self;
        let nth = mock_faults::Every(*occurrence);
        let at = format!("the {nth} {}", point.describe());
        let first = format!("The {nth} {}", point.describe());
        let plural = |resource: &str| resource.split('.').next().unwrap_or_default().to_owned();
        let own = plural(&point.resource);
        let ms = lasts_ms;
        match kind {
            Kind::HoldOwn => format!("Before {at}, events of {own} are held for {ms} ms: a slow watch."),
            Kind::HoldOther(other) => {
                format!("Before {at}, events of {} are held for {ms} ms: a slow watch.", plural(other))
            }
            Kind::Hide => {
                format!("Before {at}, {own} cannot be listed or watched for {ms} ms: an API server restarts.")
            }
            Kind::Replay => format!("After {at}, {own} are listed again: the API server has compacted its history."),
            Kind::Absent(other) => {
                format!("Before {at}, {} are not served for {ms} ms: an API server that starts.", plural(other))
            }
            Kind::OldList(other) => format!(
                "After {at}, {} are listed and watched from a state {AGE_MS} ms old for {ms} ms: an API server that lags.",
                plural(other)
            ),
            Kind::LoseAnswer => format!("The connection breaks after {at} is stored: a network failure."),
            Kind::AnswerTimeout => format!("{first} is stored, and the answer is 504: a slow etcd."),
            Kind::EventFirst => format!("The answer to {at} arrives {ms} ms after its event: a slow connection."),
            Kind::Outlived => {
                format!("From {at} on, such answers arrive {ms} ms after the event: a connection that loses packets.")
            }
            Kind::Conflict => format!("{first} is refused once with 409: another writer was faster."),
            Kind::ServerError => format!("{first} is refused once with 500: etcd changes its leader."),
            Kind::Conflicts => {
                format!("From {at} on, such writes are refused with 409 for {ms} ms: other writers are faster.")
            }
            Kind::ServerErrors => {
                format!("From {at} on, such writes are refused with 500 for {ms} ms: etcd has no leader.")
            }
            Kind::ChildGone(child) => {
                format!("After the last operation, all {} are deleted: a user with kubectl.", child.plural())
            }
            Kind::ChildEdited(child) => {
                let edit = child.edit.as_deref().unwrap_or_default();
                format!("After the last operation, all {} are edited ({edit}): a user with kubectl.", child.plural())
            }
            Kind::LeaseLost(ms) => {
                format!("After {at}, Leases cannot be renewed for {ms} ms: the leader loses its Lease.")
            }
            Kind::Slow => format!("From {at} on, such answers take 300 ms for {ms} ms: a busy API server."),
            Kind::Kill => format!("The process is killed after {at} and starts again: out of memory."),
            Kind::KillOne(process) => {
                format!("The process `{process}` is killed after {at} and starts again: a leader is lost.")
            }
            Kind::KillOld => format!(
                "The process is killed after {at} and starts again; for {ms} ms it reads a state {AGE_MS} ms old: an API server that lags."
            ),
            Kind::Time => format!("After {at}, an hour of the program's clock passes at once: a suspended machine."),
            Kind::Watch(id) => id.describe(&point.resource),
        }
    }
}

/// Whether a resource probably comes from a definition. The groups of Kubernetes itself have no dot or end with `k8s.io`.
fn is_custom(resource: &str) -> bool {
    let group = resource.split_once('.').map_or("", |(_, group)| group);
    group.contains('.') && !group.ends_with("k8s.io")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn fits() -> Fits {
        let processes = vec!["a".to_owned(), "b".to_owned()];
        let children = vec![child()];
        Fits { kills: true, clock: true, requests: true, hold_ms: HOLD_MS, children, lease_ms: Some(1500), processes }
    }

    pub(crate) fn point(verb: &str, resource: &str) -> Signature {
        Signature { verb: verb.to_owned(), resource: resource.to_owned(), ..Signature::default() }
    }

    pub(crate) fn child() -> Child {
        let edit = Some(r#"{"spec":{"nodeName":"x"}}"#.to_owned());
        let created_by = point("create", "pods");
        Child { spelled: "pods/v1".to_owned(), created_by, each: 2, edit, later_ms: 3800 }
    }

    pub(crate) fn at(kind: Kind, verb: &str) -> Disturbance {
        let lasts_ms = kind.usual_ms();
        Disturbance { kind, point: point(verb, "pods"), occurrence: 1, lasts_ms }
    }

    /// Every fault of every disturbance is a valid fault of the catalogue that waits for the point.
    #[test]
    fn disturbances_are_faults_of_the_catalogue() {
        let watched = ["pods".to_owned(), "caches.example.com".to_owned()];
        for verb in ["create", "update", "patch", "delete"] {
            let kinds = Kind::fitting(&point(verb, "pods"), &watched, &fits());
            assert!(kinds.len() >= 14, "{}", kinds.len());
            for kind in kinds {
                let disturbance = at(kind, verb);
                assert!(disturbance.describe().ends_with('.'));
                for fault in disturbance.faults() {
                    let read: mock_faults::Fault = serde_json::from_value(fault.clone()).unwrap();
                    read.check().unwrap_or_else(|error| panic!("{fault}: {error}"));
                    assert!(read.when.unwrap().write.is_some(), "{fault}");
                }
            }
        }
    }

    /// The kinds of Kubernetes itself are always served.
    #[test]
    fn only_custom_resources_can_be_absent() {
        assert!(is_custom("caches.cache.example.com"));
        let own = ["pods", "deployments.apps", "leases.coordination.k8s.io", "jobs.batch"];
        assert!(!own.into_iter().any(is_custom));
    }

    #[test]
    fn only_what_can_be_seen_is_held() {
        let weak = Fits { kills: false, clock: false, children: Vec::new(), ..fits() };
        let kinds = Kind::fitting(&point("create", "pods"), &[], &weak);
        let all = [Kind::LoseAnswer, Kind::AnswerTimeout, Kind::ServerError, Kind::ServerErrors, Kind::Slow];
        assert_eq!(kinds, all);
        let watched = ["pods".to_owned(), "caches.example.com".to_owned()];
        let watches = Kind::fitting(&point("create", "pods"), &watched, &Fits { requests: false, ..fits() });
        assert_eq!(watches, [Kind::HoldOwn, Kind::Replay, Kind::HoldOther("caches.example.com".to_owned())]);
    }
}
