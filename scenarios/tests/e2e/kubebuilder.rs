//! Tests of the mistakes that can be planted in the kubebuilder operator. Each mistake breaks the budget for this
//! mistake, and the operator without a mistake passes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::operator::{mistakes, project};
use crate::plays::{PlayResult, is_held_up, play_so_many};
use crate::support::{Soak, soak};

/// The document that names the budget which each mistake breaks.
const PAGE: &str = include_str!("../../../docs/operators.md");
const SCENARIO: &str = include_str!("../files/kubebuilder.yaml");
/// A longer scenario with more objects, for budgets of growth.
const GROWTH: &str = include_str!("../files/kubebuilder-growth.yaml");
/// Number of runs of the operator without a mistake, each with another seed.
const CLEAN: u64 = 10;
/// Number of runs at the same time. Each run's Go operator and harness use a fifth of a processor.
const AT_ONCE: usize = 4;

/// Budgets that a mistake may break in addition to the mistake's own budget, mainly on a busy machine. An operator that
/// writes all the time handles events late.
const CONSEQUENCES: [&str; 5] =
    ["events.missed", "events.restored", "finalizers.stuck", "requests.hotLoop", "requests.rate"];

/// One run of the kubebuilder operator.
#[derive(Debug, Clone)]
struct Play {
    scenario: &'static str,
    /// The planted mistake; `None` for the operator without a mistake.
    mistake: Option<Row>,
    seed: u64,
}

/// A row of the table in `docs/operators.md`.
#[derive(Debug, Clone)]
struct Row {
    mistake: String,
    /// The budgets that must be broken, the mistake's own first.
    broken: Vec<String>,
}

/// An unknown mistake is refused. If it were accepted, a misspelt name would run the operator without a mistake.
#[test]
#[ignore = "slow"]
fn a_mistake_that_nobody_knows_is_refused() {
    let Some(project) = project() else { return };
    let manager = project.path().join("bin/manager");
    let output = Command::new(manager).env("PLANTED", "no-such-mistake").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for name in mistakes() {
        assert!(said.contains(&name), "{name}: {said}");
    }
}

#[test]
fn the_page_has_every_mistake() {
    let named: Vec<String> = rows().into_iter().map(|row| row.mistake).collect();
    assert_eq!(named, mistakes(), "docs/operators.md against internal/planted/planted.go");
}

/// Each mistake of the operator breaks the budget for this mistake, and the correct operator passes. The runs take
/// place in parallel, because each run mostly waits.
#[test]
#[ignore = "slow"]
fn nightly_mistakes_of_operators_are_caught_and_the_clean_operator_passes_ten_times() {
    let mistakes = rows().into_iter().filter(|row| !row.is_of_webhooks() && !row.grows() && !row.is_hunted());
    let mistakes = mistakes.map(|row| Play { scenario: SCENARIO, mistake: Some(row), seed: 1 });
    play(mistakes.chain((1..=CLEAN).map(|seed| Play { scenario: SCENARIO, mistake: None, seed })).collect());
}

#[test]
#[ignore = "slow"]
fn nightly_what_operators_keep_is_caught_and_the_clean_operator_keeps_nothing() {
    let mistakes = rows().into_iter().filter(Row::grows);
    let mistakes = mistakes.map(|row| Play { scenario: GROWTH, mistake: Some(row), seed: 1 });
    play(mistakes.chain([Play { scenario: GROWTH, mistake: None, seed: 1 }]).collect());
}

fn play(plays: Vec<Play>) {
    let Some(project) = project() else { return };
    let played = play_so_many(AT_ONCE, plays, |play| seen(&play.soak(project.path()), play));
    println!("{}", played.summary());
    let wrong = played.wrong(Play::name);
    assert!(wrong.is_empty(), "{wrong}");
}

impl Row {
    /// Whether a test of the mistake needs the scenario from `init`, or a gate. The module `operator_webhooks` tests
    /// mistakes that need `init` or a gate.
    fn is_of_webhooks(&self) -> bool {
        self.broken.iter().any(|budget| budget.starts_with("admission.") || budget == "gate")
    }

    /// Whether only a hunt finds the mistake. The module `hunt` tests these mistakes.
    fn is_hunted(&self) -> bool {
        self.broken.iter().any(|budget| budget == "hunt")
    }

    fn grows(&self) -> bool {
        self.broken.iter().any(|budget| budget.contains("growth"))
    }
}

impl Play {
    fn name(&self) -> String {
        self.mistake.as_ref().map_or_else(|| format!("clean, seed {}", self.seed), |row| row.mistake.clone())
    }

    /// Whether the mistake is a leak that a metrics series counts. The run with a counted leak takes a minute, in which
    /// the budget of memory cannot reliably decide so small a leak.
    fn is_counted(&self) -> bool {
        let counted = |row: &Row| row.broken.iter().all(|budget| budget.starts_with("metrics."));
        self.mistake.as_ref().is_some_and(counted)
    }

    /// Runs the operator with the mistake. All mistakes have the same scenario; the script that starts the operator
    /// plants the mistake.
    fn soak(&self, project: &Path) -> Soak {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(project.join("config"), folder.path().join("config")).unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        let planted = self.mistake.as_ref().map_or("", |row| row.mistake.as_str());
        let manager = folder.path().join("bin/manager");
        let script = format!("#!/bin/sh\nPLANTED={planted} exec {}/bin/manager \"$@\"\n", project.display());
        std::fs::write(&manager, script).unwrap();
        std::fs::set_permissions(&manager, std::fs::Permissions::from_mode(0o755)).unwrap();
        let file = folder.path().join("kubebuilder.yaml");
        let not_asked = |line: &&str| self.is_counted() && line.starts_with("  memory:");
        let lines: Vec<&str> = self.scenario.lines().filter(|line| !not_asked(line)).collect();
        std::fs::write(&file, lines.join("\n")).unwrap();
        let length: &[&str] = if self.is_counted() { &["--for", "85s"] } else { &[] };
        // Its configuration is a link into the project.
        let named = [file.to_str().unwrap(), "--allow-outside", "--seed", &self.seed.to_string()];
        soak(&[&named[..], length].concat())
    }
}

fn seen(soak: &Soak, play: &Play) -> PlayResult {
    let wanted = play.mistake.as_ref().map(|row| row.broken.clone()).unwrap_or_default();
    let broken = soak.broken();
    // The first one is the mistake's own.
    let is_caught = wanted.first().is_none_or(|budget| broken.contains(budget));
    let besides = |budget: &String| !wanted.contains(budget) && !CONSEQUENCES.contains(&budget.as_str());
    let is_plausible = !broken.iter().any(besides) && (play.mistake.is_some() || broken.is_empty());
    let is_right = soak.code() == Some(i32::from(play.mistake.is_some())) && is_caught && is_plausible;
    let wrong = if is_right { String::new() } else { format!("wanted {wanted:?}: {}", soak.story()) };
    PlayResult { wrong, stalled: is_held_up(&soak.verdict()).then(|| play.name()), ..PlayResult::default() }
}

/// The rows of the table in docs/operators.md: `| `mistake` | what it does | `judge` … | …`.
fn rows() -> Vec<Row> {
    let table = PAGE.split_once("<!-- mistakes -->").unwrap().1.split_once("<!-- up to here -->").unwrap().0;
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<Row> = lines
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let broken = cells[3].split('`').skip(1).step_by(2).map(str::to_owned).collect();
            Row { mistake: cells[1].trim_matches('`').to_owned(), broken }
        })
        .collect();
    assert!(!rows.is_empty(), "docs/operators.md has no table");
    rows
}
