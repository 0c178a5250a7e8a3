//! Counts instructions and allocations with callgrind. Each build runs once more, alone and some fifty times slower,
//! with its own control plane.
//!
//! A count is the difference of two dumps, before and after the counted reviews (or changes), so it excludes start and
//! end of the program.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use loadgen::admission::{Config, Load};
use reports::gate::Metric;
use tokio::process::Command;
use units::{Rate, Span};

use self::profile::Profile;
use super::work::Work;
use crate::run::{Options, Testbed, While};
use crate::scenario::Source;

mod profile;

/// Maximum time under callgrind for both builds in a session, without `--quick`.
pub(super) const THOROUGH: Duration = Duration::from_mins(3);
pub(super) const QUICK: Duration = Duration::from_mins(1);
/// If more than this time is left until counting must end, a build gets the thorough numbers of reviews.
const IS_THOROUGH: Duration = Duration::from_secs(45);
/// Number of uncounted reviews before the count, in quick and thorough mode. Uncounted reviews fill caches and load
/// code.
const WARM: [u64; 2] = [50, 200];
/// Number of counted reviews, in quick and thorough mode: enough to spread occasional work evenly.
const COUNTED: [u64; 2] = [150, 500];
/// Maximum number of objects of the counted churn, whose changes give a few hundred events.
const POPULATION_MAX: u32 = 50;
const CHANGES: f64 = 100.0;
const CHURN: Duration = Duration::from_secs(1);
/// Number of times that the counted changes are repeated. The grouping of events and other work of a controller differ
/// between repetitions. As with other counts, the gate compares the lowest and the highest of the three counts.
const ROUNDS: usize = 3;
/// Interval of checks whether all events have reached the program.
const POLL: Duration = Duration::from_millis(50);

/// Checks whether callgrind works on this machine.
pub(super) async fn works() -> Result<()> {
    for program in ["valgrind", "callgrind_control"] {
        let asked = Command::new(program).arg("--version").output().await;
        ensure!(asked.is_ok_and(|output| output.status.success()), "needs valgrind");
    }
    Ok(())
}

/// A build whose instructions and allocations are counted.
pub(super) struct Counting<'a> {
    pub(super) work: &'a Work,
    pub(super) seed: u64,
    pub(super) folder: &'a Path,
    /// Time at which counting must end.
    pub(super) until: Instant,
}

impl Counting<'_> {
    /// Counts instructions and allocations of the build that these options start. Returns the figures per request and
    /// per event, and the reason if some figures are missing.
    pub(super) async fn count(&self, options: &Options) -> Result<(Vec<(Metric, f64)>, Option<String>)> {
        let thorough = usize::from(self.left() > IS_THOROUGH);
        let slowed = Slowed::write(options, self.folder, self.left())?;
        let stand = Box::pin(Testbed::up(&slowed.options)).await.context("it does not start under callgrind")?;
        let mut dumps = Dumps { pid: stand.pid(), output: &slowed.output, number: 0, until: self.until };
        let (mut found, mut missing) = (Vec::new(), None);
        let counted = async {
            if let Some(config) = &self.work.reviews {
                self.fill(&stand, config, self.seed, WARM[thorough]).await?;
                dumps.next().await?;
                let answered = self.fill(&stand, config, self.seed + 1, COUNTED[thorough]).await?;
                let profile = dumps.next().await?;
                add(&mut found, [Metric::Instructions, Metric::Allocations], &profile, answered);
            }
            if self.work.churn.is_some() {
                match self.events(&stand, &mut dumps).await {
                    Ok(events) => found.extend(events),
                    // The counts of requests stay valid.
                    Err(why) if !found.is_empty() => missing = Some(format!("{why:#}")),
                    Err(why) => return Err(why),
                }
            }
            ensure!(!found.is_empty(), "callgrind counted nothing");
            anyhow::Ok(())
        };
        let counted = counted.await;
        stand.down().await;
        counted.map(|()| (found, missing))
    }

    /// Counts instructions and allocations of several churns, after one uncounted churn.
    async fn events(&self, stand: &Testbed<'_>, dumps: &mut Dumps<'_>) -> Result<Vec<(Metric, f64)>> {
        let mut found = Vec::new();
        self.churn(stand, self.seed).await?;
        dumps.next().await?;
        for (_, seed) in (0..ROUNDS).zip(self.seed + 1..) {
            let changes = self.churn(stand, seed).await?;
            let profile = dumps.next().await?;
            add(&mut found, [Metric::InstructionsPerEvent, Metric::AllocationsPerEvent], &profile, changes);
        }
        Ok(found)
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Sends the given number of reviews one after the other. Returns the number of answers.
    async fn fill(&self, stand: &Testbed<'_>, config: &Config, seed: u64, reviews: u64) -> Result<u64> {
        let mut config = config.clone();
        // Only the number of the plan's requests counts, not their times.
        config.rate = Rate::per_second(reviews as f64);
        let plan = stand.plan(&config, seed, Duration::from_secs(1)).await?;
        let planned = plan.total();
        let load = Load::saturate(plan, stand.target()?, 1).context("failed to start the load")?;
        let mut total = loadgen::admission::Interval::default();
        while total.counts.allowed + total.counts.denied + total.errors() < planned {
            if self.left().is_zero() {
                let answered = total.counts.allowed + total.counts.denied;
                bail!("the time was up when {answered} of {planned} reviews were answered under callgrind");
            }
            tokio::time::sleep(POLL).await;
            total.add(&load.take());
        }
        total.add(&load.stop(super::slice::DRAIN).await);
        let answered = total.counts.allowed + total.counts.denied;
        ensure!(answered * 10 >= planned * 9, "only {answered} of {planned} reviews were answered under callgrind");
        Ok(answered)
    }

    /// Runs a short churn and returns the number of changes.
    async fn churn(&self, stand: &Testbed<'_>, seed: u64) -> Result<u64> {
        let how = While { seed, settle: Duration::ZERO, length: CHURN, patience: self.left() };
        let events = tokio::time::timeout(self.left(), stand.events(how));
        let events = events.await.context("the time was up during the watch under callgrind")??;
        Ok(events.map_or(0, |events| events.changes))
    }
}

/// Adds the counts of a profile, divided by the number of requests or events, to `found`.
fn add(found: &mut Vec<(Metric, f64)>, [instructions, allocations]: [Metric; 2], profile: &Profile, of: u64) {
    if of == 0 || profile.instructions == 0 {
        return;
    }
    found.push((instructions, profile.instructions as f64 / of as f64));
    if profile.allocations > 0 {
        found.push((allocations, profile.allocations as f64 / of as f64));
    }
}

/// The options of a run in which callgrind executes the program.
struct Slowed {
    options: Options,
    output: PathBuf,
}

impl Slowed {
    fn write(options: &Options, folder: &Path, patience: Duration) -> Result<Self> {
        let folder = std::path::absolute(folder)?;
        let name =
            options.run_dir.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let (script, output) =
            (folder.join(format!("callgrind-{name}.sh")), folder.join(format!("callgrind-{name}.out")));
        let mut source = slow(&options.source, patience);
        let program = match (source.scenario.subject.profile().is_service, &options.service) {
            (true, Some(program)) => crate::quoted(&std::path::absolute(program)?.display().to_string()),
            _ => String::new(),
        };
        // A program may be a script that executes another program; its process ID stays the same.
        let text = format!(
            "#!/bin/sh\nexec valgrind --tool=callgrind --trace-children=yes --callgrind-out-file={}.%p {program} \"$@\"\n",
            crate::quoted(&output.display().to_string())
        );
        std::fs::write(&script, text).with_context(|| format!("failed to write {}", script.display()))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700))?;
        let mut service = None;
        match source.scenario.subject.command_mut() {
            Some(command) => command.run.insert(0, script.display().to_string()),
            None => service = Some(script),
        }
        let options = Options {
            run_dir: Some(folder.join(format!("callgrind-{name}"))),
            plant: options.plant.clone(),
            service,
            ..Options::new(source, options.runs.clone(), options.repeat.clone())
        };
        Ok(Self { options, output })
    }
}

/// The scenario, changed for a slow subject: few objects, and more time to start.
fn slow(source: &Source, patience: Duration) -> Source {
    let mut source = source.clone();
    source.scenario.subject.start_timeout = Span(patience);
    let sections = source.scenario.churn.len() as f64;
    for churn in source.scenario.churn.iter_mut() {
        churn.population = churn.population.min(POPULATION_MAX);
        churn.rate = Rate::per_second(churn.rate.most().as_per_second().min(CHANGES / sections)).into();
    }
    source
}

/// Successive callgrind dumps of one process.
struct Dumps<'a> {
    pid: u32,
    output: &'a Path,
    number: u32,
    until: Instant,
}

impl Dumps<'_> {
    /// Makes callgrind dump the counts since the last dump, and parses them.
    async fn next(&mut self) -> Result<Profile> {
        self.number += 1;
        let asked = Command::new("callgrind_control").args(["--dump", &self.pid.to_string()]).output().await?;
        let path = PathBuf::from(format!("{}.{}.{}", self.output.display(), self.pid, self.number));
        loop {
            if let Some(profile) = std::fs::read_to_string(&path).ok().as_deref().and_then(Profile::read) {
                // The gate's folder keeps the counts only; a dump has hundreds of kilobytes.
                let _ = std::fs::remove_file(&path);
                return Ok(profile);
            }
            if Instant::now() >= self.until {
                bail!("callgrind wrote no {}: {}", path.display(), String::from_utf8_lossy(&asked.stdout).trim());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
