//! `longhaul compare SCENARIO --subject …`: runs one scenario with several subjects, each run in its own process.
//!
//! Owns the order of runs and the folders of the run records. [`reports::compare`] computes the results from the
//! records alone. A subject that crashes or cannot start is listed in the result and does not end the comparison.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use reports::compare::{About, Comparison, Entrant, comparison};
use reports::judge::judge;
use reports::record::Record;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clients::Chosen;
use crate::itself;
use crate::scenario::Source;

mod shares;

use shares::{Share, Shares};

/// Time of a run beyond its phases, for start, end and judging.
const PATIENCE: Duration = Duration::from_mins(10);
/// Further time for the judges to read the record, as a multiple of the run's length.
const PATIENCE_TIMES: u32 = 2;
pub(crate) const FILES: [&str; 3] = ["compare.html", "compare.md", "compare.json"];

#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) chosen: Chosen,
    /// The subject as the user named it on the command line.
    pub(crate) word: String,
}

pub(crate) struct Choice {
    /// The name of the scenario as the user wrote it.
    pub(crate) scenario: String,
    pub(crate) source: Source,
    pub(crate) subjects: Vec<Subject>,
    /// Flags of `longhaul soak` that are the same for all subjects.
    pub(crate) flags: Vec<String>,
    pub(crate) own_clocks: bool,
    pub(crate) rounds: u32,
    pub(crate) side_by_side: bool,
    /// The folder for the result, which does not exist or is empty.
    pub(crate) out: PathBuf,
    pub(crate) quiet: bool,
    pub(crate) repeat: String,
}

/// The keys of `longhaul soak --json` that are needed if a run left no record.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    #[serde(default)]
    reason: String,
}

struct Run {
    at: usize,
    folder: String,
    /// The reason why the run left no record.
    failure: Option<String>,
}

/// Runs all subjects and writes the result in all formats. On error, nothing was compared.
pub(crate) async fn play(choice: &Choice, stop: &CancellationToken) -> Result<Comparison> {
    std::fs::create_dir_all(&choice.out).with_context(|| format!("failed to make {}", choice.out.display()))?;
    let empty = std::fs::read_dir(&choice.out).is_ok_and(|mut entries| entries.next().is_none());
    ensure!(empty, "{} is not empty: name another folder with --out", choice.out.display());
    let clocks = if choice.own_clocks { Vec::new() } else { crate::clients::clocks(&choice.source.scenario) };
    // Installed one after the other, before any time limit runs: two installations at once would not be faster.
    let mut starts = Vec::new();
    for subject in &choice.subjects {
        // If the user interrupts, the installation must not continue. Dropping the future ends its programs (npm and
        // pip); a build in Go or Java ends by the terminal's own signal.
        let Some(start) = stop.run_until_cancelled(subject.chosen.start(&clocks)).await else {
            bail!("interrupted while {} was installed: nothing was played", subject.name);
        };
        starts.push(start.map_err(|needs| format!("it could not be started: it needs {needs}")));
    }
    let (shares, mut notes) = if choice.side_by_side { Shares::of(choice.subjects.len()) } else { (None, Vec::new()) };
    let mut runs = Vec::new();
    for round in 0..choice.rounds {
        let mut wanted: Vec<(usize, Vec<String>, String)> = Vec::new();
        for (at, subject) in choice.subjects.iter().enumerate() {
            let folder =
                if choice.rounds == 1 { subject.name.clone() } else { format!("{}-{}", subject.name, round + 1) };
            match &starts[at] {
                Ok(start) => wanted.push((at, arguments(choice, start, &folder), folder)),
                Err(failure) => runs.push(Run { at, folder, failure: Some(failure.clone()) }),
            }
        }
        // Another subject begins in each round, so that the machine's changes over time do not always hit the same one.
        let turn = round as usize % wanted.len().max(1);
        wanted.rotate_left(turn);
        runs.extend(played(choice, wanted, shares.as_ref(), stop).await);
        if stop.is_cancelled() {
            break;
        }
    }
    if stop.is_cancelled() {
        notes.push("it was interrupted: runs that had not started are missing".to_owned());
    }
    notes.extend(unlike_load(
        choice,
        &starts.iter().flatten().map(|start| start.command.is_empty()).collect::<Vec<_>>(),
    ));
    let entrants = entrants(choice, runs);
    let scenario = &choice.source.scenario;
    let about = About {
        scenario: scenario.name.clone(),
        question: scenario.description.trim().to_owned(),
        seed: scenario.seed,
        side_by_side: choice.side_by_side,
        repeat: choice.repeat.clone(),
        notes,
    };
    let compared = comparison(about, &entrants);
    write(&choice.out, &compared, &entrants)?;
    Ok(compared)
}

async fn played(
    choice: &Choice,
    wanted: Vec<(usize, Vec<String>, String)>,
    shares: Option<&Shares>,
    stop: &CancellationToken,
) -> Vec<Run> {
    let patience = choice.source.scenario.phases.total() * PATIENCE_TIMES + PATIENCE;
    let at_once = if choice.side_by_side { wanted.len().max(1) } else { 1 };
    let (mut wanted, mut running, mut done) = (wanted.into_iter(), JoinSet::new(), Vec::new());
    loop {
        while running.len() < at_once
            && !stop.is_cancelled()
            && let Some((at, arguments, folder)) = wanted.next()
        {
            let (stop, share) = (stop.clone(), shares.and_then(|shares| shares.share(at)));
            if !choice.quiet {
                crate::out::err!("{}: {}", choice.subjects[at].name, choice.out.join(&folder).display());
            }
            let directory = choice.out.join(&folder);
            running.spawn(async move { one(at, folder, &directory, &arguments, patience, share, &stop).await });
        }
        match running.join_next().await {
            Some(Ok(run)) => done.push(run),
            // A run task does not panic. If one did, it left no record, and the result shows that.
            Some(Err(_)) => {}
            None => return done,
        }
    }
}

async fn one(
    at: usize,
    folder: String,
    directory: &Path,
    arguments: &[String],
    patience: Duration,
    share: Option<Share>,
    stop: &CancellationToken,
) -> Run {
    let output =
        itself::play_in(arguments, patience, stop, |pid| share.iter().for_each(|share| share.enter(pid))).await;
    let failure = match output {
        _ if Record::open(directory).is_ok() => None,
        None => Some("it was interrupted".to_owned()),
        Some(Err(why)) => Some(why),
        Some(Ok(output)) => Some(match serde_json::from_slice::<Answer>(&output.stdout) {
            Ok(answer) if !answer.reason.is_empty() => answer.reason,
            _ => format!("the run left no record {}", itself::last_words(&output)),
        }),
    };
    Run { at, folder, failure }
}

/// The arguments of `longhaul soak` for one run.
fn arguments(choice: &Choice, start: &crate::clients::Start, folder: &str) -> Vec<String> {
    let mut words = vec!["soak".to_owned(), choice.scenario.clone()];
    words.extend([
        "--seed".to_owned(),
        choice.source.scenario.seed.to_string(),
        "--json".to_owned(),
        "--quiet".to_owned(),
    ]);
    words.extend(["--run-dir".to_owned(), choice.out.join(folder).display().to_string()]);
    words.extend(choice.flags.iter().cloned());
    words.extend(start.http.into_iter().flat_map(|version| ["--http".to_owned(), version.to_string()]));
    if !start.cannot.is_empty() {
        words.extend(["--cannot".to_owned(), start.cannot.join(",")]);
    }
    if !start.command.is_empty() {
        words.push("--".to_owned());
        words.extend(start.command.iter().cloned());
    }
    words
}

fn entrants(choice: &Choice, mut runs: Vec<Run>) -> Vec<Entrant> {
    runs.sort_by(|a, b| (a.at, &a.folder).cmp(&(b.at, &b.folder)));
    let entrant = |(at, subject): (usize, &Subject)| {
        let mut entrant = Entrant {
            name: subject.name.clone(),
            command: subject.word.clone(),
            runs: Vec::new(),
            folders: Vec::new(),
            failure: None,
        };
        let own: Vec<&Run> = runs.iter().filter(|run| run.at == at).collect();
        if own.is_empty() {
            entrant.failure = Some("it was not played".to_owned());
        }
        for run in own {
            match Record::open(&choice.out.join(&run.folder)) {
                Ok(record) => {
                    let judgement = judge(&record);
                    entrant.runs.push((record, judgement));
                    entrant.folders.push(run.folder.clone());
                }
                Err(error) => entrant.failure = Some(run.failure.clone().unwrap_or_else(|| error.to_string())),
            }
        }
        entrant
    };
    choice.subjects.iter().enumerate().map(entrant).collect()
}

/// A note, if needed, that only the built-in service gets the scenario's admission reviews, and subjects with a command
/// get none.
fn unlike_load(choice: &Choice, are_service: &[bool]) -> Option<String> {
    let mixed = are_service.contains(&true) && are_service.contains(&false);
    (mixed && choice.source.scenario.admission.is_some()).then(|| {
        "Longhaul's own service also got admission reviews, unlike the commands: its processor time and memory include them"
            .to_owned()
    })
}

pub(crate) fn write(folder: &Path, compared: &Comparison, entrants: &[Entrant]) -> Result<()> {
    let page = reports::render::compare_html(compared, entrants)?;
    let json = serde_json::to_string_pretty(compared)? + "\n";
    for (name, text) in FILES.into_iter().zip([page, reports::render::compare_markdown(compared), json]) {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}
