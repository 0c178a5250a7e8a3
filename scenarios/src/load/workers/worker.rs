//! `longhaul worker`: one of several load generators. The worker follows the orders of its coordinator and exits with
//! the coordinator.
//!
//! The worker exits when its input ends, so that no worker outlives its coordinator.

use std::time::{Duration, Instant};

use hdrhistogram::serialization::V2SerializeError;
use loadgen::admission::Load;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::lines::{self, Reading, write};
use super::protocol::{Assignment, Order, PROTOCOL, Row, Word};
use crate::load::{descriptors, measure};

/// Maximum number of queued orders of the coordinator.
const ORDERS_MAX: usize = 8;
/// Longest time without an order before the start order. The coordinator may wait for other workers, which may read a
/// large recorded file.
const ORDER_LIMIT: Duration = Duration::from_mins(30);

/// The reason why a worker stops; it is sent to the coordinator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the coordinator is gone")]
    Gone,
    #[error("the coordinator sent no message for {} s", ORDER_LIMIT.as_secs())]
    Silent,
    #[error("the coordinator {0}")]
    Order(#[source] lines::Error),
    /// A message to or from the coordinator failed.
    #[error(transparent)]
    Line(#[from] lines::Error),
    #[error("the next order must be `assign`")]
    NoAssignment,
    #[error("there was such an order already")]
    Twice,
    #[error("the order to start came {} ms after the start", .0.as_millis())]
    Late(Duration),
    #[error("this worker speaks {PROTOCOL}, the coordinator {protocol}: use one version of longhaul")]
    Protocol { protocol: String },
    #[error("there is no worker {worker} of {workers}")]
    Number { worker: u32, workers: u32 },
    /// This machine cannot send the load.
    #[error("{0}")]
    Machine(anyhow::Error),
    #[error(transparent)]
    Load(#[from] loadgen::admission::Error),
    #[error("{}", measure::STUCK)]
    Stuck,
    #[error(transparent)]
    Row(#[from] V2SerializeError),
}

/// Says hello, then does one job after the other until the coordinator is gone. Sends an error to the coordinator, if
/// possible.
pub(crate) async fn work<R, W>(input: R, mut output: W) -> Result<(), Error>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin,
{
    let epoch = Instant::now();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    write(&mut output, &Word::Hello { protocol: PROTOCOL.to_owned(), version }).await?;
    let (orders, mut queue) = mpsc::channel(ORDERS_MAX);
    let _reader = AbortOnDropHandle::new(tokio::spawn(read(Reading::new(input), orders)));
    let result = jobs(epoch, &mut queue, &mut output).await;
    if let Err(why) = &result {
        // The coordinator may be gone; that may be the cause of the error.
        let _ = write(&mut output, &Word::Error { message: why.to_string() }).await;
    }
    result
}

async fn jobs<W: AsyncWrite + Unpin>(
    epoch: Instant,
    orders: &mut mpsc::Receiver<Result<Order, lines::Error>>,
    output: &mut W,
) -> Result<(), Error> {
    let mut order = next(orders).await?;
    loop {
        let Order::Assign(assignment) = order else { return Err(Error::NoAssignment) };
        obey(epoch, *assignment, orders, output).await?;
        order = loop {
            match tokio::time::timeout(ORDER_LIMIT, orders.recv()).await {
                // The stop came when the job was already over.
                Ok(Some(Ok(Order::Stop {}))) => {}
                Ok(Some(Ok(order))) => break order,
                Ok(Some(Err(why))) => return Err(Error::Order(why)),
                // There is no more work.
                Ok(None) => return Ok(()),
                Err(_) => return Err(Error::Silent),
            }
        };
    }
}

/// Reads orders into a queue. The end of the input closes the queue.
async fn read<R: AsyncRead + Unpin>(mut reading: Reading<R>, orders: mpsc::Sender<Result<Order, lines::Error>>) {
    loop {
        let order = reading.next::<Order>().await.transpose();
        let Some(order) = order else { return };
        let over = order.is_err();
        if orders.send(order).await.is_err() || over {
            return;
        }
    }
}

async fn obey<W: AsyncWrite + Unpin>(
    epoch: Instant,
    Assignment { protocol, mut job, worker, workers }: Assignment,
    orders: &mut mpsc::Receiver<Result<Order, lines::Error>>,
    output: &mut W,
) -> Result<(), Error> {
    if protocol != PROTOCOL {
        return Err(Error::Protocol { protocol });
    }
    if worker >= workers {
        return Err(Error::Number { worker, workers });
    }
    job.config.max_in_flight = part(job.config.max_in_flight, worker, workers);
    descriptors::provide(&job.config).map_err(Error::Machine)?;
    let plan = job.plan()?.share(worker, workers);
    let (planned, length) = (plan.total(), plan.length());
    write(output, &Word::Ready { planned, fingerprint: plan.fingerprint() }).await?;
    let begin = start(epoch, orders, output).await?;
    let load = Load::start(plan, &job.to.target(), begin)?;

    let mut rows = Rows { begin, number: 0, told_ms: 0 };
    let mut told = 0;
    let interrupted = loop {
        let tick = rows.next_tick(length);
        tokio::select! {
            order = orders.recv() => match order {
                Some(Ok(Order::Stop {})) => break true,
                Some(Ok(order)) => answer(epoch, order, output).await?,
                Some(Err(why)) => return Err(Error::Order(why)),
                None => return Err(Error::Gone),
            },
            () = tokio::time::sleep_until(tick.into()) => {
                let newest = load.take();
                told += newest.counts.planned;
                write(output, &rows.row(&newest)?).await?;
                if told + load.planned_now() >= planned {
                    break false;
                }
                if begin.elapsed() > length + measure::PACING_LIMIT {
                    return Err(Error::Stuck);
                }
            }
        }
    };
    let rest = load.stop(measure::drain(&job, !interrupted));
    tokio::pin!(rest);
    let rest = loop {
        tokio::select! {
            rest = &mut rest => break rest,
            order = orders.recv() => match order {
                Some(Ok(order)) => answer(epoch, order, output).await?,
                // The coordinator is gone, so calls under way end with the process.
                Some(Err(_)) | None => return Err(Error::Gone),
            },
        }
    };
    write(output, &rows.row(&rest)?).await?;
    Ok(write(output, &Word::End { intervals: rows.number }).await?)
}

/// Answers pings until the order to start arrives.
async fn start<W: AsyncWrite + Unpin>(
    epoch: Instant,
    orders: &mut mpsc::Receiver<Result<Order, lines::Error>>,
    output: &mut W,
) -> Result<Instant, Error> {
    loop {
        match next(orders).await? {
            Order::Start { at_clock_ns } => {
                let begin = epoch + Duration::from_nanos(at_clock_ns);
                let late = begin.elapsed();
                if !late.is_zero() {
                    return Err(Error::Late(late));
                }
                return Ok(begin);
            }
            order => answer(epoch, order, output).await?,
        }
    }
}

async fn next(orders: &mut mpsc::Receiver<Result<Order, lines::Error>>) -> Result<Order, Error> {
    match tokio::time::timeout(ORDER_LIMIT, orders.recv()).await {
        Ok(Some(Ok(order))) => Ok(order),
        Ok(Some(Err(why))) => Err(Error::Order(why)),
        Ok(None) => Err(Error::Gone),
        Err(_) => Err(Error::Silent),
    }
}

/// Answers a ping. Ignores a stop that arrives after the end of the job.
async fn answer<W: AsyncWrite + Unpin>(epoch: Instant, order: Order, output: &mut W) -> Result<(), Error> {
    match order {
        Order::Ping { id } => {
            let clock_ns = u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
            Ok(write(output, &Word::Pong { id, clock_ns }).await?)
        }
        Order::Stop {} => Ok(()),
        Order::Assign(_) | Order::Start { .. } => Err(Error::Twice),
    }
}

/// Sends the numbered intervals of a job.
struct Rows {
    begin: Instant,
    number: u64,
    told_ms: u64,
}

impl Rows {
    /// The end of the current second, or the end of the plan if the plan ends first.
    fn next_tick(&self, length: Duration) -> Instant {
        let ticks = u32::try_from(self.number + 1).unwrap_or(u32::MAX);
        let regular = self.begin + measure::EVERY * ticks;
        let end = self.begin + length;
        if Instant::now() < end { regular.min(end) } else { regular.min(Instant::now() + measure::EVERY) }
    }

    fn row(&mut self, interval: &loadgen::admission::Interval) -> Result<Word, V2SerializeError> {
        let now_ms = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let row = Row::of(self.number, (self.told_ms, now_ms), interval)?;
        self.number += 1;
        self.told_ms = now_ms;
        Ok(Word::Interval(Box::new(row)))
    }
}

/// This worker's share of the maximum number of calls in flight. If the division leaves a remainder, the first workers
/// get one call more.
fn part(together: u32, worker: u32, workers: u32) -> u32 {
    together / workers + u32::from(worker < together % workers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        for (together, workers) in [(500, 3), (7, 7), (20_000, 64), (65, 64)] {
            let parts: Vec<u32> = (0..workers).map(|worker| part(together, worker, workers)).collect();
            assert_eq!(parts.iter().sum::<u32>(), together);
            assert!(parts.is_sorted_by(|a, b| a >= b) && parts[0] - parts[parts.len() - 1] <= 1, "{parts:?}");
        }
    }

    #[test]
    fn intervals_follow_each_other_and_ticks_are_seconds() {
        let begin = Instant::now();
        let mut rows = Rows { begin, number: 0, told_ms: 0 };
        let length = Duration::from_hours(1);
        assert_eq!(rows.next_tick(length), begin + measure::EVERY);
        assert_eq!(rows.next_tick(Duration::from_mins(1)), begin + measure::EVERY);
        for number in 0..3 {
            let before = rows.told_ms;
            let Word::Interval(row) = rows.row(&loadgen::admission::Interval::default()).unwrap() else {
                panic!("a row")
            };
            assert_eq!((row.number, row.start_ms, row.end_ms), (number, before, rows.told_ms));
        }
        assert_eq!(rows.next_tick(length), begin + measure::EVERY * 4);
        rows.number = 3599;
        let length = Duration::from_millis(3_599_500);
        assert_eq!(rows.next_tick(length), begin + length, "the end of the plan");
    }
}
