//! `longhaul hunt`: finds bugs that nobody wrote a scenario for.
//!
//! Owns the course of a hunt: references, search, replays of what looks wrong, and the result. Every trial is an
//! ordinary run in its own process. The modules without I/O decide what is played and what a play means.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use reports::hunt::{Baseline, Coverage, Ending, Found, Hunt, Odds, SCHEMA, Sign, What};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) mod audit;
mod compare;
mod confirm;
mod disturb;
pub(crate) mod normal;
mod operations;
mod overlay;
mod points;
mod reference;
mod schedule;
mod trial;

use audit::is_ignored;
use confirm::{Confirmed, QUIET_FACTOR, References, all_of, all_signs, confirm, story};
use disturb::{Disturbance, HOLD_MS};
use operations::{Extent, Operations, QUIET_MS};
use overlay::{Trial, is_command};
use points::{Signature, counted};
use reference::Reference;
use schedule::{Fits, Planned, Search, Stage};
use trial::{Outcome, Played, Player};

/// The files of a result.
pub(crate) const FILES: [&str; 4] = ["hunt.html", "hunt.md", "hunt.json", "junit.xml"];
/// Number of plays without disturbances.
const REFERENCES: u32 = 3;
/// Number of failed trials in a row after which a hunt ends: something is wrong with the machine.
const BROKEN_MAX: u32 = 8;
/// Maximum number of findings; a subject with more needs its first ones mended.
const FINDINGS_MAX: usize = 20;
/// Maximum number of course hashes that are remembered.
const SHAPES_MAX: usize = 100_000;
/// Interval of progress lines.
const SAY_EVERY: Duration = Duration::from_secs(15);
/// Maximum number of masked fields in the result.
const MASKED_MAX: usize = 200;

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
    /// Arguments for each run.
    pub(crate) arguments: Vec<String>,
    /// Whether trials may change the program's clock.
    pub(crate) clock: bool,
    /// Whether the program's clock is faster than real time.
    pub(crate) is_hurried: bool,
    pub(crate) repeat: String,
    /// The folder for the result.
    pub(crate) out: PathBuf,
}

/// Hunts, and writes the result.
pub(crate) async fn hunt(choice: &Choice, stop: &CancellationToken, say: &(dyn Fn(String) + Sync)) -> Result<Hunt> {
    let began = Instant::now();
    let started_at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let operations = Operations::of(&choice.file).map_err(|why| anyhow::anyhow!("{}: {why}", choice.path))?;
    let player = Player {
        path: choice.path.clone(),
        file: choice.file.clone(),
        operations,
        arguments: choice.arguments.clone(),
        folder: choice.out.join("trials"),
        places: Semaphore::new(choice.jobs),
        stop: stop.clone(),
        number: AtomicU32::new(1),
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
        notes: Vec::new(),
    };
    say(format!("{REFERENCES} plays of {} objects without disturbances …", player.operations.resource()));
    match Box::pin(references(&player, say)).await {
        Ok(Some(known)) => {
            result.reference = baseline(&known.reference);
            result.findings = known.findings.iter().map(|sign| undisturbed(sign, &known)).collect();
            let player = Arc::new(player);
            Box::pin(search(choice, &player, known, began, &mut result, say)).await;
        }
        Ok(None) => {}
        Err(why) => result.ending = Ending::Stopped { why },
    }
    if stop.is_cancelled() {
        result.ending = Ending::Interrupted;
    }
    let _ = std::fs::remove_dir_all(choice.out.join("trials"));
    result.seconds = began.elapsed().as_secs_f64();
    result.findings.sort_by(|one, other| {
        other.odds.failed.cmp(&one.odds.failed).then_with(|| one.sign.what.cmp(&other.sign.what))
    });
    write(&choice.out, &result)?;
    Ok(result)
}

/// The results of the references.
struct Known {
    reference: Reference,
    /// Signs of judges that the subject shows without disturbances.
    findings: Vec<Sign>,
    /// Number of references with each of these signs.
    times: Vec<u32>,
    plays: Vec<Played>,
    /// The length of the quiet of trials, in milliseconds.
    quiet_ms: u64,
}

/// Plays the references. `None` after an interruption; the error says why no search is possible, and what would help.
async fn references(player: &Player, say: &(dyn Fn(String) + Sync)) -> Result<Option<Known>, String> {
    let mut quiet_ms = QUIET_MS;
    loop {
        let mut plays = Vec::new();
        for outcome in all_of(player, &Trial::reference(quiet_ms), REFERENCES).await {
            match outcome {
                Outcome::Played(played) => plays.push(*played),
                Outcome::Interrupted => return Ok(None),
                Outcome::Broken(why) => {
                    return Err(format!(
                        "without any disturbance, a play failed: {why} `longhaul soak {}` shows more.",
                        player.path
                    ));
                }
            }
        }
        let restless = restless(&plays, player.operations.phases(quiet_ms).1);
        if let (Some(writes), true) = (&restless, quiet_ms == QUIET_MS) {
            quiet_ms *= QUIET_FACTOR;
            say(format!("it still writes at the end ({writes}); the quiet is now {} s …", quiet_ms / 1000));
            continue;
        }
        if let Some(writes) = restless {
            return Err(format!(
                "the subject never settles: {writes} in the last second of each play. A longer quiet, another sample, or the missing \
                 program beside it (`--beside`) may help."
            ));
        }
        let audits: Vec<audit::Audit> = plays.iter().map(|played| played.audit.clone()).collect();
        let reference = Reference::of(&audits);
        if reference.points.is_empty() {
            return Err(
                "the subject writes nothing that every play has, so there is nothing to disturb. Another sample, or the missing program \
                 beside it (`--beside`), may help."
                    .to_owned(),
            );
        }
        if reference.is_empty() {
            return Err(
                "the plays differ in everything, so nothing can be compared. A longer quiet may help.".to_owned()
            );
        }
        say(format!(
            "{} points, {} objects at the end, {} fields differ between plays and are not compared",
            reference.points.len(),
            reference.objects.len(),
            reference.masked.len()
        ));
        let mut known = Known { reference, findings: Vec::new(), times: Vec::new(), plays, quiet_ms };
        for sign in known.plays.iter().flat_map(|played| &played.judged) {
            if let Some(place) = known.findings.iter().position(|one| one.is_like(sign)) {
                known.times[place] += 1;
            } else {
                known.findings.push(sign.clone());
                known.times.push(1);
            }
        }
        return Ok(Some(known));
    }
}

/// Writes of the last second that every play has, as text.
fn restless(plays: &[Played], length_ms: u64) -> Option<String> {
    let late = |played: &Played| {
        let writes = played.audit.writes.iter();
        let late = writes.filter(|write| write.t_ms + 1000 >= length_ms && write.status < 300);
        late.filter(|write| !is_ignored(&write.resource)).map(Signature::of).collect::<BTreeSet<_>>()
    };
    let mut all = plays.iter().map(late);
    let first = all.next()?;
    let same: BTreeSet<Signature> = all.fold(first, |same, late| same.intersection(&late).cloned().collect());
    same.first().map(Signature::describe)
}

fn baseline(reference: &Reference) -> Baseline {
    let masked = reference.masked.iter().take(MASKED_MAX).map(|(object, field)| format!("{object}: {field}"));
    Baseline {
        plays: reference.plays,
        objects: reference.objects.len(),
        points: reference.points.iter().map(|point| point.signature.describe()).collect(),
        unsteady_points: reference.unsteady,
        masked: masked.collect(),
        loose: reference.loose.iter().take(MASKED_MAX).cloned().collect(),
    }
}

/// A finding that needs no disturbance.
fn undisturbed(sign: &Sign, known: &Known) -> Found {
    let place = known.findings.iter().position(|one| one.is_like(sign)).unwrap_or(0);
    let plays = u32::try_from(known.plays.len()).unwrap_or(0);
    let shown = known.plays.iter().find(|played| played.judged.iter().any(|one| one.is_like(sign)));
    Found {
        title: sign.sentence(),
        sign: sign.clone(),
        also: Vec::new(),
        disturbances: Vec::new(),
        shown_by: Vec::new(),
        trials: known.times[place],
        odds: Odds::of(known.times[place], plays),
        story: shown.map(|played| story(played, Extent::ALL)).unwrap_or_default(),
        scenario: None,
        play: None,
    }
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
    /// Causes that were seen: the sign, the disturbances that showed it, and the number of trials.
    causes: Vec<(Sign, BTreeSet<&'static str>, u32)>,
    shapes: BTreeSet<u64>,
    disturbances: BTreeMap<&'static str, (u32, u32)>,
    coverage: Coverage,
    broken_in_a_row: u32,
    why_broken: Option<String>,
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
    let kills = is_command(&choice.file);
    // Timeouts of minutes pass in seconds if the program's clock is faster, and only a long hold outlasts them.
    let hold_ms = if choice.is_hurried { 2 * HOLD_MS } else { HOLD_MS };
    let fits = Fits { kills, clock: choice.clock && kills, hold_ms };
    let search = Search::new(choice.seed, &reference.points, &reference.watched, fits);
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
        causes: Vec::new(),
        shapes: plays.iter().map(shape).collect(),
        disturbances: BTreeMap::new(),
        coverage: Coverage { singles: (0, singles), ..Coverage::default() },
        broken_in_a_row: 0,
        why_broken: None,
    };
    let mut said = Instant::now();
    loop {
        while course.wants_more(began) {
            let Some(planned) = course.search.next() else { break };
            course.begin(planned);
        }
        let Some(done) = course.tasks.join_next().await else { break };
        match done {
            Ok(Done::Trial(planned, outcome)) => course.trial(&planned, outcome, say),
            Ok(Done::Confirmed(sign, names, confirmed)) => course.confirmed(&sign, &names, confirmed, result, say),
            Err(error) => result.notes.push(format!("A trial ended with an error of Longhaul: {error}.")),
        }
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            say(course.progress(began, result.findings.len()));
        }
    }
    if let Some(why) = course.why_broken.take() {
        result.ending = Ending::Stopped { why };
    }
    for found in &mut result.findings {
        if let Some((_, names, trials)) = course.causes.iter().find(|(sign, ..)| sign.is_like(&found.sign)) {
            found.shown_by = names.iter().map(|name| (*name).to_owned()).collect();
            found.trials = *trials;
        }
    }
    course.coverage.shapes = u32::try_from(course.shapes.len()).unwrap_or(u32::MAX);
    let disturbances = course.disturbances.iter().map(|(name, (trials, hits))| ((*name).to_owned(), *trials, *hits));
    course.coverage.disturbances = disturbances.collect();
    result.coverage = course.coverage;
}

impl Course<'_> {
    /// Whether another trial begins now.
    fn wants_more(&self, began: Instant) -> bool {
        let is_over = began.elapsed() >= self.choice.lasts || self.player.stop.is_cancelled();
        let is_full = self.choice.trials.is_some_and(|most| self.coverage.trials >= most);
        let is_broken = self.why_broken.is_some() || self.causes.len() >= FINDINGS_MAX;
        !is_over && !is_full && !is_broken && self.tasks.len() < self.choice.jobs
    }

    fn begin(&mut self, planned: Planned) {
        self.coverage.trials += 1;
        let player = Arc::clone(&self.player);
        let trial = Trial { disturbances: planned.disturbances.clone(), ..Trial::reference(self.quiet_ms) };
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
                self.broken_in_a_row += 1;
                say(format!("a trial failed: {why}"));
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
        let had_effect = played.audit.hits.iter().any(|hits| *hits > 0);
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
        let names: Vec<&'static str> = planned.disturbances.iter().map(|one| one.kind.name()).collect();
        // One cause shows several signs, and the first sign may differ from trial to trial.
        if let Some((_, shown, trials)) =
            self.causes.iter_mut().find(|(cause, ..)| signs.iter().any(|sign| sign.is_like(cause)))
        {
            shown.extend(names);
            *trials += 1;
            return;
        }
        say(format!("looks wrong: {} ({})", first.sentence(), names.join(" and ")));
        self.causes.push((first.clone(), names.iter().copied().collect(), 1));
        let (player, references, known) =
            (Arc::clone(&self.player), Arc::clone(&self.references), Arc::clone(&self.known));
        let trial = Trial { disturbances: planned.disturbances.clone(), ..Trial::reference(self.quiet_ms) };
        let sign = first.clone();
        self.tasks.spawn(async move {
            let confirmed = Box::pin(confirm(&player, &references, &known, &trial, &sign)).await;
            Done::Confirmed(sign, names, confirmed.map(Box::new))
        });
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
            if !self.player.stop.is_cancelled() {
                self.coverage.unconfirmed += 1;
                say(format!("not seen again: {}", sign.sentence()));
            }
            self.causes.retain(|(cause, ..)| !cause.is_like(sign));
            return;
        };
        let Confirmed { trial, odds, sign, also, played } = *confirmed;
        let saved = save(self.choice, &self.player.operations, &trial, &sign);
        let (scenario, play) = match saved {
            Ok(path) => (Some(path.clone()), Some(format!("{} soak {}", crate::started_as(), crate::quoted(&path)))),
            Err(error) => {
                result.notes.push(format!("The scenario of a finding could not be saved: {error:#}."));
                (None, None)
            }
        };
        say(format!("finding: {} {}", sign.sentence(), odds.words()));
        result.findings.push(Found {
            title: sign.sentence(),
            also: also.into_iter().filter(|other| other.what != What::Field).collect(),
            disturbances: trial.disturbances.iter().map(Disturbance::describe).collect(),
            shown_by: names.iter().map(|name| (*name).to_owned()).collect(),
            trials: 1,
            odds,
            story: story(&played, trial.extent),
            scenario,
            play,
            sign,
        });
        // A full disk or a kill must not lose the findings so far.
        let _ = write(&self.choice.out, result);
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

/// Saves the smallest trial of a finding beside the user's file, under a free name; returns the path.
fn save(choice: &Choice, operations: &Operations, trial: &Trial, sign: &Sign) -> Result<String> {
    let path = Path::new(&choice.path);
    let folder = path.parent().unwrap_or(Path::new(""));
    let free = (1..1000).map(|number| folder.join(format!("hunt-{number}.yaml"))).find(|path| !path.exists());
    let target = free.context("there are too many files hunt-N.yaml: remove some")?;
    let name = target.file_stem().and_then(|stem| stem.to_str()).unwrap_or("hunt");
    let mut scenario = trial.saved(&choice.file, operations, name, sign);
    scenario.insert("seed".to_owned(), choice.seed.into());
    let text = serde_saphyr::to_string(&Value::Object(scenario)).context("the scenario has no YAML form")?;
    std::fs::write(&target, text).with_context(|| format!("failed to write {}", target.display()))?;
    Ok(target.display().to_string())
}

/// Writes the result in all its forms.
fn write(folder: &Path, hunt: &Hunt) -> Result<()> {
    let json = serde_json::to_string_pretty(hunt).context("failed to write the result as JSON")? + "\n";
    let texts = [
        reports::render::hunt_html(hunt)?,
        reports::render::hunt_markdown(hunt),
        json,
        reports::render::hunt_junit(hunt)?,
    ];
    for (name, text) in FILES.into_iter().zip(texts) {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}
