//! `longhaul envtest --hunt`: searches for disturbances with which a suite fails.
//!
//! Owns how a suite becomes trials: the points are the writes of the manager, and the signs are tests that fail. The
//! disturbances, their order and the result are those of `longhaul hunt`. Trials run one after another, because a suite
//! may use fixed ports and files.

mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use reports::exit;
use reports::hunt::{Baseline, Coverage, Ending, Found, Hunt, Odds, SCHEMA, Sign, What};
use serde_json::Value;

use self::view::{View, shared};
use super::{Chaos, How, Suite};
use crate::hunt::disturb::{Disturbance, Fits};
use crate::hunt::schedule::{Planned, Search, Stage};
use crate::out::{err, out};
use crate::signals::Signals;

/// Number of runs of the suite without disturbances.
const REFERENCES: u32 = 3;
/// Number of replays that give the odds of a finding, and how many of them must fail.
const REPLAYS: u32 = 5;
const FAILED_MIN: u32 = 2;
/// Number of runs of a smaller trial, of which one must fail.
const TRIES: u32 = 2;
/// The length of a hold, in milliseconds: longer than a reconcile, and shorter than the timeouts of most tests.
const HOLD_MS: u64 = 700;
/// Maximum number of findings.
const FINDINGS_MAX: usize = 20;
/// A trial counts as hanging after so many times the longest run without disturbances, and this margin.
const HANGS_AFTER: u32 = 5;
const HANGS_MARGIN: Duration = Duration::from_secs(20);
/// Maximum number of notes about trials that hung.
const HUNG_MAX: u32 = 5;
/// Interval of progress lines.
const SAY_EVERY: Duration = Duration::from_secs(15);

/// The limits of a hunt.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) lasts: units::Span,
    pub(crate) trials: Option<u32>,
    pub(crate) seed: u64,
}

/// The state of a hunt.
struct Course<'a> {
    suite: &'a Suite,
    signals: Signals,
    began: Instant,
    ends: Instant,
    seed: u64,
    /// Tests that fail without disturbances, at least sometimes.
    flaky: BTreeSet<String>,
    /// The longest time of a run without disturbances.
    longest: Duration,
    shapes: BTreeSet<u64>,
    disturbances: BTreeMap<&'static str, (u32, u32)>,
    was_ended: bool,
    result: Hunt,
}

impl Suite {
    /// Searches, prints the result and writes it. Returns the exit code of a hunt.
    pub(crate) async fn hunt(&self, limits: &Limits) -> Result<u8> {
        let signals = Signals::listen().context("failed to listen for signals")?;
        let (now, began) = (jiff::Timestamp::now(), Instant::now());
        let result = Hunt {
            schema: SCHEMA.to_owned(),
            started_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            longhaul: env!("CARGO_PKG_VERSION").to_owned(),
            machine: crate::machine::machine(),
            scenario: "the suite".to_owned(),
            command: crate::secrets::arguments(&self.command),
            seed: limits.seed,
            repeat: self.command_line(&hunting(limits), limits.seed),
            seconds: 0.0,
            ending: Ending::Done,
            findings: Vec::new(),
            reference: Baseline::default(),
            coverage: Coverage::default(),
            notes: Vec::new(),
            webhooks: None,
        };
        let mut course = Course {
            suite: self,
            signals,
            began,
            ends: began + limits.lasts.0,
            seed: limits.seed,
            flaky: BTreeSet::new(),
            longest: Duration::ZERO,
            shapes: BTreeSet::new(),
            disturbances: BTreeMap::new(),
            was_ended: false,
            result,
        };
        // An error in the middle, such as a full disk, must not hide the findings so far.
        if let Err(error) = course.search(limits).await {
            course.result.ending = Ending::Stopped { why: format!("{error:#}.") };
        }
        let folder = self.runs.join(format!("{}-hunt", now.strftime("%Y%m%dT%H%M%SZ")));
        course.end(&folder)
    }
}

/// The flags of a hunt, for the command that repeats it.
fn hunting(limits: &Limits) -> Vec<String> {
    let mut flags = vec!["--hunt".to_owned(), "--for".to_owned(), limits.lasts.to_string()];
    if let Some(trials) = limits.trials {
        flags.extend(["--trials".to_owned(), trials.to_string()]);
    }
    flags
}

impl Course<'_> {
    async fn search(&mut self, limits: &Limits) -> Result<()> {
        let Some(references) = self.references().await? else { return Ok(()) };
        let (points, unsteady) = shared(&references);
        let watched: Vec<String> =
            references.iter().flat_map(|view| view.watched.clone()).collect::<BTreeSet<_>>().into_iter().collect();
        self.result.reference = Baseline {
            plays: references.len(),
            points: points.iter().map(|point| point.signature.describe()).collect(),
            unsteady_points: unsteady,
            ..Baseline::default()
        };
        let requests = self.suite.manager.is_known();
        if !requests {
            let note =
                "The manager is not named, so only watches were disturbed: see `--manager-agent` and `--manager-user`.";
            self.result.notes.push(note.to_owned());
        }
        let fits = Fits {
            kills: false,
            clock: false,
            requests,
            hold_ms: HOLD_MS,
            children: Vec::new(),
            lease_ms: None,
            processes: Vec::new(),
        };
        let mut search = Search::new(limits.seed, &points, &watched, &fits);
        self.result.coverage.singles.1 = u32::try_from(search.singles()).unwrap_or(u32::MAX);
        err!("longhaul: {} points, {} single disturbances", points.len(), search.singles());
        let mut said = Instant::now();
        while self.wants_more(limits) {
            let Some(planned) = search.next() else { break };
            let Some(view) = self.play(&planned.disturbances).await? else { break };
            if view.hung {
                self.hangs(&planned.disturbances);
                continue;
            }
            if self.learn(&planned, &view) {
                search.is_new(&planned.disturbances);
            }
            if let Some((test, message)) = self.failure(&view) {
                self.suspect(&planned, &test, &message).await?;
            }
            if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                let Coverage { trials, singles, .. } = &self.result.coverage;
                let minutes = self.began.elapsed().as_secs_f64() / 60.0;
                let findings = self.result.findings.len();
                err!(
                    "longhaul: {minutes:.1} min: {trials} trials ({} of {} single), {findings} findings",
                    singles.0,
                    singles.1
                );
            }
        }
        Ok(())
    }

    fn wants_more(&self, limits: &Limits) -> bool {
        let is_over = self.was_ended || Instant::now() >= self.ends || self.result.findings.len() >= FINDINGS_MAX;
        !is_over && limits.trials.is_none_or(|most| self.result.coverage.trials < most)
    }

    /// Runs the suite without disturbances. `None` if no search is possible, or the user interrupted the hunt.
    async fn references(&mut self) -> Result<Option<Vec<View>>> {
        let mut views = Vec::new();
        for number in 1..=REFERENCES {
            err!("longhaul: the suite without disturbances, {number} of {REFERENCES}");
            let Some(view) = self.play(&[]).await? else { return Ok(None) };
            views.push(view);
        }
        let stopped = |why: &str| Ending::Stopped { why: why.to_owned() };
        if views.iter().all(|view| view.code != exit::PASS) {
            self.result.ending = stopped("the suite fails without disturbances: make it pass first.");
            return Ok(None);
        }
        self.flaky = views.iter().flat_map(|view| view.failed.keys().cloned()).collect();
        if self.flaky.contains(view::SUITE) {
            self.result.ending =
                stopped("the suite sometimes fails without disturbances: `--results` names its tests.");
            return Ok(None);
        }
        let flaky = self.flaky.iter();
        self.result
            .notes
            .extend(flaky.map(|test| format!("`{test}` sometimes fails without disturbances, and was ignored.")));
        if shared(&views).0.is_empty() {
            self.result.ending = stopped("no write is in every run of the suite, so there is nothing to disturb.");
            return Ok(None);
        }
        self.shapes.extend(views.iter().map(|view| view.shape));
        Ok(Some(views))
    }

    /// Runs the suite with these disturbances. `None` if the user interrupted the hunt.
    async fn play(&mut self, disturbances: &[Disturbance]) -> Result<Option<View>> {
        let faults: Vec<Value> = disturbances.iter().flat_map(Disturbance::faults).collect();
        let faults = serde_json::from_value(Value::Array(faults)).context("a disturbance is no valid fault")?;
        let suite = Suite {
            faults,
            chaos: Chaos { seed: None, order: false, stale: None },
            judged: false,
            ..self.suite.clone()
        };
        // A suite that ends early writes no results, and those of the run before must not count.
        for file in &suite.results {
            let _ = std::fs::remove_file(file);
        }
        let limit = self.longest * HANGS_AFTER + HANGS_MARGIN;
        let how = if disturbances.is_empty() { How::WithoutFaults } else { How::Trial(limit) };
        let played = suite.play(self.seed, how, &mut self.signals).await?;
        if disturbances.is_empty() {
            self.longest = self.longest.max(played.took);
        }
        let view = View::of(&played, &self.suite.manager);
        // A hunt plays a suite hundreds of times; the finding's command makes a record again.
        let _ = std::fs::remove_dir_all(&played.record);
        self.was_ended |= played.was_ended;
        if played.was_ended { Ok(None) } else { view.map(Some) }
    }

    /// Counts a trial whose suite did not end. Such a run says nothing about single tests, so the trial is not played
    /// again.
    fn hangs(&mut self, disturbances: &[Disturbance]) {
        let coverage = &mut self.result.coverage;
        coverage.trials += 1;
        coverage.broken += 1;
        let told: Vec<String> = disturbances.iter().map(Disturbance::describe).collect();
        let limit = (self.longest * HANGS_AFTER + HANGS_MARGIN).as_secs();
        let note = format!("The suite did not end within {limit} s. {}", told.join(" "));
        err!("longhaul: {note}");
        if coverage.broken <= HUNG_MAX {
            self.result.notes.push(note);
        }
    }

    /// Counts a trial, and returns whether its course is new.
    fn learn(&mut self, planned: &Planned, view: &View) -> bool {
        let coverage = &mut self.result.coverage;
        coverage.trials += 1;
        match planned.stage {
            Stage::Single => coverage.singles.0 += 1,
            Stage::Pair => coverage.pairs += 1,
            Stage::Other => coverage.others += 1,
        }
        coverage.without_effect += u32::from(view.hits == 0);
        for disturbance in &planned.disturbances {
            let counts = self.disturbances.entry(disturbance.kind.name()).or_default();
            counts.0 += 1;
            counts.1 += u32::from(view.hits > 0);
        }
        self.shapes.insert(view.shape)
    }

    /// The first test that fails only with disturbances, and its message.
    fn failure(&self, view: &View) -> Option<(String, String)> {
        let failed = view.failed.iter().find(|(test, _)| !self.flaky.contains(*test));
        failed.map(|(test, message)| (test.clone(), message.clone()))
    }

    /// Plays a failed trial again, shrinks it, and adds it to the findings if it fails again.
    async fn suspect(&mut self, planned: &Planned, test: &str, message: &str) -> Result<()> {
        let names: Vec<String> = planned.disturbances.iter().map(|one| one.kind.name().to_owned()).collect();
        let known = self.result.findings.iter_mut().find(|found| found.sign.object.as_deref() == Some(test));
        if let Some(known) = known {
            known.trials += 1;
            known.shown_by.extend(names);
            known.shown_by.sort();
            known.shown_by.dedup();
            return Ok(());
        }
        err!("longhaul: looks wrong: `{test}` failed ({})", names.join(" and "));
        let mut disturbances = planned.disturbances.clone();
        for place in 0..planned.disturbances.len() {
            if planned.disturbances.len() == 1 {
                break;
            }
            let fewer = vec![planned.disturbances[place].clone()];
            if self.failures(&fewer, test, TRIES).await?.0 > 0 {
                disturbances = fewer;
                break;
            }
        }
        let (failed, plays, last) = self.failures(&disturbances, test, REPLAYS).await?;
        let Some(last) = last.filter(|_| failed >= FAILED_MIN) else {
            self.result.coverage.unconfirmed += u32::from(!self.was_ended);
            return Ok(());
        };
        let sign = Sign {
            what: What::Judge,
            subject: test.to_owned(),
            object: Some(test.to_owned()),
            field: None,
            happened: last.failed.get(test).map_or(message, String::as_str).to_owned(),
            expected: "passes".to_owned(),
            most: None,
            value: None,
        };
        let (scenario, play) = match self.save(&disturbances) {
            Ok((path, play)) => (Some(path), Some(play)),
            Err(error) => {
                self.result.notes.push(format!("The faults of a finding could not be saved: {error:#}."));
                (None, None)
            }
        };
        let odds = Odds::of(failed, plays);
        err!("longhaul: finding: `{test}` fails; {}", odds.words());
        self.result.findings.push(Found {
            title: format!("`{test}` fails: {}", sign.happened),
            sign,
            also: Vec::new(),
            disturbances: disturbances.iter().map(Disturbance::describe).collect(),
            shown_by: names,
            trials: 1,
            odds,
            healing: Vec::new(),
            story: last.story,
            without: Vec::new(),
            scenario,
            play,
        });
        Ok(())
    }

    /// Plays a trial several times. Returns the failures of a test, the plays, and the last play that failed.
    async fn failures(
        &mut self,
        disturbances: &[Disturbance],
        test: &str,
        times: u32,
    ) -> Result<(u32, u32, Option<View>)> {
        let (mut failed, mut plays, mut last) = (0, 0, None);
        for _ in 0..times {
            let Some(view) = self.play(disturbances).await? else { break };
            plays += 1;
            if view.failed.contains_key(test) {
                failed += 1;
                last = Some(view);
            }
        }
        Ok((failed, plays, last))
    }

    /// Saves the faults of a finding in the current folder. Returns the path, and the command that plays it.
    fn save(&self, disturbances: &[Disturbance]) -> Result<(String, String)> {
        let faults: Vec<Value> = disturbances.iter().flat_map(Disturbance::faults).collect();
        let text = serde_saphyr::to_string(&Value::Array(faults)).context("the faults have no YAML form")?;
        let path = crate::hunt::files::free_name(Path::new(""), "faults.yaml")?;
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        let path = path.display().to_string();
        let suite = Suite { written: Some(path.clone()), ..self.suite.clone() };
        Ok((path, suite.command_line(&[], self.seed)))
    }

    /// Prints and writes the result.
    fn end(mut self, folder: &Path) -> Result<u8> {
        if self.was_ended {
            self.result.ending = Ending::Interrupted;
        }
        self.result.seconds = self.began.elapsed().as_secs_f64();
        self.result.coverage.shapes = u32::try_from(self.shapes.len()).unwrap_or(u32::MAX);
        let rows = self.disturbances.iter().map(|(name, (trials, hits))| ((*name).to_owned(), *trials, *hits));
        self.result.coverage.disturbances = rows.collect();
        out!("{}", reports::render::hunt_text(&self.result).trim_end());
        std::fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
        crate::hunt::files::write(folder, &self.result)?;
        let page: PathBuf = folder.join(crate::hunt::files::FILES[0]);
        out!("page: {}", page.display());
        Ok(self.result.exit_code())
    }
}
