//! Hunts of watch clients: programs that watch and report what they observe.
//!
//! Owns when a subject is hunted as a watch client, its disturbances, and which judges count. The points of a watch
//! client are its lists and watches and the events that it gets: a disturbance is a few faults at known times while
//! objects change. Does no I/O.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::course::Course;
use super::disturb::{Disturbance, Kind};
use super::peaks::Peaks;
use super::points::Signature;
use super::rows::{Rare, Row, RowId};

/// Judges whose findings count in a trial of a watch client.
const JUDGES: [&str; 8] = [
    "events.",
    "requests.",
    "memory.ceiling",
    "threads.ceiling",
    "descriptors.ceiling",
    "openWatches.ceiling",
    "crashes.",
    "subject.exited",
];
/// Judges that also count if the subject of a write's disturbance proves what it observes.
const OBSERVED: [&str; 4] = ["events.missed", "events.unseen", "events.ghost", "events.reported"];
/// Signs that the client may only need more time.
const AT_END: [&str; 4] = OBSERVED;
/// The budget of events that come too late.
const LATE: &str = "events.late";
/// Requests a second that bring nothing, above which a client repeats them without a back-off.
const HOT_LOOP: u64 = 30;
/// How late a version may be observed, in milliseconds: changes of the last seconds before the end are not judged.
const DEADLINE_MS: u64 = 3000;
/// Time that a client has after a request without an answer has ended, in milliseconds.
const AFTER_ANSWER_MS: u64 = 2000;
/// How much more a trial may need than the references.
const MEMORY_MORE: u64 = 64 << 20;
const THREADS_MORE: u64 = 32;
const DESCRIPTORS_MORE: u64 = 40;
const WATCHES_MORE: u64 = 2;
const CONNECTIONS_MORE: u64 = 10;
/// How many more watches than in the references may be open at once while many objects come and go.
const WATCHES_OF_MANY_MORE: u64 = 10;

/// Whether a scenario file's witness reports each event, so that its program is hunted as a watch client. Other programs
/// are, if they write nothing.
pub(crate) fn reports_events(file: &Map<String, Value>) -> bool {
    let witness = file.get("subject").map(|subject| &subject["witness"]);
    match witness.and_then(|witness| witness["kind"].as_str()) {
        Some("http") => true,
        Some("log") => witness.is_some_and(|witness| {
            let pattern = witness["pattern"].as_str().unwrap_or_default();
            witness["preset"] == "pepr" || (pattern.contains("<rv>") && pattern.contains("<change>"))
        }),
        _ => false,
    }
}

/// All single disturbances of a client that watches these resources, of which one is judged.
pub(crate) fn singles(judged: &str, watched: &[String], has_own_script: bool, rare: &[Rare]) -> Vec<Disturbance> {
    let mut all = Vec::new();
    for id in RowId::all() {
        let row = id.row();
        let fits_script = !has_own_script || row.course == Course::Standard;
        if !fits_script || row.rare.is_some_and(|kind| !rare.contains(&kind)) {
            continue;
        }
        let others = watched.iter().filter(|other| row.of_another && *other != judged).cloned();
        let own = (!row.of_another).then(|| judged.to_owned());
        for resource in others.chain(own) {
            let point = Signature { verb: "watch".to_owned(), resource, ..Signature::default() };
            all.push(Disturbance { kind: Kind::Watch(id), point, occurrence: 1, lasts_ms: row.lasts_ms });
        }
    }
    all
}

/// The budgets of a trial, with what the references needed.
pub(crate) fn budgets(disturbances: &[Disturbance], peaks: Option<&Peaks>) -> Value {
    let rows: Vec<&Row> = disturbances.iter().filter_map(|one| one.kind.row().map(RowId::row)).collect();
    let mut events = json!({"deadline": format!("{DEADLINE_MS}ms")});
    let late = disturbances.iter().filter_map(|one| {
        let row = one.kind.row()?.row();
        let unanswered_ms = (row.lasts_ms > 0).then(|| one.lasts_ms.saturating_sub(AFTER_ANSWER_MS));
        row.on_time_ms.or(unanswered_ms)
    });
    if let (1, Some(late_ms)) = (rows.len(), late.max()) {
        events["late"] = 0.into();
        events["deadline"] = format!("{late_ms}ms").into();
    }
    if !rows.is_empty() && rows.iter().all(|row| row.once) {
        events["duplicate"] = 0.into();
    }
    // Several watches of one kind repeat their requests together.
    let together = peaks.filter(|peaks| !peaks.is_one_watch_each).map_or(1, |peaks| peaks.open_watches.max(1));
    let mut requests = json!({"hotLoop": format!("{}/s", HOT_LOOP * together)});
    if peaks.is_none_or(|peaks| peaks.is_one_watch_each) {
        requests["staleResume"] = 0.into();
        requests["unanchored"] = 0.into();
    }
    let mut budgets = json!({"events": events});
    if let Some(peaks) = peaks.filter(|_| !rows.is_empty()) {
        budgets["events"]["reported"] = json!({"min": 1});
        // Each of several watches of one kind may be abandoned and opened again.
        let again = if peaks.is_one_watch_each { 0 } else { peaks.open_watches };
        requests["openWatches"] = (peaks.open_watches + again + WATCHES_MORE).into();
        requests["connections"] = json!({"open": peaks.open_connections + CONNECTIONS_MORE});
        let twice = |number: u64, more: u64| 2 * number + more;
        let memory = peaks.rss_bytes + peaks.rss_bytes.max(MEMORY_MORE);
        if peaks.rss_bytes > 0 {
            budgets["memory"] = json!({"ceiling": format!("{memory}B")});
            budgets["threads"] = json!({"ceiling": twice(peaks.threads, THREADS_MORE)});
            budgets["descriptors"] = json!({"ceiling": twice(peaks.descriptors, DESCRIPTORS_MORE)});
        }
        if rows.iter().any(|row| row.course == Course::Names) {
            budgets["openWatches"] = json!({"ceiling": peaks.open_watches + WATCHES_OF_MANY_MORE});
        }
    }
    budgets["requests"] = requests;
    budgets
}

/// Whether a broken budget is a sign of a bug in a watch client's trial with these disturbances.
pub(crate) fn is_judged(budget: &str, disturbances: &[Disturbance]) -> bool {
    let begins = |judges: &[&str]| judges.iter().any(|judge| budget.starts_with(judge));
    if disturbances.iter().all(|one| one.kind.row().is_some()) {
        // `requests.hotLoop` has a limit that several watches of one kind keep as well.
        return begins(&JUDGES) && budget != "events.hotLoop";
    }
    // A program that starts again cannot report what came and went meanwhile.
    let ends = disturbances.iter().any(|one| one.kind.ends(1) > 0);
    !ends && begins(&OBSERVED)
}

/// Whether a sign may vanish if the client gets more time.
pub(crate) fn needs_time(budget: &str, disturbances: &[Disturbance]) -> bool {
    let unanswered = disturbances.iter().any(|one| one.kind.row().is_some_and(|id| id.row().lasts_ms > 0));
    AT_END.contains(&budget) || (unanswered && budget == LATE)
}

/// Whether two disturbances can be in one trial.
pub(crate) fn go_together(one: &Kind, other: &Kind) -> bool {
    match (one.row(), other.row()) {
        (None, None) => true,
        // Objects that are gone before the client has begun cannot be observed.
        (Some(one), Some(other)) => one.course() == other.course() && one.begins_later() && other.begins_later(),
        _ => false,
    }
}

/// The changes of a trial with these disturbances; `None` if it has none of a watch client.
pub(crate) fn course(disturbances: &[Disturbance]) -> Option<Course> {
    disturbances.iter().find_map(|one| one.kind.row()).map(RowId::course)
}

/// How long the longest disturbance of a trial takes, in milliseconds, if the trial must be longer for it.
pub(crate) fn lasts_ms(disturbances: &[Disturbance]) -> u64 {
    let lasting = disturbances.iter().filter(|one| one.kind.row().is_some_and(|id| id.row().lasts_ms > 0));
    lasting.map(|one| one.lasts_ms).max().unwrap_or(0)
}

/// The points of a watch client, for people.
pub(crate) fn points(judged: &str, watched: &[String]) -> Vec<String> {
    let all: BTreeSet<&str> = watched.iter().map(String::as_str).chain([judged]).collect();
    let plural = |resource: &str| resource.split('.').next().unwrap_or_default().to_owned();
    all.into_iter().map(|resource| format!("list and watch of {}", plural(resource))).collect()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    fn all(rare: bool) -> Vec<Disturbance> {
        let rare = if rare { Rare::value_variants() } else { &[] };
        singles("packages.longhaul.dev", &["configmaps".to_owned(), "packages.longhaul.dev".to_owned()], false, rare)
    }

    /// Every fault of every row is a valid fault of the catalogue.
    #[test]
    fn rows_are_faults_of_the_catalogue() {
        let names: BTreeSet<&str> = RowId::all().map(RowId::name).collect();
        assert_eq!(names.len(), RowId::all().count(), "two rows have one name");
        for disturbance in all(true) {
            let text = disturbance.describe();
            assert!(text.ends_with('.') && !text.contains("{}"), "{text}");
            for fault in disturbance.faults() {
                let read: mock_faults::Fault = serde_json::from_value(fault.clone()).unwrap();
                read.check().unwrap_or_else(|error| panic!("{fault}: {error}"));
            }
        }
        assert_eq!(all(true).len(), RowId::all().count());
        assert!(all(false).iter().all(|one| one.kind.row().unwrap().row().rare.is_none()));
    }

    /// The page lists each row, and says which rows must be asked for.
    #[test]
    fn the_page_has_each_row() {
        let page = include_str!("../../../docs/hunt.md");
        for row in RowId::all().map(RowId::row) {
            let rare = row.rare.and_then(|rare| rare.to_possible_value());
            let rare = rare.map(|rare| format!("`--rare {}`", rare.get_name())).unwrap_or_default();
            let line = page.lines().find(|line| line.starts_with(&format!("| {} |", row.name)));
            let line = line.unwrap_or_else(|| panic!("docs/hunt.md lacks the disturbance `{}`", row.name));
            assert!(line.contains(&rare) && (row.rare.is_some() || !line.contains("--rare")), "{line}");
        }
    }

    #[test]
    fn a_witness_that_reports_events_makes_a_watch_client() {
        let of = |witness: Value| reports_events(json!({"subject": {"witness": witness}}).as_object().unwrap());
        assert!(of(json!({"kind": "http"})) && of(json!({"kind": "log", "preset": "pepr"})));
        assert!(of(json!({"kind": "log", "pattern": "(?P<uid>.) (?P<rv>.) (?P<change>.)"})));
        assert!(!of(json!({"kind": "status"})) && !of(json!({"kind": "log", "preset": "kopf"})));
    }

    /// A trial may need somewhat more than the references, and versions are judged twice only where that is promised.
    #[test]
    fn budgets_follow_from_the_references() {
        let with = |name: &str| {
            let one = all(true).into_iter().find(|one| one.kind.name() == name).unwrap();
            let peaks = Peaks { rss_bytes: 10 << 20, open_watches: 1, is_one_watch_each: true, ..Peaks::default() };
            budgets(&[one], Some(&peaks))
        };
        let end = with("clean end");
        assert_eq!((&end["events"]["duplicate"], &end["requests"]["openWatches"]), (&json!(0), &json!(3)));
        assert_eq!(end["memory"]["ceiling"], format!("{}B", (10 + 64) << 20));
        assert!(with("silent watch")["events"]["duplicate"].is_null());
        assert_eq!(with("quiet time")["events"]["deadline"], "2000ms");
        assert_eq!(with("list without an answer")["events"]["deadline"], "7000ms");
        assert!(with("large list")["openWatches"].is_null());
        assert_eq!(with("many objects come and go")["openWatches"]["ceiling"], 11);
        assert_eq!(end["events"]["reported"]["min"], 1);
        assert!(budgets(&[], Some(&Peaks::default()))["memory"].is_null());
    }

    #[test]
    fn only_a_client_that_runs_is_judged_by_what_it_observed() {
        let watch = &all(false)[..1];
        let write = |kind| super::super::disturb::tests::at(kind, "update");
        assert!(is_judged("events.regressed", watch) && is_judged("requests.openWatches", &[]));
        assert!(is_judged("events.missed", &[write(Kind::Conflict)]));
        assert!(!is_judged("events.regressed", &[write(Kind::Conflict)]));
        assert!(!is_judged("events.missed", &[write(Kind::Kill)]));
        assert!(!is_judged("validity.pace", watch));
        assert!(needs_time("events.missed", watch) && !needs_time("events.late", watch));
        assert!(!go_together(&watch[0].kind, &Kind::Conflict));
        let named = |name: &str| all(false).into_iter().find(|one| one.kind.name() == name).unwrap().kind;
        assert!(go_together(&named("reset"), &named("clean end")));
        assert!(!go_together(&named("reset"), &named("buffered watch")), "one begins before the client");
    }
}
