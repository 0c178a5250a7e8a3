//! Tests that catalogue entries agree with settings, and that the tables in `docs/faults.md` agree with the catalogue.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::settings::{defaults_of_on, those};
use super::super::{Family, Fault, Row};
use super::Name;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/faults.md");
const END: &str = "<!-- up to here -->\n";

fn begin(part: &str) -> String {
    format!("<!-- {part}: written by the rows in mocks/faults -->\n")
}

/// The table of one family of faults for `docs/faults.md`. The table has a column for hits if the meaning of a hit
/// differs within the family.
fn table(family: Family) -> String {
    let rows: Vec<&Row> = Name::ALL.iter().map(|name| name.row()).filter(|row| row.family == family).collect();
    let has_hits = rows.iter().any(|row| !row.hit.is_empty());
    let what = if matches!(
        family,
        Family::Server
            | Family::Network
            | Family::Clock
            | Family::Process
            | Family::Pods
            | Family::Plane
            | Family::Workloads
            | Family::Subject
    ) {
        "what happens"
    } else {
        "what the client sees"
    };
    let (head, line) = if has_hits { (" a hit is |", "---|") } else { ("", "") };
    let mut text = format!("\n| name | parameters (default) | {what} |{head}\n|---|---|---|{line}\n");
    for row in rows {
        let keys: Vec<String> = row
            .takes
            .iter()
            .map(|(key, default, words)| {
                let default = if default.is_empty() { String::new() } else { format!(" ({default})") };
                let words = if words.is_empty() { String::new() } else { format!(": {words}") };
                format!("`{key}`{default}{words}")
            })
            .collect();
        let keys = if keys.is_empty() { " ".to_owned() } else { format!(" {} ", keys.join("; ")) };
        let hit = if has_hits { format!(" {} |", row.hit) } else { String::new() };
        let _ = writeln!(text, "| `{}` |{keys}| {} |{hit}", row.name, row.sees);
    }
    text.push('\n');
    text
}

fn parts() -> Vec<(&'static str, String)> {
    let moments = format!(
        "\nFor these faults, `for` is one moment by default: {}.\nFor these faults, `count` is 1 by default: {}.\n\n",
        those(|row| row.is_instant),
        those(|row| row.once)
    );
    let on = format!("\nThe default of `on` is {}, else `watch`.\n\n", defaults_of_on());
    vec![
        ("when", moments),
        ("whom", on),
        ("watches", table(Family::Watches)),
        ("requests", table(Family::Requests)),
        ("server", table(Family::Server)),
        ("workloads", table(Family::Workloads)),
        ("connections", table(Family::Connections)),
        ("network", table(Family::Network)),
        ("registry", table(Family::Registry)),
        ("clock", table(Family::Clock)),
        ("process", table(Family::Process)),
        ("pods", table(Family::Pods)),
        ("plane", table(Family::Plane)),
        ("subject", table(Family::Subject)),
    ]
}

/// To update `docs/faults.md`, run `UPDATE_DOCS=1 cargo xtask test the_page_on_faults`.
#[test]
fn the_page_on_faults_has_the_rows() {
    let mut page = std::fs::read_to_string(PAGE).unwrap();
    let found = page.clone();
    for (part, text) in parts() {
        let begin = begin(part);
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page has no place for {part}"));
        let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{part} has no end"));
        page = format!("{before}{begin}{text}{END}{after}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, page).unwrap();
        return;
    }
    assert!(found == page, "docs/faults.md: run `UPDATE_DOCS=1 cargo xtask test the_page_on_faults`");
}

/// Every key in a catalogue entry exists in the settings of faults, and an entry names every key of its fault.
#[test]
fn rows_name_the_keys_of_settings() {
    let schema = schemars::schema_for!(Fault);
    let known: BTreeSet<&str> =
        schema.get("properties").unwrap().as_object().unwrap().keys().map(String::as_str).collect();
    let mut named: BTreeSet<&str> = super::super::settings::OF_ALL.into();
    for name in Name::ALL {
        let row = name.row();
        named.extend(row.chooses);
        named.extend(row.takes.iter().map(|(key, ..)| *key));
    }
    assert_eq!(named, known);
}

#[test]
fn names_are_read_as_they_are_written() {
    for name in Name::ALL {
        let word = serde_json::to_value(name).unwrap();
        assert_eq!(word, name.as_str());
        assert_eq!(serde_json::from_value::<Name>(word).unwrap(), *name);
    }
    let error = serde_json::from_str::<Name>(r#""watch-resett""#).unwrap_err().to_string();
    assert!(error.starts_with("unknown variant `watch-resett`, expected one of `watch-reset`, "), "{error}");
}

/// Every fault that the mock API server does not inject belongs to the network, the registry, a clock or a cluster.
#[test]
fn what_nobody_plays_here_is_played_anywhere() {
    for name in Name::ALL {
        let row = name.row();
        assert_eq!(name.play().is_some(), row.family.is_of_the_mock(), "{}", row.name);
        assert!(!row.sees.is_empty() && row.doc.ends_with('.'), "{}", row.name);
    }
}
