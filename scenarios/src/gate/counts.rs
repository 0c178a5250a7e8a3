//! The passes that count exactly, before the slices of a session: they survive a noisy machine.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loadgen::admission::{Config, Load};
use reports::gate::record::Line;
use reports::gate::{Counted, Metric, Side};

use super::book::Book;
use super::callgrind;
use super::perf::{self, Perf};
use super::slice::DRAIN;
use crate::observer::tree;
use crate::run::{Options, Stand};

/// The order of the passes: three of each build, so that chance puts all of one above all of the other in one session of twenty.
const ORDER: [Side; 6] = [Side::A, Side::B, Side::B, Side::A, Side::A, Side::B];
/// How long each is.
const PASS: Duration = Duration::from_millis(1500);

/// What a session counts, and how.
pub(super) struct Pass<'a> {
    pub(super) session: u32,
    pub(super) seed: u64,
    /// Where callgrind writes.
    pub(super) folder: &'a Path,
    pub(super) config: &'a Config,
    /// Whether callgrind may be asked for instructions.
    pub(super) callgrind: bool,
}

impl Pass<'_> {
    /// Counts system calls and instructions, and writes them into the record; or a note that says what is missing.
    pub(super) async fn count(&self, options: &[Options; 2], stands: &[Stand<'_>; 2], book: &mut Book) -> Result<()> {
        let folder = tempfile::tempdir().context("failed to make a folder for the pipes of `perf`")?;
        let by_perf = match perf::works(folder.path()).await {
            Ok(counts) => self.by_perf(folder.path(), stands, book).await.map(|()| counts.instructions.is_some()),
            Err(why) => Err(why),
        };
        match by_perf {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(why) => self.skipped(book, "system calls", &format!("{why:#}"))?,
        }
        if !self.callgrind {
            return self.skipped(book, "instructions", "callgrind was not wanted, and the processor does not tell");
        }
        if let Err(why) = self.by_callgrind(options, book).await {
            self.skipped(book, "instructions", &format!("{why:#}"))?;
        }
        Ok(())
    }

    async fn by_perf(&self, folder: &Path, stands: &[Stand<'_>; 2], book: &mut Book) -> Result<()> {
        for side in ORDER {
            let stand = &stands[usize::from(side == Side::B)];
            let plan = stand.plan(self.config, self.seed, PASS)?;
            let perf = Perf::start(&tree(stand.pid()), folder).await?;
            let load = Load::start(plan, stand.target(), Instant::now()).context("failed to start the load")?;
            tokio::time::sleep(PASS).await;
            let interval = load.stop(DRAIN).await;
            let counts = perf.stop().await?;
            let answered = interval.counts.allowed + interval.counts.denied;
            for (metric, total) in [(Metric::Syscalls, counts.syscalls), (Metric::Instructions, counts.instructions)] {
                if let (Some(total), true) = (total, answered > 0) {
                    let (session, value) = (self.session, total as f64 / answered as f64);
                    book.write(&Line::Counted(Counted { session, side, metric, value }))?;
                }
            }
        }
        Ok(())
    }

    async fn by_callgrind(&self, options: &[Options; 2], book: &mut Book) -> Result<()> {
        callgrind::works().await?;
        let mut found = [0.0; 2];
        for (options, found) in options.iter().zip(&mut found) {
            *found = Box::pin(callgrind::instructions(options, self.config, self.seed, self.folder)).await?;
        }
        // Both or neither: half a comparison is none.
        for (side, value) in Side::BOTH.into_iter().zip(found) {
            let (session, metric) = (self.session, Metric::Instructions);
            book.write(&Line::Counted(Counted { session, side, metric, value }))?;
        }
        Ok(())
    }

    /// Says once what is not counted.
    fn skipped(&self, book: &mut Book, what: &str, why: &str) -> Result<()> {
        if self.session > 1 {
            return Ok(());
        }
        book.write(&Line::Note(format!("{what}: skipped: {why}")))
    }
}
