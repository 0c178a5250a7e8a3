//! The part of `docs/faults.md` that the rows write.

use std::fmt::Write as _;

use super::ROWS;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/faults.md");
const BEGIN: &str = "<!-- written by the rows in reports/src/judge/requests -->\n";
const END: &str = "<!-- up to here -->\n";

/// The table of keys, and an example that shows each of them.
fn written() -> String {
    let mut text = "\n| key | the limit |\n|---|---|\n".to_owned();
    for row in ROWS {
        let _ = writeln!(text, "| `{}` | {} |", row.key, row.doc.replace('|', "\\|"));
    }
    text.push_str(
        "\nJudged resources are those of `subject.watches`; without it, what the script and the churn write.\n",
    );
    text.push_str("\n```yaml\nbudgets:\n  requests:\n");
    for row in ROWS {
        let _ = writeln!(text, "    {}: {}", row.key, row.example);
    }
    text.push_str("faults:\n  - {name: watch-end, at: 2s, resource: packages}\n");
    text.push_str("  - {name: watch-410, at: 4s, resource: packages}\n```\n\n");
    text
}

/// To write it anew: `UPDATE_DOCS=1 cargo xtask test the_page_on_faults`.
#[test]
fn the_page_on_faults_has_the_rows() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{}{END}{after}", written())).unwrap();
        return;
    }
    assert!(found == written(), "docs/faults.md: run `UPDATE_DOCS=1 cargo xtask test the_page_on_faults`");
}

/// Serde spells the fields, and the rows the keys.
#[test]
fn the_keys_are_those_of_the_schema() {
    let schema = schemars::schema_for!(super::Requests);
    let properties = schema.get("properties").unwrap().as_object().unwrap();
    let mut keys: Vec<&str> = ROWS.iter().map(|row| row.key).collect();
    keys.sort_unstable();
    let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
    known.sort_unstable();
    assert_eq!(keys, known);
    for row in ROWS {
        assert_eq!(properties[row.key]["description"], row.doc);
    }
}
