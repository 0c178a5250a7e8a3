//! Runs the same scenarios and planted bugs of the library on every control plane, and writes one table of the results.
//!
//! Owns the list of runs, the user's further scenario files, and the table. Each run has its own process. The result of
//! a run is appended to a file, so that several calls can fill one table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::scenario::{ControlPlaneKind, Source, cannot};

/// The runs: a scenario of the library, or a scenario with a planted bug of the service and the judge that must catch
/// it.
const PLAYED: [(&str, Option<(&str, &str)>); 17] = [
    ("smoke", None),
    ("through-apiserver", None),
    ("registry-down", None),
    ("rolling-restart", None),
    ("cert-rotation", None),
    ("multi-pod", None),
    ("verify-steady", None),
    ("replicas-steady", None),
    ("soak-10m", None),
    ("deployed", None),
    ("deployed-rollouts", None),
    ("deployed-kills", None),
    ("smoke", Some(("missed-delete", "events.ghost"))),
    ("smoke", Some(("wrong-allow", "admission.wrongVerdicts"))),
    ("smoke", Some(("leak-per-object", "memory.ceiling"))),
    ("deployed", Some(("missed-delete", "events.ghost"))),
    ("deployed", Some(("wrong-allow", "admission.unpinned"))),
];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Played {
    pub scenario: String,
    /// The planted bug, if there is one.
    pub plant: Option<String>,
    /// The kind of control plane.
    pub world: String,
    /// The verdict that the exit code means.
    pub verdict: String,
    pub broken: Vec<String>,
    /// Budgets and validity conditions that stayed undecided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// Time from the start of the process to the verdict, in seconds.
    pub seconds: u64,
    /// Faults of the scenario that this control plane cannot inject.
    pub left_out: Vec<String>,
}

/// Settings of `cargo xtask worlds` from the command line.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub on: Vec<ControlPlaneKind>,
    pub only: Vec<String>,
    /// The folder for records; with `None`, records are removed after the run.
    pub runs: Option<PathBuf>,
    /// Further scenario files, for subjects that the library does not have.
    pub files: Vec<PathBuf>,
}

/// Runs the selected scenarios and appends each result to a file of JSON lines.
pub fn play(wanted: &Wanted, results: &Path) -> Result<()> {
    ensure!(
        !wanted.on.contains(&ControlPlaneKind::Kubeconfig),
        "--on kubeconfig: name the cluster: `longhaul soak SCENARIO --control-plane kubeconfig --i-know-this-cluster NAME`"
    );
    let mut known = read(results)?;
    let mut all = Vec::new();
    for file in &wanted.files {
        let said = file.to_str().with_context(|| format!("{}: its path is no text", file.display()))?;
        all.push((said, Source::read(said)?.scenario.name, None));
    }
    all.extend(PLAYED.map(|(scenario, plant)| (scenario, scenario.to_owned(), plant)));
    for kind in worlds(wanted) {
        for (said, name, plant) in &all {
            if !wanted.only.is_empty() && !wanted.only.contains(name) {
                continue;
            }
            let Some(left_out) = left_out(said, kind)? else { continue };
            let mut played = one((said, plant.map(|(name, _)| name)), kind, left_out, wanted.runs.as_deref())?;
            played.scenario.clone_from(name);
            crate::out::err!("{name} on {}: {} after {} s", kind.name(), played.verdict, played.seconds);
            known.insert(key(&played), played);
            let lines: Vec<String> = known.values().filter_map(|one| serde_json::to_string(one).ok()).collect();
            std::fs::write(results, lines.join("\n") + "\n")
                .with_context(|| format!("failed to write {}", results.display()))?;
        }
    }
    Ok(())
}

pub fn table(results: &Path) -> Result<String> {
    let known = read(results)?;
    let worlds = worlds(&Wanted::default());
    let mut text = String::from("| scenario |");
    for kind in &worlds {
        let _ = write!(text, " {} |", kind.name());
    }
    text += "\n|---|";
    text.push_str(&"---|".repeat(worlds.len()));
    text.push('\n');
    // Runs outside the library are shown only for the control planes on which they were played.
    let mut others: Vec<(&str, Option<(&str, &str)>)> = Vec::new();
    for played in known.values().filter(|played| played.plant.is_none()) {
        let row = (played.scenario.as_str(), None);
        if !PLAYED.contains(&row) && !others.contains(&row) {
            others.push(row);
        }
    }
    for (scenario, plant) in PLAYED.into_iter().chain(others.iter().copied()) {
        let name = plant.map_or_else(
            || format!("`{scenario}`"),
            |(bug, judge)| format!("`{bug}` in `{scenario}`, caught by `{judge}`"),
        );
        let _ = write!(text, "| {name} |");
        for kind in &worlds {
            let bug = plant.map(|(bug, _)| bug.to_owned());
            let found = known.get(&(scenario.to_owned(), bug, kind.name().to_owned()));
            let cell = match found {
                Some(played) => cell(played, plant.map(|(_, judge)| judge)),
                None if !others.contains(&(scenario, plant)) && left_out(scenario, *kind)?.is_none() => {
                    "needs Pods".to_owned()
                }
                None => "not played".to_owned(),
            };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    Ok(text)
}

/// The marker before the table in a Markdown file.
pub const BEGIN: &str = "<!-- worlds -->";
const END: &str = "<!-- up to here -->";

/// The Markdown file with its table replaced; `None` if the file has no markers.
pub fn into_page(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

fn cell(played: &Played, judge: Option<&str>) -> String {
    let caught = judge.map(|judge| played.broken.iter().any(|broken| broken == judge));
    let word = match caught {
        Some(true) => "caught".to_owned(),
        Some(false) => format!("**not caught** ({})", played.verdict),
        None => {
            let why = if played.broken.is_empty() { &played.open } else { &played.broken };
            if why.is_empty() { played.verdict.clone() } else { format!("{}: {}", played.verdict, why.join(", ")) }
        }
    };
    let without =
        if played.left_out.is_empty() { String::new() } else { format!(", without {}", played.left_out.join(", ")) };
    format!("{word}, {} s{without}", played.seconds)
}

fn worlds(wanted: &Wanted) -> Vec<ControlPlaneKind> {
    let all = <ControlPlaneKind as clap::ValueEnum>::value_variants();
    // A user's cluster must be named explicitly; it is not part of "all".
    let all = all.iter().copied().filter(|kind| *kind != ControlPlaneKind::Kubeconfig);
    all.filter(|kind| wanted.on.is_empty() || wanted.on.contains(kind)).collect()
}

/// The faults that this control plane cannot inject; `None` if the subject cannot run on this control plane.
fn left_out(scenario: &str, kind: ControlPlaneKind) -> Result<Option<Vec<String>>> {
    let scenario = Source::read(scenario)?.scenario;
    if scenario.subject.profile().needs_node && !kind.has_nodes() {
        return Ok(None);
    }
    let mut names: Vec<String> = Vec::new();
    for fault in scenario.faults.iter().filter(|fault| cannot(&scenario, kind, fault).is_some()) {
        if !names.iter().any(|name| name == fault.name.as_str()) {
            names.push(fault.name.as_str().to_owned());
        }
    }
    Ok(Some(names))
}

/// Runs one scenario in its own process.
fn one(
    (scenario, plant): (&str, Option<&str>),
    kind: ControlPlaneKind,
    left_out: Vec<String>,
    runs: Option<&Path>,
) -> Result<Played> {
    let folder = tempfile::tempdir().context("failed to make a folder for the record")?;
    let mut command = Command::new(std::env::current_exe().context("failed to find this program")?);
    command.args(["soak", scenario, "--control-plane", kind.name(), "--json", "--quiet", "--runs"]);
    command.arg(runs.unwrap_or(folder.path()));
    if let Some(bug) = plant {
        command.args(["--plant", bug]);
    }
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("failed to start a run")?;
    let seconds = began.elapsed().as_secs();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let findings = answer["findings"].as_array().cloned().unwrap_or_default();
    let of = |wanted: &[&str]| {
        let those = findings.iter().filter(|finding| wanted.iter().any(|verdict| finding["verdict"] == *verdict));
        those.filter_map(|finding| finding["budget"].as_str().map(str::to_owned)).collect()
    };
    Ok(Played {
        scenario: scenario.to_owned(),
        plant: plant.map(str::to_owned),
        world: kind.name().to_owned(),
        verdict: answer["verdict"].as_str().map_or_else(|| format!("no verdict ({})", output.status), str::to_owned),
        broken: of(&["fail"]),
        open: of(&["inconclusive", "invalid"]),
        seconds,
        left_out,
    })
}

type Key = (String, Option<String>, String);

fn key(played: &Played) -> Key {
    (played.scenario.clone(), played.plant.clone(), played.world.clone())
}

/// The results of earlier calls; empty if the file does not exist.
fn read(results: &Path) -> Result<BTreeMap<Key, Played>> {
    let text = match std::fs::read_to_string(results) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        text => text.with_context(|| format!("failed to read {}", results.display()))?,
    };
    let read = |line: &str| -> Result<(Key, Played), serde_json::Error> {
        let played: Played = serde_json::from_str(line)?;
        Ok((key(&played), played))
    };
    text.lines()
        .map(read)
        .collect::<Result<_, serde_json::Error>>()
        .with_context(|| format!("{} holds no results of `worlds`: remove it, or name another file", results.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_came_of_each_run_and_what_was_not_played() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("worlds.jsonl");
        let played = |plant: Option<&str>, broken: &[&str], left_out: &[&str]| Played {
            scenario: "smoke".to_owned(),
            plant: plant.map(str::to_owned),
            world: "local".to_owned(),
            verdict: if broken.is_empty() { "pass" } else { "fail" }.to_owned(),
            broken: broken.iter().map(|&name| name.to_owned()).collect(),
            open: Vec::new(),
            seconds: 61,
            left_out: left_out.iter().map(|&name| name.to_owned()).collect(),
        };
        let open = vec!["requests.hotLoop".to_owned()];
        let (verdict, own) = ("inconclusive".to_owned(), played(None, &[], &[]));
        let own = Played { scenario: "my-operator".to_owned(), verdict, open, ..own };
        let lines = [
            own,
            played(None, &[], &["watch-410"]),
            played(Some("missed-delete"), &["events.ghost"], &[]),
            played(Some("wrong-allow"), &["events.lag"], &[]),
        ]
        .map(|one| serde_json::to_string(&one).unwrap());
        std::fs::write(&file, lines.join("\n")).unwrap();
        let text = table(&file).unwrap();
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(row("| `smoke`").contains("| not played | pass, 61 s, without watch-410 |"), "{text}");
        assert!(row("| `missed-delete`").contains("| caught, 61 s |"), "{text}");
        assert!(row("| `wrong-allow`").contains("**not caught** (fail), 61 s"), "{text}");
        assert!(row("| `my-operator` |").contains("| inconclusive: requests.hotLoop, 61 s |"), "{text}");
        assert!(row("| `deployed` |").starts_with("| `deployed` | needs Pods | needs Pods | not played |"), "{text}");
        let page = format!("# A\n\n{BEGIN}\nold\n{END}\nmore\n");
        assert_eq!(into_page(&page, "new\n").unwrap(), format!("# A\n\n{BEGIN}\n\nnew\n\n{END}\nmore\n"));
        assert_eq!(into_page("# A\n", "new"), None);
        std::fs::write(&file, "{").unwrap();
        assert!(table(&file).unwrap_err().to_string().contains("holds no results of `worlds`"));
    }
}
