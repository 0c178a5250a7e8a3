//! Instructions and allocations by callgrind: each build once more, alone and some fifty times slower, in a world of its own.
//!
//! The count is that between two dumps, one after the first reviews (or changes) and one after so many more, so that neither the start nor
//! the end of the program is in it. What stands in a dump is read by [`profile`].

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

/// How long both builds may take under callgrind in a session, and with `--quick`.
pub(super) const THOROUGH: Duration = Duration::from_mins(3);
pub(super) const QUICK: Duration = Duration::from_mins(1);
/// Who may take so long counts thoroughly.
const IS_THOROUGH: Duration = Duration::from_secs(45);
/// Reviews before the count: caches are filled and code is read.
const WARM: [u64; 2] = [50, 200];
/// Reviews of the count: what happens once in a while is spread evenly.
const COUNTED: [u64; 2] = [150, 500];
/// Objects of the churn that is counted, and its changes: a few hundred events.
const POPULATION_MAX: u32 = 50;
const CHANGES: f64 = 100.0;
const CHURN: Duration = Duration::from_secs(1);
/// Rounds of changes: how events come together, and what a controller does besides, differs from one to the next. The ends of three decide, as
/// those of the other passes.
const ROUNDS: usize = 3;
/// How often it is looked whether all have come.
const POLL: Duration = Duration::from_millis(50);

/// Whether it is here.
pub(super) async fn works() -> Result<()> {
    for program in ["valgrind", "callgrind_control"] {
        let asked = Command::new(program).arg("--version").output().await;
        ensure!(asked.is_ok_and(|output| output.status.success()), "needs valgrind");
    }
    Ok(())
}

/// A build that is counted.
pub(super) struct Counting<'a> {
    pub(super) work: &'a Work,
    pub(super) seed: u64,
    pub(super) folder: &'a Path,
    /// It may take until then.
    pub(super) until: Instant,
}

impl Counting<'_> {
    /// What was counted of the build that these options start, a request and an event; and why a part is missing, if one is.
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
                    // What was counted of requests is none the worse for it.
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

    /// Rounds of changes, after one that is not counted.
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

    /// Sends so many reviews, one after the other, and returns how many were answered.
    async fn fill(&self, stand: &Testbed<'_>, config: &Config, seed: u64, reviews: u64) -> Result<u64> {
        let mut config = config.clone();
        // The plan's times do not count: only how many there are.
        config.rate = Rate::per_second(reviews as f64);
        let plan = stand.plan(&config, seed, Duration::from_secs(1)).await?;
        let planned = plan.planned();
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

    /// Churns for a moment, and returns how many changes that made.
    async fn churn(&self, stand: &Testbed<'_>, seed: u64) -> Result<u64> {
        let how = While { seed, settle: Duration::ZERO, length: CHURN, patience: self.left() };
        let events = tokio::time::timeout(self.left(), stand.events(how));
        let events = events.await.context("the time was up during the watch under callgrind")??;
        Ok(events.map_or(0, |events| events.changes))
    }
}

/// What a profile says of so many requests or events.
fn add(found: &mut Vec<(Metric, f64)>, [instructions, allocations]: [Metric; 2], profile: &Profile, of: u64) {
    if of == 0 || profile.instructions == 0 {
        return;
    }
    found.push((instructions, profile.instructions as f64 / of as f64));
    if profile.allocations > 0 {
        found.push((allocations, profile.allocations as f64 / of as f64));
    }
}

/// The same options with callgrind before the program.
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
        let program = match (source.scenario.subject.kind().is_service(), &options.service) {
            (true, Some(program)) => crate::quoted(&std::path::absolute(program)?.display().to_string()),
            _ => String::new(),
        };
        // A program may be a script that becomes another program; whatever it is then, it has the same number.
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
            source,
            runs: options.runs.clone(),
            run_dir: Some(folder.join(format!("callgrind-{name}"))),
            plant: options.plant.clone(),
            service,
            keep_events: false,
            quiet: true,
            left_out: None,
            counts_bytes: false,
            repeat: options.repeat.clone(),
            window: crate::run::Addresses::default(),
        };
        Ok(Self { options, output })
    }
}

/// The same scenario for somebody slow: few objects, and time to start.
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

/// The dumps of a process, one after the other.
struct Dumps<'a> {
    pid: u32,
    output: &'a Path,
    number: u32,
    until: Instant,
}

impl Dumps<'_> {
    /// Has callgrind write what it has counted since the last dump, and reads that.
    async fn next(&mut self) -> Result<Profile> {
        self.number += 1;
        let asked = Command::new("callgrind_control").args(["--dump", &self.pid.to_string()]).output().await?;
        let path = PathBuf::from(format!("{}.{}.{}", self.output.display(), self.pid, self.number));
        loop {
            if let Some(profile) = std::fs::read_to_string(&path).ok().as_deref().and_then(Profile::read) {
                // The gate's folder keeps what was counted, and not what it was counted from: hundreds of kilobytes a dump.
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
