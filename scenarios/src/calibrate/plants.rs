//! The table of planted bugs of the service, each with its scenario and the judge that must catch it.
//!
//! Owns the result that is expected for each planted bug. A new `Bug` of the service needs one row in this table; a
//! test compares both lists.

/// The result that a planted bug must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The judge for this bug reports the bug, and no other judge reports anything.
    Caught {
        /// The name of the budget, such as `memory.growthPerObject`.
        judge: &'static str,
        /// Other budgets that the same mistake may break.
        also: &'static [&'static str],
    },
    /// A change that only looks like a bug: no judge may report it. For a change that only looks like a bug, a judge of
    /// growth may stay undecided.
    LooksAlike,
    /// A bug that no judge can find yet. The service runs with this bug to check that no judge reports a different bug.
    Waits {
        /// The name of the judge that does not exist yet.
        what_for: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plant {
    pub name: &'static str,
    /// The mistake, in a few words.
    pub about: &'static str,
    pub stage: &'static str,
    pub expected: Expected,
    /// Whether the bug is run only with `--long`.
    pub long: bool,
}

/// The control run: this planted bug must be caught before any other result counts.
pub const CANARY: &str = "missed-delete";

/// The control run of the gates: build B uses 30 percent more processor time than build A.
pub const GATE_CANARY: &str = "slower-by-30-percent";

/// Scenario for bugs that break a budget at once; takes seconds.
const QUICK: &str = "calibrate-quick";
/// Scenario with drift: the harness deletes or edits children; takes less than a minute.
const CHILDREN: &str = "children-drift";
/// Scenario with calls of the service's API that scales Deployments; takes half a minute.
const REPLICAS: &str = "calibrate-replicas";
/// Scenario with images that must be refused for their signatures; takes half a minute.
const VERIFY: &str = "calibrate-verify";
/// Scenario with alerts about decisions, and digest locks of images; takes seconds.
const ALERTS: &str = "calibrate-alerts";
/// Scenario with a shared cache whose content is wrong; takes seconds.
const SHARED_CACHE: &str = "calibrate-shared-cache";
/// Scenario with filtered watch events; takes half a minute.
const WATCHER: &str = "watcher";
/// Scenario in which validators are restarted; takes half a minute.
const VALIDATORS: &str = "validator-restart";
/// Scenario in which validators answer late; takes half a minute.
const LATE: &str = "validator-slow";
/// Scenario with attacks by request bodies, images and signatures.
const HOSTILE: &str = "calibrate-hostile";
/// Scenario with attacks by streams, unread answers, and alerts about many images.
const ATTACKS: &str = "calibrate-attacks";
/// Scenario with attacks by images with more signature bundles than the service reads.
const EVIDENCE: &str = "calibrate-evidence";
/// Scenario for slow answers; takes seconds.
const LATENCY: &str = "calibrate-latency";
/// Scenario for small extra costs, which only a comparison of two builds shows.
pub(super) const GATE: &str = "calibrate-gate";
/// Scenario for memory kept per object in a controller without a webhook, found by a comparison of two builds.
pub(super) const GATE_OBJECTS: &str = "calibrate-gate-objects";
/// Scenario for memory growth with each review. A few minutes of reviews are enough to decide the budget of memory
/// growth.
const REVIEWS: &str = "calibrate-reviews";
/// Scenario for memory growth with each object. A few minutes of new objects are enough to decide the budget of memory
/// growth.
const OBJECTS: &str = "calibrate-objects";
/// Scenario for memory growth with each large object; a few large objects fill the memory of the machine.
const LARGE: &str = "calibrate-large-objects";
/// Scenario for memory growth with time, found within hours.
const HOURS: &str = "calibrate-hours";
/// Scenario for memory growth that is too small to find in two minutes.
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

/// A bug that a gate finds by comparing a build with the bug and a build without the bug. A bug that costs time may
/// change every metric of time.
const fn gated(name: &'static str, about: &'static str, judge: &'static str, also: &'static [&'static str]) -> Plant {
    Plant { name, about, stage: GATE, expected: Expected::Caught { judge, also }, long: false }
}

pub(super) fn is_gate(stage: &str) -> bool {
    [GATE, GATE_OBJECTS].contains(&stage)
}

/// A bug that lifts a limit against attacks. An attack beyond a lifted limit also uses processor time, so reviews may
/// be late.
const fn uncounted(name: &'static str, about: &'static str) -> Plant {
    let expected = Expected::Caught { judge: "memory.ceiling", also: &["admission.errors"] };
    Plant { name, about, stage: ATTACKS, expected, long: false }
}

/// A bug by which the verifier of signatures accepts too much.
const fn of_signatures(name: &'static str, about: &'static str) -> Plant {
    caught(name, about, VERIFY, "admission.wrongVerdicts")
}

const CPU: &str = "gate.cpuPerRequest";
const SLOWER: &[&str] = &["gate.p50", "gate.p99", "gate.instructions"];
const MORE: &[&str] = &[CPU, "gate.p50", "gate.p99", "gate.instructions", "gate.allocations", "gate.syscalls"];
/// Metrics that a leak may change too, because leaked memory adds up over all measurements.
const KEPT: &[&str] = &["gate.memory", "gate.cpuPerEvent", "gate.instructionsPerEvent", "gate.allocationsPerEvent"];

/// The first planted bug is the control run.
pub const PLANTS: &[Plant] = &[
    Plant {
        // A subject that drops a deletion keeps the object for ever. If an object changed and went in one gap, only its
        // deletion is delivered, so its last change is missed as well.
        expected: Expected::Caught { judge: "events.ghost", also: &["events.converged", "events.missed"] },
        ..caught(CANARY, "deletions are dropped", QUICK, "")
    },
    caught("wrong-allow", "a review with a failing image is admitted", QUICK, "admission.wrongVerdicts"),
    Plant {
        expected: Expected::Caught {
            judge: "events.missed",
            // A subject that receives no events receives no deletion either, and never recovers.
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
        // The bug also removes owner references; otherwise the garbage collector would delete the children.
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
    gated("slower-by-5-percent", "the process needs 5 % more processor time", CPU, SLOWER),
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
    uncounted("uncounted-streams", "open calls are never refused"),
    uncounted("unbounded-answers", "answers that nobody takes are not counted"),
    uncounted("alerts-by-number", "alerts wait whole, up to a number of them"),
    caught(
        "evidence-as-unavailable",
        "an image with too much evidence is let in as if its registry were away",
        EVIDENCE,
        "admission.wrongVerdicts",
    ),
    caught("alert-lost", "every tenth alert is not sent", ALERTS, "alerts.lost"),
    caught("alert-twice", "every tenth alert is sent twice", ALERTS, "alerts.twice"),
    caught("alert-on-dry-run", "dry runs are reported too", ALERTS, "alerts.onDryRun"),
    caught("lock-ignored", "the digest lock is ignored", ALERTS, "admission.unlocked"),
    caught("believes-redis", "every answer of the shared cache is trusted", SHARED_CACHE, "admission.wrongVerdicts"),
    Plant {
        // As for `missed-delete`, but the state page is right, because the watch itself sees the deletions.
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

    /// The names of all planted bugs, read from the source of the service.
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

    /// The scenario of each planted bug sets the budget of the judge that must catch the bug.
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
