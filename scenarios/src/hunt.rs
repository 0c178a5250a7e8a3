//! `longhaul hunt`: finds bugs that nobody wrote a scenario for.
//!
//! Owns the course of a hunt: references, search, replays of what looks wrong, and the result. Every trial is an
//! ordinary run in its own process. The modules without I/O decide what is played and what a play means.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use anyhow::Result;
use reports::hunt::{Baseline, Coverage, Ending, Found, Hunt, SCHEMA, Sign, What};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) mod audit;
mod bystanders;
mod causes;
mod children;
mod compare;
pub(crate) mod confirm;
mod copies;
mod course;
pub(crate) mod disturb;
pub(crate) mod files;
pub(crate) mod normal;
mod operations;
mod overlay;
mod peaks;
pub(crate) mod points;
mod reference;
pub(crate) mod rows;
pub(crate) mod schedule;
mod story;
mod trial;
mod undisturbed;
pub(crate) mod watching;
pub(crate) mod webhook;

use causes::{Causes, names};
use children::children;
use confirm::{Confirmed, References, all_signs, confirm};
use disturb::{Disturbance, Fits, HOLD_MS, Kind};
use operations::Operations;
use overlay::{Trial, is_command, processes};
use points::{Signature, counted};
use schedule::{Planned, Search, Stage};
use trial::{Outcome, Played, Player};
use undisturbed::{Known, REFERENCES, baseline, references, undisturbed};

/// Number of failed trials in a row after which a hunt ends: something is wrong with the machine.
const BROKEN_MAX: u32 = 8;
/// Number of failed trials with another clock, without one that succeeded, after which the clock is left alone.
const CLOCK_FAILED_MAX: u32 = 2;
/// Maximum number of findings; a subject with more needs its first ones mended.
const FINDINGS_MAX: usize = 20;
/// Maximum number of course hashes that are remembered.
const SHAPES_MAX: usize = 100_000;
/// Time by which renewals of a Lease fail longer than the Lease lasts, and the longest such time, in milliseconds.
const LEASE_MARGIN_MS: u64 = 300;
const LEASE_MAX_MS: u64 = 4000;
/// Interval of progress lines.
const SAY_EVERY: Duration = Duration::from_secs(15);
/// Settings from the command line.
pub(crate) struct Choice {
    pub(crate) path: String,
    /// The contents of the scenario file.
    pub(crate) file: Map<String, Value>,
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) seed: u64,
    pub(crate) lasts: Duration,
    pub(crate) trials: Option<u32>,
    pub(crate) jobs: usize,
    /// The number of findings after which the hunt ends.
    pub(crate) findings: Option<u32>,
    /// The quiet after which a wrong end is a finding in any case.
    pub(crate) patience: Duration,
    /// Disturbances that are tried although many correct watch clients do not survive them.
    pub(crate) rare: Vec<rows::Rare>,
    /// Arguments for each run.
    pub(crate) arguments: Vec<String>,
    /// Whether the subject has webhooks that a run can start and ask.
    pub(crate) asks: bool,
    /// Whether trials may change the program's clock.
    pub(crate) clock: bool,
    /// How many times faster the program's clock is than real time.
    pub(crate) clock_rate: u32,
    /// An object as the user would create it, if the file or its definitions have one.
    pub(crate) sample: Option<Value>,
    pub(crate) repeat: String,
    /// The folder for the result.
    pub(crate) out: PathBuf,
}

/// Hunts, and writes the result. A result that cannot be written says so, and is returned all the same.
pub(crate) async fn hunt(choice: &Choice, stop: &CancellationToken, say: &(dyn Fn(String) + Sync)) -> Result<Hunt> {
    let began = Instant::now();
    let started_at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let is_webhook = webhook::is_alone(&choice.file);
    let operations = Operations::of(&choice.file);
    let mut operations = if is_webhook {
        operations.unwrap_or_default()
    } else {
        operations.map_err(|why| anyhow::anyhow!("{}: {why}", choice.path))?
    };
    if let Some(sample) = &choice.sample {
        operations.scale_like(sample);
    }
    if watching::reports_events(&choice.file) {
        operations.watch();
    }
    let mut player = Player {
        path: choice.path.clone(),
        file: choice.file.clone(),
        operations,
        arguments: choice.arguments.clone(),
        folder: choice.out.join("trials"),
        places: Semaphore::new(choice.jobs),
        replays: Semaphore::new(choice.jobs),
        stop: stop.child_token(),
        number: AtomicU32::new(1),
        patient_ms: u64::try_from(choice.patience.as_millis()).unwrap_or(u64::MAX),
    };
    let mut result = Hunt {
        schema: SCHEMA.to_owned(),
        started_at,
        longhaul: env!("CARGO_PKG_VERSION").to_owned(),
        machine: crate::machine::machine(),
        scenario: choice.name.clone(),
        command: choice.command.clone(),
        seed: choice.seed,
        repeat: choice.repeat.clone(),
        seconds: 0.0,
        ending: Ending::Done,
        findings: Vec::new(),
        reference: Baseline::default(),
        coverage: Coverage::default(),
        webhooks: None,
        notes: Vec::new(),
    };
    Box::pin(webhook::ask(choice, stop, &mut result, say)).await;
    let known = if is_webhook {
        Ok(None)
    } else {
        say(format!("{REFERENCES} plays of {} objects without disturbances …", player.operations.resource()));
        Box::pin(references(&mut player, say)).await
    };
    match known {
        Ok(Some(known)) => {
            result.reference = baseline(&known.reference, &player.operations);
            let failed = known.failed.iter();
            result.notes.extend(failed.map(|why| format!("A play without disturbances failed: {why}")));
            let of_sign = |sign| undisturbed(sign, &known, &player.operations);
            result.findings.extend(known.findings.iter().map(of_sign));
            let player = Arc::new(player);
            Box::pin(search(choice, &player, known, began, &mut result, say)).await;
        }
        Ok(None) => {}
        Err(stopped) => {
            if let Some(known) = &stopped.known {
                let of_sign = |sign| undisturbed(sign, known, &player.operations);
                result.findings.extend(known.findings.iter().map(of_sign));
            }
            result.ending = Ending::Stopped { why: stopped.why };
        }
    }
    if stop.is_cancelled() {
        result.ending = Ending::Interrupted;
    }
    let _ = std::fs::remove_dir_all(choice.out.join("trials"));
    result.seconds = began.elapsed().as_secs_f64();
    result.findings.sort_by(|one, other| {
        other.odds.failed.cmp(&one.odds.failed).then_with(|| one.sign.what.cmp(&other.sign.what))
    });
    if let Err(error) = files::write(&choice.out, &result) {
        let why = format!("the result could not be written: {error:#}.");
        result.notes.push(why.clone());
        result.ending = Ending::Stopped { why };
    }
    Ok(result)
}

/// A task of the search.
enum Done {
    Trial(Planned, Outcome),
    Confirmed(Sign, Vec<&'static str>, Option<Box<Confirmed>>),
}

/// The state of a search.
struct Course<'a> {
    choice: &'a Choice,
    player: Arc<Player>,
    references: Arc<References>,
    known: Arc<Vec<Sign>>,
    quiet_ms: u64,
    search: Search,
    tasks: JoinSet<Done>,
    /// Number of the tasks that are trials; the others replay signs.
    trials: usize,
    causes: Causes,
    /// The end of the time of the hunt: from then on no trial begins, and findings are not shrunk further.
    ends: Instant,
    shapes: BTreeSet<u64>,
    disturbances: BTreeMap<&'static str, (u32, u32)>,
    coverage: Coverage,
    broken_in_a_row: u32,
    why_broken: Option<String>,
    /// Number of failed trials with another clock.
    clock_failed: u32,
    notes: Vec<String>,
}

async fn search(
    choice: &Choice,
    player: &Arc<Player>,
    known: Known,
    began: Instant,
    result: &mut Hunt,
    say: &(dyn Fn(String) + Sync),
) {
    let Known { reference, findings, quiet_ms, plays, .. } = known;
    let audits: Vec<&audit::Audit> = plays.iter().map(|played| &played.audit).collect();
    let kills = is_command(&choice.file);
    // Timeouts of minutes pass in seconds if the program's clock is faster, and only a long hold outlasts them.
    let hold_ms = if choice.clock_rate > 1 { 2 * HOLD_MS } else { HOLD_MS };
    let processes = processes(&choice.file);
    let children = children(&reference, &audits, &player.operations);
    let lease_ms = lease(&audits, choice.clock_rate);
    let clock = choice.clock && kills;
    let fits = Fits { kills, clock, requests: true, hold_ms, children, lease_ms, processes };
    let operations = &player.operations;
    let more = if operations.watches() {
        watching::singles(operations.plural(), &reference.watched, operations.is_own(), &choice.rare)
    } else {
        Vec::new()
    };
    let search = Search::with(choice.seed, &reference.points, &reference.watched, &fits, more);
    let singles = u32::try_from(search.singles()).unwrap_or(u32::MAX);
    say(format!("{singles} single disturbances; {} trials at once …", choice.jobs));
    let mut course = Course {
        choice,
        player: Arc::clone(player),
        references: Arc::new(References::new(reference, quiet_ms)),
        known: Arc::new(findings),
        quiet_ms,
        search,
        tasks: JoinSet::new(),
        trials: 0,
        causes: Causes::default(),
        ends: began + choice.lasts,
        shapes: plays.iter().map(shape).collect(),
        disturbances: BTreeMap::new(),
        coverage: Coverage { singles: (0, singles), ..Coverage::default() },
        broken_in_a_row: 0,
        why_broken: None,
        clock_failed: 0,
        notes: Vec::new(),
    };
    let mut said = Instant::now();
    loop {
        if course.has_enough(result) {
            player.stop.cancel();
        }
        while course.wants_more() {
            let Some(planned) = course.search.next() else { break };
            course.begin(planned);
        }
        let Some(done) = course.tasks.join_next().await else { break };
        match done {
            Ok(Done::Trial(planned, outcome)) => {
                course.trials -= 1;
                course.trial(&planned, outcome, say);
            }
            Ok(Done::Confirmed(sign, names, confirmed)) => course.confirmed(&sign, &names, confirmed, result, say),
            Err(error) => result.notes.push(format!("A trial ended with an error of Longhaul: {error}.")),
        }
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            say(course.progress(began, result.findings.len()));
        }
    }
    result.notes.append(&mut course.notes);
    result.notes.extend(no_jump(course.disturbances.get(Kind::Time.name()).copied()));
    if let Some(why) = course.why_broken.take() {
        result.ending = Ending::Stopped { why };
    }
    for found in &mut result.findings {
        if let Some(cause) = course.causes.of(&found.sign) {
            found.shown_by = cause.names.iter().map(|name| (*name).to_owned()).collect();
            found.trials = cause.trials;
        }
    }
    course.coverage.shapes = u32::try_from(course.shapes.len()).unwrap_or(u32::MAX);
    let disturbances = course.disturbances.iter().map(|(name, (trials, hits))| ((*name).to_owned(), *trials, *hits));
    course.coverage.disturbances = disturbances.collect();
    result.coverage = course.coverage;
}

impl Course<'_> {
    /// Whether the user wants no further findings.
    fn has_enough(&self, result: &Hunt) -> bool {
        self.choice.findings.is_some_and(|most| result.findings.len() >= most as usize)
    }

    /// Whether another trial begins now.
    fn wants_more(&self) -> bool {
        let is_over = Instant::now() >= self.ends || self.player.stop.is_cancelled();
        let is_full = self.choice.trials.is_some_and(|most| self.coverage.trials >= most);
        let is_broken = self.why_broken.is_some() || self.causes.len() >= FINDINGS_MAX;
        // While replays may bring the last wanted finding, they get all places.
        let known = u32::try_from(self.causes.len()).unwrap_or(u32::MAX);
        let may_be_enough = self.choice.findings.is_some_and(|most| known >= most);
        !is_over && !is_full && !is_broken && !may_be_enough && self.trials < self.choice.jobs
    }

    fn begin(&mut self, planned: Planned) {
        self.coverage.trials += 1;
        self.trials += 1;
        let player = Arc::clone(&self.player);
        let trial = Trial::disturbed(planned.disturbances.clone(), self.quiet_ms);
        self.tasks.spawn(async move {
            let outcome = player.play(&trial).await;
            Done::Trial(planned, outcome)
        });
    }

    /// Learns from a trial.
    fn trial(&mut self, planned: &Planned, outcome: Outcome, say: &(dyn Fn(String) + Sync)) {
        let played = match outcome {
            Outcome::Played(played) => played,
            Outcome::Interrupted => {
                self.coverage.trials -= 1;
                return;
            }
            Outcome::Broken(why) => {
                self.coverage.broken += 1;
                say(format!("a trial failed: {why}"));
                if planned.disturbances.iter().any(|one| one.kind == Kind::Time) {
                    self.clock_fails(&why);
                    return;
                }
                self.broken_in_a_row += 1;
                if self.broken_in_a_row >= BROKEN_MAX {
                    self.why_broken = Some(format!("{BROKEN_MAX} trials in a row failed. The last one: {why}"));
                }
                return;
            }
        };
        self.broken_in_a_row = 0;
        match planned.stage {
            Stage::Single => self.coverage.singles.0 += 1,
            Stage::Pair => self.coverage.pairs += 1,
            Stage::Other => self.coverage.others += 1,
        }
        // Some disturbances of watch clients are other changes, and no fault.
        let hits = &played.audit.hits;
        let had_effect = hits.is_empty() || hits.iter().any(|hits| *hits > 0);
        self.coverage.without_effect += u32::from(!had_effect);
        for disturbance in &planned.disturbances {
            let counts = self.disturbances.entry(disturbance.kind.name()).or_default();
            counts.0 += 1;
            counts.1 += u32::from(had_effect);
        }
        if self.shapes.len() < SHAPES_MAX && self.shapes.insert(shape(&played)) {
            self.search.is_new(&planned.disturbances);
        }
        let signs = all_signs(&self.references.all, &self.known, &played, &planned.disturbances);
        let Some(first) = signs.first() else { return };
        if self.causes.add(&signs, planned) {
            say(format!("looks wrong: {} ({})", first.sentence(), names(planned).join(" and ")));
            self.replay(planned, first.clone());
        }
    }

    /// Plays a trial again that shows a sign.
    fn replay(&mut self, planned: &Planned, sign: Sign) {
        let (player, references, known) =
            (Arc::clone(&self.player), Arc::clone(&self.references), Arc::clone(&self.known));
        let trial = Trial::disturbed(planned.disturbances.clone(), self.quiet_ms);
        let (names, kills, ends) = (names(planned), is_command(&self.choice.file), self.ends);
        self.tasks.spawn(async move {
            let confirmed = Box::pin(confirm(&player, &references, &known, &trial, &sign, kills, ends)).await;
            Done::Confirmed(sign, names, confirmed.map(Box::new))
        });
    }

    /// Handles a failed trial with another clock: a machine may forbid that for every process.
    fn clock_fails(&mut self, why: &str) {
        self.clock_failed += 1;
        let name = Kind::Time.name();
        let ever = self.disturbances.contains_key(name);
        if ever || self.clock_failed != CLOCK_FAILED_MAX {
            return;
        }
        let left = u32::try_from(self.search.leave_out(name)).unwrap_or(0);
        self.coverage.singles.1 -= (left + self.clock_failed).min(self.coverage.singles.1);
        self.notes.push(format!("The program's clock was not changed, because such trials failed: {why}"));
    }

    /// Adds a confirmed finding to the result, or forgets a cause that no replay showed.
    fn confirmed(
        &mut self,
        sign: &Sign,
        names: &[&'static str],
        confirmed: Option<Box<Confirmed>>,
        result: &mut Hunt,
        say: &(dyn Fn(String) + Sync),
    ) {
        let Some(confirmed) = confirmed else {
            if self.player.stop.is_cancelled() {
                result.notes.push(format!("The hunt ended before this sign was confirmed: {}", sign.sentence()));
            } else {
                self.coverage.unconfirmed += 1;
                say(format!("not seen again: {}", sign.sentence()));
            }
            let is_over = Instant::now() >= self.ends || self.player.stop.is_cancelled();
            if let Some(next) = self.causes.not_again(sign).filter(|_| !is_over) {
                self.replay(&next, sign.clone());
            }
            return;
        };
        let Confirmed { trial, odds, sign, also, played, reference, healing } = *confirmed;
        let operations = &self.player.operations;
        let scenario = |name: &str| trial.saved(&self.choice.file, operations, name, &sign);
        let (scenario, play) = files::saved(self.choice, scenario, &mut result.notes);
        say(format!("finding: {} {}", sign.sentence(), odds.words()));
        result.findings.push(Found {
            title: sign.sentence(),
            also: also.into_iter().filter(|other| other.what != What::Field).collect(),
            disturbances: trial.disturbances.iter().map(Disturbance::describe).collect(),
            shown_by: names.iter().map(|name| (*name).to_owned()).collect(),
            trials: 1,
            odds,
            healing,
            story: story::of_trial(&played, operations, trial.extent),
            without: story::without(&reference.writes, operations, trial.extent),
            scenario,
            play,
            sign,
        });
        // A full disk or a kill must not lose the findings so far.
        let _ = files::write(&self.choice.out, result);
    }

    fn progress(&self, began: Instant, findings: usize) -> String {
        let Coverage { trials, singles, pairs, .. } = &self.coverage;
        let minutes = began.elapsed().as_secs_f64() / 60.0;
        format!(
            "{minutes:.1} min: {trials} trials ({} of {} single, {pairs} pairs), {} courses, {findings} findings",
            singles.0,
            singles.1,
            self.shapes.len()
        )
    }
}

/// The time after which the subject's leader has lost a Lease that it cannot renew, in milliseconds; `None` if it renews no
/// Lease, or if this takes longer than a trial.
fn lease(plays: &[&audit::Audit], clock_rate: u32) -> Option<u64> {
    let play = plays.first()?;
    let renews = play.writes.iter().any(|write| write.resource == disturb::LEASES);
    let leases = play.objects.iter().filter(|one| renews && one.resource == disturb::LEASES);
    let seconds = leases.filter_map(|lease| lease.object["spec"]["leaseDurationSeconds"].as_u64()).max()?;
    let lost_ms = (seconds.saturating_mul(1000) / u64::from(clock_rate.max(1))).saturating_add(LEASE_MARGIN_MS);
    (lost_ms <= LEASE_MAX_MS).then_some(lost_ms)
}

/// Says that the clock never jumped, if that was tried: `(trials, hits)`. Then some programs cannot have another clock.
fn no_jump(counts: Option<(u32, u32)>) -> Option<String> {
    let (trials, _) = counts.filter(|(trials, hits)| *trials > 1 && *hits == 0)?;
    let why = "A `soak` of your file with the fault `clock-jump` says why";
    Some(format!("The program's clock jumped in none of {trials} trials, so time was not tried. {why}."))
}

/// A number for the course of a play: its kinds of writes with their answers, and the objects at its end.
fn shape(played: &Played) -> u64 {
    let mut hasher = DefaultHasher::new();
    for signature in counted(&played.audit).keys() {
        signature.hash(&mut hasher);
    }
    let refused = played.audit.writes.iter().filter(|write| write.status >= 300);
    let refused: BTreeSet<(String, u16)> =
        refused.map(|write| (Signature::of(write).describe(), write.status)).collect();
    refused.hash(&mut hasher);
    for key in normal::objects(&played.audit.objects).keys() {
        key.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_never_jumps_is_said() {
        assert!(no_jump(Some((3, 0))).is_some_and(|note| note.contains("none of 3 trials")));
        assert_eq!([None, Some((1, 0)), Some((3, 2))].map(no_jump), [None, None, None]);
    }
}
