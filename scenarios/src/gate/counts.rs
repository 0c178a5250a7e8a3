//! Counts system calls, instructions and allocations before a session measures the builds under load. Counts are exact
//! even on a noisy machine.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loadgen::admission::{Config, Load};
use reports::gate::record::Line;
use reports::gate::{Counted, Metric, Side};

use super::book::Book;
use super::callgrind;
use super::perf::{self, Perf};
use super::plan::Besides;
use super::slice::DRAIN;
use super::work::Work;
use crate::observer::tree;
use crate::run::{Options, Testbed};

/// The order of the counting passes, three of each build. By chance, all values of one build are above all values of
/// the other build in one of twenty sessions.
const ORDER: [Side; 6] = [Side::A, Side::B, Side::B, Side::A, Side::A, Side::B];

pub(super) struct Pass<'a> {
    pub(super) session: u32,
    pub(super) seed: u64,
    pub(super) folder: &'a Path,
    pub(super) work: &'a Work,
    /// Times of the counting passes, and whether callgrind may be used.
    pub(super) besides: Besides,
}

impl Pass<'_> {
    /// Counts system calls, instructions and allocations. Writes the counts into the record, or a note on each missing
    /// count.
    pub(super) async fn count(&self, options: &[Options; 2], stands: &[Testbed<'_>; 2], book: &mut Book) -> Result<()> {
        let folder = tempfile::tempdir().context("failed to make a folder for the pipes of `perf`")?;
        let by_perf = match perf::works(folder.path()).await {
            Ok(counts) => self.by_perf(folder.path(), stands, book).await.map(|()| counts.instructions.is_some()),
            Err(why) => Err(why),
        };
        let has_instructions = match by_perf {
            Ok(counted) => counted,
            Err(why) => {
                self.skipped(book, "system calls", &format!("{why:#}"))?;
                false
            }
        };
        let open = if has_instructions { "allocations" } else { "instructions and allocations" };
        let Some(patience) = self.besides.callgrind else {
            return self.skipped(
                book,
                open,
                "callgrind was switched off (--no-callgrind), and the processor does not count them",
            );
        };
        if let Err(why) = self.by_callgrind(options, has_instructions, patience, book).await {
            self.skipped(book, open, &format!("{why:#}"))?;
        }
        Ok(())
    }

    async fn by_perf(&self, folder: &Path, stands: &[Testbed<'_>; 2], book: &mut Book) -> Result<()> {
        for side in ORDER {
            let stand = &stands[usize::from(side == Side::B)];
            if let Some(config) = &self.work.reviews {
                let (counts, answered) = self.reviews(stand, config, folder).await?;
                self.counted(book, side, Metric::Syscalls, counts.syscalls, answered)?;
                self.counted(book, side, Metric::Instructions, counts.instructions, answered)?;
            }
            if self.work.churn.is_some() {
                let perf = Perf::start(&tree(stand.pid()), folder).await?;
                let events = stand.events(Work::events_for(self.seed, self.besides.pass)).await?;
                let (counts, changes) = (perf.stop().await?, events.map_or(0, |events| events.changes));
                self.counted(book, side, Metric::SyscallsPerEvent, counts.syscalls, changes)?;
                self.counted(book, side, Metric::InstructionsPerEvent, counts.instructions, changes)?;
            }
        }
        Ok(())
    }

    async fn reviews(&self, stand: &Testbed<'_>, config: &Config, folder: &Path) -> Result<(perf::Counts, u64)> {
        let pass = self.besides.pass;
        let plan = stand.plan(config, self.seed, pass).await?;
        let perf = Perf::start(&tree(stand.pid()), folder).await?;
        let load = Load::start(plan, stand.target()?, Instant::now()).context("failed to start the load")?;
        tokio::time::sleep(pass).await;
        let interval = load.stop(DRAIN).await;
        let counts = perf.stop().await?;
        Ok((counts, interval.counts.allowed + interval.counts.denied))
    }

    fn counted(&self, book: &mut Book, side: Side, metric: Metric, total: Option<u64>, of: u64) -> Result<()> {
        let (Some(total), true) = (total, of > 0) else { return Ok(()) };
        let (session, value) = (self.session, total as f64 / of as f64);
        book.write(&Line::Counted(Counted { session, side, metric, value }))
    }

    async fn by_callgrind(
        &self,
        options: &[Options; 2],
        has_instructions: bool,
        patience: Duration,
        book: &mut Book,
    ) -> Result<()> {
        callgrind::works().await?;
        let mut found = Vec::new();
        for options in options {
            let until = Instant::now() + patience / 2;
            let counting = callgrind::Counting { work: self.work, seed: self.seed, folder: self.folder, until };
            let (counted, missing) = Box::pin(counting.count(options)).await?;
            if let Some(why) = missing {
                self.skipped(book, "instructions and allocations an event", &why)?;
            }
            found.push(counted);
        }
        let [a, b] = found.as_slice() else { return Ok(()) };
        let is_told = |metric: Metric| matches!(metric, Metric::Instructions | Metric::InstructionsPerEvent);
        let has = |counted: &[(Metric, f64)], metric: Metric| counted.iter().any(|(one, _)| *one == metric);
        for (side, counted, other) in [(Side::A, a, b), (Side::B, b, a)] {
            // A metric is recorded only if both builds have it.
            let wanted = |metric: Metric| has(other, metric) && !(has_instructions && is_told(metric));
            for (metric, value) in counted.iter().copied().filter(|(metric, _)| wanted(*metric)) {
                book.write(&Line::Counted(Counted { session: self.session, side, metric, value }))?;
            }
        }
        let allocates =
            |counted: &[(Metric, f64)]| has(counted, Metric::Allocations) || has(counted, Metric::AllocationsPerEvent);
        if !allocates(a) || !allocates(b) {
            let why = "callgrind saw no call of a known allocator; the program needs a symbol for `malloc`";
            self.skipped(book, "allocations", why)?;
        }
        Ok(())
    }

    /// Writes a note into the record that a count is left out.
    fn skipped(&self, book: &mut Book, what: &str, why: &str) -> Result<()> {
        if self.session > 1 {
            return Ok(());
        }
        book.write(&Line::Note(format!("{what}: not counted: {why}")))
    }
}
