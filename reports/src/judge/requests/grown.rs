//! Decides whether watches multiply with each end: the client opens two watches for one that ended.
//!
//! Owns the rule that decides when watches of one scope (resource, namespace and selectors) count as multiplied. The
//! functions are pure; the budget `events.watchGrowth` and the module `causes` use them. A watch whose end a fault
//! hides does not count as open: if a client gives up a silent dead connection, the control plane does not notice.

use std::collections::BTreeSet;

use super::SubjectRequests;
use crate::record::{FaultEvent, Record, RequestRow, Verb, is_unsure};

/// Milliseconds within which the informers of one scope start after its first informer.
const STARTS_WITHIN_MS: u64 = 2000;
/// A watch that is opened within this time after the end of another watch counts as caused by that end, if then more
/// watches are open than ever before.
const FOLLOWS_WITHIN_MS: u64 = 10_000;
/// Minimum number of open watches that count as multiplied. A late informer, or a watch opened before the old one is
/// closed, leads to fewer open watches.
const MOST_LEAST: u64 = 4;
/// Minimum factor by which the number of open watches has to grow.
const TIMES_LEAST: u64 = 3;
/// Watches multiplied only if, after at least this many ends of watches, more watches were open than before. After one
/// end, more open watches may have another reason; after two ends they do not.
const ENDS_LEAST: usize = 2;
/// Faults during which a watch may have ended but look open, in addition to faults that lose sent data.
const HIDES_ENDS: [&str; 3] = ["silent-watch", "hold-buffer", "no-answer"];

/// Watches of one scope that multiplied with each end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grown {
    pub resource: String,
    /// The resource with its namespace and selectors.
    pub scope: String,
    /// The largest number of watches that were open at once before the first watch ended.
    pub first: u64,
    /// The largest number of watches that were open at once, and the first time with that number.
    pub most: u64,
    pub most_ms: u64,
    /// When the watches began to multiply, in milliseconds.
    pub from_ms: u64,
    /// Number of watches of the scope that had ended before the largest number was open.
    pub ends: u64,
}

/// The scope whose watches multiplied most; none if no scope's watches multiplied.
pub(crate) fn grown(record: &Record) -> Option<Grown> {
    let asked = SubjectRequests::of(record);
    let hidden = Hidden::of(record);
    let of_scope = |(scope, rows): (&super::scope::Scope<'_>, &Vec<&RequestRow>)| {
        let grown = of_rows(&asked, rows, &hidden)?;
        Some(Grown { resource: scope.resource.to_owned(), scope: scope.to_string(), ..grown })
    };
    asked.scopes.iter().filter_map(of_scope).max_by_key(|grown| grown.most)
}

/// The largest number of watches of one scope that were open at once, and the number of ended watches. Watches whose
/// end a fault hides do not count.
pub(crate) fn most(record: &Record) -> (u64, u64) {
    let (asked, hidden) = (SubjectRequests::of(record), Hidden::of(record));
    let scopes = asked.scopes.values().map(|rows| {
        let turns = turns(&asked, rows, &hidden);
        let mut open = Open::default();
        for turn in turns {
            open.take(turn);
        }
        (open.most, open.ends)
    });
    scopes.fold((0, 0), |(most, ends), (of_scope, ended)| (most.max(of_scope), ends + ended))
}

fn of_rows(asked: &SubjectRequests, rows: &[&RequestRow], hidden: &Hidden) -> Option<Grown> {
    let turns = turns(asked, rows, hidden);
    let begin_ms = turns.first()?.t_ms;
    let mut open = Open::default();
    let mut first = None;
    // The watches that made more than ever before: all of them, and those that followed an end.
    let (mut more, mut following, mut after, mut from_ms) = (0_u64, 0_u64, BTreeSet::new(), None);
    for turn in turns {
        if turn.t_ms > begin_ms + STARTS_WITHIN_MS {
            first.get_or_insert(open.most);
        }
        let before = open.most;
        open.take(turn);
        if open.most > before && first.is_some() {
            more += 1;
            if let Some(end_ms) = open.ended_ms.filter(|end_ms| turn.t_ms <= end_ms + FOLLOWS_WITHIN_MS) {
                following += 1;
                after.insert(end_ms);
                from_ms.get_or_insert(turn.t_ms);
            }
        }
    }
    let (first, most) = (first?, open.most);
    let multiplied = most >= MOST_LEAST
        && most >= TIMES_LEAST.saturating_mul(first)
        && following * 2 > more
        && after.len() >= ENDS_LEAST;
    multiplied.then(|| Grown {
        resource: String::new(),
        scope: String::new(),
        first,
        most,
        most_ms: open.most_ms,
        from_ms: from_ms.unwrap_or(begin_ms),
        ends: open.ends_then,
    })
}

/// An event that changes the number of open watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    t_ms: u64,
    what: TurnKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TurnKind {
    /// A watch ended. At the same millisecond, ends are counted before starts, so that a resumed watch does not count
    /// twice.
    Ends,
    /// From this time on, the watch may have ended without the control plane noticing.
    IsHidden,
    Begins,
}

fn turns(asked: &SubjectRequests, rows: &[&RequestRow], hidden: &Hidden) -> Vec<Turn> {
    let mut turns = Vec::new();
    for row in rows.iter().filter(|row| row.verb == Verb::Watch && (200..300).contains(&row.status)) {
        let end_ms = asked.end_ms(row);
        // A watch that began and ended before the warm-up has no length.
        if end_ms == row.t_ms && row.ended_ms.is_some() {
            continue;
        }
        turns.push(Turn { t_ms: row.t_ms, what: TurnKind::Begins });
        match hidden.since(row.t_ms, end_ms) {
            Some(t_ms) => turns.push(Turn { t_ms, what: TurnKind::IsHidden }),
            None if end_ms < asked.until_ms => turns.push(Turn { t_ms: end_ms, what: TurnKind::Ends }),
            None => {}
        }
    }
    turns.sort_unstable();
    turns
}

/// Counts the open watches of a scope.
#[derive(Debug, Default)]
struct Open {
    now: u64,
    most: u64,
    most_ms: u64,
    ends: u64,
    /// The number of watches that had ended when the largest number was open.
    ends_then: u64,
    /// When a watch last ended.
    ended_ms: Option<u64>,
}

impl Open {
    fn take(&mut self, Turn { t_ms, what }: Turn) {
        match what {
            TurnKind::Begins => self.now += 1,
            TurnKind::Ends => {
                self.now = self.now.saturating_sub(1);
                self.ends += 1;
                self.ended_ms = Some(t_ms);
            }
            TurnKind::IsHidden => self.now = self.now.saturating_sub(1),
        }
        if self.now > self.most {
            (self.most, self.most_ms, self.ends_then) = (self.now, t_ms, self.ends);
        }
    }
}

/// Time spans in which a fault may hide the end of a watch.
struct Hidden(Vec<(u64, u64)>);

impl Hidden {
    fn of(record: &Record) -> Self {
        let hides = |name: &str| is_unsure(name) || HIDES_ENDS.contains(&name);
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for row in record.faults.iter().filter(|row| hides(&row.name)) {
            match row.event {
                FaultEvent::Started => spans.push((row.t_ms, u64::MAX)),
                FaultEvent::Ended => {
                    for span in spans.iter_mut().filter(|span| span.1 == u64::MAX) {
                        span.1 = row.t_ms;
                    }
                }
                _ => {}
            }
        }
        Self(spans)
    }

    /// The time from which the watch may have ended without the control plane noticing; none if no fault hides its end.
    fn since(&self, begin_ms: u64, end_ms: u64) -> Option<u64> {
        let meets = |span: &&(u64, u64)| span.0 < end_ms && span.1 >= begin_ms;
        self.0.iter().filter(meets).map(|span| span.0.max(begin_ms)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Example, watch};
    use crate::record::{EndedBy, FaultRow};

    /// Decides about watches given by start and end, in a run until 155 s; watches without an end are still open.
    fn found(watches: &[(u64, Option<u64>)], faults: &[FaultRow]) -> Option<Grown> {
        let mut example = Example::clean();
        let rows = (1..).zip(watches).map(|(id, (begin_ms, end_ms))| RequestRow {
            ended_ms: *end_ms,
            ended_by: end_ms.map(|_| EndedBy::Server),
            ..watch(id, *begin_ms, 0, 1, 1)
        });
        example.requests = Some(rows.collect());
        example.faults = faults.to_vec();
        grown(&example.opened())
    }

    /// Watches that multiply from 1 to 2, 4 and 8: each end opens two.
    fn doubling() -> Vec<(u64, Option<u64>)> {
        let generation = |number: u32| {
            let t_ms = |number: u32| 1000 + u64::from(number) * 20_000;
            let end_ms = (number < 3).then(|| t_ms(number + 1) - 100);
            std::iter::repeat_n((if number == 0 { 0 } else { t_ms(number) }, end_ms), 1 << number)
        };
        (0..4).flat_map(generation).collect()
    }

    fn frozen(from_ms: u64, to_ms: u64) -> Vec<FaultRow> {
        let row = |t_ms, event| {
            let (id, name) = ("9".to_owned(), "freeze".to_owned());
            FaultRow { t_ms, id, name, event, hits: 1, ok: None, detail: None }
        };
        vec![row(from_ms, FaultEvent::Started), row(to_ms, FaultEvent::Ended)]
    }

    #[test]
    fn watches_that_double_with_each_end_are_found() {
        let grown = found(&doubling(), &[]).expect("it doubles");
        assert_eq!((grown.first, grown.most, grown.most_ms, grown.ends), (1, 8, 61_000, 7));
        assert_eq!((grown.resource.as_str(), grown.from_ms), ("packages.longhaul.dev", 21_000));
        // One watch left open at each end grows more slowly.
        let left: Vec<_> =
            (0..5).flat_map(|n| [(n * 10_000, Some(n * 10_000 + 9900)), (n * 10_000 + 10_000, None)]).collect();
        assert_eq!(found(&left, &[]).map(|grown| (grown.first, grown.most)), Some((1, 5)));
    }

    /// However many watches end, a client that opens one new watch for each ended one has not multiplied them.
    #[test]
    fn informers_that_come_back_are_as_many_as_before() {
        for informers in [1_u64, 7] {
            let all = (0..informers).flat_map(|at| {
                // Each comes back at its own time; one opens its next watch before the old one is over.
                let begin = move |n: u64| n * 10_000 + at * 150 - if n > 0 && at == 3 { 400 } else { 0 };
                (0..14).map(move |n| (begin(n), (n < 13).then(|| (n + 1) * 10_000 + at * 150 - 200)))
            });
            assert_eq!(found(&all.collect::<Vec<_>>(), &[]), None, "{informers}");
        }
        // Many at the start, of which some end while others begin.
        let starting = (0..12).map(|at| (at * 100, Some(at * 100 + 150))).chain((0..12).map(|at| (1500 + at, None)));
        assert_eq!(found(&starting.collect::<Vec<_>>(), &[]), None);
    }

    /// Informers that are added one by one do not count as multiplied, because no added watch follows the end of
    /// another.
    #[test]
    fn what_grows_by_itself_does_not_grow_with_ends() {
        let mut watches: Vec<_> = (0..14).map(|n| (n * 10_000, (n < 13).then_some(n * 10_000 + 9950))).collect();
        watches.extend((1..60).map(|n| (2000 + n * 2500, None)));
        // Ends are close to some of them; most of the growth is at other times.
        let rare: Vec<_> =
            watches.into_iter().enumerate().filter(|(at, _)| *at >= 14 || at % 5 == 0).map(|(_, one)| one).collect();
        assert_eq!(found(&rare, &[]), None);
    }

    /// A client that leaves a dead connection cannot notify the control plane, which still counts the watch as open.
    #[test]
    fn a_watch_whose_end_a_fault_hides_is_none() {
        let left: Vec<_> = (0..6).map(|n| (n * 20_000, None)).collect();
        let faults: Vec<FaultRow> = (0..6).flat_map(|n| frozen(n * 20_000 + 5000, n * 20_000 + 6000)).collect();
        assert_eq!(found(&left, &faults), None);
    }
}
