//! Plays one trial: one ordinary run of `longhaul soak` in its own process.
//!
//! Owns the files of a trial, its time limit, and what a trial's result means. The files are removed after the trial,
//! so the disk usage of a hunt is bounded.

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use reports::hunt::{Sign, What};
use reports::judge::{Finding, Judgement, Verdict};
use reports::record::{FaultRow, file};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::audit::Audit;
use super::operations::Operations;
use super::overlay::Trial;
use super::peaks::Peaks;
use super::watching;

/// Time of a trial beyond its phases, after which the trial counts as hanging: the start of the subject and its end.
const PATIENCE: Duration = Duration::from_secs(90);
/// The part of the quiet in which a subject may still be busy. After it a play only waits, and another one may begin.
const BUSY_QUIET_MS: u64 = 15_000;
/// Largest audit of a trial, in bytes.
const AUDIT_MAX: u64 = 64 << 20;
/// Maximum number of events of faults that are kept.
const EVENTS_MAX: usize = 100;
/// The observation of `validity.completed` if the witness carried nothing.
const SILENT: &str = "witness silent";
/// Longest text of a sign, in characters.
const TEXT_MAX: usize = 400;

/// Plays trials, a limited number at once.
pub(crate) struct Player {
    /// The user's scenario file, and its contents.
    pub(crate) path: String,
    pub(crate) file: Map<String, Value>,
    pub(crate) operations: Operations,
    /// Further arguments of each run.
    pub(crate) arguments: Vec<String>,
    /// The folder for the files of trials.
    pub(crate) folder: PathBuf,
    /// Limits the plays that are busy.
    pub(crate) places: Semaphore,
    /// Limits the replays, busy or not: without it, replays would leave no place to new trials.
    pub(crate) replays: Semaphore,
    pub(crate) stop: CancellationToken,
    pub(crate) number: AtomicU32,
    /// The quiet after which a wrong end is a finding in any case, in milliseconds.
    pub(crate) patient_ms: u64,
}

/// The facts of a trial that was played.
#[derive(Debug, Clone, Default)]
pub(crate) struct Played {
    pub(crate) audit: Audit,
    /// The broken budgets that are signs of a bug.
    pub(crate) judged: Vec<Sign>,
    /// The first events of faults, for people.
    pub(crate) faults: Vec<FaultRow>,
    /// The highest numbers of a watch client.
    pub(crate) peaks: Peaks,
    /// Whether the witness carried nothing.
    pub(crate) is_silent: bool,
}

/// How a trial ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Played(Box<Played>),
    /// The trial says nothing about the subject; the text is the reason.
    Broken(String),
    Interrupted,
}

impl Player {
    /// Plays a trial again when few enough others are played again.
    pub(crate) async fn play_again(&self, trial: &Trial) -> Outcome {
        let Ok(_replay) = self.replays.acquire().await else { return Outcome::Interrupted };
        self.play(trial).await
    }

    /// Plays a trial when a place is free. The place is free again once the play only waits.
    pub(crate) async fn play(&self, trial: &Trial) -> Outcome {
        let Ok(place) = self.places.acquire().await else { return Outcome::Interrupted };
        if self.stop.is_cancelled() {
            return Outcome::Interrupted;
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("trial-{number}"));
        let (scenario, length_ms) = trial.scenario(&self.file, &self.operations);
        let busy_ms = length_ms.saturating_sub(trial.quiet_ms.saturating_sub(BUSY_QUIET_MS));
        let run = self.run(trial, scenario, length_ms, &folder);
        let outcome = while_busy(place, Duration::from_millis(busy_ms), run).await;
        let _ = std::fs::remove_dir_all(&folder);
        outcome.unwrap_or_else(Outcome::Broken)
    }

    async fn run(
        &self,
        trial: &Trial,
        scenario: Map<String, Value>,
        length_ms: u64,
        folder: &Path,
    ) -> Result<Outcome, String> {
        let fails = |what: &str, error: std::io::Error| format!("failed to write {what}: {error}");
        std::fs::create_dir_all(folder).map_err(|error| fails("the folder of a trial", error))?;
        let (text, audit) = (folder.join("trial.yaml"), folder.join("audit.json"));
        std::fs::write(&text, Value::Object(scenario).to_string()).map_err(|error| fails("a trial", error))?;
        let path = |path: &Path| path.display().to_string();
        let mut arguments = vec!["soak".to_owned(), self.path.clone()];
        for (flag, value) in
            [("--trial", path(&text)), ("--audit", path(&audit)), ("--run-dir", path(&folder.join("run")))]
        {
            arguments.extend([flag.to_owned(), value]);
        }
        arguments.extend(["--json", "--quiet"].map(str::to_owned));
        arguments.extend(self.arguments.iter().cloned());
        let patience = Duration::from_millis(length_ms) + PATIENCE;
        match crate::itself::play(&arguments, patience, &self.stop).await {
            None => Ok(Outcome::Interrupted),
            Some(Err(why)) => Ok(Outcome::Broken(why)),
            Some(Ok(output)) => match serde_json::from_slice::<Judgement>(&output.stdout) {
                Ok(judgement) => {
                    let watches = self.operations.watches();
                    let judges = |budget: &str| {
                        let observed = watches && watching::is_judged(budget, &trial.disturbances);
                        observed || super::compare::is_judged(budget)
                    };
                    let mut outcome = outcome(&judgement, &audit, judges)?;
                    if let Outcome::Played(played) = &mut outcome {
                        let record = folder.join("run");
                        played.faults = events(&record.join(file::FAULTS));
                        if watches {
                            played.peaks = Peaks::read(&record, played.audit.watched.len());
                        }
                    }
                    Ok(outcome)
                }
                Err(_) => Err(crate::itself::last_words(&output)),
            },
        }
    }
}

/// The result of a play, which has its place for so long at most.
async fn while_busy<T>(place: SemaphorePermit<'_>, busy: Duration, play: impl Future<Output = T>) -> T {
    let mut play = std::pin::pin!(play);
    tokio::select! {
        result = &mut play => return result,
        () = tokio::time::sleep(busy) => drop(place),
    }
    play.await
}

/// The outcome of a judged trial.
fn outcome(judgement: &Judgement, audit: &Path, judges: impl Fn(&str) -> bool) -> Result<Outcome, String> {
    let failed = judgement.findings.iter().filter(|finding| finding.verdict == Verdict::Fail);
    let judged: Vec<Sign> = failed.filter(|finding| judges(&finding.budget)).map(of_judge).collect();
    let completed = judgement.findings.iter().find(|finding| finding.budget == "validity.completed");
    let ended = completed.filter(|finding| finding.verdict != Verdict::Pass && finding.observed != SILENT);
    if let Some(ended) = ended.filter(|_| judged.is_empty()) {
        return Ok(Outcome::Broken(shortened(&ended.text)));
    }
    let audit = read(audit)?;
    if let Some(why) = &audit.lacks {
        return Ok(Outcome::Broken(format!("its audit is incomplete: {why}")));
    }
    let is_silent = completed.is_some_and(|finding| finding.observed == SILENT);
    Ok(Outcome::Played(Box::new(Played { audit, judged, is_silent, ..Played::default() })))
}

fn of_judge(finding: &Finding) -> Sign {
    Sign {
        what: What::Judge,
        subject: finding.budget.clone(),
        object: None,
        field: None,
        happened: shortened(&finding.text),
        expected: finding.limit.clone(),
        most: None,
        value: None,
    }
}

/// The first events of faults in a record; none if they cannot be read, because they are only for people.
fn events(path: &Path) -> Vec<FaultRow> {
    let Ok(file) = std::fs::File::open(path) else { return Vec::new() };
    let lines = std::io::BufReader::new(file.take(AUDIT_MAX)).lines().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str(&line).ok()).take(EVENTS_MAX).collect()
}

fn read(path: &Path) -> Result<Audit, String> {
    let fails = |error: std::io::Error| format!("failed to read the audit of a trial: {error}");
    let file = std::fs::File::open(path).map_err(fails)?;
    let mut text = String::new();
    let length = file.take(AUDIT_MAX + 1).read_to_string(&mut text).map_err(fails)?;
    if length as u64 > AUDIT_MAX {
        let most = AUDIT_MAX >> 20;
        return Err(format!("the audit of a trial has more than {most} MiB: use fewer or smaller objects"));
    }
    serde_json::from_str(&text).map_err(|error| format!("failed to read the audit of a trial: {error}"))
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = line.chars().count();
    if length <= TEXT_MAX {
        return line;
    }
    // The end of a program's last words names the reason.
    let half = TEXT_MAX / 2;
    let (head, tail) = (line.chars().take(half), line.chars().skip(length - half));
    head.chain(" … ".chars()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::compare::is_judged;
    use super::*;

    /// A play that only waits for a late end leaves its place to another one.
    #[tokio::test(start_paused = true)]
    async fn a_play_that_waits_has_no_place() {
        let places = Semaphore::new(1);
        let began = tokio::time::Instant::now();
        let place = places.acquire().await.unwrap();
        let play = while_busy(place, Duration::from_secs(20), async {
            tokio::time::sleep(Duration::from_secs(90)).await;
            began.elapsed().as_secs()
        });
        let next = async {
            let _place = places.acquire().await.unwrap();
            began.elapsed().as_secs()
        };
        assert_eq!(tokio::join!(play, next), (90, 20));
    }

    /// A play that ends early frees its place at once.
    #[tokio::test(start_paused = true)]
    async fn a_short_play_frees_its_place() {
        let places = Semaphore::new(1);
        let place = places.acquire().await.unwrap();
        assert_eq!(while_busy(place, Duration::from_secs(20), async { 7 }).await, 7);
        assert_eq!(places.available_permits(), 1);
    }

    fn judgement(findings: &[(&str, &str, &str)]) -> Judgement {
        let finding = |(budget, verdict, observed): &(&str, &str, &str)| json!({"judge": "x", "budget": budget, "verdict": verdict, "observed": observed, "limit": "0", "text": format!("{budget}\n broke.")});
        let findings: Vec<Value> = findings.iter().map(finding).collect();
        serde_json::from_value(json!({
            "schema": "longhaul.verdict/v1", "runId": "r", "name": "n", "seed": 1, "verdict": "pass", "exitCode": 0, "reason": "",
            "findings": findings, "notes": [],
        }))
        .unwrap()
    }

    #[test]
    fn only_budgets_of_bugs_are_signs() {
        let folder = tempfile::tempdir().unwrap();
        let audit = folder.path().join("audit.json");
        std::fs::write(&audit, serde_json::to_string(&Audit::default()).unwrap()).unwrap();
        let done = ("validity.completed", "pass", "completed");
        let found = judgement(&[done, ("events.missed", "fail", "2"), ("objects.resurrected", "fail", "1")]);
        let Ok(Outcome::Played(played)) = outcome(&found, &audit, is_judged) else { panic!("it was played") };
        assert_eq!(played.judged.len(), 1);
        assert_eq!(played.judged[0].sentence(), "objects.resurrected: objects.resurrected broke.");
        let silent = judgement(&[("validity.completed", "inconclusive", "witness silent")]);
        assert!(matches!(outcome(&silent, &audit, is_judged), Ok(Outcome::Played(_))), "a trial needs no witness");
    }

    #[test]
    fn a_trial_that_did_not_end_is_broken() {
        let none = Path::new("/nonexistent/audit.json");
        let not_ready = judgement(&[("validity.completed", "invalid", "not ready")]);
        let Ok(Outcome::Broken(why)) = outcome(&not_ready, none, is_judged) else { panic!("it is broken") };
        assert_eq!(why, "validity.completed broke.");
        assert!(outcome(&judgement(&[("validity.completed", "pass", "completed")]), none, is_judged).is_err());
    }
}
