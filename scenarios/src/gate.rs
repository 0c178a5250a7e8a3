//! `longhaul gate`: measures two builds alternately, until build B is known to be worse or not worse than build A.
//!
//! Starts both builds, finds the saturation (highest rate of valid answers) of each, alternates slices (short
//! measurements of one build), judges, and confirms a difference in a second session with new processes. [`mod@slice`]
//! measures one build for a short time; [`book`] keeps the record. `reports::gate` computes the verdict from the record
//! alone.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use loadgen::admission::{Config, Load};
use reports::gate::order::BLOCK;
use reports::gate::record::{Build, Line, SCHEMA, Shortened};
use reports::gate::{Header, Judgement, Side, Slice, judge, wants_confirmation};
use units::Rate;

use self::book::Book;
use self::plan::{Besides, Plan};
use self::repeat::Session;
use self::work::Work;
use crate::run::{Options, Testbed};
use crate::scenario::Source;
use crate::signals::Signals;

mod book;
mod callgrind;
mod counts;
pub(crate) mod init;
mod perf;
mod plan;
mod repeat;
pub(crate) mod size;
mod slice;
pub(crate) mod suite;
mod work;

pub(crate) use book::{again, conclude, open};

/// Maximum rate of reviews in a gate, as a share of the slower build's saturation. At higher rates, the lengths of
/// queues would decide instead of the builds.
const SHARE_OF_SATURATION: f64 = 0.5;
/// Time of full load that finds the saturation of each build and warms up the build.
const FILLING: Duration = Duration::from_millis(1500);
/// Time of churn that warms up each build.
const WATCHING: Duration = Duration::from_millis(500);
/// Number of connections during full load.
const CONNECTIONS: usize = 8;
/// Length of a pass that counts system calls.
const PASS: Duration = Duration::from_millis(1500);
const QUICK_PASS: Duration = Duration::from_millis(300);

pub(crate) struct Choice {
    /// The scenario, whose phases describe one short measurement of a build.
    pub(crate) source: Source,
    pub(crate) a: Contestant,
    pub(crate) b: Contestant,
    /// Number of blocks per session (each block measures each build twice), and whether the user set the number.
    pub(crate) blocks: (u32, bool),
    /// Maximum time of the gate, for both sessions together.
    pub(crate) limit: Duration,
    /// Whether counting passes are shorter, for a pull request.
    pub(crate) quick: bool,
    pub(crate) out: PathBuf,
    /// Whether to count instructions with callgrind if the processor has no usable counters.
    pub(crate) callgrind: bool,
    pub(crate) quiet: bool,
    pub(crate) repeat: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Contestant {
    /// A command, or the path of a service program.
    pub(crate) command: String,
    /// A planted bug to switch on in this build.
    pub(crate) plant: Option<String>,
}

/// State that all sessions of a gate share.
struct Gate<'a> {
    choice: &'a Choice,
    work: Work,
    plan: Plan,
    signals: &'a mut Signals,
}

/// Runs the gate and returns its judgement. On error, nothing was compared.
pub(crate) async fn play(choice: &Choice) -> Result<Judgement> {
    let mut signals = Signals::listen().context("failed to listen for Ctrl-C")?;
    let work = Work::of(&choice.source)?;
    let (wanted, named) = choice.blocks;
    let plan = Plan::fit(&work, choice.besides(), wanted, named, choice.limit)?;
    if let Some(reviews) = &work.reviews {
        crate::load::descriptors::provide(reviews)?;
    }
    choice.say(&plan.describe(wanted));
    let (first, second) = (choice.options(1)?, choice.options(2)?);
    let mut stands = stands(&first, &mut signals).await?;
    let begun = begin(choice, (work, plan), &stands, &mut signals).await;
    let (mut gate, mut book) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            Box::pin(down(stands)).await;
            return Err(error);
        }
    };
    let played = gate.session(1, &first, &mut stands, &mut book).await;
    Box::pin(down(stands)).await;
    let mut judgement = judge(book.record());
    if played? && wants_confirmation(&judgement) {
        choice.say("B looks worse: a second session with fresh processes must confirm it");
        let mut stands = self::stands(&second, gate.signals).await?;
        let played = gate.again(&second, &mut stands, &mut book).await;
        Box::pin(down(stands)).await;
        played?;
        judgement = judge(book.record());
    }
    Ok(judgement)
}

async fn stands<'a>(options: &'a [Options; 2], signals: &mut Signals) -> Result<[Testbed<'a>; 2]> {
    let start = async {
        let a = Box::pin(Testbed::up(&options[0])).await.context("A")?;
        match Box::pin(Testbed::up(&options[1])).await.context("B") {
            Ok(b) => Ok([a, b]),
            Err(error) => {
                a.down().await;
                Err(error)
            }
        }
    };
    tokio::select! {
        stands = start => stands,
        signal = signals.next() => bail!("{signal} before the first comparison"),
    }
}

async fn down(stands: [Testbed<'_>; 2]) {
    for stand in stands {
        stand.down().await;
    }
}

/// Warms up both builds, finds their saturation, and starts the record.
async fn begin<'a>(
    choice: &'a Choice,
    (work, plan): (Work, Plan),
    stands: &[Testbed<'_>; 2],
    signals: &'a mut Signals,
) -> Result<(Gate<'a>, Book)> {
    let saturation = tokio::select! {
        found = warm(stands, &work) => found?,
        signal = signals.next() => bail!("{signal} before the first comparison"),
    };
    let wanted = work.reviews.as_ref().map_or(0.0, |config| config.rate.as_per_second());
    let slower = saturation.map_or(0.0, |[a, b]| a.min(b));
    let rate = wanted.min(slower * SHARE_OF_SATURATION).floor();
    let work = work.at(rate, slower)?;
    let [a, b] = stands;
    let build = |contestant: &Contestant, stand: &Testbed<'_>| Build {
        command: contestant.name(),
        digest: stand.digest.clone(),
    };
    let header = Header {
        schema: SCHEMA.to_owned(),
        started_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        scenario: choice.source.scenario.name.clone(),
        a: build(&choice.a, a),
        b: build(&choice.b, b),
        seed: choice.source.scenario.seed,
        rate,
        events: work.churn.map_or(0.0, |(_, rate)| rate),
        objects: None,
        saturation,
        blocks: plan.blocks,
        slice_ms: crate::clock::millis(work.times.slice),
        settle_ms: crate::clock::millis(work.times.settle),
        longhaul: env!("CARGO_PKG_VERSION").to_owned(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        repeat: choice.repeat.clone(),
    };
    let mut book = Book::create(&choice.out, header)?;
    if rate < wanted {
        let note = format!(
            "the rate is {rate}/s instead of the scenario's {wanted}/s: half of the slower build's maximum on this machine"
        );
        choice.say(&note);
        book.write(&Line::Note(note))?;
    }
    if plan.blocks < choice.blocks.0 {
        book.write(&Line::Note(plan.describe(choice.blocks.0)))?;
    }
    if work.churn.is_some() && choice.source.scenario.sees() == reports::record::Sees::NOTHING {
        let note = "lag of events, and whether they were missed: not measured: needs a `witness` in `subject`";
        book.write(&Line::Note(note.to_owned()))?;
    }
    Ok((Gate { choice, work, plan, signals }, book))
}

/// Warms up both builds. Returns the saturation of each build, or `None` without reviews.
async fn warm(stands: &[Testbed<'_>; 2], work: &Work) -> Result<Option<[f64; 2]>> {
    for stand in stands {
        stand.events(Work::events_for(FILLING_SEED, WATCHING)).await.context("failed to warm up")?;
    }
    match &work.reviews {
        Some(config) => saturation(stands, config).await.map(Some),
        None => Ok(None),
    }
}

/// The saturation of each build, in valid answers per second.
async fn saturation(stands: &[Testbed<'_>; 2], config: &Config) -> Result<[f64; 2]> {
    let mut found = [0.0; 2];
    for (at, (stand, found)) in stands.iter().zip(&mut found).enumerate() {
        let mut filling = config.clone();
        filling.rate = Rate::per_second(loadgen::admission::HIGHEST_RATE);
        let plan = stand.plan(&filling, FILLING_SEED, FILLING).await?;
        let load = Load::saturate(plan.clone(), stand.target()?, CONNECTIONS).context("failed to start the load")?;
        tokio::time::sleep(FILLING).await;
        let interval = load.stop(slice::DRAIN).await;
        *found = (interval.counts.allowed + interval.counts.denied) as f64 / FILLING.as_secs_f64();
        if *found == 0.0 {
            bail!(
                "no review was answered; the first failure: {}",
                interval.examples.first().map_or("none", String::as_str)
            );
        }
        // Only build A is checked: other behaviour of build B is a finding.
        if at == 0 {
            is_work(stand, config, &plan, &interval).await?;
        }
    }
    Ok(found)
}

/// Refuses a gate whose reviews mostly fail or get wrong answers, because the gate would only compare the speed of
/// wrong answers.
async fn is_work(
    stand: &Testbed<'_>,
    config: &Config,
    plan: &loadgen::admission::Plan,
    interval: &loadgen::admission::Interval,
) -> Result<()> {
    let counts = interval.counts;
    let answered = counts.allowed + counts.denied;
    if stand.is_judged(config) {
        let share = counts.wrong_verdicts as f64 / answered.max(1) as f64;
        ensure!(
            share <= WRONG_MOST,
            "A answers {} of {} reviews wrong, so this load does not suit it: {}; correct `admission`, or `expect` of the templates",
            reports::words::count(counts.wrong_verdicts),
            reports::words::count(answered),
            interval.examples.first().map_or("nobody knows which", String::as_str)
        );
    } else if counts.allowed == 0 {
        let said = plan.first_said(stand.target()?).await.context("failed to ask A")?;
        bail!(
            "A denied each of {} reviews, so a gate would compare only denials: {} was denied with \"{}\". Send objects that it accepts: \
             `install: {{webhooks: config/webhook/manifests.yaml}}` in `subject` with the definitions of its kinds under \
             `controlPlane.manifests`, or `admission: {{objects: […]}}`",
            reports::words::count(counts.denied),
            said.about,
            crate::shown::text(&said.message)
        );
    }
    Ok(())
}

/// Maximum share of wrong answers of build A; the gate refuses to compare builds with more.
const WRONG_MOST: f64 = 0.01;
/// Seed of the warm-up, which is the same in every gate.
const FILLING_SEED: u64 = 1;

impl Gate<'_> {
    /// Runs the second session, after warming up its processes like those of the first session.
    async fn again(&mut self, options: &[Options; 2], stands: &mut [Testbed<'_>; 2], book: &mut Book) -> Result<bool> {
        warm(stands, &self.work).await?;
        self.session(2, options, stands, book).await
    }

    /// Runs a session: counts system calls and instructions, then measures both builds alternately. Returns false if
    /// the session ended early; the record has the reason.
    async fn session(
        &mut self,
        number: u32,
        options: &[Options; 2],
        stands: &mut [Testbed<'_>; 2],
        book: &mut Book,
    ) -> Result<bool> {
        let began = Instant::now();
        let seed = self.choice.source.scenario.seed;
        let Self { choice, work, signals, .. } = self;
        let besides = choice.besides();
        let pass = counts::Pass { session: number, seed, folder: &choice.out, work, besides };
        tokio::select! {
            counted = pass.count(options, stands, book) => counted?,
            signal = signals.next() => {
                book.write(&Line::Note(format!("{signal} ended it early")))?;
                return Ok(false);
            }
        }
        let sides = reports::gate::order::order(seed, number, self.plan.blocks);
        let all = sides.len();
        for (index, side) in (0_u32..).zip(sides.iter().copied()) {
            if index % BLOCK == 0 && self.is_over(number, index / BLOCK, began, book)? {
                break;
            }
            let place = slice::Position::of(seed, number, index, side);
            let Some(played) = self.slice(place, stands, book).await? else { return Ok(false) };
            self.choice.say(&slice::line(&played, index as usize + 1, all));
            book.write(&Line::Slice(Box::new(played)))?;
        }
        let plan = self.plan;
        let repeated = Session { choice: self.choice, number, sides: &sides, line: slice::line };
        let has_room = |played| plan.has_room_for_pair(played, began.elapsed());
        repeated.repeat(book, has_room, async |place, book| self.slice(place, stands, book).await).await
    }

    /// Runs one slice: a short measurement of one build. `None` if the session ends early; the record has the reason.
    async fn slice(
        &mut self,
        place: slice::Position,
        stands: &mut [Testbed<'_>; 2],
        book: &mut Book,
    ) -> Result<Option<Slice>> {
        let side = place.side;
        let stand = &mut stands[usize::from(side == Side::B)];
        let played = tokio::select! {
            played = slice::play(stand, &self.work, place) => played,
            signal = self.signals.next() => {
                book.write(&Line::Note(format!("{signal} ended it early")))?;
                return Ok(None);
            }
        };
        if let Some(how) = stand.exited().await {
            book.write(&Line::Note(format!("{} exited under load: {how}", side.letter())))?;
            return Ok(None);
        }
        played.map(Some)
    }

    /// Whether the session's time is over before this block. If the time is over, writes the number of blocks into the
    /// record.
    fn is_over(&self, session: u32, blocks: u32, began: Instant, book: &mut Book) -> Result<bool> {
        if blocks < plan::BLOCKS_LEAST || self.plan.has_room(blocks, began.elapsed()) {
            return Ok(false);
        }
        self.choice.say("the time is up: this session ends here, with fewer blocks");
        book.write(&Line::Shortened(Shortened { session, blocks }))?;
        Ok(true)
    }
}

impl Choice {
    /// The times that a session spends on warm-up and counting.
    fn besides(&self) -> Besides {
        let (pass, callgrind) = if self.quick { (QUICK_PASS, callgrind::QUICK) } else { (PASS, callgrind::THOROUGH) };
        Besides { warm: [FILLING, WATCHING], pass, callgrind: self.callgrind.then_some(callgrind) }
    }

    /// The options of the runs that start both builds in a session.
    fn options(&self, session: u32) -> Result<[Options; 2]> {
        let of = |side: Side| -> Result<Options> {
            let contestant = if side == Side::A { &self.a } else { &self.b };
            let mut source = self.source.clone();
            let subject = &mut source.scenario.subject;
            let mut service = None;
            if subject.profile().is_service {
                service = Some(PathBuf::from(&contestant.command));
            } else if let Some(command) = subject.command_mut() {
                command.run = contestant.words()?;
            } else {
                anyhow::bail!(
                    "{}: a gate starts both builds itself: write `command` instead of `{}`",
                    self.source.origin,
                    subject.profile().name
                );
            }
            let folder = format!("{}-{session}", side.letter().to_lowercase());
            Ok(Options {
                run_dir: Some(self.out.join(folder)),
                plant: contestant.plant.clone(),
                service,
                counts_bytes: true,
                ..Options::new(source, self.out.clone(), self.repeat.clone())
            })
        };
        Ok([of(Side::A)?, of(Side::B)?])
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            crate::out::err!("{text}");
        }
    }
}

impl Contestant {
    /// The program and its arguments, split as a shell would split them.
    fn words(&self) -> Result<Vec<String>> {
        let words = shlex::split(&self.command)
            .with_context(|| format!("--a and --b: `{}` has a quotation mark that is not closed", self.command))?;
        ensure!(!words.is_empty(), "--a and --b: a command is missing");
        Ok(words)
    }

    fn name(&self) -> String {
        let plant = self.plant.as_ref().map(|plant| format!(" (planted: {plant})")).unwrap_or_default();
        format!("{}{plant}", self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_shell_does() {
        let words = |command: &str| Contestant { command: command.to_owned(), plant: None }.words();
        assert_eq!(words("node old/index.js --flag").unwrap(), ["node", "old/index.js", "--flag"]);
        assert_eq!(words(r#"'my builds/a' --name "it's b" c\ d"#).unwrap(), ["my builds/a", "--name", "it's b", "c d"]);
        assert!(words("'open").unwrap_err().to_string().contains("not closed"));
        assert!(words("  ").unwrap_err().to_string().contains("a command is missing"));
    }
}
