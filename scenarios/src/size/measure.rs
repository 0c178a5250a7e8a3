//! One row: fills a mock, starts the program, and measures it until it rests (uses little processor time), and during
//! relists.
//!
//! Owns the phases of a row and their time limits. A program that dies, is killed or never becomes ready gives a row
//! that says so.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use reports::record::Process;
use reports::size::{Fate, Figures, Relist, Row};
use tokio_util::sync::CancellationToken;

use super::cage::Cage;
use super::fill::fill;
use super::follow::Followed;
use super::plan::Step;
use crate::observer;
use crate::run::{Options, Sized};

/// Interval at which the program's requests and resource usage are read.
const TICK: Duration = Duration::from_millis(50);
/// A program that opens no further list or watch for this time has requested all kinds.
const QUIET: Duration = Duration::from_millis(1500);
/// A streaming list whose bytes do not grow for this time has ended. The mock's traffic does not show the end of a
/// streaming list.
const STREAM_QUIET: Duration = Duration::from_millis(500);
/// Length of the window in which a program at rest uses little processor time.
const WINDOW: Duration = Duration::from_secs(1);
/// Processor time in a window below which a program rests, in milliseconds.
const WINDOW_CPU_MS: u64 = 60;
/// Maximum number of characters of a program's last output in a row.
const WORDS_MAX: usize = 240;

/// Settings of all rows.
pub(crate) struct Ground<'a> {
    pub(crate) options: &'a Options,
    /// The folder for the program's log.
    pub(crate) folder: &'a Path,
    pub(crate) limit: Option<u64>,
    pub(crate) seed: u64,
    /// Longest time until the program is ready.
    pub(crate) patience: Duration,
    /// Longest time that a ready program gets until it uses little processor time.
    pub(crate) settle: Duration,
    pub(crate) stop: &'a CancellationToken,
}

/// A row, and the program's requests.
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) followed: Followed,
    pub(crate) digest: Option<String>,
}

/// The state of one start.
struct Start<'a> {
    sized: Sized,
    pid: u32,
    began: Instant,
    followed: Followed,
    figures: Figures,
    /// Bytes of lists so far, and when they last grew.
    grown: (u64, Instant),
    cage: Option<Cage>,
    stop: &'a CancellationToken,
}

/// The reason why a phase of a row ended early.
enum Early {
    Fate(Fate),
    Interrupted,
}

/// Measures one row. `resources` share the objects. `lists` has the number of complete lists of each kind in a start,
/// if these numbers are known. `None` if the user interrupted the row.
pub(crate) async fn measure(
    ground: &Ground<'_>,
    resources: &[String],
    step: Step,
    lists: Option<&BTreeMap<String, u64>>,
    relists: u32,
) -> Result<Option<Measured>> {
    let folder = ground.folder.join(format!("log-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let Options { source, runs, service, repeat, .. } = ground.options;
    let (run_dir, service) = (Some(folder.clone()), service.clone());
    let options = Options { run_dir, service, ..Options::new(source.clone(), runs.clone(), repeat.clone()) };
    let mut sized = Sized::open(&options).await?;
    let digest = sized.digest.take();
    let filled = fill(sized.server()?, resources, step, ground.seed);
    match ground.stop.run_until_cancelled(filled).await {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            sized.stop().await;
            return Err(error);
        }
        None => {
            sized.stop().await;
            return Ok(None);
        }
    }
    // If no cgroup can be made, the result says why.
    let cage = ground.limit.and_then(|limit| Cage::make(limit).ok());
    let pid = match sized.start(cage.as_ref().map(Cage::procs)) {
        Ok(pid) => pid,
        Err(error) => {
            sized.stop().await;
            return Err(error);
        }
    };
    let (began, followed, figures) = (Instant::now(), Followed::default(), Figures::default());
    let grown = (0, began);
    let mut start = Start { sized, pid, began, followed, figures, grown, cage, stop: ground.stop };
    let played = start.play(ground, lists, relists).await;
    start.count();
    let Start { sized, followed, figures, cage, .. } = start;
    sized.stop().await;
    drop(cage);
    // The next row writes a log of its own.
    let _ = std::fs::remove_dir_all(&folder);
    let fate = match played {
        Ok(()) => Fate::Lived,
        Err(Early::Fate(fate)) => fate,
        Err(Early::Interrupted) => return Ok(None),
    };
    let row = Row { objects: step.objects, object_bytes: step.bytes, fate, figures: Some(figures) };
    Ok(Some(Measured { row, followed, digest }))
}

impl Start<'_> {
    async fn play(
        &mut self,
        ground: &Ground<'_>,
        lists: Option<&BTreeMap<String, u64>>,
        relists: u32,
    ) -> Result<(), Early> {
        self.until_ready(ground.patience, lists).await?;
        let rest = self.until_rest(ground.settle).await?;
        self.figures.steady_bytes = rest.as_ref().map(|(used, _)| used.rss_bytes);
        self.figures.rest_cpu_ms_per_min = rest.as_ref().map(|(_, cpu)| *cpu);
        self.figures.descriptors = rest.as_ref().map(|(used, _)| {
            let fds = &used.fds;
            fds.socket + fds.file + fds.pipe + fds.other
        });
        self.figures.threads = rest.map(|(used, _)| used.threads);
        self.figures.highest_bytes = self.figures.highest_bytes.max(observer::peak(self.pid).unwrap_or(0));
        self.count();
        let wanted = self.followed.lists();
        if wanted.is_empty() {
            return Ok(());
        }
        for _ in 0..relists {
            self.relist(ground, &wanted).await?;
        }
        Ok(())
    }

    /// Waits until the program has listed all kinds and is ready.
    async fn until_ready(&mut self, patience: Duration, lists: Option<&BTreeMap<String, u64>>) -> Result<(), Early> {
        let (mut asks, mut last) = (0, Instant::now());
        let mut usage = None;
        loop {
            usage = self.tick().await?.or(usage);
            if asks != self.followed.asks {
                (asks, last) = (self.followed.asks, Instant::now());
            }
            let missing = self.sized.missing().await;
            let listed = match lists {
                Some(lists) => self.followed.has(lists, &BTreeMap::new()),
                None => asks > 0 && last.elapsed() >= QUIET,
            };
            if listed && missing.is_none() && self.has_streamed() {
                // Without known lists, the start ended with the last list or watch, before the quiet time.
                let at = match (lists, self.followed.is_streamed()) {
                    (None, _) => last,
                    (Some(_), true) => self.grown.1,
                    (Some(_), false) => Instant::now(),
                };
                self.figures.ready_ms = Some(millis(at.duration_since(self.began)));
                self.figures.after_start_bytes = usage.as_ref().map(|used: &Process| used.rss_bytes);
                self.figures.start_cpu_ms = usage.map(|used| used.cpu_ms);
                return Ok(());
            }
            if self.began.elapsed() >= patience {
                let words = missing.unwrap_or_else(|| match lists {
                    Some(_) => format!("the program had not listed all kinds after {} s", patience.as_secs()),
                    None => format!("no lists and watches, or no end of them, within {} s", patience.as_secs()),
                });
                return Err(Early::Fate(Fate::NotReady { words: short(&words) }));
            }
        }
    }

    /// Waits until the program uses little processor time. Returns its usage and its processor time per minute at rest.
    async fn until_rest(&mut self, settle: Duration) -> Result<Option<(Process, u64)>, Early> {
        let began = Instant::now();
        let (mut at, mut before) = (Instant::now(), None::<u64>);
        let mut usage = None;
        loop {
            usage = self.tick().await?.or(usage);
            if at.elapsed() < WINDOW {
                continue;
            }
            let Some(used) = &usage else { return Ok(None) };
            let spent = before.map(|before| used.cpu_ms.saturating_sub(before));
            let is_over = began.elapsed() >= settle;
            if let Some(spent) = spent.filter(|spent| *spent < WINDOW_CPU_MS || is_over) {
                let per_minute = spent * 60_000 / millis(at.elapsed()).max(1);
                return Ok(usage.map(|used| (used, per_minute)));
            }
            (at, before) = (Instant::now(), Some(used.cpu_ms));
        }
    }

    /// Ends every watch with 410, and waits until all kinds are listed again and the program rests.
    async fn relist(&mut self, ground: &Ground<'_>, wanted: &BTreeMap<String, u64>) -> Result<(), Early> {
        let before = self.followed.lists();
        let (cpu, bytes) = (observer::used(self.pid).map_or(0, |used| used.cpu_ms), self.list_bytes());
        let forgot = observer::forget_peak(self.pid);
        let began = Instant::now();
        let mut relist = Relist::default();
        if let Err(error) = self.sized.disturb() {
            return Err(Early::Fate(Fate::Died { words: short(&format!("no relist could be played: {error:#}")) }));
        }
        let mut highest = 0;
        while began.elapsed() < ground.patience {
            highest = highest.max(self.tick().await?.map_or(0, |used| used.rss_bytes));
            if self.followed.has(wanted, &before) && self.has_streamed() {
                let is_streamed = self.followed.is_streamed();
                let took = if is_streamed { self.grown.1.duration_since(began) } else { began.elapsed() };
                relist.took_ms = Some(millis(took));
                break;
            }
        }
        self.sized.heal();
        let rest = self.until_rest(ground.settle).await?;
        relist.highest_bytes = highest.max(observer::peak(self.pid).filter(|_| forgot).unwrap_or(0));
        if let Some((used, _)) = rest {
            relist.after_bytes = used.rss_bytes;
            relist.highest_bytes = relist.highest_bytes.max(used.rss_bytes);
            relist.cpu_ms = used.cpu_ms.saturating_sub(cpu);
        }
        relist.list_bytes = self.list_bytes() - bytes;
        self.figures.relists.push(relist);
        Ok(())
    }

    /// Waits for the next sample, and reads requests and usage.
    async fn tick(&mut self) -> Result<Option<Process>, Early> {
        tokio::time::sleep(TICK).await;
        if self.stop.is_cancelled() {
            return Err(Early::Interrupted);
        }
        if let Ok(server) = self.sized.server() {
            let (facts, _) = server.take_requests(self.sized.user());
            self.followed.take(&facts);
            self.followed.complete(&server.gaps(self.sized.user()));
            let bytes = server.traffic(self.sized.user()).list_bytes;
            if bytes != self.grown.0 {
                self.grown = (bytes, Instant::now());
            }
        }
        if let Some((status, words)) = self.sized.ended().await {
            let is_limit = self.cage.as_ref().is_some_and(|cage| cage.kills() > 0);
            let signal = status.signal().map(|signal| format!(" by signal {signal}")).unwrap_or_default();
            let code = status.code().map(|code| format!(" with exit code {code}")).unwrap_or_default();
            let words = short(&format!("it ended{signal}{code}: {words}"));
            return Err(Early::Fate(if is_limit { Fate::LimitKilled } else { Fate::Died { words } }));
        }
        let used = observer::used(self.pid);
        let rss = used.as_ref().map_or(0, |used| used.rss_bytes);
        if self.figures.relists.is_empty() && self.figures.steady_bytes.is_none() {
            self.figures.highest_bytes = self.figures.highest_bytes.max(rss);
        }
        Ok(used)
    }

    /// Counts the requests that the program sends until it rests for the first time.
    fn count(&mut self) {
        if !self.figures.relists.is_empty() || (self.figures.steady_bytes.is_some() && self.figures.requests > 0) {
            return;
        }
        if let Ok(server) = self.sized.server() {
            let traffic = server.traffic(self.sized.user());
            self.figures.requests = traffic.requests;
            self.figures.lists = traffic.lists;
            self.figures.watches = traffic.watches_opened;
            self.figures.list_bytes = traffic.list_bytes;
        }
    }

    /// Whether no streaming list is under way.
    fn has_streamed(&self) -> bool {
        !self.followed.is_streamed() || self.grown.1.elapsed() >= STREAM_QUIET
    }

    fn list_bytes(&self) -> u64 {
        self.sized.server().map_or(0, |server| server.traffic(self.sized.user()).list_bytes)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The text on one line, without stack frames and without the middle of a long text.
fn short(words: &str) -> String {
    let is_frame = |line: &str| {
        let line = line.trim_start();
        line.starts_with("at ") || line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(": ")
    };
    let line: Vec<&str> = words.lines().filter(|line| !is_frame(line)).flat_map(str::split_whitespace).collect();
    let line = line.join(" ");
    let count = line.chars().count();
    if count <= WORDS_MAX {
        return line;
    }
    let head: String = line.chars().take(WORDS_MAX / 3).collect();
    let tail: String = line.chars().skip(count - WORDS_MAX * 2 / 3).collect();
    format!("{head} … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason of an end stays, and the frames of a stack do not.
    #[test]
    fn words_are_short() {
        let words = "Error: no memory\n\nStack backtrace:\n   0: anyhow::error\n             at ./src/main.rs:7\n";
        assert_eq!(short(words), "Error: no memory Stack backtrace:");
        let long = short(&"word ".repeat(500));
        assert!(long.chars().count() <= WORDS_MAX + 3 && long.contains(" … "), "{long}");
    }
}
