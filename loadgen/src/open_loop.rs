//! The open loop: the time at which each operation of a plan is handed over, its lateness, and the end of the plan.
//! Every workload uses it.
//!
//! - *Due times.* A [`Planned`] returns the operations in the order of their times. A pacing thread hands each over at
//!   its time and never waits for the other side: an operation that finds the bounded queue full is dropped and
//!   counted. The thread sleeps to absolute times, because an async timer on a busy machine is a millisecond or two
//!   late at the median, and relative sleeps add up their errors. Admission load sent directly has no time for a queue
//!   between threads: its generator asks the plan itself.
//! - *Lateness.* Every measurement counts from the planned time ([`Moments`]), so a slow server, or a late harness,
//!   cannot hide the waiting of later operations.
//! - *The end.* [`Engine::stop`]: no further operation becomes due, due ones are begun, those in flight may end until a
//!   deadline, and the workload counts the rest.
//!
//! The open loop knows nothing about the operations themselves.

mod clock;
mod steer;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

pub(crate) use clock::Clock;
pub use steer::Steer;

/// The interval at which the pacing thread checks for a stop; a sleep is never longer.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Operations that may be handed over before the workload takes one.
const QUEUE: usize = 1024;
/// Orders that may wait for the workload.
const ORDERS: usize = 16;

/// An operation that is due.
#[derive(Debug)]
pub(crate) struct Due<T> {
    pub planned: Instant,
    pub item: T,
}

/// The planned time, the start and the end of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    pub planned: Instant,
    pub begun: Instant,
    pub ended: Instant,
}

impl<T> Due<T> {
    /// The lateness of the hand-over, before any other wait.
    pub(crate) fn lateness(&self) -> Duration {
        self.planned.elapsed()
    }
}

impl Moments {
    /// Runs the work, which was planned for `planned`.
    pub(crate) async fn of<T>(planned: Instant, work: impl Future<Output = T>) -> (Self, T) {
        let begun = Instant::now();
        let result = work.await;
        (Self { planned, begun, ended: Instant::now() }, result)
    }

    /// From the planned time to the real start.
    pub(crate) fn lateness(&self) -> Duration {
        self.begun.saturating_duration_since(self.planned)
    }

    /// From the planned time to the end.
    pub(crate) fn response(&self) -> Duration {
        self.ended.saturating_duration_since(self.planned)
    }

    /// From the real start to the end.
    pub(crate) fn service(&self) -> Duration {
        self.ended.saturating_duration_since(self.begun)
    }
}

/// The counts at the hand-over. Taken and reset by the interval.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Operations whose time has come.
    pub planned: AtomicU64,
    /// Due operations that could not be started.
    pub overflow: AtomicU64,
}

impl Counts {
    pub(crate) fn planned_one(&self) {
        self.planned.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn overflow_one(&self) {
        self.overflow.fetch_add(1, Ordering::Relaxed);
    }

    /// (planned, overflow) since the last call.
    pub(crate) fn take(&self) -> (u64, u64) {
        (self.planned.swap(0, Ordering::Relaxed), self.overflow.swap(0, Ordering::Relaxed))
    }
}

type Items<T> = Box<dyn Iterator<Item = (Duration, T)> + Send>;

/// Operations in the order in which they are due.
pub(crate) struct Planned<T> {
    items: Items<T>,
    pace: Pace,
    next: Option<(Duration, T)>,
}

#[derive(Clone)]
enum Pace {
    /// At their planned times, counted from this instant.
    From(Instant),
    /// Whenever fewer than this many are in flight.
    ClosedLoop(usize),
    /// When permitted, and later at a rate.
    Steered(Arc<Steer>),
}

impl<T: 'static> Planned<T> {
    /// Each at its offset from `begin`; the offsets are in order.
    pub(crate) fn at_times(items: impl Iterator<Item = (Duration, T)> + Send + 'static, begin: Instant) -> Self {
        Self::new(Box::new(items), Pace::From(begin))
    }

    /// Each as soon as fewer than this many are in flight, whatever was planned. For benchmarks and for finding a
    /// capacity only.
    pub(crate) fn closed_loop(items: impl Iterator<Item = (Duration, T)> + Send + 'static, under_way: usize) -> Self {
        Self::new(Box::new(items), Pace::ClosedLoop(under_way))
    }

    /// Each when permitted, whatever its offset, and at a rate once that is settled.
    pub(crate) fn steered(items: impl Iterator<Item = (Duration, T)> + Send + 'static, steer: Arc<Steer>) -> Self {
        steer.reset();
        Self::new(Box::new(items), Pace::Steered(steer))
    }

    fn new(mut items: Items<T>, pace: Pace) -> Self {
        let next = items.next();
        Self { items, pace, next }
    }

    pub(crate) fn is_closed_loop(&self) -> bool {
        matches!(self.pace, Pace::ClosedLoop(_))
    }

    /// The next operation if it is due; `under_way` others are in flight.
    pub(crate) fn due(&mut self, now: Instant, under_way: usize) -> Option<Due<T>> {
        let offset = self.next.as_ref()?.0;
        let planned = match &self.pace {
            Pace::From(begin) => Some(*begin + offset).filter(|planned| *planned <= now)?,
            Pace::ClosedLoop(most) => (under_way < *most).then_some(now)?,
            Pace::Steered(steer) => steer.due(now)?,
        };
        let (_, item) = std::mem::replace(&mut self.next, self.items.next())?;
        Some(Due { planned, item })
    }

    /// The due time of the next operation, if it is known.
    pub(crate) fn next_at(&self, under_way: usize) -> Option<Instant> {
        let (offset, _) = self.next.as_ref()?;
        match &self.pace {
            Pace::From(begin) => Some(*begin + *offset),
            Pace::ClosedLoop(most) => (under_way < *most).then(Instant::now),
            Pace::Steered(steer) => steer.next_at(),
        }
    }

    /// Ends the plan.
    pub(crate) fn close(&mut self) {
        self.next = None;
        self.items = Box::new(std::iter::empty());
    }

    /// Counts the rest of the plan as planned and not sent.
    pub(crate) fn rest(&mut self, counts: &Counts) {
        for _ in self.next.take().into_iter().chain(&mut self.items) {
            counts.planned_one();
            counts.overflow_one();
        }
    }
}

/// The pacing thread. Dropping it stops it and waits for its end, which takes at most one look-up.
#[derive(Debug)]
struct Pacer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pacer {
    /// Starts the thread. When the plan ends, `out` is closed. An operation that finds it full is dropped, or `kept`
    /// until there is room.
    fn start<T: Send + 'static>(
        name: &str,
        planned: Planned<T>,
        (out, kept): (mpsc::Sender<Due<T>>, bool),
        counts: Arc<Counts>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name(format!("{name}-pacer"))
            .spawn(move || pace(planned, (&out, kept), &counts, &stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been printed by the panic hook; there is nothing to add here.
            let _ = thread.join();
        }
    }
}

fn pace<T: 'static>(
    mut plan: Planned<T>,
    (out, kept): (&mpsc::Sender<Due<T>>, bool),
    counts: &Counts,
    stop: &AtomicBool,
) {
    // The kernel may add 50 us to each sleep to save power; ask for the least. If this fails, the lateness shows it.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let clock = Clock::new();
    while let Some(at) = plan.next_at(0) {
        let now = Instant::now();
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Some(due) = plan.due(now, 0) else {
            clock.sleep_until(at.min(now + LOOK_UP));
            continue;
        };
        counts.planned_one();
        match out.try_send(due) {
            Ok(()) => {}
            Err(TrySendError::Full(due)) if kept => {
                if out.blocking_send(due).is_err() {
                    return;
                }
            }
            Err(TrySendError::Full(_)) => counts.overflow_one(),
            Err(TrySendError::Closed(_)) => return,
        }
    }
}

/// The processing of a plan's operations. It runs on a thread and runtime of its own and owns all its state; requests
/// are its tasks and report back.
pub(crate) trait Workload: Send + 'static {
    type Operation: Send + 'static;
    /// The type of its handle's orders.
    type Order: Send + 'static;
    /// How often [`Workload::tick`] is called.
    const EVERY: Duration = Duration::from_secs(1);
    /// Whether each operation is begun, however late. Otherwise an operation that finds the queue full is dropped and
    /// counted.
    const KEEPS_ALL: bool = false;

    /// Begins the operation, or puts it behind others, or counts that it cannot be begun. Never waits.
    fn accept(&mut self, due: Due<Self::Operation>);

    /// Waits for an operation in flight to end and processes it; false if none is in flight. Nothing is lost if it is
    /// dropped while it waits.
    fn ended(&mut self) -> impl Future<Output = bool>;

    /// Runs an order of the handle.
    fn obey(&mut self, order: Self::Order) -> impl Future<Output = ()>;

    /// Checks states that have no event.
    fn tick(&mut self) {}

    /// The plan is over: waiting operations need not be begun.
    fn close(&mut self) {}

    /// Counts the operations in flight at the deadline.
    fn abandon(&mut self) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Cleans up after the stop.
    fn stopped(&mut self) -> impl Future<Output = ()> {
        std::future::ready(())
    }
}

#[derive(Debug)]
enum Order<O> {
    Own(O),
    Stop(Instant, oneshot::Sender<()>),
}

/// A workload in progress. Dropping it ends it at once, during any wait.
pub(crate) struct Engine<W: Workload> {
    name: &'static str,
    pacers: Vec<Pacer>,
    queue: Option<mpsc::Sender<Due<W::Operation>>>,
    counts: Arc<Counts>,
    orders: mpsc::Sender<Order<W::Order>>,
    thread: Option<JoinHandle<()>>,
    /// Dropped to end the thread.
    alive: Option<oneshot::Sender<()>>,
}

impl<W: Workload> Engine<W> {
    /// Starts the thread. No operation is due before [`Engine::go`].
    pub(crate) fn start(name: &'static str, workload: W, counts: Arc<Counts>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (queue, due) = mpsc::channel(QUEUE);
        let (orders, asked) = mpsc::channel(ORDERS);
        let (alive, dropped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name(format!("{name}-worker")).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = run(workload, due, asked) => {}
                    _ = dropped => {}
                }
            });
        })?;
        let (queue, thread, alive) = (Some(queue), Some(thread), Some(alive));
        Ok(Self { name, pacers: Vec::new(), queue, counts, orders, thread, alive })
    }

    /// Hands operations over from now on, each at its offset from `begin`. Does nothing after a stop.
    pub(crate) fn go(
        &mut self,
        operations: impl Iterator<Item = (Duration, W::Operation)> + Send + 'static,
        begin: Instant,
    ) -> io::Result<()> {
        self.hand_over(Planned::at_times(operations, begin))
    }

    /// Hands operations over when permitted, and later at a rate.
    pub(crate) fn go_steered(
        &mut self,
        operations: impl Iterator<Item = (Duration, W::Operation)> + Send + 'static,
        steer: Arc<Steer>,
    ) -> io::Result<()> {
        self.hand_over(Planned::steered(operations, steer))
    }

    fn hand_over(&mut self, planned: Planned<W::Operation>) -> io::Result<()> {
        let Some(queue) = self.queue.clone() else { return Ok(()) };
        self.pacers.push(Pacer::start(self.name, planned, (queue, W::KEEPS_ALL), Arc::clone(&self.counts))?);
        Ok(())
    }

    /// Hands over no further operation.
    pub(crate) fn halt(&mut self) {
        self.queue = None;
        self.pacers.clear();
    }

    /// Hands over no further operation, begins due ones, and waits `drain` for those in flight. None if the workload
    /// has ended: its panic has been printed.
    pub(crate) async fn stop(&mut self, drain: Duration) -> Option<()> {
        self.halt();
        let until = Instant::now() + drain;
        ask(&self.orders, |reply| Order::Stop(until, reply)).await
    }

    /// The workload's answer; none if it has ended.
    pub(crate) async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> W::Order) -> Option<T> {
        ask(&self.orders, |reply| Order::Own(order(reply))).await
    }

    /// A handle for orders from another owner.
    pub(crate) fn orders(&self) -> Orders<W::Order> {
        Orders(self.orders.clone())
    }
}

/// A handle to a workload for code that does not own it.
#[derive(Debug)]
pub(crate) struct Orders<O>(mpsc::Sender<Order<O>>);

impl<O> Clone for Orders<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O> Orders<O> {
    /// The workload's answer; none if it has ended.
    pub(crate) async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> O) -> Option<T> {
        ask(&self.0, |reply| Order::Own(order(reply))).await
    }
}

async fn ask<O, T>(orders: &mpsc::Sender<Order<O>>, order: impl FnOnce(oneshot::Sender<T>) -> Order<O>) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    orders.send(order(reply)).await.ok()?;
    answer.await.ok()
}

impl<W: Workload> Drop for Engine<W> {
    fn drop(&mut self) {
        self.halt();
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed by the panic hook.
            let _ = thread.join();
        }
    }
}

impl<W: Workload> std::fmt::Debug for Engine<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs until every handle is dropped. Due operations come first.
async fn run<W: Workload>(
    mut workload: W,
    mut due: mpsc::Receiver<Due<W::Operation>>,
    mut orders: mpsc::Receiver<Order<W::Order>>,
) {
    let mut ticks = tokio::time::interval(W::EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            Some(due) = due.recv() => workload.accept(due),
            order = orders.recv() => match order {
                Some(Order::Own(order)) => workload.obey(order).await,
                Some(Order::Stop(until, reply)) => {
                    stop(&mut workload, &mut due, until).await;
                    // The receiver may be gone.
                    let _ = reply.send(());
                }
                None => return,
            },
            true = workload.ended() => {}
            _ = ticks.tick() => workload.tick(),
        }
    }
}

async fn stop<W: Workload>(workload: &mut W, due: &mut mpsc::Receiver<Due<W::Operation>>, until: Instant) {
    workload.close();
    while let Ok(due) = due.try_recv() {
        workload.accept(due);
    }
    let settled = async { while workload.ended().await {} };
    if tokio::time::timeout_at(until.into(), settled).await.is_err() {
        workload.abandon().await;
    }
    workload.stopped().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No operation is handed over before its time, order is kept, and the queue closes at the end.
    #[test]
    fn never_early_and_in_order() {
        let begin = Instant::now();
        let (out, mut queue) = mpsc::channel(64);
        let counts = Arc::new(Counts::default());
        let plan = Planned::at_times((0..20u64).map(|i| (Duration::from_millis(i), i)), begin);
        let _pacer = Pacer::start("test", plan, (out, false), Arc::clone(&counts)).unwrap();
        let mut seen = Vec::new();
        while let Some(due) = queue.blocking_recv() {
            assert!(Instant::now() >= due.planned);
            assert_eq!(due.planned, begin + Duration::from_millis(due.item));
            seen.push(due.item);
        }
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
        assert_eq!(counts.take(), (20, 0));
        assert_eq!(counts.take(), (0, 0));
    }

    /// A full queue is counted, never waited for, unless all operations are kept.
    #[test]
    fn full_queue_is_overflow() {
        let plan = || Planned::at_times((0..100).map(|i| (Duration::ZERO, i)), Instant::now());
        let (out, mut queue) = mpsc::channel(4);
        let counts = Arc::new(Counts::default());
        let mut pacer = Pacer::start("test", plan(), (out, false), Arc::clone(&counts)).unwrap();
        pacer.thread.take().unwrap().join().unwrap();
        assert_eq!(counts.take(), (100, 96));
        assert_eq!(queue.blocking_recv().unwrap().item, 0, "the earliest are kept");
        let (out, mut queue) = mpsc::channel(4);
        let _pacer = Pacer::start("test", plan(), (out, true), Arc::clone(&counts)).unwrap();
        let all: Vec<i32> = std::iter::from_fn(|| queue.blocking_recv()).map(|due| due.item).collect();
        assert_eq!((all.len(), counts.take()), (100, (100, 0)));
    }

    /// Dropping ends the thread long before its next item is due.
    #[test]
    fn drop_ends_it() {
        let (out, mut queue) = mpsc::channel::<Due<u32>>(4);
        let plan = Planned::at_times(std::iter::repeat_n((Duration::from_hours(1), 1), 3), Instant::now());
        drop(Pacer::start("test", plan, (out, false), Arc::default()).unwrap());
        assert!(queue.blocking_recv().is_none());
    }
}
