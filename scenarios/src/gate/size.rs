//! `longhaul gate --size`: decides whether build B needs more memory than build A against an API server with many objects.
//!
//! Owns the order of the starts. [`crate::size`] measures one start, and [`reports::gate`] judges the record. A start is
//! a slice of the record: the starts of both builds alternate in blocks of four, ABBA or BAAB.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use reports::gate::record::{Build, Line, Objects, SCHEMA};
use reports::gate::{Header, Judgement, Metric, Pressure, Side, Slice, judge, order, wants_confirmation};
use reports::size::{Fate, Row};
use tokio_util::sync::CancellationToken;

use super::Choice;
use super::book::Book;
use super::repeat::Session;
use super::slice::{Position, pressure};
use crate::observer::Strain;
use crate::run::Options;
use crate::size::{Ground, Measured, SETTLE, measure, plan::Step};

/// The objects, and the time that a build gets to become ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Starts {
    pub(crate) step: Step,
    pub(crate) patience: Duration,
}

/// The state that all starts share.
struct Gate<'a> {
    choice: &'a Choice,
    starts: Starts,
    options: [Options; 2],
    /// The kinds that either build lists or watches. They share the objects.
    resources: Vec<String>,
    /// The complete lists of a start of each build.
    lists: [BTreeMap<String, u64>; 2],
    stop: &'a CancellationToken,
}

/// Starts both builds alternately and returns the judgement. On error, nothing was compared.
pub(crate) async fn play(choice: &Choice, starts: Starts, stop: &CancellationToken) -> Result<Judgement> {
    let (resources, lists) = (Vec::new(), [BTreeMap::new(), BTreeMap::new()]);
    let mut gate = Gate { choice, starts, options: choice.options(1)?, resources, lists, stop };
    let digests = Box::pin(gate.look()).await?;
    let mut book = Book::create(&choice.out, gate.header(digests))?;
    let mut judgement = if Box::pin(gate.session(1, &mut book)).await? {
        judge(book.record())
    } else {
        return Ok(judge(book.record()));
    };
    if wants_confirmation(&judgement) {
        choice.say("B looks worse: a second session must confirm it");
        Box::pin(gate.session(2, &mut book)).await?;
        judgement = judge(book.record());
    }
    Ok(judgement)
}

impl Gate<'_> {
    /// Starts each build once without objects, to learn which kinds it asks for. Returns the digests of the programs.
    async fn look(&mut self) -> Result<[Option<String>; 2]> {
        let (mut resources, mut digests) = (BTreeSet::new(), [None, None]);
        for (at, side) in Side::BOTH.into_iter().enumerate() {
            let none = Step { objects: 0, bytes: 0 };
            let Some(base) = Box::pin(measure(&self.ground(side), &[], none, None, 0)).await? else {
                bail!("interrupted before the first comparison: nothing was measured");
            };
            ensure!(base.row.fate == Fate::Lived, "{} without any object: {}", side.letter(), base.row.fate.words());
            let kinds = base.followed.forms().into_iter().map(|(resource, ..)| resource);
            resources.extend(kinds);
            self.lists[at] = base.followed.lists();
            digests[at] = base.digest;
        }
        ensure!(!resources.is_empty(), "both builds list and watch nothing: do they read $KUBECONFIG?");
        self.resources = resources.into_iter().collect();
        Ok(digests)
    }

    fn ground(&self, side: Side) -> Ground<'_> {
        Ground {
            options: &self.options[usize::from(side == Side::B)],
            folder: &self.choice.out,
            limit: None,
            seed: self.seed(),
            patience: self.starts.patience,
            settle: SETTLE,
            stop: self.stop,
        }
    }

    fn seed(&self) -> u64 {
        self.choice.source.scenario.seed
    }

    fn header(&self, digests: [Option<String>; 2]) -> Header {
        let [a, b] = digests;
        let build = |command: String, digest| Build { command, digest };
        Header {
            schema: SCHEMA.to_owned(),
            started_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            scenario: self.choice.source.scenario.name.clone(),
            a: build(self.choice.a.name(), a),
            b: build(self.choice.b.name(), b),
            seed: self.seed(),
            rate: 0.0,
            events: 0.0,
            objects: Some(Objects { count: self.starts.step.objects, bytes: self.starts.step.bytes }),
            saturation: None,
            blocks: self.choice.blocks.0,
            slice_ms: 0,
            settle_ms: 0,
            longhaul: env!("CARGO_PKG_VERSION").to_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            repeat: self.choice.repeat.clone(),
        }
    }

    /// Runs a session, and repeats pairs during which the machine was under pressure: at most twice the planned number of
    /// starts. Returns false if the user interrupted the session; the record has the reason.
    async fn session(&self, number: u32, book: &mut Book) -> Result<bool> {
        let sides = order::order(self.seed(), number, self.choice.blocks.0);
        for (index, side) in (0_u32..).zip(sides.iter().copied()) {
            let Some(slice) = self.start(Position::of(self.seed(), number, index, side), book).await? else {
                return Ok(false);
            };
            self.choice.say(&line(&slice, index as usize + 1, sides.len()));
            book.write(&Line::Slice(Box::new(slice)))?;
        }
        let repeated = Session { choice: self.choice, number, sides: &sides, line };
        repeated.repeat(book, |_| true, async |place, book| self.start(place, book).await).await
    }

    /// Starts one build and measures it. `None` if the user interrupted the gate.
    async fn start(&self, place: Position, book: &mut Book) -> Result<Option<Slice>> {
        let (strain, from) = (Strain::read(), Instant::now());
        let lists = &self.lists[usize::from(place.side == Side::B)];
        let ground = self.ground(place.side);
        let started = measure(&ground, &self.resources, self.starts.step, Some(lists), 1);
        let Some(Measured { row, .. }) = Box::pin(started).await? else {
            book.write(&Line::Note("an interrupt ended it early".to_owned()))?;
            return Ok(None);
        };
        if row.fate != Fate::Lived {
            book.write(&Line::Note(format!("{}: {}", place.side.letter(), row.fate.words())))?;
        }
        Ok(Some(Slice {
            session: place.session,
            block: place.block,
            place: place.number,
            side: place.side,
            fingerprint: format!("{}x{}-{}", self.starts.step.objects, self.starts.step.bytes, self.seed()),
            lasted_ms: crate::clock::millis(from.elapsed()),
            planned: 0,
            answered: 0,
            changes: 0,
            pressure: Pressure { lateness_us: 0, ..pressure(&strain) },
            values: values(&row),
        }))
    }
}

/// The values of a start. A start that failed has no other value.
fn values(row: &Row) -> BTreeMap<Metric, f64> {
    let is_failed = row.fate != Fate::Lived;
    let mut values = BTreeMap::from([(Metric::StartFailures, if is_failed { 1.0 } else { 0.0 })]);
    let Some(figures) = row.figures.as_ref().filter(|_| !is_failed) else { return values };
    let micros = |ms: u64| ms as f64 * 1000.0;
    let found = [
        (Metric::StartMemory, Some(figures.highest_bytes as f64)),
        (Metric::Memory, figures.steady_bytes.map(|bytes| bytes as f64)),
        (Metric::RelistMemory, figures.relists.first().map(|relist| relist.highest_bytes as f64)),
        (Metric::StartCpu, figures.start_cpu_ms.map(micros)),
        (Metric::StartTime, figures.ready_ms.map(micros)),
    ];
    values.extend(found.into_iter().filter_map(|(metric, value)| Some((metric, value.filter(|value| *value > 0.0)?))));
    values
}

fn line(slice: &Slice, number: usize, of: usize) -> String {
    let shown =
        |metric: Metric| slice.values.get(&metric).map_or_else(|| "-".to_owned(), |value| metric.rule().value(*value));
    format!(
        "[{number}/{of}] {}: highest memory {}, at rest {}, ready after {}",
        slice.side.letter(),
        shown(Metric::StartMemory),
        shown(Metric::Memory),
        shown(Metric::StartTime),
    )
}

#[cfg(test)]
mod tests {
    use reports::size::Figures;

    use super::*;

    /// A start that failed has no memory that could be compared.
    #[test]
    fn a_failed_start_has_no_memory() {
        let figures = Figures { highest_bytes: 7, start_cpu_ms: Some(2), ..Figures::default() };
        let lived = Row { figures: Some(figures.clone()), ..Row::default() };
        let values_of = values(&lived);
        let wanted = [(Metric::StartFailures, 0.0), (Metric::StartMemory, 7.0), (Metric::StartCpu, 2000.0)];
        assert_eq!(values_of, BTreeMap::from(wanted));
        let died = Row { fate: Fate::Died { words: String::new() }, figures: Some(figures), ..Row::default() };
        assert_eq!(values(&died), BTreeMap::from([(Metric::StartFailures, 1.0)]));
    }
}
