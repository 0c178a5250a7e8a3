//! The summary at the end of a test run: its duration, the slowest tests, tests that passed at a second try, and tests
//! that a missing program skipped. A skipped test must not look like a passed test.
//!
//! This module reads the output of `cargo test`, or nextest's JUnit file as plain text, because nextest writes one XML
//! element per line. A line that is read wrongly affects only the summary, not the result of the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// The beginning of the line that a test prints if its requirement is missing.
const MARK: &str = "skipped: needs ";
/// Number of slow tests that the summary names.
const SLOWEST: usize = 10;

/// Prints the duration, the slowest tests, the missing requirements, and the number of tests that were skipped for
/// each.
pub(crate) fn report_junit(junit: &Path, took: Duration) {
    println!("tests took {} s", took.as_secs());
    let Ok(text) = std::fs::read_to_string(junit) else { return };
    for (seconds, test) in slowest(&text) {
        println!("{seconds:>7.1} s  {test}");
    }
    for test in tried_twice(&text) {
        println!("passed at the second try only, look into it: {test}");
    }
    let mut missing = Missing::default();
    let mut test = "";
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("<testcase name=\"") {
            test = rest.split('"').next().unwrap_or_default();
        }
        missing.line(test, line);
    }
    missing.report();
}

/// The missing requirements, each with the names of the skipped tests that need it.
#[derive(Default)]
pub(crate) struct Missing(BTreeMap<String, Vec<String>>);

impl Missing {
    /// Reads an output line of the test `test`.
    pub(crate) fn line(&mut self, test: &str, line: &str) {
        let Some((_, what)) = line.split_once(MARK) else { return };
        let what = what.split(['<', '(']).next().unwrap_or_default().trim().to_owned();
        let tests = self.0.entry(what).or_default();
        if tests.last().is_none_or(|last| last != test) {
            tests.push(test.to_owned());
        }
    }

    /// Prints the missing requirements, and the number of tests that were skipped for each.
    pub(crate) fn report(&self) {
        for (what, tests) in &self.0 {
            println!("skipped: needs {what}: {}", tests.join(", "));
        }
        let total: usize = self.0.values().map(Vec::len).sum();
        if total > 0 {
            println!("{total} tests were skipped, not passed");
        }
    }
}

/// The names of tests that failed at first and passed at the second attempt.
fn tried_twice(junit: &str) -> BTreeSet<String> {
    let mut test = "";
    let mut twice = BTreeSet::new();
    for line in junit.lines() {
        if let Some((_, rest)) = line.split_once("<testcase name=\"") {
            test = rest.split('"').next().unwrap_or_default();
        }
        if line.contains("<flakyFailure") || line.contains("<flakyError") {
            twice.insert(test.to_owned());
        }
    }
    twice
}

/// The slowest tests with their durations in seconds, the slowest first.
fn slowest(junit: &str) -> Vec<(f64, String)> {
    let attribute = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        Some(rest.split('"').next().unwrap_or_default().to_owned())
    };
    let cases = junit.lines().filter(|line| line.contains("<testcase "));
    let mut tests: Vec<_> = cases
        .filter_map(|line| Some((attribute(line, "time")?.parse::<f64>().ok()?, attribute(line, "name")?)))
        .collect();
    tests.sort_by(|one, other| other.0.total_cmp(&one.0));
    tests.truncate(SLOWEST);
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_named_by_what_they_lack() {
        let mut missing = Missing::default();
        let lines = [
            ("a::copies", "skipped: needs skopeo"),
            ("a::copies", "skipped: needs skopeo<"),
            ("a::passes", "running 1 test"),
        ];
        for (test, line) in [&lines[..], &[("b::applies", "skipped: needs kubectl (1.27)")]].concat() {
            missing.line(test, line);
        }
        assert_eq!(missing.0["skopeo"], ["a::copies"]);
        assert_eq!(missing.0["kubectl"], ["b::applies"]);
        assert_eq!(missing.0.len(), 2);
    }

    #[test]
    fn a_second_try_is_said() {
        let junit = "<testcase name=\"a\" time=\"1\">\n</testcase>\n<testcase name=\"b\" time=\"1\">\n    <flakyFailure timestamp=\"t\">\n</testcase>";
        assert_eq!(tried_twice(junit).into_iter().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn the_slowest_come_first() {
        let junit = "<testcase name=\"a\" classname=\"x\" time=\"1.5\">\n<testcase name=\"b\" time=\"20.25\"/>\n<testsuite time=\"90\">\n";
        assert_eq!(slowest(junit), [(20.25, "b".to_owned()), (1.5, "a".to_owned())]);
    }
}
