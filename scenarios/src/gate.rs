//! `longhaul gate`: two builds side by side, slice by slice, until it is known whether one is worse.
//!
//! Owns the order of things: start both, find what they can take, alternate slices, judge, and confirm in a second session with fresh
//! processes. How one slice is measured is in [`mod@slice`], where everything is kept in [`book`]. The verdict is
//! that of `reports::gate`, from the record alone.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use loadgen::admission::Load;
use reports::gate::order::BLOCK;
use reports::gate::record::{Build, Line, SCHEMA};
use reports::gate::{Header, Judgement, Side, judge, wants_confirmation};
use units::Rate;

use self::book::Book;
use crate::run::{Options, Stand};
use crate::scenario::{Source, SubjectKind};
use crate::signals::Signals;

mod book;
mod callgrind;
mod counts;
pub(crate) mod init;
mod perf;
mod slice;

pub(crate) use book::{again, conclude, open};

/// The gate sends at most so much of what the slower build can take: above it queues decide, and not the builds.
const SHARE_OF_SATURATION: f64 = 0.5;
/// How long each build is filled to find what it can take. It warms both up as well.
const FILLING: Duration = Duration::from_millis(1500);
/// Connections of that.
const CONNECTIONS: usize = 8;
/// A slice of fewer requests has no median worth comparing.
const REQUESTS_LEAST: f64 = 200.0;

/// What is compared, and how thoroughly.
pub(crate) struct Choice {
    /// The scenario, whose phases are those of a slice.
    pub(crate) source: Source,
    pub(crate) a: Contestant,
    pub(crate) b: Contestant,
    /// Blocks of four slices a session.
    pub(crate) blocks: u32,
    /// The folder of the record and the pages.
    pub(crate) out: PathBuf,
    /// Count instructions by callgrind where the processor does not tell: a minute more.
    pub(crate) callgrind: bool,
    pub(crate) quiet: bool,
    /// The command that plays it again.
    pub(crate) repeat: String,
}

/// One of the two builds.
#[derive(Debug, Clone)]
pub(crate) struct Contestant {
    /// A command line, or the program of the service.
    pub(crate) command: String,
    /// A bug to plant in it.
    pub(crate) plant: Option<String>,
}

/// How long the parts of a slice take.
#[derive(Debug, Clone, Copy)]
struct Times {
    settle: Duration,
    slice: Duration,
    rest: Duration,
}

/// What every session of a gate shares.
struct Gate<'a> {
    choice: &'a Choice,
    /// The load of a slice.
    config: loadgen::admission::Config,
    times: Times,
    signals: &'a mut Signals,
}

/// Plays the gate and returns its judgement. An error means that nothing was compared.
pub(crate) async fn play(choice: &Choice) -> Result<Judgement> {
    let mut signals = Signals::listen().context("failed to listen for Ctrl-C")?;
    crate::load::descriptors::provide(choice.admission()?)?;
    let (first, second) = (choice.options(1)?, choice.options(2)?);
    let mut stands = stands(&first, &mut signals).await?;
    let begun = begin(choice, &stands, &mut signals).await;
    let (mut gate, mut book) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            down(stands).await;
            return Err(error);
        }
    };
    let played = gate.session(1, &first, &mut stands, &mut book).await;
    down(stands).await;
    let mut judgement = judge(book.record());
    if played? && wants_confirmation(&judgement) {
        choice.say("something looks worse: a second session with fresh processes has to confirm it");
        let mut stands = self::stands(&second, gate.signals).await?;
        let played = gate.again(&second, &mut stands, &mut book).await;
        down(stands).await;
        played?;
        judgement = judge(book.record());
    }
    Ok(judgement)
}

/// Starts both builds.
async fn stands<'a>(options: &'a [Options; 2], signals: &mut Signals) -> Result<[Stand<'a>; 2]> {
    let start = async {
        let a = Box::pin(Stand::up(&options[0])).await.context("A")?;
        match Box::pin(Stand::up(&options[1])).await.context("B") {
            Ok(b) => Ok([a, b]),
            Err(error) => {
                a.down().await;
                Err(error)
            }
        }
    };
    tokio::select! {
        stands = start => stands,
        signal = signals.next() => bail!("{signal} before anything was compared"),
    }
}

async fn down(stands: [Stand<'_>; 2]) {
    for stand in stands {
        stand.down().await;
    }
}

/// Finds what both can take, and begins the record.
async fn begin<'a>(choice: &'a Choice, stands: &[Stand<'_>; 2], signals: &'a mut Signals) -> Result<(Gate<'a>, Book)> {
    let mut config = choice.admission()?.clone();
    let saturation = tokio::select! {
        found = saturation(stands, &config) => found?,
        signal = signals.next() => bail!("{signal} before anything was compared"),
    };
    let (wanted, most) = (config.rate.as_per_second(), saturation[0].min(saturation[1]) * SHARE_OF_SATURATION);
    let rate = wanted.min(most).floor();
    let times = choice.times();
    if rate * times.slice.as_secs_f64() < REQUESTS_LEAST {
        bail!(
            "a slice would have fewer than {REQUESTS_LEAST} requests: the slower build can take {:.0}/s, and half of that is the most; make \
             `phases.steady` of the scenario longer, or play it on a quieter machine",
            saturation[0].min(saturation[1])
        );
    }
    config.rate = Rate::per_second(rate);
    let [a, b] = stands;
    let build =
        |contestant: &Contestant, stand: &Stand<'_>| Build { command: contestant.told(), digest: stand.digest.clone() };
    let header = Header {
        schema: SCHEMA.to_owned(),
        started_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        scenario: choice.source.scenario.name.clone(),
        a: build(&choice.a, a),
        b: build(&choice.b, b),
        seed: choice.source.scenario.seed,
        rate,
        saturation: Some(saturation),
        blocks: choice.blocks,
        slice_ms: crate::clock::millis(times.slice),
        settle_ms: crate::clock::millis(times.settle),
        longhaul: env!("CARGO_PKG_VERSION").to_owned(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        repeat: choice.repeat.clone(),
    };
    let mut book = Book::create(&choice.out, header)?;
    if rate < wanted {
        let note = format!(
            "the rate is {rate}/s and not the {wanted}/s of the scenario: that is half of what the slower build can take here"
        );
        choice.say(&note);
        book.write(&Line::Note(note))?;
    }
    Ok((Gate { choice, config, times, signals }, book))
}

/// What each build can take, in valid answers a second.
async fn saturation(stands: &[Stand<'_>; 2], config: &loadgen::admission::Config) -> Result<[f64; 2]> {
    let mut found = [0.0; 2];
    for (stand, found) in stands.iter().zip(&mut found) {
        let mut filling = config.clone();
        filling.rate = Rate::per_second(loadgen::admission::HIGHEST_RATE);
        let plan = stand.plan(&filling, FILLING_SEED, FILLING)?;
        let load = Load::saturate(plan, stand.target(), CONNECTIONS).context("failed to start the load")?;
        tokio::time::sleep(FILLING).await;
        let interval = load.stop(slice::DRAIN).await;
        *found = (interval.counts.allowed + interval.counts.denied) as f64 / FILLING.as_secs_f64();
        if *found == 0.0 {
            bail!(
                "no review was answered; the first failure: {}",
                interval.examples.first().map_or("none", String::as_str)
            );
        }
    }
    Ok(found)
}

/// The reviews that fill are the same in every gate.
const FILLING_SEED: u64 = 1;

impl Gate<'_> {
    /// The second session, after its processes were warmed up as those of the first were.
    async fn again(&mut self, options: &[Options; 2], stands: &mut [Stand<'_>; 2], book: &mut Book) -> Result<bool> {
        saturation(stands, &self.config).await?;
        self.session(2, options, stands, book).await
    }

    /// Alternates slices. False where it ended early, which the record tells.
    async fn session(
        &mut self,
        number: u32,
        options: &[Options; 2],
        stands: &mut [Stand<'_>; 2],
        book: &mut Book,
    ) -> Result<bool> {
        let seed = self.choice.source.scenario.seed;
        let Self { choice, config, signals, .. } = self;
        let pass = counts::Pass { session: number, seed, folder: &choice.out, config, callgrind: choice.callgrind };
        tokio::select! {
            counted = pass.count(options, stands, book) => counted?,
            signal = signals.next() => {
                book.write(&Line::Note(format!("{signal} ended it early")))?;
                return Ok(false);
            }
        }
        let sides = reports::gate::order::order(seed, number, self.choice.blocks);
        let all = sides.len();
        for (index, side) in (0_u32..).zip(sides) {
            let place = slice::Place {
                session: number,
                block: index / BLOCK,
                number: index % BLOCK,
                side,
                seed: seed + u64::from(number) * 10_000 + u64::from(index / BLOCK),
            };
            let stand = &mut stands[usize::from(side == Side::B)];
            let played = tokio::select! {
                played = slice::play(stand, &self.config, self.times, place) => played?,
                signal = self.signals.next() => {
                    book.write(&Line::Note(format!("{signal} ended it early")))?;
                    return Ok(false);
                }
            };
            if let Some(how) = stand.exited().await {
                book.write(&Line::Note(format!("{} exited under load: {how}", side.letter())))?;
                return Ok(false);
            }
            self.choice.say(&slice::told(&played, index as usize + 1, all));
            book.write(&Line::Slice(Box::new(played)))?;
        }
        Ok(true)
    }
}

impl Choice {
    fn admission(&self) -> Result<&loadgen::admission::Config> {
        let admission = self.source.scenario.admission.as_ref();
        admission.filter(|config| config.rate.as_per_second() > 0.0).with_context(|| {
            format!("{}: a gate needs `admission` with a `rate`, without `shape` and `replay`", self.source.origin)
        })
    }

    fn times(&self) -> Times {
        let phases = self.source.scenario.phases;
        Times { settle: phases.warm_up.0, slice: phases.steady.0, rest: phases.drain.0 }
    }

    /// How both are started in a session.
    fn options(&self, session: u32) -> Result<[Options; 2]> {
        let of = |side: Side| -> Result<Options> {
            let contestant = if side == Side::A { &self.a } else { &self.b };
            let mut source = self.source.clone();
            let subject = &mut source.scenario.subject;
            let mut service = None;
            match subject.kind {
                SubjectKind::Service => service = Some(PathBuf::from(&contestant.command)),
                SubjectKind::Command => subject.command = contestant.words()?,
                SubjectKind::Attach => anyhow::bail!(
                    "{}: a gate starts both builds itself: write `kind: command` instead of `attach`",
                    self.source.origin
                ),
            }
            let folder = format!("{}-{session}", side.letter().to_lowercase());
            Ok(Options {
                source,
                runs: self.out.clone(),
                run_dir: Some(self.out.join(folder)),
                plant: contestant.plant.clone(),
                service,
                keep_events: false,
                quiet: true,
                left_out: None,
                repeat: self.repeat.clone(),
                window: crate::run::Addresses::default(),
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
    /// The program and its arguments.
    fn words(&self) -> Result<Vec<String>> {
        let words: Vec<String> = self.command.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            bail!("--a and --b: a command is missing");
        }
        Ok(words)
    }

    /// As the record names it.
    fn told(&self) -> String {
        let plant = self.plant.as_ref().map(|plant| format!(" (planted: {plant})")).unwrap_or_default();
        format!("{}{plant}", self.command)
    }
}
