//! `requests.rate`: how many requests a second the subject sends, whatever they bring.
//!
//! Requests before the warm-up have no time and are not counted. Where there are more requests than rows, the mean of each interval
//! is judged instead: a busy subject cannot hide behind its own noise.

use units::Rate;

use super::Asked;
use super::hot_loop::{WINDOW_MS, most_in_window};
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{Record, RequestSummary};
use crate::words::{count, millis, three_digits};

/// `requests.rate`.
pub(super) struct Most;

impl Rule for Most {
    const EXAMPLE: Option<&'static str> = Some("20/s");
    const WORD: Option<Word> = Some(Word::TooManyRequests);

    fn judge(record: &Record, asked: &Asked, limit: &Rate, findings: &mut Findings) {
        let times_ms: Vec<u64> = asked.rows.iter().map(|row| row.t_ms).filter(|t_ms| *t_ms > 0).collect();
        let (requests, from_ms) = most_in_window(&times_ms);
        let rows = (requests as f64 / (WINDOW_MS as f64 / 1000.0), from_ms, WINDOW_MS, requests);
        let counted = record.requests.summaries.iter().filter_map(of_interval);
        let most = counted.fold(rows, |most, interval| if interval.0 > most.0 { interval } else { most });
        let (rate, from_ms, long_ms, requests) = most;
        let verdict = if rate > limit.as_per_second() { Verdict::Fail } else { Verdict::Pass };
        let text = format!("at most {} requests in {}, from {} on.", count(requests), millis(long_ms), millis(from_ms));
        findings.push(Name::of::<Self>(), verdict, format!("{}/s", three_digits(rate)), limit.to_string(), text);
    }
}

/// Requests a second, the begin, the length and the requests of an interval that has no rows. One shorter than the window proves no
/// rate over the window.
fn of_interval(summary: &RequestSummary) -> Option<(f64, u64, u64, u64)> {
    let long_ms = summary.end_ms.saturating_sub(summary.start_ms);
    let requests = summary.requests + summary.lost;
    (long_ms >= WINDOW_MS).then(|| (requests as f64 / (long_ms as f64 / 1000.0), summary.start_ms, long_ms, requests))
}

#[cfg(test)]
mod tests {
    use crate::example::{Example, list, watch};
    use crate::judge::judge;
    use crate::record::{RequestRow, RequestSummary};

    /// The words under a limit of 2/s, and what the finding says.
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

    /// So many lists, one every `every_ms`, from 30 s on.
    fn lists(number: u64, every_ms: u64) -> Vec<RequestRow> {
        (0..number).map(|id| list(id + 1, 30_000 + id * every_ms, 1000 + id)).collect()
    }

    #[test]
    fn every_request_counts_and_ten_in_five_seconds_are_allowed() {
        assert!(says(lists(10, 100), vec![]).0.is_empty());
        // They bring something new each time, so nothing but the rate is wrong with them.
        let (words, text) = says(lists(11, 100), vec![]);
        assert_eq!(words, ["too-many-requests"]);
        assert_eq!(text, "at most 11 requests in 5 s, from 30 s on.");
        assert!(says(lists(100, 500), vec![]).0.is_empty());
        let mixed = lists(9, 100)
            .into_iter()
            .chain([watch(20, 31_000, 31_200, 1009, 1009), watch(21, 31_300, 31_400, 1009, 1009)]);
        assert_eq!(says(mixed.collect(), vec![]).0, ["too-many-requests"]);
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
