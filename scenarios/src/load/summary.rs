//! The result of a measurement as one screen of text. Lines have at most 80 columns, except with text from other
//! programs. Does no I/O.

use std::fmt::Write as _;

use reports::record::Quantiles;
use reports::words;

use super::report::{Numbers, Report};

/// Maximum number of slow calls shown.
const SLOWEST_SHOWN: usize = 5;

/// The whole summary. Ends with a line feed.
pub(crate) fn summary(report: &Report) -> String {
    let mut text = format!("{}\n{}\nsent {}\n\n", report.url, report.schedule, report.client);
    text += &counts(&report.numbers);
    text.push('\n');
    text += &table(&report.numbers);
    text += &slowest(&report.numbers);
    if !report.numbers.examples.is_empty() {
        text += "\nexamples of errors\n";
        for example in &report.numbers.examples {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {example}");
        }
    }
    text.push('\n');
    for finding in &report.findings {
        let _ = writeln!(text, "{:13} {}", finding.verdict.word(), finding.text);
    }
    if let Some(note) = report.machine.note() {
        let _ = writeln!(text, "{:13} {note}", "note");
    }
    let _ = writeln!(text, "seed {}\nfingerprint {}", report.seed, report.fingerprint);
    let _ = writeln!(text, "verdict: {}", report.verdict.word());
    text
}

/// The numbers of requests and of their outcomes.
pub(crate) fn counts(numbers: &Numbers) -> String {
    let counts = &numbers.counts;
    let mut text = String::new();
    let mut row = |name: &str, number: u64, note: String| {
        let _ = writeln!(text, "{name:14} {:>10}{note}", words::count(number));
    };
    row("planned", counts.planned, String::new());
    row("sent", counts.sent, format!("   {:.2} %", numbers.sent_share * 100.0));
    if counts.overflow > 0 {
        row("not sent", counts.overflow, "   --max-in-flight calls were open".to_owned());
    }
    if counts.sent_again > 0 {
        row("sent again", counts.sent_again, "   the server had not processed them".to_owned());
    }
    row("allowed", counts.allowed, String::new());
    row("denied", counts.denied, String::new());
    for (name, number) in [
        ("HTTP error", counts.http_error),
        ("timeout", counts.timeout),
        ("no connection", counts.connect),
        ("no TLS session", counts.tls),
        ("invalid answer", counts.invalid_response),
        ("cut off", counts.abandoned),
    ] {
        if number > 0 {
            row(name, number, String::new());
        }
    }
    text
}

/// The table with percentiles of response time, service time and lateness.
fn table(numbers: &Numbers) -> String {
    let mut text = format!(
        "{:14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        "", "samples", "p50", "p90", "p99", "p99.9", "max"
    );
    let rows = [
        ("response time", &numbers.response, true),
        ("  allowed", &numbers.response_allowed, several(numbers)),
        ("  denied", &numbers.response_denied, several(numbers)),
        ("  errors", &numbers.response_error, several(numbers)),
        ("service time", &numbers.service, true),
        ("sent late by", &numbers.lateness, true),
    ];
    for (name, quantiles, wanted) in rows {
        if let (Some(quantiles), true) = (quantiles, wanted) {
            text += &row(name, quantiles);
        }
    }
    text + "response time counts from the planned time, service time from the real start\n\
            of a call; a percentile needs 100 samples beyond it\n"
}

/// The slowest calls, with the time of each phase.
fn slowest(numbers: &Numbers) -> String {
    if numbers.slowest.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:14} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        "slowest calls", "queue", "connect", "TLS", "wait", "body"
    );
    for slow in numbers.slowest.iter().take(SLOWEST_SHOWN) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:14} {:>10} {:>10} {:>10} {:>10} {:>10}\n  {}, {}",
            words::micros(slow.response_us),
            words::micros(slow.queue_us),
            words::micros(slow.connect_us),
            words::micros(slow.tls_us),
            words::micros(slow.wait_us),
            words::micros(slow.body_us),
            slow.label,
            slow.outcome
        );
    }
    text
}

fn row(name: &str, quantiles: &Quantiles) -> String {
    let at = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), words::micros);
    format!(
        "{name:14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        words::count(quantiles.count),
        at(quantiles.p50_us),
        at(quantiles.p90_us),
        at(quantiles.p99_us),
        at(quantiles.p999_us),
        words::micros(quantiles.max_us)
    )
}

/// Whether more than one kind of outcome occurred.
fn several(numbers: &Numbers) -> bool {
    let parts = [&numbers.response_allowed, &numbers.response_denied, &numbers.response_error];
    parts.into_iter().flatten().count() > 1
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loadgen::admission::{Counts, Interval, Outcome, Phases, Slow};
    use reports::judge::Verdict;

    use super::*;
    use crate::load::pressure::Pressure;

    /// No line exceeds 80 columns, even after an hour at a high rate.
    #[test]
    fn tables_fit_into_eighty_columns() {
        let many = 9_000_000;
        let counts =
            Counts { planned: many + 5, sent: many, overflow: 5, allowed: many, denied: 5, ..Counts::default() };
        let mut total =
            Interval { counts: Counts { http_error: 7, sent_again: many, ..counts }, ..Interval::default() };
        let histograms =
            [&mut total.response_allowed, &mut total.response_denied, &mut total.response_error, &mut total.service];
        for histogram in histograms {
            histogram.record_n(119_876_543, many).unwrap();
        }
        let long = Duration::from_micros(119_876_543);
        let phases = Phases { queue: long, connect: long, tls: long, wait: long, body: long };
        total.slowest.push(Slow { label: "Pod CREATE shop/cart".to_owned(), outcome: Outcome::Denied, phases });
        let report = Report {
            schema: "",
            url: "https://127.0.0.1:8443/mutate".to_owned(),
            schedule: String::new(),
            client: String::new(),
            seed: u64::MAX,
            fingerprint: "f".repeat(64),
            workers: 1,
            lasted_ms: 1,
            numbers: Numbers::of(&total),
            machine: Pressure { cpu_waited_pct: Some(87.0), stolen_pct: None },
            verdict: Verdict::Inconclusive,
            exit_code: 2,
            findings: Vec::new(),
        };
        let text = summary(&report);
        assert!(text.contains("\nnote          the machine was busy: 87 % of the time tasks"), "{text}");
        let text =
            text.lines().filter(|line| !line.starts_with("note ")).fold(String::new(), |all, line| all + line + "\n");
        assert!(text.contains("\n  Pod CREATE shop/cart, denied\n"), "{text}");
        assert!(text.contains("\nsent again      9,000,000   the server had not processed them\n"), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}\n{text}", line.chars().count());
        }
    }
}
