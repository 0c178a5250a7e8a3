//! The open loop: passes each operation of a plan to the workload at its time, measures its lateness, and ends the
//! plan. Every kind of load uses the open loop.
//!
//! - *Planned times.* A [`Planned`] returns the operations in the order of their times. A pacing thread passes each
//!   operation on at its time and never waits for the workload: an operation that finds the bounded queue full is
//!   dropped and counted. The pacing thread sleeps until absolute times. On a busy machine an async timer has a median
//!   lateness of one or two milliseconds, and the errors of relative sleeps add up. Load that is sent directly to a
//!   webhook has no time for a queue between threads, so its generator reads the plan itself.
//! - *Lateness.* Every measurement counts from the planned time ([`Moments`]), so a slow server, or a late harness,
//!   cannot hide the waiting of later operations.
//! - *The end.* After [`Engine::stop`] no further operation becomes due. Operations whose time had come are begun,
//!   operations in flight may end until a deadline, and the workload counts all other operations.
//!
//! The open loop knows nothing about the operations.

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

/// How often the pacing thread checks for a stop, which is also its longest sleep.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Maximum number of operations that wait in the queue until the workload takes one.
const QUEUE: usize = 1024;
/// Maximum number of waiting orders from handles of a [`Workload`].
const ORDERS: usize = 16;

/// An operation whose time has come.
#[derive(Debug)]
pub(crate) struct Due<T> {
    pub planned: Instant,
    pub item: T,
}

/// The planned time, the real start and the end of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    pub planned: Instant,
    pub begun: Instant,
    pub ended: Instant,
}

impl<T> Due<T> {
    /// How late the operation was passed to the workload, without any later wait.
    pub(crate) fn lateness(&self) -> Duration {
        self.planned.elapsed()
    }
}

impl Moments {
    /// Runs the work of an operation that was planned for `planned`, and measures it.
    pub(crate) async fn of<T>(planned: Instant, work: impl Future<Output = T>) -> (Self, T) {
        let begun = Instant::now();
        let result = work.await;
        (Self { planned, begun, ended: Instant::now() }, result)
    }

    /// The time from the planned time to the real start.
    pub(crate) fn lateness(&self) -> Duration {
        self.begun.saturating_duration_since(self.planned)
    }

    pub(crate) fn response(&self) -> Duration {
        self.ended.saturating_duration_since(self.planned)
    }

    /// The time from the real start to the end.
    pub(crate) fn service(&self) -> Duration {
        self.ended.saturating_duration_since(self.begun)
    }
}

/// Counts of the operations that were passed to the workload, which the interval takes and resets.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Number of operations whose time has come.
    pub planned: AtomicU64,
    /// Number of operations that could not be started at their time.
    pub overflow: AtomicU64,
}

impl Counts {
    pub(crate) fn planned_one(&self) {
        self.planned.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn overflow_one(&self) {
        self.overflow.fetch_add(1, Ordering::Relaxed);
    }

    /// The numbers of planned operations and of overflow since the last call.
    pub(crate) fn take(&self) -> (u64, u64) {
        (self.planned.swap(0, Ordering::Relaxed), self.overflow.swap(0, Ordering::Relaxed))
    }
}

type Items<T> = Box<dyn Iterator<Item = (Duration, T)> + Send>;

/// The operations of a plan in the order of their times.
pub(crate) struct Planned<T> {
    items: Items<T>,
    pace: Pace,
    next: Option<(Duration, T)>,
}

#[derive(Clone)]
enum Pace {
    /// Operations start at their planned times, counted from this time.
    From(Instant),
    /// Operations start whenever fewer than this many are in flight.
    ClosedLoop(usize),
    /// Operations start when [`Steer`] permits, and later at the rate that was found.
    Steered(Arc<Steer>),
}

impl<T: 'static> Planned<T> {
    /// Starts each operation at its offset from `begin`; the offsets are in order.
    pub(crate) fn at_times(items: impl Iterator<Item = (Duration, T)> + Send + 'static, begin: Instant) -> Self {
        Self::new(Box::new(items), Pace::From(begin))
    }

    /// Starts an operation as soon as fewer than `under_way` are in flight, whatever time was planned. This is only for
    /// benchmarks and for finding a capacity.
    pub(crate) fn closed_loop(items: impl Iterator<Item = (Duration, T)> + Send + 'static, under_way: usize) -> Self {
        Self::new(Box::new(items), Pace::ClosedLoop(under_way))
    }

    /// Starts each operation when [`Steer`] permits, and later at the rate that was found; the offsets do not count.
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

    /// The next operation if its time has come; `under_way` operations are in flight.
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

    /// The time of the next operation, if it is known.
    pub(crate) fn next_at(&self, under_way: usize) -> Option<Instant> {
        let (offset, _) = self.next.as_ref()?;
        match &self.pace {
            Pace::From(begin) => Some(*begin + *offset),
            Pace::ClosedLoop(most) => (under_way < *most).then(Instant::now),
            Pace::Steered(steer) => steer.next_at(),
        }
    }

    /// Ends the plan: no further operation becomes due.
    pub(crate) fn close(&mut self) {
        self.next = None;
        self.items = Box::new(std::iter::empty());
    }

    /// Counts the remaining operations of the plan as planned and not sent.
    pub(crate) fn rest(&mut self, counts: &Counts) {
        for _ in self.next.take().into_iter().chain(&mut self.items) {
            counts.planned_one();
            counts.overflow_one();
        }
    }
}

/// The pacing thread of an open loop. Dropping the value stops the thread and waits for its end, at most [`LOOK_UP`].
#[derive(Debug)]
struct Pacer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pacer {
    /// Starts the pacing thread. The queue `out` is closed at the end of the plan. If the queue is full, an operation
    /// is dropped, or, if `kept` is set, waits for room.
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

/// How the operations of a plan are processed. A workload has its own thread and runtime, and owns all its state. Its
/// requests are tasks that report their results to it.
pub(crate) trait Workload: Send + 'static {
    type Operation: Send + 'static;
    type Order: Send + 'static;
    /// How often [`Workload::tick`] is called.
    const EVERY: Duration = Duration::from_secs(1);
    /// Whether each operation is begun, however late it is. If it is false, an operation that finds the queue full is
    /// dropped and counted as overflow.
    const KEEPS_ALL: bool = false;

    /// Begins the operation, lets it wait for earlier ones, or counts that it cannot begin; never blocks.
    fn accept(&mut self, due: Due<Self::Operation>);

    /// Waits for the end of an operation in flight and processes the result; false if none is in flight. Dropping the
    /// future loses no result.
    fn ended(&mut self) -> impl Future<Output = bool>;

    /// Carries out an order of the handle.
    fn obey(&mut self, order: Self::Order) -> impl Future<Output = ()>;

    /// Checks states of the workload whose change causes no event.
    fn tick(&mut self) {}

    /// Called at the end of the plan: waiting operations need not be begun.
    fn close(&mut self) {}

    /// Counts the operations that are still in flight at the deadline of a stop.
    fn abandon(&mut self) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Cleans up after the workload was stopped.
    fn stopped(&mut self) -> impl Future<Output = ()> {
        std::future::ready(())
    }
}

#[derive(Debug)]
enum Order<O> {
    Own(O),
    Stop(Instant, oneshot::Sender<()>),
}

/// A workload that is running; dropping the value ends it at once, even while it waits.
pub(crate) struct Engine<W: Workload> {
    name: &'static str,
    pacers: Vec<Pacer>,
    queue: Option<mpsc::Sender<Due<W::Operation>>>,
    counts: Arc<Counts>,
    orders: mpsc::Sender<Order<W::Order>>,
    thread: Option<JoinHandle<()>>,
    /// The workload's thread ends when this sender is dropped.
    alive: Option<oneshot::Sender<()>>,
}

impl<W: Workload> Engine<W> {
    /// Starts the workload's thread. No operation of the workload starts before [`Engine::go`].
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

    /// From now on, passes operations to the workload, each at its offset from `begin`. After a stop this function does
    /// nothing.
    pub(crate) fn go(
        &mut self,
        operations: impl Iterator<Item = (Duration, W::Operation)> + Send + 'static,
        begin: Instant,
    ) -> io::Result<()> {
        self.hand_over(Planned::at_times(operations, begin))
    }

    /// From now on, passes operations to the workload when `steer` permits, and later at the rate that was found.
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

    /// Passes no further operation to the workload.
    pub(crate) fn halt(&mut self) {
        self.queue = None;
        self.pacers.clear();
    }

    /// Passes no further operation to the workload, begins those whose time has come, and waits `drain` for those in
    /// flight. `None` if the workload has ended by a panic, which has been printed.
    pub(crate) async fn stop(&mut self, drain: Duration) -> Option<()> {
        self.halt();
        let until = Instant::now() + drain;
        ask(&self.orders, |reply| Order::Stop(until, reply)).await
    }

    /// The workload's answer to an order; `None` if the workload has ended.
    pub(crate) async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> W::Order) -> Option<T> {
        ask(&self.orders, |reply| Order::Own(order(reply))).await
    }

    /// A handle that sends orders without owning the workload.
    pub(crate) fn orders(&self) -> Orders<W::Order> {
        Orders(self.orders.clone())
    }
}

/// A handle that sends orders to a workload without owning it.
#[derive(Debug)]
pub(crate) struct Orders<O>(mpsc::Sender<Order<O>>);

impl<O> Clone for Orders<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O> Orders<O> {
    /// The workload's answer to an order; `None` if the workload has ended.
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

/// Runs the workload until every handle is dropped. Operations whose time has come have precedence over orders.
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

    /// No operation starts before its time, the order is kept, and the queue is closed at the end of the plan.
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

    /// An operation that finds the queue full is counted as overflow, unless the workload keeps all operations.
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

    /// Dropping the pacing thread ends it long before the time of its next operation.
    #[test]
    fn drop_ends_it() {
        let (out, mut queue) = mpsc::channel::<Due<u32>>(4);
        let plan = Planned::at_times(std::iter::repeat_n((Duration::from_hours(1), 1), 3), Instant::now());
        drop(Pacer::start("test", plan, (out, false), Arc::default()).unwrap());
        assert!(queue.blocking_recv().is_none());
    }
}
