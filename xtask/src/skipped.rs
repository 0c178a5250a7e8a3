//! Which tests did not test anything because a program was missing. A skipped test must not look like a passed one.

use std::collections::BTreeMap;
use std::path::Path;

/// What a test prints when it lacks something.
const MARK: &str = "skipped: needs ";

/// Prints what was missing and how many tests that cost, from the JUnit file that nextest wrote.
pub(crate) fn report(junit: &Path) {
    let Ok(text) = std::fs::read_to_string(junit) else { return };
    let missing = missing(&text);
    for (what, tests) in &missing {
        println!("skipped: needs {what}: {}", tests.join(", "));
    }
    let total: usize = missing.values().map(Vec::len).sum();
    if total > 0 {
        println!("{total} tests were skipped, not passed");
    }
}

/// What was missing, with the names of the tests that needed it. Reads the file as text: its one element a line is how
/// nextest writes it, and a miss here costs a message, not a verdict.
fn missing(junit: &str) -> BTreeMap<String, Vec<String>> {
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut test = String::new();
    for line in junit.lines() {
        if let Some((_, rest)) = line.split_once("<testcase name=\"") {
            rest.split('"').next().unwrap_or_default().clone_into(&mut test);
        }
        if let Some((_, what)) = line.split_once(MARK) {
            let what = what.split(['<', '(']).next().unwrap_or_default().trim().to_owned();
            let tests = missing.entry(what).or_default();
            if tests.last() != Some(&test) {
                tests.push(test.clone());
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_named_by_what_they_lack() {
        let junit = "<testcase name=\"a::copies\" time=\"1\">\n<system-out>running 1 test\nskipped: needs skopeo\n</system-out>\n\
                     <testcase name=\"a::passes\">\n</testcase>\n<testcase name=\"b::applies\">\nskipped: needs kubectl (1.27)\n";
        let missing = missing(junit);
        assert_eq!(missing["skopeo"], ["a::copies"]);
        assert_eq!(missing["kubectl"], ["b::applies"]);
        assert_eq!(missing.len(), 2);
    }
}
