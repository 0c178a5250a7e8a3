//! One worker as the coordinator sees it: its name, its streams, and the offset of its clock.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::clock::{Offset, UNCERTAINTY_MAX};
use super::lines::{Reading, write};
use super::protocol::{Order, Word, cut};

/// Longest wait for a worker's hello. A new process says hello at once, but a busy machine may start the process late.
pub(super) const HELLO_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for a pong; a slower pong does not help to compare clocks.
const PONG_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait for the end of a process whose output has ended.
const ENDING_LIMIT: Duration = Duration::from_secs(5);

pub(super) struct Worker {
    pub(super) reader: Reader,
    pub(super) output: ChildStdin,
}

/// The receiving end of a worker's messages.
pub(super) struct Reader {
    pub(super) name: String,
    pub(super) input: Reading<ChildStdout>,
    /// The started process. The process leads a group that is killed on drop, because a command may start further
    /// processes.
    child: Child,
}

impl Worker {
    /// Takes over a process that was just started with pipes as stdin and stdout.
    pub(super) fn new(name: String, mut child: Child) -> Result<Self> {
        let (Some(output), Some(input)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("{name} has no pipes");
        };
        Ok(Self { reader: Reader { name, input: Reading::new(input), child }, output })
    }

    pub(super) fn name(&self) -> &str {
        &self.reader.name
    }

    /// Sends the empty line that a worker in a Pod waits for.
    pub(super) async fn begin(&mut self) -> Result<()> {
        let written = tokio::time::timeout(HELLO_LIMIT, self.output.write_all(b"\n")).await;
        let why = || format!("{} could not be attached to", self.name());
        written.with_context(why)?.with_context(why)
    }

    pub(super) async fn say(&mut self, order: &Order) -> Result<()> {
        if let Err(why) = write(&mut self.output, order).await {
            // Its last message, or its end, explains more than a closed pipe.
            return match self.hear(HELLO_LIMIT).await {
                Ok(word) => Err(self.unexpected(&word, "nothing")),
                Err(error) => Err(error.context(format!("{} {why}", self.name()))),
            };
        }
        Ok(())
    }

    pub(super) async fn hear(&mut self, limit: Duration) -> Result<Word> {
        let next = tokio::time::timeout(limit, self.reader.input.next::<Word>()).await;
        match next {
            Ok(Ok(Some(Word::Error { message }))) => bail!("{}: {}", self.name(), cut(&message)),
            Ok(Ok(Some(word))) => Ok(word),
            Ok(Ok(None)) => {
                let ending = self.reader.ending().await;
                bail!("{} ended early{ending}", self.name())
            }
            Ok(Err(why)) => bail!("{} {why}", self.name()),
            Err(_) => bail!("{} sent no message for {} s", self.name(), limit.as_secs()),
        }
    }

    pub(super) fn unexpected(&self, word: &Word, wanted: &str) -> anyhow::Error {
        let text = serde_json::to_string(word).unwrap_or_default();
        let text: String = cut(&text).chars().take(80).collect();
        anyhow::anyhow!("{} sent `{text}` instead of `{wanted}`", self.name())
    }

    /// Measures the offset of the worker's clock from the coordinator's clock, which counts from `epoch`.
    pub(super) async fn compare(&mut self, epoch: Instant) -> Result<Offset> {
        let mut offset = Offset::default();
        let mut id = 0;
        while !offset.is_settled() {
            let sent = nanos(epoch.elapsed());
            self.say(&Order::Ping { id }).await?;
            match self.hear(PONG_LIMIT).await? {
                Word::Pong { id: same, clock_ns } if same == id => offset.round(sent, nanos(epoch.elapsed()), clock_ns),
                other => return Err(self.unexpected(&other, "pong")),
            }
            id += 1;
        }
        match offset.uncertainty() {
            Some(uncertainty) if uncertainty <= UNCERTAINTY_MAX => Ok(offset),
            uncertainty => bail!(
                "the clock of {} is known only within {} ms, and a common start needs {} ms: the connection is too slow, or its machine \
                 too busy",
                self.name(),
                uncertainty.unwrap_or_default().as_millis(),
                UNCERTAINTY_MAX.as_millis()
            ),
        }
    }

    /// Orders the worker to begin at this time of the coordinator's clock.
    pub(super) async fn start(&mut self, offset: Offset, ours: u64) -> Result<()> {
        let theirs = offset.theirs(ours);
        let at_clock_ns = theirs.with_context(|| format!("the clock of {} is no clock", self.name()))?;
        self.say(&Order::Start { at_clock_ns }).await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        Self::kill_group(self.child.id());
    }
}

impl Reader {
    /// Kills all processes that the worker's command started. Without this kill, a shell that ignores its closed pipe
    /// would keep inherited files open.
    fn kill_group(leader: Option<u32>) {
        let group = leader.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            // An already empty group is no error.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// A text on how the worker's process ended, if it has ended.
    pub(super) async fn ending(&mut self) -> String {
        let leader = self.child.id();
        let ending = self.wait().await;
        if self.child.id().is_none() {
            Self::kill_group(leader);
        }
        ending
    }

    async fn wait(&mut self) -> String {
        match tokio::time::timeout(ENDING_LIMIT, self.child.wait()).await {
            Ok(Ok(status)) => format!(": {status}"),
            Ok(Err(_)) | Err(_) => String::new(),
        }
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
