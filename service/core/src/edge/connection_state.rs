//! The state of a connection: whether it has sent a complete request, and whether its peer reads answers.
//!
//! Time is divided into intervals of [`TURN`], called turns. No list of answers is kept: each answer stores the turn in
//! which its last bytes were sent, and each turn has a count of answers. Except for the timer of [`attend`], the code
//! only computes.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

use super::metrics::ListenerMetrics;

/// Maximum number of open streams of an HTTP/2 connection before its first complete request.
const UNPROVEN_STREAMS: u32 = 20;
/// A connection is closed after this many refused streams without a complete request between them. Go's client opens
/// fewer streams before it reads the settings.
const REFUSED_MAX: u32 = 250;
/// Length of a turn, the interval in which progress is measured.
const TURN: Duration = Duration::from_secs(2);
/// An answer of which no byte was sent in this many whole turns is late. A stream that hyper can still reset is reset
/// earlier (see `owed`).
const TURNS: u32 = 3;
/// The number of counts of answers: one for the present turn, and one for each earlier turn that is not late yet.
const COUNTS: usize = TURNS as usize + 1;

/// State that the streams of a connection and its socket share.
#[derive(Debug)]
pub(super) struct ConnectionState {
    has_shown: AtomicBool,
    refused: AtomicU32,
    answers: Answers,
    /// The number of turns since the socket last took data; 0 while it takes data.
    blocked: AtomicU32,
    /// A signal that the connection should end after its open calls.
    leave: Notify,
    metrics: ListenerMetrics,
}

/// Counts of open answers, by the turn of their last progress.
#[derive(Debug, Default)]
struct Answers {
    turn: AtomicU32,
    counts: [AtomicUsize; COUNTS],
}

/// An error: the peer does not read its answers.
#[derive(Debug, thiserror::Error)]
#[error("the peer takes no answers")]
pub(super) struct Unread;

impl Answers {
    fn now(&self) -> u32 {
        self.turn.load(Ordering::Relaxed)
    }

    fn of(&self, turn: u32) -> &AtomicUsize {
        &self.counts[turn as usize % COUNTS]
    }

    fn add(&self) -> u32 {
        let now = self.now();
        self.of(now).fetch_add(1, Ordering::Relaxed);
        now
    }

    fn remove(&self, turn: u32) {
        self.of(turn).fetch_sub(1, Ordering::Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| count.load(Ordering::Relaxed) == 0)
    }

    /// Starts the next turn; returns whether no byte of some answer was sent for [`TURNS`] whole turns.
    fn turn(&self) -> bool {
        let next = self.now().wrapping_add(1);
        let is_late = self.of(next).load(Ordering::Relaxed) > 0;
        self.turn.store(next, Ordering::Relaxed);
        is_late
    }
}

impl ConnectionState {
    /// The state of a connection without a complete request.
    pub(super) fn new(metrics: ListenerMetrics) -> Self {
        let (has_shown, answers) = (AtomicBool::new(false), Answers::default());
        let (refused, blocked, leave) = (AtomicU32::new(0), AtomicU32::new(0), Notify::new());
        Self { has_shown, refused, answers, blocked, leave, metrics }
    }

    /// Whether the connection may open one more stream besides its `open` streams.
    pub(super) fn may_open(&self, open: u32) -> bool {
        open < UNPROVEN_STREAMS || self.has_shown.load(Ordering::Relaxed)
    }

    /// Records that the connection has sent a complete request.
    pub(super) fn show(&self) {
        self.has_shown.store(true, Ordering::Relaxed);
        self.refused.store(0, Ordering::Relaxed);
    }

    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the connection has opened only refused streams and reached [`REFUSED_MAX`].
    pub(super) fn is_hopeless(&self) -> bool {
        self.refused.load(Ordering::Relaxed) > REFUSED_MAX
    }

    /// Asks the connection to end after its calls.
    pub(super) fn ask_to_leave(&self) {
        self.leave.notify_one();
    }

    /// Ready when the connection was asked to end.
    pub(super) async fn asked_to_leave(&self) {
        self.leave.notified().await;
        self.cut("greedy");
    }

    /// Records a new answer; returns the present turn.
    pub(super) fn begin(&self) -> u32 {
        self.answers.add()
    }

    /// Records progress of an answer whose last progress was in `turn`.
    pub(super) fn move_on(&self, turn: &mut u32) {
        if *turn != self.answers.now() {
            self.answers.remove(*turn);
            *turn = self.answers.add();
        }
    }

    /// Records the end of an answer whose last progress was in `turn`.
    pub(super) fn end(&self, turn: u32) {
        self.answers.remove(turn);
    }

    /// Records whether the socket accepts data for sending at present.
    pub(super) fn takes(&self, takes: bool) {
        let blocked = self.blocked.load(Ordering::Relaxed);
        if takes != (blocked == 0) {
            self.blocked.store(u32::from(!takes), Ordering::Relaxed);
        }
    }

    /// Counts a stream or connection that was ended because of its peer; `what` is a label from a closed list.
    pub(super) fn cut(&self, what: &'static str) {
        self.metrics.cut(what);
    }

    fn owes(&self) -> bool {
        self.blocked.load(Ordering::Relaxed) > 0 || !self.answers.is_empty()
    }

    /// Starts the next turn; returns whether the peer has read too little of its answers for too long.
    fn turn(&self) -> bool {
        let blocked = self.blocked.load(Ordering::Relaxed);
        if blocked > 0 {
            self.blocked.store(blocked + 1, Ordering::Relaxed);
        }
        self.answers.turn() || blocked > TURNS
    }
}

/// The timer of a connection, set only while an answer waits to be read.
pub(super) type Timer = Option<Pin<Box<Sleep>>>;

/// Drives `connection` until it ends or its peer leaves an answer unread for too long.
pub(super) async fn attend<C: Future>(
    mut connection: Pin<&mut C>,
    standing: &ConnectionState,
    timer: &mut Timer,
) -> Result<C::Output, Unread> {
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = connection.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        if !standing.owes() {
            *timer = None;
            return Poll::Pending;
        }
        while timer.get_or_insert_with(|| Box::pin(sleep(TURN))).as_mut().poll(cx).is_ready() {
            *timer = None;
            if standing.turn() {
                standing.cut("connection");
                return Poll::Ready(Err(Unread));
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::Metrics;

    fn standing() -> ConnectionState {
        ConnectionState::new(Metrics::default().of("test"))
    }

    #[test]
    fn a_connection_has_few_streams_until_a_request_is_whole() {
        let standing = standing();
        assert!(standing.may_open(UNPROVEN_STREAMS - 1) && !standing.may_open(UNPROVEN_STREAMS));
        (0..=REFUSED_MAX).for_each(|_| standing.refuse());
        assert!(standing.is_hopeless());
        standing.show();
        assert!(standing.may_open(UNPROVEN_STREAMS) && !standing.is_hopeless());
    }

    /// An answer is late after three whole turns without progress; an answer with progress is never late.
    #[test]
    fn an_answer_that_stands_still_is_late_and_one_that_moves_is_not() {
        let standing = standing();
        assert!(!standing.owes());
        let (still, mut moving) = (standing.begin(), standing.begin());
        for _ in 0..3 {
            assert!(!standing.turn());
            standing.move_on(&mut moving);
        }
        assert!(standing.turn());
        standing.end(still);
        for _ in 0..10 {
            standing.move_on(&mut moving);
            assert!(!standing.turn());
        }
        standing.end(moving);
        assert!(!standing.owes() && (0..10).all(|_| !standing.turn()));
    }

    #[test]
    fn a_socket_that_takes_nothing_is_late() {
        let standing = standing();
        standing.takes(false);
        assert!(standing.owes() && !standing.turn() && !standing.turn());
        standing.takes(true);
        assert!(!standing.owes());
        standing.takes(false);
        let turns: Vec<bool> = (0..4).map(|_| standing.turn()).collect();
        assert_eq!(turns, [false, false, false, true]);
    }
}
