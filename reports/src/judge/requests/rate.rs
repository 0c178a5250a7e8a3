//! `requests.rate`: how many requests per second the subject sends, useful or not.
//!
//! Requests that the subject sent before the warm-up have no time and do not count. If the subject sent more requests
//! than the record has rows, the mean rate of each interval is judged instead. Therefore a subject does not pass
//! because the record lacks rows for some of its requests.
//!
//! The start of the load does not count, because a subject that finds many objects has work for all of them at once.
//! Counting begins with the first quiet second: a whole second with no more requests than the limit allows, at or after
//! the second of the subject's first write. If the subject writes nothing, its first quiet second counts. If the first
//! half of the load has no quiet second, counting begins at the start of the warm-up.
//!
//! With `churn: {rate: auto}`, the harness writes ever faster in the warm-up to find the rate that the subject sustains.
//! Then the warm-up does not count either.

use std::collections::BTreeMap;

use units::Rate;

use super::SubjectRequests;
use super::hot_loop::{WINDOW_MS, most_in_window};
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{Record, RequestSummary};
use crate::words::{count, millis, three_digits};

const SECOND_MS: u64 = 1000;

pub(super) struct Most;

impl Rule for Most {
    const EXAMPLE: Option<&'static str> = Some("20/s");
    const WORD: Option<Word> = Some(Word::TooManyRequests);

    fn judge(record: &Record, asked: &SubjectRequests, limit: &Rate, findings: &mut Findings) {
        let quiet_ms = quiet_ms(record, asked, *limit).max(sought_until_ms(record));
        let times_ms: Vec<u64> =
            asked.rows.iter().map(|row| row.t_ms).filter(|t_ms| *t_ms > 0 && *t_ms >= quiet_ms).collect();
        let (requests, from_ms) = most_in_window(&times_ms);
        let rows = (requests as f64 / (WINDOW_MS as f64 / 1000.0), from_ms, WINDOW_MS, requests);
        let counted =
            record.requests.summaries.iter().filter(|summary| summary.start_ms >= quiet_ms).filter_map(of_interval);
        let most = counted.fold(rows, |most, interval| if interval.0 > most.0 { interval } else { most });
        let (rate, from_ms, long_ms, requests) = most;
        let verdict = if rate > limit.as_per_second() { Verdict::Fail } else { Verdict::Pass };
        let start = if quiet_ms > 0 {
            format!(" Its start, until {}, is not counted.", millis(quiet_ms))
        } else {
            String::new()
        };
        let text =
            format!("at most {} requests in {}, from {} on.{start}", count(requests), millis(long_ms), millis(from_ms));
        findings.push(Name::of::<Self>(), verdict, format!("{}/s", three_digits(rate)), limit.to_string(), text);
    }
}

/// The end of the warm-up, if the harness sought the rate of the churn in it; otherwise 0.
fn sought_until_ms(record: &Record) -> u64 {
    let churn = &record.manifest.scenario["churn"];
    let churns = churn.as_array().map_or(std::slice::from_ref(churn), Vec::as_slice);
    let is_sought = churns.iter().any(|churn| churn["rate"] == "auto");
    if is_sought { record.manifest.phases.warm_up_ms } else { 0 }
}

/// When counting of requests begins: at the first quiet second, or at 0 if there is none.
fn quiet_ms(record: &Record, asked: &SubjectRequests, limit: Rate) -> u64 {
    // A limit below one a second does not apply to a single second.
    let few = limit.as_per_second().max(1.0);
    let timed = || asked.rows.iter().filter(|row| row.t_ms > 0);
    let first_write =
        asked.rows.iter().find(|row| row.writes() && !row.is_aside()).map_or(0, |row| row.t_ms / SECOND_MS);
    let mut seconds: BTreeMap<u64, u64> = BTreeMap::new();
    timed().for_each(|row| *seconds.entry(row.t_ms / SECOND_MS).or_default() += 1);
    let is_quiet = |second: &u64| seconds.get(second).is_none_or(|requests| *requests as f64 <= few);
    // Only whole seconds in which every request has its row: lists and watches have rows for longer than other
    // requests.
    let start_ms = u64::midpoint(record.manifest.phases.warm_up_ms, record.manifest.phases.steady_ms);
    let complete_ms = record.requests.complete_until_ms().unwrap_or(u64::MAX);
    let whole = first_write..asked.until_ms.min(complete_ms).min(start_ms) / SECOND_MS;
    if let Some(second) = whole.into_iter().find(|second| is_quiet(second)) {
        // Before the first request there is nothing to leave out.
        let begins = timed().next().is_some_and(|row| row.t_ms / SECOND_MS < second);
        return if begins { second * SECOND_MS } else { 0 };
    }
    let later = record.requests.summaries.iter().filter(|summary| summary.start_ms < start_ms).find_map(|summary| {
        let (rate, ..) = of_interval(summary)?;
        (rate <= limit.as_per_second()).then_some(summary.start_ms)
    });
    later.unwrap_or(0)
}

/// The rate of requests per second in an interval without rows, with its start, its length and the number of requests.
/// None for an interval shorter than the time window of this budget, because it proves no rate over that time.
fn of_interval(summary: &RequestSummary) -> Option<(f64, u64, u64, u64)> {
    let long_ms = summary.end_ms.saturating_sub(summary.start_ms);
    let requests = summary.requests + summary.lost;
    (long_ms >= WINDOW_MS).then(|| (requests as f64 / (long_ms as f64 / 1000.0), summary.start_ms, long_ms, requests))
}

#[cfg(test)]
mod tests {
    use crate::example::{Example, list, watch};
    use crate::judge::judge;
    use crate::record::{RequestRow, RequestSummary, Verb};

    /// The words for defects under a limit of 2/s, and the text of the finding.
    fn says(requests: Vec<RequestRow>, summaries: Vec<RequestSummary>) -> (Vec<String>, String) {
        let mut example = Example::clean();
        example.manifest.budgets = serde_json::from_value(serde_json::json!({"requests": {"rate": "2/s"}})).unwrap();
        example.requests = Some(requests);
        let mut record = example.opened();
        record.requests.summaries = summaries;
        let judgement = judge(&record);
        let finding = judgement.findings.iter().find(|finding| finding.budget == "requests.rate").unwrap();
        (judgement.words.iter().map(ToString::to_string).collect(), finding.text.clone())
    }

    /// Rows of `number` list requests, one every `every_ms`, from 30 s on.
    fn lists(number: u64, every_ms: u64) -> Vec<RequestRow> {
        (0..number).map(|id| list(id + 1, 30_000 + id * every_ms, 1000 + id)).collect()
    }

    #[test]
    fn every_request_counts_and_ten_in_five_seconds_are_allowed() {
        assert!(says(lists(10, 100), vec![]).0.is_empty());
        // Each list brings something new, so only the rate is wrong.
        let (words, text) = says(lists(11, 100), vec![]);
        assert_eq!(words, ["too-many-requests"]);
        assert_eq!(text, "at most 11 requests in 5 s, from 30 s on.");
        assert!(says(lists(100, 500), vec![]).0.is_empty());
        let mixed = lists(9, 100)
            .into_iter()
            .chain([watch(20, 31_000, 31_200, 1009, 1009), watch(21, 31_300, 31_400, 1009, 1009)]);
        assert_eq!(says(mixed.collect(), vec![]).0, ["too-many-requests"]);
    }

    /// Rows of `number` create requests within one second, from `from_ms` on.
    fn wave(first: u64, number: u64, from_ms: u64) -> impl Iterator<Item = RequestRow> {
        (0..number).map(move |at| RequestRow {
            method: "POST".into(),
            verb: Verb::Create,
            resource: "deployments.apps".into(),
            status: 201,
            ..list(first + at, from_ms + at * 1000 / number, 0)
        })
    }

    /// Requests of a warm-up that sought the highest rate are not judged, and later requests are.
    #[test]
    fn a_warm_up_that_sought_the_rate_is_not_counted() {
        let verdict = |rate: &str, from_ms: u64| {
            let mut example = Example::clean();
            example.manifest.scenario = serde_json::json!({"churn": {"rate": rate}});
            example.manifest.budgets =
                serde_json::from_value(serde_json::json!({"requests": {"rate": "2/s"}})).unwrap();
            let quiet = list(1, 1500, 0);
            let busy = (0..50).map(|id| list(id + 2, from_ms + id * 20, id));
            example.requests = Some(std::iter::once(quiet).chain(busy).collect());
            let judgement = judge(&example.opened());
            judgement.words.iter().any(|word| word.to_string() == "too-many-requests")
        };
        let warm_up_ms = Example::clean().manifest.phases.warm_up_ms;
        assert!(verdict("10/s", warm_up_ms - 2000) && !verdict("auto", warm_up_ms - 2000));
        assert!(verdict("auto", warm_up_ms + 2000));
    }

    /// The start of the load is not judged: creating fifty objects with fourteen children each needs 480 requests per
    /// second for a moment.
    #[test]
    fn the_start_is_not_counted_and_what_comes_after_it_is() {
        let start = || wave(1, 480, 200).chain(wave(500, 280, 1200));
        let later = || lists(10, 500).into_iter().map(|row| RequestRow { id: 100_000 + row.id, ..row });
        let (words, text) = says(start().chain(later()).collect(), vec![]);
        assert!(words.is_empty(), "{text}");
        assert_eq!(text, "at most 10 requests in 5 s, from 30 s on. Its start, until 3 s, is not counted.");
        // The subject waited for its Lease: the wave follows seconds without requests.
        let late = wave(1, 480, 4000).chain(wave(500, 220, 5000));
        assert!(says(late.chain(later()).collect(), vec![]).0.is_empty());
        // A second wave is no start.
        let (words, text) = says(start().chain(wave(1000, 480, 60_000)).collect(), vec![]);
        assert_eq!(words, ["too-many-requests"], "{text}");
        // Nor is a start without rows, and later requests count.
        let summary =
            |start_ms, requests| RequestSummary { start_ms, end_ms: start_ms + 5000, requests, ..Default::default() };
        let busy = || (0..20).flat_map(|second| wave(1 + second * 500, 480, 100 + second * 1000)).collect();
        assert!(says(busy(), vec![summary(20_100, 2400), summary(25_100, 5)]).0.is_empty());
        assert_eq!(says(busy(), vec![summary(20_100, 5), summary(25_100, 2400)]).0, ["too-many-requests"]);
    }

    /// The record has rows of lists and watches for a longer time than rows of other requests. A second without rows
    /// does not count as quiet, because it may be full of other requests.
    #[test]
    fn seconds_whose_requests_are_only_counted_are_not_quiet() {
        let busy = (0..20).flat_map(|second| wave(1 + second * 500, 480, 100 + second * 1000));
        let counted = (0..16).map(|at| {
            let start_ms = 20_100 + at * 5000;
            RequestSummary { start_ms, end_ms: start_ms + 5000, requests: 2400, ..Default::default() }
        });
        let (words, text) = says(busy.collect(), counted.collect());
        assert_eq!(words, ["too-many-requests"]);
        assert!(!text.contains("Its start"), "{text}");
    }

    #[test]
    fn a_subject_that_is_never_quiet_is_counted_from_the_beginning() {
        let looping = || (0..150).flat_map(|second| wave(1 + second * 5, 5, 1 + second * 1000));
        let (words, text) = says(looping().collect(), vec![]);
        assert_eq!(words, ["too-many-requests"]);
        assert!(text.ends_with("from 1 ms on."), "{text}");
        // A loop that reads only, from its first second on.
        let reads = looping().map(|row| RequestRow { verb: Verb::List, ..row });
        assert!(says(reads.collect(), vec![]).0.contains(&"too-many-requests".to_owned()));
    }

    #[test]
    fn what_was_sent_before_the_warm_up_has_no_time() {
        assert!(says((1..=50).map(|id| list(id, 0, 1000)).collect(), vec![]).0.is_empty());
    }

    #[test]
    fn requests_without_rows_are_judged_by_their_mean() {
        let summary =
            |requests, lost| RequestSummary { start_ms: 70_000, end_ms: 80_000, requests, lost, ..Default::default() };
        assert!(says(lists(1, 1), vec![summary(20, 0)]).0.is_empty());
        let (words, text) = says(lists(1, 1), vec![summary(20, 1)]);
        assert_eq!(words, ["too-many-requests"]);
        assert_eq!(text, "at most 21 requests in 10 s, from 1 min 10 s on.");
    }
}
