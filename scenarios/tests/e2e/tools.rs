//! Tests of the benchmark's parsers for the output of other load generators. If a version of a load generator prints in
//! another format, these tests must fail, because otherwise a figure would be wrong.

#[path = "../../benches/load/output.rs"]
#[expect(dead_code, reason = "shared with the benchmark")]
mod output;

use output::{Parsed, Tool, parse};

fn figures(tool: Tool, text: &str) -> (f64, f64, f64, Option<f64>) {
    let Parsed { per_second, requests, failed, p99_ms } = parse(tool, text).expect("a recorded sample has all figures");
    let rounded = |figure: f64| (figure * 1e3).round() / 1e3;
    (rounded(per_second), requests, failed, p99_ms.map(rounded))
}

/// The output of oha 1.14.0: 79 answers in 1.00175381 seconds, and four calls cut off at the end, which are no
/// failures.
#[test]
fn oha() {
    let sample = include_str!("../files/tools/oha.json");
    assert_eq!(figures(Tool::Oha, sample), (78.862, 79.0, 0.0, Some(151.8)));
    let failing =
        sample.replace(r#""200": 79"#, r#""200": 70, "500": 9"#).replace("aborted due to deadline", "refused");
    assert_ne!(failing, sample);
    let (_, requests, failed, _) = figures(Tool::Oha, &failing);
    assert!((requests - 70.0).abs() < 0.1 && (failed - 13.0).abs() < 0.1, "{requests} {failed}");
    assert!(parse(Tool::Oha, "").is_none());
    assert!(parse(Tool::Oha, &sample.replace("statusCodeDistribution", "codes")).is_none());
}

/// The parser reads the output of wrk 4.1.0.
#[test]
fn wrk() {
    let sample = include_str!("../files/tools/wrk.txt");
    assert_eq!(figures(Tool::Wrk, sample), (82.74, 91.0, 0.0, Some(51.94)));
    let failing = format!("{sample}  Non-2xx or 3xx responses: 3\n");
    assert!((figures(Tool::Wrk, &failing).2 - 3.0).abs() < 0.1);
}

/// The parser reads the output of h2load 1.52.0 (nghttp2).
#[test]
fn h2load() {
    let sample = include_str!("../files/tools/h2load.txt");
    assert_eq!(figures(Tool::H2load, sample), (88.0, 88.0, 0.0, Some(47.27)));
    assert!((figures(Tool::H2load, &sample.replace("0 failed", "7 failed")).2 - 7.0).abs() < 0.1);
}

/// The parser reads the output of hey, which prints a percentile only if it has enough answers.
#[test]
fn hey() {
    let sample = include_str!("../files/tools/hey.txt");
    assert_eq!(figures(Tool::Hey, sample), (86.25, 90.0, 0.0, None));
    let more = sample.replace("0% in 0.0000 secs", "99% in 0.0512 secs");
    assert_eq!(figures(Tool::Hey, &more).3, Some(51.2));
}

/// The parser reads the output of ab 2.3, which only has whole milliseconds.
#[test]
fn ab() {
    let sample = include_str!("../files/tools/ab.txt");
    assert_eq!(figures(Tool::Ab, sample), (32_297.36, 32_320.0, 0.0, Some(1.0)));
    let failing = sample.replace("Keep-Alive requests:", "Non-2xx responses:      5\nKeep-Alive requests:");
    assert!((figures(Tool::Ab, &failing).2 - 5.0).abs() < 0.1);
}
