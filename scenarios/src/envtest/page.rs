//! The HTML report of a suite. `reports::suite` renders the report in the style of a soak's report.

use anyhow::{Context as _, Result};
use reports::exit;
use reports::render::suite_html;
use reports::suite::{Hit, Outcome, Suite as Facts, Table, Test};
use reports::words::{count, counted};

use super::ledger::{self, Ledger};
use super::{OUTPUT, Played, SESSION_FILE, Suite};

pub(super) const FILE: &str = "index.html";

/// Writes the report of a run. `story` contains the results of later repetitions of the suite.
pub(super) fn write(suite: &Suite, played: &Played, story: &[String]) -> Result<()> {
    let page = suite_html(&facts(suite, played, story)).context("failed to make the page")?;
    ledger::write(&played.record, FILE, &page)
}

fn facts(suite: &Suite, played: &Played, story: &[String]) -> Facts {
    let ledger = &played.ledger;
    let took_ms = u64::try_from(played.took.as_millis()).unwrap_or(u64::MAX);
    // Failed tests have a card each, so the story leaves them out.
    let story = story.iter().cloned().chain(ledger.notable()).collect();
    Facts {
        outcome: outcome(played),
        command: crate::secrets::arguments(&suite.command).join(" "),
        sentence: sentence(played),
        story,
        faults: drawn(suite),
        seed: played.seed,
        started: played.began.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        length_ms: length_ms(ledger).unwrap_or(took_ms),
        tests: ledger.tests.iter().map(|row| test(ledger, row)).collect(),
        hits: ledger
            .fault_hits
            .iter()
            .map(|hit| Hit { at_ms: ledger.ms(hit.at_us), fault: hit.fault.clone(), detail: hit.detail.clone() })
            .collect(),
        stretches: ledger.stretches.clone(),
        tables: tables(ledger),
        roles: ledger.roles.iter().cloned().collect(),
        repeat: suite.again(played.seed),
        facts: vec![
            ("Took", reports::words::millis(took_ms)),
            ("Exit code of the suite", played.suites.to_string()),
            ("Control planes", ledger.planes.to_string()),
            ("Requests", count(ledger.requests as u64)),
            ("Object versions written", count(ledger.commits as u64)),
            ("Writes of clients with caches", count(ledger.reads.writes)),
            ("Those made while a cache was behind", count(ledger.reads.late_by.values().sum())),
            ("Faults were for", suite.touched()),
        ],
        files: files(played),
        longhaul: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn outcome(played: &Played) -> Outcome {
    match (played.suites == exit::PASS, played.is_disturbed) {
        (false, _) => Outcome::Failed,
        (true, true) => Outcome::Passed,
        (true, false) => Outcome::Undisturbed,
    }
}

/// A sentence about the result of the run.
fn sentence(played: &Played) -> String {
    let ledger = &played.ledger;
    let failed = ledger.tests.iter().filter(|test| test.failed).count();
    let met = ledger.tests.iter().filter(|test| !test.hits.is_empty()).count();
    let hits = counted(ledger.hits as u64, "fault hit").replace("fault hits", "hits of faults");
    if ledger.planes == 0 {
        return "the suite started no control plane of Longhaul".to_owned();
    }
    let what = match (ledger.tests.len(), failed) {
        (0, _) if played.suites == exit::PASS => "the suite passed".to_owned(),
        (0, _) => format!("the suite failed with exit code {}", played.suites),
        (all, 0) if played.suites != exit::PASS => {
            format!(
                "the suite failed with exit code {}, and none of its {} did",
                played.suites,
                counted(all as u64, "test")
            )
        }
        (all, 0) => format!("all of {} passed", counted(all as u64, "test")),
        (all, some) => format!("{} of {} tests failed", count(some as u64), count(all as u64)),
    };
    match (played.is_disturbed, ledger.hits) {
        (false, _) => format!("{what}, but no fault hit anything"),
        (true, 0) => what,
        (true, _) if ledger.tests.is_empty() => format!("{what}, with {hits}"),
        (true, _) => format!("{what}; {hits} came while {} ran", counted(met as u64, "test")),
    }
}

/// A text about the faults: random faults, or the faults of a file.
fn drawn(suite: &Suite) -> String {
    let mut words = Vec::new();
    words.extend(suite.chaos.seed.map(|_| "chaos".to_owned()));
    words.extend(suite.chaos.order.then(|| "order".to_owned()));
    words.extend(suite.chaos.stale.map(|versions| format!("caches at most {} behind", counted(versions, "version"))));
    words.extend(suite.written.clone());
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// Time from the start of the first control plane to the last event.
fn length_ms(ledger: &Ledger) -> Option<u64> {
    let tests = ledger.tests.iter().map(|test| ledger.ms(test.to_us));
    tests.chain(ledger.stretches.iter().map(|stretch| stretch.until_ms)).max()
}

fn test(ledger: &Ledger, row: &ledger::Row) -> Test {
    Test {
        name: row.name.clone(),
        from_ms: ledger.ms(row.from_us),
        to_ms: ledger.ms(row.to_us),
        failed: row.failed,
        message: row.message.clone(),
        requests: row.requests,
        objects: row.objects,
        conflicts: row.conflicts,
        hits: row.hits.clone(),
        met: met(&row.met),
    }
}

/// Numbers of hits as text, such as `event-delayed 14 times, watch-reset once`.
fn met(met: &std::collections::BTreeMap<String, u64>) -> String {
    let times = |times: u64| if times == 1 { "once".to_owned() } else { format!("{} times", count(times)) };
    met.iter().map(|(fault, hits)| format!("{fault} {}", times(*hits))).collect::<Vec<_>>().join(", ")
}

fn tables(ledger: &Ledger) -> Vec<Table> {
    let counts = |rows: &std::collections::BTreeMap<String, u64>| {
        rows.iter().map(|(what, times)| (what.clone(), count(*times))).collect::<Vec<_>>()
    };
    let most = |rows: &std::collections::BTreeMap<String, usize>| {
        rows.iter().map(|(what, times)| (what.clone(), count(*times as u64))).collect::<Vec<_>>()
    };
    let table = |title, what, count, rows| Table { title, what, count, rows };
    let suspects = ledger.reads.suspects.iter().take(20);
    let suspects = suspects.map(|one| (one.sentence(), one.versions.to_string())).collect();
    let all = [
        table("Hot loops", "Request or object", "Most within a second", most(&ledger.hot)),
        table("Refused by roles", "Request", "Times", counts(&ledger.denied)),
        table("Writes based on a read that was behind", "Write", "Versions", suspects),
        table("Conflicts", "Request", "Times", counts(&ledger.conflicts)),
        table("Other refusals", "Request", "Times", counts(&ledger.refused)),
        table("Polls of the suite, which wait in between", "Request", "Most within a second", most(&ledger.polls)),
        table("Watches open at the end", "User", "Watches", counts(&ledger.watches_left)),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn files(played: &Played) -> Vec<(String, &'static str)> {
    let named = [
        ("ledger.json", "everything on this page, for programs"),
        ("least-roles.yaml", "the minimal roles of all clients"),
        (SESSION_FILE, "the requests to the control planes"),
        (OUTPUT, "the output of the suite"),
    ];
    let there = named.into_iter().filter(|(name, _)| played.record.join(name).exists());
    there.map(|(name, what)| (name.to_owned(), what)).collect()
}
