//! The coordinator: gives each worker its share of the plan, starts all workers at the same time, and merges their
//! measurements.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use loadgen::admission::Plan;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::gather::Workers;
use super::lines::{self, write};
use super::merge::{self, Merge, Sum};
use super::peer::{Reader, Worker, nanos};
use super::protocol::{Assignment, BadRow, Order, PROTOCOL, Word, cut};
use crate::load::Job;
use crate::load::measure::{self, Ended, Measured, Run, Watch};

/// Longest wait for the workers' payloads: usually a second or two, longer for a large recorded file.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// Time from the start order to the first request, so that every worker receives the order in time.
const LEAD: Duration = Duration::from_millis(1500);
/// Longest time without a message from a worker, which sends a message every second. After this time, a silent worker
/// counts as hanging.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// Maximum number of queued messages from workers. Each worker sends one message per second, and waits while the queue
/// is full.
const WORDS_MAX: usize = 8;

/// Longest time that workers may need for the plan of a job, including the last calls.
pub(super) fn longest(job: &Job) -> Duration {
    job.length() + measure::PACING_LIMIT + measure::drain(job, true)
}

impl Workers {
    /// Gives each worker its share of the plan and waits until all workers have made their payloads.
    pub(super) async fn assign(&mut self, job: &Job, plan: &Plan) -> Result<()> {
        let workers = u32::try_from(self.0.len())?;
        for (worker, number) in self.0.iter_mut().zip(0..) {
            let assignment = Assignment { protocol: PROTOCOL.to_owned(), job: job.clone(), worker: number, workers };
            worker.say(&Order::Assign(Box::new(assignment))).await?;
        }
        let whole = plan.fingerprint();
        for (worker, number) in self.0.iter_mut().zip(0..) {
            let share = plan.clone().share(number, workers).total();
            match worker.hear(READY_LIMIT).await? {
                Word::Ready { planned, fingerprint } if planned == share && fingerprint == whole => {}
                Word::Ready { planned, fingerprint } => bail!(
                    "{} has another plan: {planned} requests of {}, not {share} of {whole}: use the same version of longhaul \
                     and the same files everywhere",
                    worker.name(),
                    cut(&fingerprint)
                ),
                other => return Err(worker.unexpected(&other, "ready")),
            }
        }
        Ok(())
    }

    /// Compares clocks and orders all workers to begin at the same time.
    async fn start(&mut self, epoch: Instant) -> Result<Instant> {
        let mut offsets = Vec::new();
        for worker in &mut self.0 {
            offsets.push(worker.compare(epoch).await?);
        }
        let begin = Instant::now() + LEAD;
        let ours = nanos(begin - epoch);
        for (worker, offset) in self.0.iter_mut().zip(offsets) {
            worker.start(offset, ours).await?;
        }
        Ok(begin)
    }
}

/// Sending workers, and their merged measurements.
pub(super) struct Sending {
    pub(super) begin: Instant,
    words: mpsc::Receiver<Message>,
    readers: JoinSet<(usize, Reader)>,
    outputs: Vec<ChildStdin>,
    merge: Merge,
    /// Longest time that the workers may send load.
    longest: Duration,
    are_pods: bool,
}

impl Sending {
    /// Starts workers that have their shares of the plan. Workers may send for the time `longest`. On error, nothing
    /// was sent.
    pub(super) async fn begin(workers: &mut Workers, longest: Duration) -> Result<Self> {
        let begin = workers.start(Instant::now()).await?;
        // One more interval for the end of the plan, and one for the last open calls.
        let most = longest.as_secs() + 3;
        let (merge, are_pods) = (Merge::new(workers.count(), most), workers.are_pods());
        let (said, words) = mpsc::channel(WORDS_MAX);
        let (mut readers, mut outputs) = (JoinSet::new(), Vec::new());
        for (number, Worker { reader, output }) in workers.0.drain(..).enumerate() {
            outputs.push(output);
            readers.spawn(listen(number, reader, said.clone()));
        }
        Ok(Self { begin, words, readers, outputs, merge, longest, are_pods })
    }

    /// The next message of any worker. Cancel safe.
    pub(super) async fn hear(&mut self) -> Option<Message> {
        self.words.recv().await
    }

    /// Adds a worker's message. Returns the intervals that are now complete, or how the load ended early.
    pub(super) fn add(&mut self, heard: Option<Message>) -> Result<Vec<Sum>, Ended> {
        let Some(Message { worker, name, word }) = heard else {
            return Err(Ended::Broken("the workers are gone".to_owned()));
        };
        if let Err(why) = word.and_then(|word| add(&mut self.merge, worker, word, self.longest)) {
            // A local process does not disappear by itself; a Pod may be evicted, or its node may fail.
            let lost = self.are_pods && matches!(why, Spoilt::Ended(_) | Spoilt::Silent);
            let why = format!("{name} {why}");
            return Err(if lost { Ended::Lost(why) } else { Ended::Broken(why) });
        }
        Ok(std::iter::from_fn(|| self.merge.pop()).collect())
    }

    pub(super) fn is_over(&self) -> bool {
        self.merge.is_over()
    }

    /// Orders the workers to send no new requests.
    pub(super) async fn stop(&mut self) {
        for output in &mut self.outputs {
            // The reader of a lost worker reports the loss.
            let _ = write(output, &Order::Stop {}).await;
        }
    }

    /// Returns the incomplete intervals, and the workers if all have ended well and wait for another plan.
    pub(super) async fn end(mut self) -> (Vec<Sum>, Vec<Worker>) {
        let mut workers = Vec::new();
        if self.merge.is_over() {
            let mut ended = self.readers.join_all().await;
            ended.sort_by_key(|(number, _)| *number);
            workers.extend(ended.into_iter().zip(self.outputs).map(|((_, reader), output)| Worker { reader, output }));
        } else {
            // The end of their input ends workers that still run; local processes are killed with their readers.
            drop(self.outputs);
            self.readers.shutdown().await;
        }
        (self.merge.rest().collect(), workers)
    }
}

/// Sends the plan with these workers. On error, nothing was sent. After the measurement, the workers wait for the next
/// plan. If a worker failed, all workers are stopped.
pub(crate) async fn measure(job: &Job, plan: &Plan, workers: &mut Workers, watch: &mut Watch) -> Result<Measured> {
    workers.assign(job, plan).await?;
    let longest = longest(job);
    let mut sending = Sending::begin(workers, longest).await?;
    let begin = sending.begin;
    // This limit holds even if messages keep coming.
    let over = begin + longest + SILENCE_LIMIT;
    let mut run = Run::new(begin, job.length());
    let mut signal = None;
    let mut give_up = None;
    let ended = loop {
        let until = give_up.unwrap_or_else(|| Instant::now() + SILENCE_LIMIT * 2).min(over);
        let heard = tokio::select! {
            heard = sending.hear() => heard,
            name = watch.signals.next() => {
                if signal.is_some() {
                    // A shell that ignores the end of its input would outlive this process.
                    sending.end().await;
                    measure::abort();
                }
                signal = Some(name);
                give_up = Some(Instant::now() + measure::DRAIN_INTERRUPTED + SILENCE_LIMIT);
                sending.stop().await;
                continue;
            }
            () = tokio::time::sleep_until(until.into()) => break Ended::Broken("the workers do not end".to_owned()),
        };
        match sending.add(heard) {
            Ok(whole) => whole.into_iter().for_each(|sum| tell(&mut run, sum, watch)),
            Err(ended) => break ended,
        }
        if sending.is_over() {
            break signal.map_or(Ended::Whole, Ended::Interrupted);
        }
    };
    let (rest, again) = sending.end().await;
    for sum in rest {
        tell(&mut run, sum, watch);
    }
    workers.0.extend(again);
    let measured = Measured { lasted: begin.elapsed().min(job.length()), total: run.total, ended };
    Ok(checked(measured, plan.total()))
}

fn tell(run: &mut Run, Sum { start_ms, end_ms, interval }: Sum, watch: &mut Watch) {
    run.tell_at(&interval, (start_ms, end_ms), watch);
}

/// Makes the measurement invalid if the numbers of the workers' requests do not add up to the plan.
fn checked(mut measured: Measured, planned: u64) -> Measured {
    if measured.ended == Ended::Whole && measured.total.counts.planned != planned {
        let found = measured.total.counts.planned;
        measured.ended = Ended::Broken(format!("the workers planned {found} requests together, not {planned}"));
    }
    measured
}

fn add(merge: &mut Merge, worker: usize, word: Word, longest: Duration) -> Result<(), Spoilt> {
    match word {
        Word::Interval(row) => {
            let (number, start_ms, end_ms) = (row.number, row.start_ms, row.end_ms);
            // A worker may be late by at most the allowed silence.
            let longest_ms = u64::try_from((longest + SILENCE_LIMIT).as_millis()).unwrap_or(u64::MAX);
            let interval = row.interval(longest_ms).map_err(|why| Spoilt::Interval { number, why })?;
            merge.add(worker, number, Sum { start_ms, end_ms, interval })?;
        }
        Word::End { intervals } => merge.end(worker, intervals)?,
        Word::Error { message } => return Err(Spoilt::GaveUp(cut(&message))),
        Word::Hello { .. } | Word::Ready { .. } | Word::Pong { .. } => return Err(Spoilt::OutOfOrder),
    }
    Ok(())
}

/// The reason why a worker makes a measurement invalid; the text follows the worker's name.
#[derive(Debug, thiserror::Error)]
enum Spoilt {
    #[error(transparent)]
    Line(#[from] lines::Error),
    #[error("delivered a bad interval {number}: {why}")]
    Interval { number: u64, why: BadRow },
    #[error(transparent)]
    Merge(#[from] merge::Error),
    #[error("gave up: {0}")]
    GaveUp(String),
    #[error("sent a message out of order")]
    OutOfOrder,
    #[error("ended before its work was done{0}")]
    Ended(String),
    #[error("has sent no message for {} s", SILENCE_LIMIT.as_secs())]
    Silent,
}

pub(super) struct Message {
    worker: usize,
    name: String,
    word: Result<Word, Spoilt>,
}

/// Forwards the messages of a worker until the worker ends.
async fn listen(worker: usize, mut reader: Reader, said: mpsc::Sender<Message>) -> (usize, Reader) {
    loop {
        let word = match tokio::time::timeout(SILENCE_LIMIT + LEAD, reader.input.next::<Word>()).await {
            Ok(Ok(Some(word))) => Ok(word),
            Ok(Ok(None)) => Err(Spoilt::Ended(reader.ending().await)),
            Ok(Err(why)) => Err(why.into()),
            Err(_) => Err(Spoilt::Silent),
        };
        let over = matches!(word, Err(_) | Ok(Word::End { .. } | Word::Error { .. }));
        if said.send(Message { worker, name: reader.name.clone(), word }).await.is_err() || over {
            return (worker, reader);
        }
    }
}

#[cfg(test)]
mod tests {
    use loadgen::admission::{Counts, Interval};

    use super::*;

    const A_MINUTE: Duration = Duration::from_mins(1);

    /// If the numbers of the workers' requests do not add up to the plan, the measurement is invalid. An aborted
    /// measurement keeps the reason why it was aborted.
    #[test]
    fn shares_must_add_up_to_the_plan() {
        let ended = |planned, ended| {
            let counts = Counts { planned, ..Counts::default() };
            let total = Interval { counts, ..Interval::default() };
            checked(Measured { lasted: Duration::ZERO, total, ended }, 100).ended
        };
        assert_eq!(ended(100, Ended::Whole), Ended::Whole);
        for planned in [99, 101] {
            let Ended::Broken(why) = ended(planned, Ended::Whole) else { panic!("{planned} of 100") };
            assert_eq!(why, format!("the workers planned {planned} requests together, not 100"));
        }
        assert_eq!(ended(50, Ended::Interrupted("SIGINT")), Ended::Interrupted("SIGINT"));
    }

    #[test]
    fn words_out_of_order_spoil_the_run() {
        let mut merge = Merge::new(1, 10);
        for word in [
            Word::Hello { protocol: PROTOCOL.to_owned(), version: String::new() },
            Word::Ready { planned: 1, fingerprint: String::new() },
            Word::Pong { id: 0, clock_ns: 0 },
        ] {
            assert!(matches!(add(&mut merge, 0, word, A_MINUTE), Err(Spoilt::OutOfOrder)));
        }
        let gave_up = add(&mut merge, 0, Word::Error { message: "no\nroom".to_owned() }, A_MINUTE);
        assert_eq!(gave_up.unwrap_err().to_string(), "gave up: no room");
        add(&mut merge, 0, Word::Interval(Box::default()), A_MINUTE).unwrap();
        assert!(add(&mut merge, 0, Word::Interval(Box::default()), A_MINUTE).is_err(), "its number was used");
        add(&mut merge, 0, Word::End { intervals: 1 }, A_MINUTE).unwrap();
        assert!(merge.is_over());
    }
}
