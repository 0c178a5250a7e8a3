//! The coordinator: gives each worker its share, lets all begin at one moment, adds up what they measure.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use loadgen::admission::Plan;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::gather::Workers;
use super::lines::{self, write};
use super::merge::{self, Merge, Sum};
use super::peer::{Reader, Worker, nanos};
use super::protocol::{Assignment, BadRow, Order, PROTOCOL, Word, cut};
use crate::load::Job;
use crate::load::measure::{self, Ended, Measured, Run, Watch};

/// Making the payloads takes a second or two; reading a large file of a replay longer.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// From the order to start until the first request: every worker must have heard it by then.
const LEAD: Duration = Duration::from_millis(1500);
/// A worker speaks every second. One that is silent for so long hangs, or its machine does.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// Words that wait to be added. Each worker says one a second.
const WORDS_MAX: usize = 64;

impl Workers {
    /// Gives each its share and waits until all have made their payloads.
    async fn assign(&mut self, job: &Job, plan: &Plan) -> Result<()> {
        let workers = u32::try_from(self.0.len())?;
        for (worker, number) in self.0.iter_mut().zip(0..) {
            let assignment = Assignment { protocol: PROTOCOL.to_owned(), job: job.clone(), worker: number, workers };
            worker.say(&Order::Assign(Box::new(assignment))).await?;
        }
        let whole = plan.fingerprint();
        for (worker, number) in self.0.iter_mut().zip(0..) {
            let share = plan.clone().share(number, workers).planned();
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

    /// Compares clocks and orders all to begin at one moment.
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

/// Sends the plan with these workers. Errors are of the kind that can only come before anything was sent. Afterwards the workers
/// wait for the next plan, unless one of them failed: then all are gone.
pub(crate) async fn measure(job: &Job, plan: &Plan, workers: &mut Workers, watch: &mut Watch) -> Result<Measured> {
    let epoch = Instant::now();
    workers.assign(job, plan).await?;
    let begin = workers.start(epoch).await?;
    let (count, are_pods) = (workers.count(), workers.are_pods());
    let (said, mut words) = mpsc::channel(WORDS_MAX);
    let mut readers = JoinSet::new();
    let mut outputs = Vec::new();
    for (number, Worker { reader, output }) in workers.0.drain(..).enumerate() {
        outputs.push(output);
        readers.spawn(listen(number, reader, said.clone()));
    }
    drop(said);
    let mut run = Run::new(begin, job.length());
    let mut merge = Merge::new(count);
    let mut signal = None;
    let mut give_up = None;
    let ended = loop {
        let until = give_up.unwrap_or_else(|| Instant::now() + SILENCE_LIMIT * 2);
        let word = tokio::select! {
            word = words.recv() => word,
            name = watch.signals.next() => {
                if signal.is_some() {
                    measure::abort();
                }
                signal = Some(name);
                give_up = Some(Instant::now() + measure::DRAIN_INTERRUPTED + SILENCE_LIMIT);
                for output in &mut outputs {
                    // One that is gone is told by its reader.
                    let _ = write(output, &Order::Stop {}).await;
                }
                continue;
            }
            () = tokio::time::sleep_until(until.into()) => break Ended::Broken("the workers do not end".to_owned()),
        };
        let Some(Message { worker, name, word }) = word else {
            break Ended::Broken("the workers are gone".to_owned());
        };
        let added = word.and_then(|word| add(&mut merge, worker, word));
        if let Err(why) = added {
            // A process of ours does not go by itself; a Pod is evicted, or its node is gone.
            let lost = are_pods && matches!(why, Spoilt::Ended(_) | Spoilt::Silent);
            let why = format!("{name} {why}");
            break if lost { Ended::Lost(why) } else { Ended::Broken(why) };
        }
        while let Some(Sum { start_ms, end_ms, interval }) = merge.pop() {
            run.tell_at(&interval, (start_ms, end_ms), watch);
        }
        if merge.is_over() {
            break signal.map_or(Ended::Whole, Ended::Interrupted);
        }
    };
    let all_ended = merge.is_over();
    for Sum { start_ms, end_ms, interval } in merge.rest() {
        run.tell_at(&interval, (start_ms, end_ms), watch);
    }
    if all_ended {
        let mut ended = readers.join_all().await;
        ended.sort_by_key(|(number, _)| *number);
        workers.0.extend(ended.into_iter().zip(outputs).map(|((_, reader), output)| Worker { reader, output }));
    } else {
        // The end of their input ends workers that still run; what was started here is killed with their readers.
        drop(outputs);
        readers.shutdown().await;
    }
    let measured = Measured { lasted: begin.elapsed().min(job.length()), total: run.total, ended };
    Ok(checked(measured, plan.planned()))
}

/// Shares must add up to the plan; whatever else they add up to is no measurement of it.
fn checked(mut measured: Measured, planned: u64) -> Measured {
    if measured.ended == Ended::Whole && measured.total.counts.planned != planned {
        let found = measured.total.counts.planned;
        measured.ended = Ended::Broken(format!("the workers planned {found} requests together, not {planned}"));
    }
    measured
}

fn add(merge: &mut Merge, worker: usize, word: Word) -> Result<(), Spoilt> {
    match word {
        Word::Interval(row) => {
            let (number, start_ms, end_ms) = (row.number, row.start_ms, row.end_ms);
            let interval = row.interval().map_err(|why| Spoilt::Interval { number, why })?;
            merge.add(worker, number, Sum { start_ms, end_ms, interval })?;
        }
        Word::End { intervals } => merge.end(worker, intervals)?,
        Word::Error { message } => return Err(Spoilt::GaveUp(cut(&message))),
        Word::Hello { .. } | Word::Ready { .. } | Word::Pong { .. } => return Err(Spoilt::OutOfOrder),
    }
    Ok(())
}

/// Why a worker spoils a run; reads after its name.
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
    #[error("said something out of order")]
    OutOfOrder,
    #[error("ended before its work was done{0}")]
    Ended(String),
    #[error("has said nothing for {} s", SILENCE_LIMIT.as_secs())]
    Silent,
}

/// What came from a worker.
struct Message {
    worker: usize,
    name: String,
    word: Result<Word, Spoilt>,
}

/// Passes on what a worker says, to its end.
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

    /// Whatever is missing from the plan, or more than it, is no measurement of it; a run that broke off keeps its own reason.
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
        let mut merge = Merge::new(1);
        for word in [
            Word::Hello { protocol: PROTOCOL.to_owned(), version: String::new() },
            Word::Ready { planned: 1, fingerprint: String::new() },
            Word::Pong { id: 0, clock_ns: 0 },
        ] {
            assert!(matches!(add(&mut merge, 0, word), Err(Spoilt::OutOfOrder)));
        }
        let gave_up = add(&mut merge, 0, Word::Error { message: "no\nroom".to_owned() });
        assert_eq!(gave_up.unwrap_err().to_string(), "gave up: no room");
        add(&mut merge, 0, Word::Interval(Box::default())).unwrap();
        assert!(add(&mut merge, 0, Word::Interval(Box::default())).is_err(), "its number was used");
        add(&mut merge, 0, Word::End { intervals: 1 }).unwrap();
        assert!(merge.is_over());
    }
}
