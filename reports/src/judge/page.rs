//! Tests that the tables in the documentation equal the tables that the judges' rules generate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use schemars::JsonSchema;

use super::rule::{Name, Row, Section};
use super::{Word, validity};
use crate::budgets::{
    Admission, Alerts, Api, ChildrenLimits, Crashes, Descriptors, Events, Finalizers, Memory, ObjectLimits,
    OpenWatches, OwnSeries, Registry, Requests, Threads, Writes,
};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
const END: &str = "<!-- up to here -->\n";

/// The text that follows the table of the section `requests` in the documentation.
const JUDGED_RESOURCES: &str =
    "\nJudged resources are those of `subject.watches`; without it, what the script and the churn write.\n";

/// The faults in the example scenario of a documentation page.
const EXAMPLE_FAULTS: &str = "faults:\n  - {name: watch-end, at: 2s, resource: packages}\n  - {name: watch-410, at: 4s, resource: packages}\n```\n";

/// The description of each key of a section of `budgets`.
fn keys<S: JsonSchema>() -> BTreeMap<String, String> {
    let schema = schemars::schema_for!(S);
    let properties = schema.get("properties").unwrap().as_object().unwrap();
    let doc = |property: &serde_json::Value| property["description"].as_str().unwrap().replace('\n', " ");
    properties.iter().map(|(key, property)| (key.clone(), doc(property))).collect()
}

fn table<S: Section + JsonSchema>(text: &mut String) {
    let docs = keys::<S>();
    let _ = writeln!(text, "\n| `budgets.{}` | the limit |\n|---|---|", S::KEY);
    for row in S::ROWS {
        let _ = writeln!(text, "| `{}` | {} |", row.name.key, docs[row.name.key].replace('|', "\\|"));
    }
    if !S::ALWAYS.is_empty() {
        let _ = writeln!(text, "\nJudged besides, whenever the section is there:\n");
    }
    for row in S::ALWAYS {
        let _ = writeln!(text, "- `{}`: {}", row.name, row.doc);
    }
}

/// The expected numbers of hits of the faults in the example of a page: a test runs this example. The second fault hits
/// each watch that resumes.
const EXAMPLE_HITS: &str = "<!-- hits: 1, 1 -->";

/// Writes an example scenario with each key that a short run can show.
fn example<S: Section>(text: &mut String) {
    let _ = writeln!(text, "\n{EXAMPLE_HITS}\n```yaml\nbudgets:\n  {}:", S::KEY);
    let shown = |row: &Row| row.example.map(|example| (row.name.key, example));
    for (key, example) in S::ROWS.iter().filter_map(shown) {
        let _ = writeln!(text, "    {key}: {example}");
    }
    text.push_str(EXAMPLE_FAULTS);
}

/// Writes the table of the words for defects in a verdict, and the budgets that lead to each word.
fn words(text: &mut String) {
    let sections = [Events::ROWS, Events::ALWAYS, Requests::ROWS, Memory::ROWS, Descriptors::ROWS, Threads::ROWS];
    let sections = sections.into_iter().chain([
        Writes::ROWS,
        Finalizers::ROWS,
        ObjectLimits::ROWS,
        ChildrenLimits::ROWS,
        Crashes::ROWS,
        OpenWatches::ROWS,
        OwnSeries::ROWS,
        Admission::ROWS,
        Alerts::ROWS,
        Registry::ROWS,
        Api::ROWS,
    ]);
    let names: Vec<Name> = sections.flatten().map(|row| row.name).chain(validity::WITHOUT_BUDGET).collect();
    text.push_str("\n| word | it says | what broke |\n|---|---|---|\n");
    for (word, doc) in Word::ALL {
        let saying = names.iter().filter(|name| name.word == Some(*word)).map(|name| format!("`{name}`"));
        let saying: Vec<String> = saying.collect();
        assert!(!saying.is_empty(), "no row says {word}");
        let _ = writeln!(text, "| {word} | {} | {} |", doc.trim(), saying.join(", "));
    }
}

/// For each generated table: the page, the mark in the page before the table, and the text of the table.
fn parts() -> [(&'static str, &'static str, String); 11] {
    let [
        mut events,
        mut objects,
        mut requests,
        mut process,
        mut admission,
        mut alerts,
        mut registry,
        mut api,
        mut said,
        mut events_shown,
        mut requests_shown,
    ] = [const { String::new() }; 11];
    table::<Events>(&mut events);
    example::<Events>(&mut events_shown);
    table::<Writes>(&mut objects);
    table::<Finalizers>(&mut objects);
    table::<ObjectLimits>(&mut objects);
    table::<ChildrenLimits>(&mut objects);
    table::<Requests>(&mut requests);
    requests.push_str(JUDGED_RESOURCES);
    example::<Requests>(&mut requests_shown);
    table::<Crashes>(&mut process);
    table::<Memory>(&mut process);
    table::<Descriptors>(&mut process);
    table::<Threads>(&mut process);
    table::<OpenWatches>(&mut process);
    table::<OwnSeries>(&mut process);
    table::<Admission>(&mut admission);
    table::<Alerts>(&mut alerts);
    table::<Registry>(&mut registry);
    table::<Api>(&mut api);
    words(&mut said);
    [
        ("faults.md", Events::KEY, events),
        ("faults.md", "objects", objects),
        ("faults.md", Requests::KEY, requests),
        ("faults.md", "resources", process),
        ("faults.md", "words", said),
        ("examples/faults.md", Events::KEY, events_shown),
        ("examples/faults.md", Requests::KEY, requests_shown),
        ("webhooks.md", Admission::KEY, admission),
        ("webhooks.md", Alerts::KEY, alerts),
        ("webhooks.md", Registry::KEY, registry),
        ("replicas.md", Api::KEY, api),
    ]
}

/// The documentation pages have the tables that the judges generate.
/// `UPDATE_DOCS=1 cargo xtask test the_pages_have_the_rows` writes these tables again.
#[test]
fn the_pages_have_the_rows_of_the_judges() {
    for (page, mark, written) in parts() {
        let path = format!("{DOCS}/{page}");
        let text = std::fs::read_to_string(&path).unwrap();
        let begin = format!("<!-- {mark}: written by the rows in reports/src/judge -->\n");
        let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{page} has no mark of {mark}"));
        let (found, after) = rest.split_once(END).unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, format!("{before}{begin}{written}\n{END}{after}")).unwrap();
            continue;
        }
        let same = found == format!("{written}\n");
        assert!(same, "docs/{page}: run `UPDATE_DOCS=1 cargo xtask test the_pages_have_the_rows`");
    }
}

/// Checks that the rules of a section have the same keys as its serde type.
fn compare<S: Section + JsonSchema>() {
    let rows: BTreeSet<String> = S::ROWS.iter().map(|row| row.name.key.to_owned()).collect();
    assert_eq!(rows, keys::<S>().into_keys().collect());
}

#[test]
fn the_keys_are_those_of_the_schema() {
    compare::<Events>();
    compare::<Writes>();
    compare::<Finalizers>();
    compare::<ObjectLimits>();
    compare::<ChildrenLimits>();
    compare::<Requests>();
    compare::<Admission>();
    compare::<Alerts>();
    compare::<Registry>();
    compare::<Api>();
    compare::<Crashes>();
    compare::<Memory>();
    compare::<Descriptors>();
    compare::<Threads>();
    compare::<OpenWatches>();
    compare::<OwnSeries>();
}
