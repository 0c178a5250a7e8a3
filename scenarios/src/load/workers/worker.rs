//! `longhaul worker`: one generator among several. It does what the other side says and ends with it.
//!
//! The end of its input ends it at once, so that no worker outlives a coordinator, however that died.

use std::time::{Duration, Instant};

use loadgen::admission::Load;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::lines::{Reading, write};
use super::protocol::{Assignment, Order, PROTOCOL, Row, Word};
use crate::load::{descriptors, measure};

/// Orders that wait: a ping and a stop at most.
const ORDERS_MAX: usize = 8;
/// A coordinator that says nothing for so long before the start has hung; one machine needs a second or two.
const ORDER_LIMIT: Duration = Duration::from_mins(2);

/// Works until the job is done or the other side is gone. An error has been told to the other side, where that was possible.
pub(crate) async fn work<R, W>(input: R, mut output: W) -> Result<(), String>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin,
{
    let epoch = Instant::now();
    let (orders, mut queue) = mpsc::channel(ORDERS_MAX);
    let reader = tokio::spawn(read(input, orders));
    let result = obey(epoch, &mut queue, &mut output).await;
    if let Err(why) = &result {
        // The other side may be gone, and then it is why.
        let _ = write(&mut output, &Word::Error { message: why.clone() }).await;
    }
    reader.abort();
    result
}

/// Passes orders on. The end of the input closes the queue.
async fn read<R: AsyncRead + Unpin>(input: R, orders: mpsc::Sender<Result<Order, String>>) {
    let mut reading = Reading::new(input);
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
    orders: &mut mpsc::Receiver<Result<Order, String>>,
    output: &mut W,
) -> Result<(), String> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    write(output, &Word::Hello { protocol: PROTOCOL.to_owned(), version }).await?;
    let Order::Assign(assignment) = next(orders).await? else {
        return Err("the first order must be `assign`".to_owned());
    };
    let Assignment { protocol, mut job, worker, workers } = *assignment;
    if protocol != PROTOCOL {
        return Err(format!("this worker speaks {PROTOCOL}, the coordinator {protocol}: use one version of longhaul"));
    }
    if worker >= workers {
        return Err(format!("there is no worker {worker} of {workers}"));
    }
    // The remainder goes to the first workers.
    job.config.max_in_flight = (job.config.max_in_flight + workers - 1 - worker) / workers;
    descriptors::provide(job.config.max_in_flight).map_err(|error| error.to_string())?;
    let plan = job.plan().map_err(|error| error.to_string())?.share(worker, workers);
    let (planned, length) = (plan.planned(), plan.length());
    write(output, &Word::Ready { planned, fingerprint: plan.fingerprint() }).await?;
    let begin = start(epoch, orders, output).await?;
    let load = Load::start(plan, &job.to.target(), begin).map_err(|error| error.to_string())?;

    let mut rows = Rows { begin, number: 0, told_ms: 0 };
    let mut told = 0;
    let interrupted = loop {
        let tick = rows.next_tick(length);
        tokio::select! {
            order = orders.recv() => match order {
                Some(Ok(Order::Stop {})) => break true,
                Some(Ok(order)) => answer(epoch, order, output).await?,
                Some(Err(why)) => return Err(format!("the coordinator {why}")),
                None => return Err("the coordinator is gone".to_owned()),
            },
            () = tokio::time::sleep_until(tick.into()) => {
                let newest = load.take();
                told += newest.planned;
                write(output, &rows.row(&newest)?).await?;
                if told + load.planned_now() >= planned {
                    break false;
                }
                if begin.elapsed() > length + measure::PACING_LIMIT {
                    return Err(measure::STUCK.to_owned());
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
                // Nobody is there to tell: the calls under way end with the process.
                Some(Err(_)) | None => return Err("the coordinator is gone".to_owned()),
            },
        }
    };
    write(output, &rows.row(&rest)?).await?;
    write(output, &Word::End { intervals: rows.number }).await
}

/// Answers pings until the start is known.
async fn start<W: AsyncWrite + Unpin>(
    epoch: Instant,
    orders: &mut mpsc::Receiver<Result<Order, String>>,
    output: &mut W,
) -> Result<Instant, String> {
    loop {
        match next(orders).await? {
            Order::Start { at_clock_ns } => {
                let begin = epoch + Duration::from_nanos(at_clock_ns);
                let late = begin.elapsed();
                if !late.is_zero() {
                    return Err(format!("the order to start came {} ms after the start", late.as_millis()));
                }
                return Ok(begin);
            }
            order => answer(epoch, order, output).await?,
        }
    }
}

async fn next(orders: &mut mpsc::Receiver<Result<Order, String>>) -> Result<Order, String> {
    match tokio::time::timeout(ORDER_LIMIT, orders.recv()).await {
        Ok(Some(Ok(order))) => Ok(order),
        Ok(Some(Err(why))) => Err(format!("the coordinator {why}")),
        Ok(None) => Err("the coordinator is gone".to_owned()),
        Err(_) => Err(format!("the coordinator said nothing for {} s", ORDER_LIMIT.as_secs())),
    }
}

/// Answers a ping; a stop that comes when all is over already changes nothing.
async fn answer<W: AsyncWrite + Unpin>(epoch: Instant, order: Order, output: &mut W) -> Result<(), String> {
    match order {
        Order::Ping { id } => {
            let clock_ns = u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
            write(output, &Word::Pong { id, clock_ns }).await
        }
        Order::Stop {} => Ok(()),
        Order::Assign(_) | Order::Start { .. } => Err("there was such an order already".to_owned()),
    }
}

/// Numbers intervals.
struct Rows {
    begin: Instant,
    number: u64,
    told_ms: u64,
}

impl Rows {
    /// The end of each second, and of the plan.
    fn next_tick(&self, length: Duration) -> Instant {
        let ticks = u32::try_from(self.number + 1).unwrap_or(u32::MAX);
        let regular = self.begin + measure::EVERY * ticks;
        let end = self.begin + length;
        if Instant::now() < end { regular.min(end) } else { regular.min(Instant::now() + measure::EVERY) }
    }

    fn row(&mut self, interval: &loadgen::admission::Interval) -> Result<Word, String> {
        let now_ms = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let row = Row::of(self.number, (self.told_ms, now_ms), interval)?;
        self.number += 1;
        self.told_ms = now_ms;
        Ok(Word::Interval(Box::new(row)))
    }
}
