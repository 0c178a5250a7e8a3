//! The HTML report of a test suite: the outcome in one sentence, the tests and faults on one time line, then the
//! details.
//!
//! Owns the contents of the suite's report and their order. The time line, charts and styles of this report are those
//! of the report of a soak.

use askama::Template;

use super::chart::Chart;
use super::timeline::{Axis, clock, suite as lines};
use super::{Data, data_json};
use crate::render::Error;
use crate::suite::Suite;
use crate::words::{count, counted, millis};

/// Maximum number of hits of faults that the report lists; the JSON files beside the report have all hits.
const HITS_SHOWN: usize = 300;
/// Maximum number of tests that the report lists; failed tests come first.
const TESTS_SHOWN: usize = 500;

#[derive(Template)]
#[template(path = "suite.html")]
struct Page<'a> {
    suite: &'a Suite,
    length: String,
    story: Vec<Vec<Piece<'a>>>,
    tables: Vec<TableRows<'a>>,
    axis: Axis,
    lanes: Vec<lines::Lane>,
    charts: Vec<Chart>,
    failed: Vec<&'a crate::suite::Test>,
    tests: Vec<Row<'a>>,
    tests_hidden: Option<String>,
    hits: Vec<HitRow<'a>>,
    hits_hidden: Option<String>,
    hit_count: String,
    data: String,
}

struct Row<'a> {
    test: &'a crate::suite::Test,
    class: &'static str,
    word: &'static str,
    at: String,
    took: String,
}

/// A table of the report whose names are split into texts and code.
struct TableRows<'a> {
    table: &'a crate::suite::Table,
    rows: Vec<(Vec<Piece<'a>>, &'a str)>,
}

/// A text of a sentence, or a name that stands between backticks.
struct Piece<'a> {
    text: &'a str,
    is_name: bool,
}

struct HitRow<'a> {
    at: String,
    hit: &'a crate::suite::Hit,
}

/// The HTML report of a suite, as one file that loads nothing.
pub fn suite_html(suite: &Suite) -> Result<String, Error> {
    let length_ms = suite.length_ms.max(1);
    let (axis, lanes) = (lines::axis(suite), lines::lanes(suite));
    let charts = lines::charts(suite);
    let readings = charts.iter().map(Chart::readings).collect();
    let data = data_json(&Data { length_ms, unit: None, charts: readings })?;
    let mut tests: Vec<Row<'_>> = suite.tests.iter().map(row).collect();
    tests.sort_by_key(|row| !row.test.failed);
    let hidden = |all: usize, shown: usize| (all > shown).then(|| count((all - shown) as u64));
    let page = Page {
        suite,
        length: millis(suite.length_ms),
        story: suite.story.iter().map(|line| pieces(line)).collect(),
        tables: suite.tables.iter().map(rows).collect(),
        axis,
        lanes,
        charts,
        failed: suite.tests.iter().filter(|test| test.failed).take(TESTS_SHOWN).collect(),
        tests_hidden: hidden(tests.len(), TESTS_SHOWN),
        tests: tests.into_iter().take(TESTS_SHOWN).collect(),
        hits: suite.hits.iter().take(HITS_SHOWN).map(|hit| HitRow { at: moment(hit.at_ms), hit }).collect(),
        hits_hidden: hidden(suite.hits.len(), HITS_SHOWN),
        hit_count: counted(suite.hits.len() as u64, "hit"),
        data,
    };
    Ok(page.render()?)
}

fn row(test: &crate::suite::Test) -> Row<'_> {
    let (class, word) = if test.failed { ("fail", "failed") } else { ("pass", "passed") };
    Row { test, class, word, at: moment(test.from_ms), took: millis(test.to_ms.saturating_sub(test.from_ms)) }
}

fn rows(table: &crate::suite::Table) -> TableRows<'_> {
    TableRows { table, rows: table.rows.iter().map(|(what, times)| (pieces(what), times.as_str())).collect() }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let pieces = text.split('`').enumerate().map(|(place, text)| Piece { text, is_name: place % 2 == 1 });
    pieces.filter(|piece| !piece.text.is_empty()).collect()
}

/// A time as text, exact to a millisecond because a suite is short.
fn moment(ms: u64) -> String {
    format!("{}.{:03}", clock(ms), ms % 1000)
}

#[cfg(test)]
pub(super) use tests::example;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Hit, Outcome, Stretch, Table, Test};

    /// A suite with a test that failed during a hit of a fault.
    pub(in crate::render::html) fn example() -> Suite {
        let test = |number: u64, failed: bool| Test {
            name: format!("Widget controller keeps {number} children"),
            from_ms: number * 400,
            to_ms: number * 400 + 380,
            failed,
            message: failed.then(|| "expected 1 child, found 2".to_owned()),
            requests: 40,
            objects: 3,
            conflicts: usize::from(failed),
            hits: if failed { vec!["event-delayed: revision 57 held for 240ms".to_owned()] } else { Vec::new() },
            met: if failed { "event-delayed once".to_owned() } else { String::new() },
        };
        let stretch = |number: u64| Stretch {
            from_ms: number * 200,
            until_ms: (number + 1) * 200,
            requests: 20 + number % 7 * 5,
            commits: 4 + number % 3,
            conflicts: number % 4,
        };
        let hit = |number: u64| Hit {
            at_ms: 300 + number * 450,
            fault: ["event-delayed", "watch-reset", "silent-watch"][usize::try_from(number).unwrap() % 3].to_owned(),
            detail: format!("revision {} held for 240ms on watch 3 of secrets by admin on connection 1", 50 + number),
        };
        Suite {
            outcome: Outcome::Failed,
            command: "make test".to_owned(),
            sentence: "1 of 24 tests failed, and faults hit 9 of them".to_owned(),
            story: vec![
                "failed again in 2 of 3 plays of seed 4".to_owned(),
                "`make test` passed without faults".to_owned(),
            ],
            faults: "chaos, at most 3 versions behind".to_owned(),
            seed: 4,
            started: "2026-01-01T00:00:00Z".to_owned(),
            length_ms: 10_000,
            tests: (0..24).map(|number| test(number, number == 7)).collect(),
            hits: (0..20).map(hit).collect(),
            stretches: (0..50).map(stretch).collect(),
            tables: vec![Table {
                title: "Conflicts",
                what: "Request",
                count: "Times",
                rows: vec![("409 PUT /api/v1/namespaces/NS/configmaps/NAME".to_owned(), "12".to_owned())],
            }],
            roles: vec!["kind: Role\n".to_owned()],
            repeat: "longhaul envtest --chaos 4 -- make test".to_owned(),
            facts: vec![("Planes", "1".to_owned())],
            files: vec![("ledger.json".to_owned(), "everything on this page, for programs")],
            longhaul: "0.1.0".to_owned(),
        }
    }

    #[test]
    fn the_failed_test_stands_before_all_others() {
        let page = suite_html(&example()).unwrap();
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
        assert!(place("1 of 24 tests failed") < place("failed again in 2 of 3 plays"));
        assert!(place("failed again in 2 of 3 plays") < place("id=\"timeline\""));
        assert!(place("expected 1 child, found 2") < place("id=\"timeline\""), "the message is no detail");
        assert!(page.contains("<code>make test</code> passed without faults"), "{page}");
        assert_eq!(page.matches("class=\"test fail\"").count(), 2, "in the lane of all tests and in its own");
        for id in ["requests", "writes"] {
            assert!(page.contains(&format!("id=\"plot-{id}\"")), "{id}");
        }
    }

    /// If the suite wrote no results, the report still has a time line, and says how to write them.
    #[test]
    fn without_results_the_page_says_what_to_write() {
        let suite = Suite { tests: Vec::new(), ..example() };
        let page = suite_html(&suite).unwrap();
        assert!(page.contains("--results") && page.contains("id=\"plot-requests\""), "{page}");
    }

    #[test]
    fn outside_text_stays_text() {
        let hostile = "<script>alert(1)</script>\"'&".to_owned();
        let mut suite = example();
        for text in [&mut suite.command, &mut suite.sentence, &mut suite.repeat, &mut suite.faults] {
            text.clone_from(&hostile);
        }
        suite.tests[7].message = Some(hostile.clone());
        suite.tests[7].name.clone_from(&hostile);
        (suite.hits[0].fault, suite.hits[0].detail) = (hostile.clone(), hostile.clone());
        suite.tables[0].rows[0].0.clone_from(&hostile);
        suite.roles[0].clone_from(&hostile);
        suite.story.push(hostile);
        let page = suite_html(&suite).unwrap();
        assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
