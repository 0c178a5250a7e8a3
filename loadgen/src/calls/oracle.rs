//! The right answers: every replica count that the control plane committed, with its time, and the comparison with an
//! answer. Pure: no I/O.
//!
//! An answer may be older than the last commit, but must contain a committed count. If another count replaced the
//! answer's count before the call, the age of the answer is the time from the replacement to the call, else zero.
//!
//! The harness's own watch is a moment late. A commit therefore counts from the time at which the harness *saw* it,
//! which can make an answer seem younger, but never older. An answer is judged only after some time, when the harness
//! has seen every commit that the answer can contain. An answer with an unknown count waits longer before it is judged,
//! because a late watch of the harness must not count against the subject.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// Maximum number of versions of a Deployment that are remembered: at one write a second, more than a quarter of an
/// hour.
const VERSIONS_MAX: usize = 1024;
/// Maximum number of answers that wait to be judged: two seconds of a hundred lists a second with a thousand
/// Deployments each.
const WAITING_MAX: usize = 1 << 18;
/// The usual maximum lateness of the harness's own watch.
const GRACE: Duration = Duration::from_secs(2);
/// The maximum lateness of the harness's own watch on a busy machine.
const DOUBT: Duration = Duration::from_secs(6);
/// Maximum number of answers with unknown counts that are kept. One such answer is enough to fail a run, so more are
/// not needed.
const DOUBTFUL_MAX: usize = 4096;

/// An answer about one Deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) deployment: u32,
    pub(super) what: Content,
    pub(super) sent: Instant,
    pub(super) answered: Instant,
}

/// The content of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Count(i64),
    /// The answer says that the Deployment does not exist, which is wrong for every Deployment of a plan.
    Absent,
    /// The subject confirmed that this count was set.
    Set(i64),
}

/// How an answer was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// The answer was right, and its count had this age.
    Right(Duration),
    /// The count was confirmed as set, and was committed.
    Stored,
    /// No such count was ever committed, or a Deployment was missing in the answer although it exists.
    Wrong(String),
    /// The count was confirmed as set, but was never committed.
    Lost(String),
    /// The judgement is unknown: the harness did not see all versions of the Deployment, and the answer may contain one
    /// of them.
    Unknown,
}

/// The committed counts of each Deployment, oldest first.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    commits: HashMap<u32, VecDeque<(Instant, i64)>>,
    /// Deployments of which some versions were not seen.
    gaps: HashSet<u32>,
    waiting: VecDeque<Reply>,
    /// Answers with an unknown count, which are judged again until they are [`DOUBT`] old.
    doubtful: VecDeque<Reply>,
    /// Number of answers that are not judged, because too many answers waited.
    pub(super) unjudged: u64,
}

impl Oracle {
    /// Adds a committed count, which was seen at `at`.
    pub(super) fn committed(&mut self, deployment: u32, at: Instant, count: i64) {
        let versions = self.commits.entry(deployment).or_default();
        // A write of another field repeats the count.
        if versions.back().is_some_and(|(_, last)| *last == count) {
            return;
        }
        if versions.len() == VERSIONS_MAX {
            versions.pop_front();
        }
        versions.push_back((at, count));
    }

    /// Reports that versions of this Deployment may have been missed.
    pub(super) fn unseen(&mut self, deployment: u32) {
        self.gaps.insert(deployment);
    }

    pub(super) fn note(&mut self, reply: Reply) {
        if self.waiting.len() == WAITING_MAX {
            self.unjudged += 1;
            return;
        }
        self.waiting.push_back(reply);
    }

    /// Judges the answers that have waited long enough at `now`. With `everything`, the harness has seen all commits,
    /// and all answers are judged.
    pub(super) fn judge(&mut self, now: Instant, everything: bool) -> Vec<Found> {
        let is_over = |told: &Reply, wait| everything || now.saturating_duration_since(told.answered) >= wait;
        let mut found = Vec::new();
        // Answers that stay go behind those that have not been examined.
        for _ in 0..self.doubtful.len() {
            let Some(told) = self.doubtful.pop_front() else { break };
            match self.about(told) {
                Found::Wrong(_) | Found::Lost(_) if !is_over(&told, DOUBT) => self.doubtful.push_back(told),
                sure => found.push(sure),
            }
        }
        while let Some(told) = self.waiting.front().copied().filter(|told| is_over(told, GRACE)) {
            self.waiting.pop_front();
            match self.about(told) {
                Found::Wrong(_) | Found::Lost(_)
                    if told.what != Content::Absent && !is_over(&told, DOUBT) && self.doubtful.len() < DOUBTFUL_MAX =>
                {
                    self.doubtful.push_back(told);
                }
                sure => found.push(sure),
            }
        }
        found
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.doubtful.is_empty()
    }

    /// How long to wait after the last call for commits of the counts in waiting answers.
    pub(super) fn patience(&self) -> Duration {
        if self.doubtful.is_empty() { GRACE } else { DOUBT }
    }

    fn about(&self, told: Reply) -> Found {
        let name = super::plan::name(told.deployment);
        let none = VecDeque::new();
        let versions = self.commits.get(&told.deployment).unwrap_or(&none);
        let known = |count| versions.iter().rposition(|(_, known)| *known == count);
        match told.what {
            Content::Absent => Found::Wrong(format!("the API answered that {name} does not exist")),
            Content::Set(count) if known(count).is_some() => Found::Stored,
            Content::Count(count) if let Some(at) = known(count) => {
                let superseded = versions.get(at + 1).map(|(when, _)| *when);
                Found::Right(superseded.map_or(Duration::ZERO, |when| told.sent.saturating_duration_since(when)))
            }
            Content::Set(_) | Content::Count(_) if self.gaps.contains(&told.deployment) => Found::Unknown,
            Content::Set(count) => {
                Found::Lost(format!("the API answered that {name} now has {count}, which was never committed"))
            }
            Content::Count(count) => {
                Found::Wrong(format!("the API answered that {name} has {count}, which was never committed"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    fn reply(begin: Instant, sent_ms: u64, what: Content) -> Reply {
        Reply { deployment: 1, what, sent: begin + ms(sent_ms), answered: begin + ms(sent_ms + 5) }
    }

    /// The age of an answer is the time from the next commit after its count to the call.
    #[test]
    fn an_answer_is_as_old_as_what_came_after_it() {
        let begin = Instant::now();
        let mut oracle = Oracle::default();
        for (at, count) in [(0, 10), (100, 11), (200, 12)] {
            oracle.committed(1, begin + ms(at), count);
        }
        for (sent, count, age) in
            [(150, 11, 0), (150, 10, 50), (350, 10, 250), (350, 11, 150), (350, 12, 0), (50, 12, 0)]
        {
            oracle.note(reply(begin, sent, Content::Count(count)));
            assert_eq!(oracle.judge(begin, true), [Found::Right(ms(age))], "{sent} {count}");
        }
    }

    #[test]
    fn what_was_never_committed_is_wrong_and_what_was_never_stored_is_lost() {
        let begin = Instant::now();
        let mut oracle = Oracle::default();
        oracle.committed(1, begin, 10);
        oracle.note(reply(begin, 10, Content::Count(9)));
        oracle.note(reply(begin, 10, Content::Absent));
        oracle.note(reply(begin, 10, Content::Set(11)));
        let found = oracle.judge(begin + ms(1), false);
        assert!(found.is_empty() && oracle.is_waiting(), "what it may have seen may not have been seen here yet");
        let found = oracle.judge(begin + GRACE + ms(20), false);
        assert!(matches!(&found[..], [Found::Wrong(_)]) && oracle.is_waiting(), "what is not known waits: {found:?}");
        let found = oracle.judge(begin + DOUBT + ms(20), false);
        assert!(matches!(&found[..], [Found::Wrong(_), Found::Lost(_)]) && !oracle.is_waiting(), "{found:?}");
        oracle.note(reply(begin, 10, Content::Set(11)));
        oracle.committed(1, begin + ms(500), 11);
        assert_eq!(oracle.judge(begin, true), [Found::Stored]);
    }

    /// If the harness's watch is late or has a gap, no answer becomes wrong.
    #[test]
    fn what_is_seen_late_is_right_and_what_was_not_seen_is_not_judged() {
        let begin = Instant::now();
        let mut oracle = Oracle::default();
        oracle.committed(1, begin, 10);
        oracle.note(reply(begin, 10, Content::Count(11)));
        oracle.note(reply(begin, 10, Content::Set(12)));
        assert!(oracle.judge(begin + GRACE + ms(20), false).is_empty());
        oracle.committed(1, begin + ms(4000), 11);
        assert_eq!(oracle.judge(begin + ms(5000), false), [Found::Right(Duration::ZERO)]);
        oracle.unseen(1);
        assert_eq!(oracle.judge(begin + ms(6000), false), [Found::Unknown]);
    }

    #[test]
    fn memory_is_bounded() {
        let begin = Instant::now();
        let mut oracle = Oracle::default();
        for count in 0..10_000 {
            oracle.committed(1, begin, count);
        }
        assert_eq!(oracle.commits[&1].len(), VERSIONS_MAX);
        for _ in 0..WAITING_MAX + 5 {
            oracle.note(reply(begin, 0, Content::Absent));
        }
        assert_eq!(oracle.unjudged, 5);
    }
}
