//! Compares the webhook's answers with the alerts: each decision must cause one alert, and each dry run no alert.
//!
//! Does no I/O and reads no clock. Memory is bounded: compared reviews are dropped, and at the limit the oldest open
//! review is compared early.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use loadgen::admission::{Answer, Tells};
use reports::record::AlertsRow;

/// Longest allowed time from an answer to its alert, which includes retries on a busy machine.
const WITHIN: Duration = Duration::from_secs(10);
/// Longest allowed time from an alert to the webhook's answer to the same review: the longest timeout of a webhook.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);
/// Maximum number of reviews that are not compared yet: ten seconds at 20,000 reviews per second.
const OPEN_MAX: usize = 200_000;
/// Maximum number of example texts in one row.
const EXAMPLES_MAX: usize = 5;
/// Number of characters of a Kubernetes uid.
const UID_LEN: usize = 36;

type Uid = [u8; UID_LEN];

/// Reviews that are not compared yet, and the results since the last call of [`Account::take`].
#[derive(Debug, Default)]
pub(super) struct Account {
    open: BTreeMap<Uid, Open>,
    due: VecDeque<(Instant, Uid)>,
    /// Alerts that came before the answer to their review, with the time of arrival.
    early: VecDeque<(Instant, Uid)>,
    row: AlertsRow,
}

#[derive(Debug, Default)]
struct Open {
    answer: Option<(Tells, Option<bool>, Box<str>)>,
    admitted: u64,
    refused: u64,
}

impl Account {
    pub(super) fn answered(&mut self, answer: &Answer<'_>, now: Instant) {
        match answer.tells {
            Tells::Must => self.row.decided += 1,
            Tells::Never => self.row.dry_runs += 1,
            Tells::May => {}
        }
        let open = self.open.entry(*answer.uid).or_default();
        open.answer = Some((answer.tells, answer.allowed, answer.label.into()));
        self.due.push_back((now + WITHIN, *answer.uid));
        self.bound();
    }

    /// Records an alert. An alert without a review of the load counts as surplus.
    pub(super) fn received(&mut self, request: &[u8], admitted: bool, now: Instant) {
        self.row.told += 1;
        let Ok(uid) = Uid::try_from(request) else {
            self.row.twice += 1;
            self.example(|| format!("twice: an alert about `{}`", String::from_utf8_lossy(request)));
            return;
        };
        if !self.open.contains_key(&uid) {
            self.early.push_back((now + ANSWERED_WITHIN, uid));
        }
        let open = self.open.entry(uid).or_default();
        if admitted {
            open.admitted += 1;
        } else {
            open.refused += 1;
        }
        self.bound();
    }

    /// Compares the reviews whose time is over at `now`; without `now`, all reviews.
    pub(super) fn settle(&mut self, now: Option<Instant>) {
        let is_due = |at: &Instant| now.is_none_or(|now| *at <= now);
        while let Some((_, uid)) = self.due.pop_front_if(|(at, _)| is_due(at)) {
            self.decide(&uid);
        }
        while let Some((_, uid)) = self.early.pop_front_if(|(at, _)| is_due(at)) {
            // An early alert that was answered meanwhile has its own time limit.
            if now.is_none() || self.open.get(&uid).is_some_and(|open| open.answer.is_none()) {
                self.decide(&uid);
            }
        }
    }

    /// The counts of results since the last call.
    pub(super) fn take(&mut self) -> AlertsRow {
        std::mem::take(&mut self.row)
    }

    fn bound(&mut self) {
        while self.open.len() > OPEN_MAX {
            let Some((_, uid)) = self.due.pop_front().or_else(|| self.early.pop_front()) else { return };
            self.decide(&uid);
        }
    }

    fn decide(&mut self, uid: &Uid) {
        let Some(Open { answer, admitted, refused }) = self.open.remove(uid) else { return };
        let alerts = admitted + refused;
        let uid = String::from_utf8_lossy(uid);
        let Some((tells, allowed, label)) = answer else {
            self.row.twice += alerts;
            self.example(|| format!("twice: an alert about {uid}, which was never answered, or already had an alert"));
            return;
        };
        if tells == Tells::Never {
            self.row.on_dry_run += alerts;
            if alerts > 0 {
                self.example(|| format!("dry run: {label} ({uid})"));
            }
            return;
        }
        let right = match allowed {
            Some(true) => admitted,
            Some(false) => refused,
            None => alerts,
        };
        if tells == Tells::Must && right == 0 {
            self.row.lost += 1;
            let as_what = if alerts > 0 { " with the right outcome" } else { "" };
            self.example(|| format!("lost: no alert about {label} ({uid}){as_what}"));
        }
        if alerts > 1 {
            self.row.twice += alerts - 1;
            self.example(|| format!("twice: {label} ({uid}) had {alerts} alerts"));
        }
    }

    fn example(&mut self, text: impl FnOnce() -> String) {
        if self.row.examples.len() < EXAMPLES_MAX {
            self.row.examples.push(text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: u8) -> Uid {
        [b'a' + number; UID_LEN]
    }

    fn answer(account: &mut Account, number: u8, allowed: Option<bool>, tells: Tells, now: Instant) {
        account.answered(&Answer { uid: &uid(number), label: "Pod CREATE a/b", allowed, tells }, now);
    }

    /// Missing, repeated and wrong alerts have separate counts, and no alert counts as missing too early.
    #[test]
    fn each_decision_is_told_once() {
        let (mut account, now) = (Account::default(), Instant::now());
        let later = now + WITHIN;
        // A matching alert is right whether it comes before or after the answer.
        account.received(&uid(0), true, now);
        answer(&mut account, 0, Some(true), Tells::Must, now);
        answer(&mut account, 1, Some(false), Tells::Must, now);
        account.received(&uid(1), false, now);
        account.settle(Some(now));
        assert_eq!(account.take(), AlertsRow { decided: 2, told: 2, ..AlertsRow::default() });
        account.settle(Some(later));
        assert_eq!((account.take(), account.open.len()), (AlertsRow::default(), 0));

        answer(&mut account, 2, Some(true), Tells::Must, now);
        answer(&mut account, 3, Some(true), Tells::Must, now);
        account.received(&uid(3), false, now);
        answer(&mut account, 4, Some(true), Tells::Must, now);
        account.received(&uid(4), true, now);
        account.received(&uid(4), true, now);
        answer(&mut account, 5, Some(false), Tells::Never, now);
        account.received(&uid(5), false, now);
        answer(&mut account, 6, Some(true), Tells::Never, now);
        answer(&mut account, 7, None, Tells::May, now);
        answer(&mut account, 8, Some(true), Tells::May, now);
        account.received(&uid(8), true, now);
        account.received(&uid(9), true, now);
        account.received(b"nonsense", true, now);
        account.settle(Some(later));
        let row = account.take();
        assert_eq!((row.decided, row.dry_runs, row.told, row.lost), (3, 2, 7, 2), "{row:?}");
        assert_eq!((row.twice, row.on_dry_run, account.open.len()), (2, 1, 1), "{row:?}");
        assert_eq!(row.examples.len(), 5);
        account.settle(Some(now + ANSWERED_WITHIN));
        assert_eq!((account.take().twice, account.open.len()), (1, 0), "nobody asked");
    }

    #[test]
    fn what_is_open_at_the_end_is_decided() {
        let (mut account, now) = (Account::default(), Instant::now());
        answer(&mut account, 0, Some(true), Tells::Must, now);
        account.settle(None);
        assert_eq!(account.take().lost, 1);
    }
}
