//! The table of plants: every planted bug of the service, the stage that it is played in, and the judge that must catch it.
//!
//! Owns what is expected. A new `Bug` of the service is one row here; a test compares the two lists.

/// What must become of a plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Its own judge fires, and no other.
    Caught {
        /// The budget, such as `memory.growthPerObject`.
        judge: &'static str,
        /// Budgets that see the same mistake, so that they may fire with it.
        also: &'static [&'static str],
    },
    /// It only looks like a bug: no judge fires; a judge of growth may leave it undecided.
    LooksAlike,
    /// Nothing sees it yet: it is played for the other judges, none of which may fire.
    Waits {
        /// The judge that it waits for.
        what_for: &'static str,
    },
}

/// A planted bug in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plant {
    /// As `--plant` names it.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// The scenario that it is played in.
    pub stage: &'static str,
    /// What must become of it.
    pub expected: Expected,
    /// Whether it is played with `--long` only.
    pub long: bool,
}

/// The plant that must fail before anything else is believed.
pub const CANARY: &str = "missed-delete";

/// The same of gates: three tenths more processor time.
pub const GATE_CANARY: &str = "slower-by-30-percent";

/// Seconds: what breaks a promise at once.
const QUICK: &str = "calibrate-quick";
/// Less than a minute: children that drift.
const CHILDREN: &str = "children-drift";
/// Half a minute: an API over Deployments that does wrong.
const REPLICAS: &str = "calibrate-replicas";
/// Half a minute: images that must not run, by their signatures.
const VERIFY: &str = "calibrate-verify";
/// Seconds: who is told of decisions, and images that are locked.
const ALERTS: &str = "calibrate-alerts";
/// Seconds: a shared cache that lies.
const SHARED_CACHE: &str = "calibrate-shared-cache";
/// Half a minute: events told by filters.
const WATCHER: &str = "watcher";
/// Half a minute: validators that are replaced.
const VALIDATORS: &str = "validator-restart";
/// Half a minute: validators that are late.
const LATE: &str = "validator-slow";
/// Attacks: bodies, images and signatures.
const HOSTILE: &str = "calibrate-hostile";
/// Seconds: what is slow.
const LATENCY: &str = "calibrate-latency";
/// What is a little more: two builds side by side.
pub(super) const GATE: &str = "calibrate-gate";
/// The same of a controller that only watches: what is kept of objects.
pub(super) const GATE_OBJECTS: &str = "calibrate-gate-objects";
/// Growth with each review, decided in minutes by their number.
const REVIEWS: &str = "calibrate-reviews";
/// Growth with each object, decided in minutes by their number.
const OBJECTS: &str = "calibrate-objects";
/// The same for objects of which few fill the machine.
const LARGE: &str = "calibrate-large-objects";
/// Growth with time.
const HOURS: &str = "calibrate-hours";
/// What is too small for two minutes.
const SMALL_REVIEWS: &str = "calibrate-reviews-small";
const SMALL_OBJECTS: &str = "calibrate-objects-small";

const fn caught(name: &'static str, about: &'static str, stage: &'static str, judge: &'static str) -> Plant {
    Plant { name, about, stage, expected: Expected::Caught { judge, also: &[] }, long: false }
}

const fn small(name: &'static str, about: &'static str, stage: &'static str, judge: &'static str) -> Plant {
    Plant { long: true, ..caught(name, about, stage, judge) }
}

const fn alike(name: &'static str, about: &'static str, stage: &'static str) -> Plant {
    Plant { name, about, stage, expected: Expected::LooksAlike, long: false }
}

/// Found by a gate: a build with it against the same without. What costs time is seen in all times.
const fn gated(name: &'static str, about: &'static str, judge: &'static str, also: &'static [&'static str]) -> Plant {
    Plant { name, about, stage: GATE, expected: Expected::Caught { judge, also }, long: false }
}

/// Whether a stage is played by gates.
pub(super) fn is_gate(stage: &str) -> bool {
    [GATE, GATE_OBJECTS].contains(&stage)
}

/// A verifier that believes too much.
const fn of_signatures(name: &'static str, about: &'static str) -> Plant {
    caught(name, about, VERIFY, "admission.wrongVerdicts")
}

const CPU: &str = "gate.cpuPerRequest";
const SLOWER: &[&str] = &["gate.p50", "gate.p99", "gate.instructions"];
const MORE: &[&str] = &[CPU, "gate.p50", "gate.p99", "gate.instructions", "gate.allocations", "gate.syscalls"];
/// What is kept adds up from slice to slice.
const KEPT: &[&str] = &["gate.memory", "gate.cpuPerEvent", "gate.instructionsPerEvent", "gate.allocationsPerEvent"];

/// Every plant. The canary is the first.
pub const PLANTS: &[Plant] = &[
    Plant {
        // Who drops a deletion believes in the object for ever. Of an object that changed and went in one gap nothing is told but its deletion,
        // so its last change is missed as well.
        expected: Expected::Caught { judge: "events.ghost", also: &["events.converged", "events.missed"] },
        ..caught(CANARY, "deletions are dropped", QUICK, "")
    },
    caught("wrong-allow", "a review with a failing image is admitted", QUICK, "admission.wrongVerdicts"),
    Plant {
        expected: Expected::Caught {
            judge: "events.missed",
            // Who hears nothing any more hears of no deletion either, and never heals.
            also: &[
                "events.ghost",
                "events.identitySwap",
                "events.heal",
                "events.hotLoop",
                "events.blind",
                "events.converged",
            ],
        },
        ..caught("ignore-410", "resumes from a refused version for ever", QUICK, "")
    },
    caught("duplicate-events", "every tenth event is reported twice", QUICK, "events.duplicate"),
    caught("descriptor-leak", "a file stays open for every 50th review", QUICK, "descriptors.growth"),
    caught("thread-leak", "a thread stays for every 500th review", QUICK, "threads.growth"),
    caught("stale-child", "eight objects of the reported store are never updated", QUICK, "events.converged"),
    caught("no-child-watch", "deleted and edited children are not restored", CHILDREN, "events.restored"),
    Plant {
        // They are stripped of their owner, or the garbage collector would take them.
        expected: Expected::Caught { judge: "events.restored", also: &["children.orphaned"] },
        ..caught("orphaned-child", "children of deleted objects remain", CHILDREN, "")
    },
    caught("old-child", "children are never updated", CHILDREN, "events.restored"),
    caught(
        "serves-stale-after-relist",
        "after a relist the API reports the state before it",
        REPLICAS,
        "api.staleness",
    ),
    caught("accepts-revoked", "the list of revoked certificates is ignored", REPLICAS, "api.letIn"),
    caught("lost-update", "every fifth write of a count is confirmed and not made", REPLICAS, "api.lost"),
    caught("slow-after-250-objects", "20 ms slower after 250 objects", LATENCY, "admission.p50"),
    gated("slower-by-5-percent", "the process needs a twentieth more processor time", CPU, SLOWER),
    Plant { long: true, ..gated("slower-by-10-percent", "the process needs a tenth more processor time", CPU, SLOWER) },
    Plant { long: true, ..gated(GATE_CANARY, "the process needs three tenths more processor time", CPU, SLOWER) },
    Plant { long: true, ..gated("answer-1k-longer", "every answer is 1 KiB longer", "gate.answerBytes", MORE) },
    Plant {
        stage: GATE_OBJECTS,
        long: true,
        ..gated("leak-1k-per-object", "1 KiB kept for each object", "gate.growthPerObject", KEPT)
    },
    Plant { long: true, ..gated("two-more-syscalls", "two more system calls for each review", "gate.fileCalls", MORE) },
    caught("leak-1k-per-request", "1 KiB kept for each review", REVIEWS, "memory.growthPerRequest"),
    caught("leak-per-denial", "16 KiB kept for each denied review", REVIEWS, "memory.growthPerRequest"),
    alike("large-cache", "4 KiB kept for each review, up to 32 MiB", REVIEWS),
    caught(
        "outside-the-heap",
        "4 KiB of stack for each review: resident memory outside the heap",
        REVIEWS,
        "memory.growthPerRequest",
    ),
    caught("leak-1k-per-object", "1 KiB kept for each object", OBJECTS, "memory.growthPerObject"),
    caught("leak-per-object", "512 KiB kept for each object", LARGE, "memory.growthPerObject"),
    caught("leak-per-reconnect", "256 KiB kept for each watch", HOURS, "memory.growth"),
    caught("leak-per-relist", "256 KiB kept for each list", HOURS, "memory.growth"),
    alike("saw-tooth", "16 KiB kept for each review, all released at 16 MiB", HOURS),
    alike("step", "32 MiB more from the 5,000th review on", HOURS),
    small("leak-64-per-request", "64 B kept for each review", SMALL_REVIEWS, "memory.growthPerRequest"),
    small("leak-64-per-object", "64 B kept for each object", SMALL_OBJECTS, "memory.growthPerObject"),
    caught("holds-everything", "everything received is kept", HOSTILE, "memory.ceiling"),
    caught("alert-lost", "every tenth alert is not sent", ALERTS, "alerts.lost"),
    caught("alert-twice", "every tenth alert is sent twice", ALERTS, "alerts.twice"),
    caught("alert-on-dry-run", "dry runs are reported too", ALERTS, "alerts.onDryRun"),
    caught("lock-ignored", "the digest lock is ignored", ALERTS, "admission.unlocked"),
    caught("believes-redis", "every answer of the shared cache is trusted", SHARED_CACHE, "admission.wrongVerdicts"),
    Plant {
        // As for the canary; the page of the watch itself knows that they are gone.
        expected: Expected::Caught { judge: "events.ghost", also: &["events.missed"] },
        ..caught("watcher-drops-delete", "deletions match no filter of an action", WATCHER, "")
    },
    caught("asks-one-validator", "only one of several validators is asked", VALIDATORS, "admission.wrongVerdicts"),
    caught("ignores-deadline", "the remaining time of a review is ignored", LATE, "admission.errors"),
    of_signatures("accepts-any-signature", "an image with any signature is verified"),
    of_signatures("ignores-digest-binding", "a signature of another image counts"),
    of_signatures("caches-cannot-tell", "an undecided verification is cached as verified"),
    of_signatures("threshold-counts-twice", "two signatures of one signer count as two signers"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use reports::gate::metric::RULES;

    use super::*;
    use crate::scenario::Source;

    /// The names between the quotation marks of the service's list.
    fn bugs() -> BTreeSet<String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../service/planted/src/lib.rs");
        let source = std::fs::read_to_string(path).unwrap();
        let list = source.split_once("\nbugs! {\n").and_then(|(_, rest)| rest.split_once("\n}\n")).unwrap().0;
        let lines = list.lines().filter(|line| !line.trim_start().starts_with("///"));
        lines.map(|line| line.split('"').nth(1).unwrap().to_owned()).collect()
    }

    #[test]
    fn every_bug_of_the_service_has_a_row() {
        let rows: BTreeSet<String> = PLANTS.iter().map(|plant| plant.name.to_owned()).collect();
        assert_eq!(rows, bugs(), "scenarios/src/calibrate/plants.rs and service/planted/src/lib.rs differ");
        assert_eq!(PLANTS[0].name, CANARY);
    }

    /// A stage that does not set the budget could never catch the plant.
    #[test]
    fn every_stage_judges_what_must_catch() {
        for plant in PLANTS {
            let source = Source::read(plant.stage).unwrap_or_else(|error| panic!("{error}"));
            let Expected::Caught { judge, .. } = plant.expected else { continue };
            let (section, key) = judge.split_once('.').unwrap();
            if section == "gate" {
                assert!(
                    RULES.iter().any(|rule| rule.metric.key() == key),
                    "{}: a gate does not judge {key}",
                    plant.name
                );
                assert!(is_gate(plant.stage), "{} is played by no gate", plant.stage);
                continue;
            }
            let budgets = serde_json::to_value(&source.scenario.budgets).unwrap();
            assert!(!budgets[section][key].is_null(), "{}: {} does not judge {judge}", plant.name, plant.stage);
            let ceiling = &budgets["memory"]["ceiling"];
            let grows = section == "memory" && key != "ceiling";
            assert!(!grows || ceiling.is_null(), "{}: a ceiling could catch what grows", plant.stage);
        }
    }
}
