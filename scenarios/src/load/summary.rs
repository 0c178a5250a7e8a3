//! The result of a measurement for people: one screen of text. Pure.

use std::fmt::Write as _;

use reports::record::Quantiles;
use reports::words;

use super::report::{Numbers, Report};

/// More of them say the same again.
const SLOWEST_SHOWN: usize = 5;

/// The whole summary. Ends with a line feed.
pub(crate) fn summary(report: &Report) -> String {
    let mut text = format!("{}\n{}, {}\n\n", report.url, report.schedule, report.client);
    text += &counts(&report.numbers);
    text.push('\n');
    text += &table(&report.numbers);
    text += &slowest(&report.numbers);
    if !report.numbers.examples.is_empty() {
        text += "\nexamples of what went wrong\n";
        for example in &report.numbers.examples {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {example}");
        }
    }
    text.push('\n');
    for finding in &report.findings {
        let _ = writeln!(text, "{:13} {}", finding.verdict.word(), finding.text);
    }
    let _ = writeln!(text, "seed {}, fingerprint {}", report.seed, report.fingerprint);
    let _ = writeln!(text, "verdict: {}", report.verdict.word());
    text
}

/// Who was sent, and what came back.
pub(crate) fn counts(numbers: &Numbers) -> String {
    let mut text = String::new();
    let mut row = |name: &str, number: u64, note: String| {
        let _ = writeln!(text, "{name:17} {:>12}{note}", words::count(number));
    };
    row("planned", numbers.planned, String::new());
    row("sent", numbers.sent, format!("   {:.2} %", numbers.sent_share * 100.0));
    if numbers.overflow > 0 {
        row("not sent", numbers.overflow, "   all calls that may be in flight were under way".to_owned());
    }
    row("allowed", numbers.allowed, String::new());
    row("denied", numbers.denied, String::new());
    for (name, number) in [
        ("HTTP error", numbers.http_error),
        ("timeout", numbers.timeout),
        ("no connection", numbers.connect),
        ("no TLS session", numbers.tls),
        ("invalid answer", numbers.invalid_response),
        ("cut off", numbers.abandoned),
    ] {
        if number > 0 {
            row(name, number, String::new());
        }
    }
    text
}

/// The distributions.
fn table(numbers: &Numbers) -> String {
    let mut text = format!(
        "{:17} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
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
    text + "response time counts from the planned moment, service time from the real start of a call;\n\
            a percentile needs 100 samples beyond it\n"
}

/// Where the time of the slowest calls went.
fn slowest(numbers: &Numbers) -> String {
    if numbers.slowest.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:17} {:>12} {:>10} {:>10} {:>10} {:>10}  {}\n",
        "slowest", "queue", "connect", "TLS", "wait", "body", "call"
    );
    for slow in numbers.slowest.iter().take(SLOWEST_SHOWN) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:17} {:>12} {:>10} {:>10} {:>10} {:>10}  {}, {}",
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
        "{name:17} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        words::count(quantiles.count),
        at(quantiles.p50_us),
        at(quantiles.p90_us),
        at(quantiles.p99_us),
        at(quantiles.p999_us),
        words::micros(quantiles.max_us)
    )
}

/// Whether more than one outcome occurred, so that their split says something.
fn several(numbers: &Numbers) -> bool {
    let parts = [&numbers.response_allowed, &numbers.response_denied, &numbers.response_error];
    parts.into_iter().flatten().count() > 1
}
