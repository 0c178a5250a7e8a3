//! Parses the results of a suite's tests: `go test -json` or JUnit. Does no I/O.
//!
//! Owns the start and end times of tests. JUnit contains only the start of the suite and the duration of each test, so
//! this module assumes that tests run one after the other.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    pub name: String,
    /// The test's start, in microseconds since 1970.
    pub from_us: u64,
    pub to_us: u64,
    pub failed: bool,
    /// The message of a failure, on one line.
    pub message: Option<String>,
}

/// Maximum number of characters of a failure message that are kept.
const MESSAGE_MAX: usize = 400;
/// Maximum number of lines of output that are kept while a Go test runs.
const LINES_MAX: usize = 200;

/// Parses the tests in a file of `go test -json` or JUnit.
pub(super) fn tests(text: &str) -> Vec<Test> {
    if text.trim_start().starts_with('<') { of_junit(text) } else { of_go(text) }
}

fn of_go(text: &str) -> Vec<Test> {
    let mut began: BTreeMap<String, u64> = BTreeMap::new();
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut tests = Vec::new();
    for event in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let word = |key: &str| event[key].as_str().unwrap_or_default();
        let (Ok(at), test) = (word("Time").parse::<Timestamp>(), word("Test")) else { continue };
        if test.is_empty() {
            continue;
        }
        let name = format!("{}.{test}", word("Package"));
        match word("Action") {
            "run" => drop(began.insert(name, micros(at))),
            "output" => {
                let lines = said.entry(name).or_default();
                if lines.len() < LINES_MAX {
                    lines.push(word("Output").trim().to_owned());
                }
            }
            action @ ("pass" | "fail") => {
                let lines = said.remove(&name).unwrap_or_default();
                if let Some(from_us) = began.remove(&name) {
                    let failed = action == "fail";
                    let message = failed.then(|| of_lines(&lines)).flatten();
                    tests.push(Test { name, from_us, to_us: micros(at), failed, message });
                }
            }
            _ => {}
        }
    }
    tests
}

/// The output of a Go test without the lines that `go test` adds.
fn of_lines(lines: &[String]) -> Option<String> {
    let own = lines.iter().filter(|line| !line.is_empty() && !line.starts_with("===") && !line.starts_with("---"));
    message(&own.cloned().collect::<Vec<_>>().join(" "))
}

/// The text as one line of bounded length.
fn message(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.floor_char_boundary(MESSAGE_MAX);
    let ending = if end < line.len() { "…" } else { "" };
    (!line.is_empty()).then(|| format!("{}{ending}", &line[..end]))
}

fn of_junit(text: &str) -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    let mut at_us = 0;
    for element in text.split('<').skip(1) {
        if element.starts_with("testsuite ") {
            let began = attribute(element, "timestamp").unwrap_or_default();
            // Ginkgo writes no time zone; its times are local.
            let local = |_| began.parse::<DateTime>()?.to_zoned(TimeZone::system()).map(|zoned| zoned.timestamp());
            let zoned = began.parse::<Timestamp>().or_else(local);
            at_us = zoned.map_or(at_us, micros);
        } else if element.starts_with("testcase ") {
            let took = attribute(element, "time").and_then(|time| time.parse::<f64>().ok()).unwrap_or_default();
            let took = std::time::Duration::try_from_secs_f64(took).unwrap_or_default();
            let to_us = at_us.saturating_add(u64::try_from(took.as_micros()).unwrap_or_default());
            let name = attribute(element, "name").unwrap_or_default();
            if attribute(element, "status").as_deref() != Some("skipped") {
                tests.push(Test { name, from_us: at_us, to_us, failed: false, message: None });
            }
            at_us = to_us;
        } else if (element.starts_with("failure") || element.starts_with("error"))
            && let Some(test) = tests.last_mut()
        {
            test.failed = true;
            test.message = attribute(element, "message").as_deref().and_then(message);
        }
    }
    tests
}

/// The value of an XML attribute, with the five predefined entities decoded.
fn attribute(element: &str, name: &str) -> Option<String> {
    let (_, rest) = element.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let plain = value.replace("&quot;", "\"").replace("&apos;", "'").replace("&#39;", "'").replace("&#34;", "\"");
    Some(plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

fn micros(at: Timestamp) -> u64 {
    u64::try_from(at.as_microsecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests_of_it {
    use super::*;

    #[test]
    fn go_says_when_each_test_ran() {
        let text = r#"{"Time":"2026-01-01T00:00:00.5Z","Action":"run","Package":"p","Test":"TestA"}
not json
{"Time":"2026-01-01T00:00:01Z","Action":"output","Package":"p","Test":"TestA","Output":"x"}
{"Time":"2026-01-01T00:00:02Z","Action":"fail","Package":"p","Test":"TestA","Elapsed":1.5}
{"Time":"2026-01-01T00:00:02Z","Action":"fail","Package":"p"}"#;
        let all = tests(text);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].name.as_str(), all[0].to_us - all[0].from_us, all[0].failed), ("p.TestA", 1_500_000, true));
        assert_eq!(all[0].message.as_deref(), Some("x"));
    }

    #[test]
    fn junit_says_how_long_each_test_took() {
        let text = r#"<?xml version="1.0"?><testsuites><testsuite name="s" timestamp="2026-01-01T00:00:00" tests="3">
<testcase name="a &quot;b&quot;" classname="s" status="passed" time="1.5"/>
<testcase name="c" status="failed" time="2"><failure message="no">x</failure></testcase>
<testcase name="d" status="skipped" time="0"><skipped/></testcase></testsuite></testsuites>"#;
        let all = tests(text);
        assert_eq!(all.iter().map(|test| test.failed).collect::<Vec<_>>(), [false, true]);
        assert_eq!(all[1].message.as_deref(), Some("no"));
        assert_eq!((all[0].name.as_str(), all[1].from_us), ("a \"b\"", all[0].from_us + 1_500_000));
    }
}
