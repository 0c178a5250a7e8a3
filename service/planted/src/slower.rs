//! Planted bugs that add cost to each review.
//!
//! The added processor time is exact: a bug of 5 % makes the process use 5 % more processor time, whatever the reviews
//! do. So the result of a comparison of two builds can be checked.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::{Bug, growth};

/// Number of bytes that the bug `answer-1k-longer` adds to an answer.
pub const LONGER_BYTES: usize = 1024;
/// Longest time that is added to one review. The limit matters only at the first review, because costly preparations of
/// the process precede it.
const BURST_MAX: Duration = Duration::from_millis(2);

/// Number of reviews between two reads of the processor clock. Each read of the clock is a system call, and another
/// judge counts system calls.
const REVIEWS_A_LOOK: u64 = 32;
/// Number of loop iterations of the first burn, when the duration of an iteration is unknown.
const FIRST_TURNS: u64 = 2000;

static DEBT: Mutex<Debt> = Mutex::new(Debt::new());

/// The processor time that the bug must use, and the processor time that it has already used.
struct Debt {
    reviews: u64,
    /// Processor time of the process at the end of its first review.
    begun: Option<Duration>,
    /// Processor time without the bug at the last read of the clock.
    own: Duration,
    burned: Duration,
    /// Processor time that each review burns until the next read of the clock.
    each: Duration,
    turn: Duration,
}

impl Debt {
    const fn new() -> Self {
        let nothing = Duration::ZERO;
        Self { reviews: 0, begun: None, own: nothing, burned: nothing, each: nothing, turn: nothing }
    }

    /// Counts a review; returns whether the clocks must be read.
    fn looks(&mut self) -> bool {
        self.reviews += 1;
        self.reviews % REVIEWS_A_LOOK == 1
    }

    /// Sets the time that each review burns until the next read, so that `used` grows by exactly the fraction `share`.
    fn look(&mut self, used: Duration, share: f64) {
        let begun = *self.begun.get_or_insert(used);
        let own = used.saturating_sub(begun).saturating_sub(self.burned);
        // The deficit is made up, and the next reviews are expected to cost as much as the last ones.
        let wanted = own + own.saturating_sub(self.own);
        let reviews = u32::try_from(REVIEWS_A_LOOK).unwrap_or(u32::MAX);
        self.each = (wanted.mul_f64(share).saturating_sub(self.burned) / reviews).min(BURST_MAX);
        self.own = own;
    }

    /// The number of loop iterations that one review burns.
    fn turns(&self) -> u64 {
        let turns = self.each.as_nanos().checked_div(self.turn.as_nanos().max(1)).unwrap_or(0);
        u64::try_from(turns).unwrap_or(u64::MAX)
    }
}

/// Delays a review by the bug's amount, after its answer was made.
pub async fn linger(bug: Bug) {
    match bug {
        Bug::SlowerBy5 => burn(0.05),
        Bug::SlowerBy10 => burn(0.10),
        Bug::SlowerBy30 => burn(0.30),
        Bug::MoreSyscalls => two_calls(),
        Bug::SlowAfter if growth::has_many_objects() => tokio::time::sleep(growth::SLOW_BY).await,
        _ => {}
    }
}

/// Uses as much additional processor time as if the code were slower by the fraction `share`.
fn burn(share: f64) {
    let mut debt = DEBT.lock();
    if !debt.looks() {
        let (turns, turn) = (debt.turns(), debt.turn);
        debt.burned += turn * u32::try_from(turns).unwrap_or(u32::MAX);
        drop(debt);
        spin(turns);
        return;
    }
    // The length of a turn changes with the processor's clock and with other load.
    let begun = clock(ClockId::ThreadCPUTime);
    let turns = if debt.turn.is_zero() { FIRST_TURNS } else { debt.turns().max(1) };
    spin(turns);
    let took = clock(ClockId::ThreadCPUTime).saturating_sub(begun);
    debt.burned += took;
    debt.turn = (took / u32::try_from(turns).unwrap_or(u32::MAX)).max(Duration::from_nanos(1));
    debt.look(clock(ClockId::ProcessCPUTime), share);
}

/// Runs a loop that the compiler cannot remove; each iteration takes some hundred nanoseconds.
fn spin(turns: u64) {
    let mut state = turns;
    for turn in 0..turns {
        for step in 0..STEPS_A_TURN {
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(turn ^ step));
        }
    }
}

/// Number of operations in one loop iteration: enough for some hundred nanoseconds, so that whole nanoseconds measure
/// an iteration well.
const STEPS_A_TURN: u64 = 64;

fn clock(id: ClockId) -> Duration {
    Duration::try_from(clock_gettime(id)).unwrap_or_default()
}

/// Makes one read call and one write call on files without other costs.
fn two_calls() {
    static FILES: OnceLock<Option<(File, File)>> = OnceLock::new();
    let open = || Some((File::open("/dev/zero").ok()?, File::create("/dev/null").ok()?));
    if let Some((zero, null)) = FILES.get_or_init(open) {
        let (mut zero, mut null) = (zero, null);
        let mut byte = [0];
        // Without the files nothing is planted, which the gate shows.
        let _ = zero.read(&mut byte).and_then(|_| null.write(&byte));
    }
}

/// The text that the bug `answer-1k-longer` adds to an answer.
pub fn longer(bug: Bug) -> Option<String> {
    (bug == Bug::LongerAnswer).then(|| "x".repeat(LONGER_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any cost of reviews, the process has in the end used exactly the fraction `share` more processor time.
    #[test]
    fn what_is_owed_adds_up_to_the_share() {
        for share in [0.05, 0.10, 0.30] {
            let mut debt = Debt::new();
            let mut own = Duration::ZERO;
            for review in 0..10_000_u64 {
                own += Duration::from_micros(80 + review % 40);
                if debt.looks() {
                    debt.look(own + debt.burned, share);
                }
                debt.burned += debt.each;
            }
            let found = debt.burned.as_secs_f64() / own.as_secs_f64();
            assert!((found - share).abs() < share / 50.0, "{found} of {share}");
        }
    }

    /// The burned processor time equals the processor time that the system counts.
    #[test]
    fn it_burns_the_time_of_a_processor() {
        let begun = clock(ClockId::ThreadCPUTime);
        spin(10_000);
        assert!(clock(ClockId::ThreadCPUTime).checked_sub(begun).unwrap() > Duration::from_micros(100));
        (0..100).for_each(|_| burn(0.3));
        assert!(!DEBT.lock().turn.is_zero());
        assert_eq!(longer(Bug::LongerAnswer).unwrap().len(), LONGER_BYTES);
        assert_eq!(longer(Bug::MissedDelete), None);
    }
}
