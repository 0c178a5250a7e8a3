//! Tests that Markdown and HTML show every cell, and that no text of a client or a file becomes HTML or Markdown.

use super::*;

fn table() -> Table {
    let column = |id: &str, http| ColumnHead {
        id: id.to_owned(),
        client: format!("{id}-client"),
        version: "1.2.3".to_owned(),
        mode: "Watch".to_owned(),
        http,
        clocks: "default".to_owned(),
    };
    let row = |id: &str, row: &str| RowHead {
        id: id.to_owned(),
        row: row.to_owned(),
        question: "Is <b>it</b> | found?".to_owned(),
        reference: vec!["https://example.org/1".to_owned()],
        length_ms: 22_000,
        silence_s: Some(4),
        relist_s: None,
        http: Vec::new(),
    };
    let cell = |row: &str, column: &str, outcome| Cell {
        row: row.to_owned(),
        column: column.to_owned(),
        outcome,
        noticed_ms: Some(1200),
        observed_ms: None,
        reason: "because \"<i>\"".to_owned(),
        command: "cargo xtask matrix".to_owned(),
    };
    let words = vec!["missed".to_owned(), "blind".to_owned()];
    Table {
        format: Table::FORMAT,
        date: "2026-11-21".to_owned(),
        longhaul: "0.1.0".to_owned(),
        own_clocks: true,
        clock_rate: 1,
        columns: vec![column("a", None), column("b", Some(2))],
        rows: vec![row("empty", "4"), row("stall", "M2")],
        cells: vec![
            cell("empty", "a", Outcome::Failed { words }),
            cell("empty", "b", Outcome::Passed),
            cell("stall", "a", Outcome::Skipped { needs: "node\nnpm error <script>".to_owned() }),
        ],
    }
}

#[test]
fn markdown_shows_every_cell() {
    insta::assert_snapshot!(markdown(&table()));
}

#[test]
fn the_page_shows_every_cell_and_nothing_of_outside_is_markup() {
    let page = html(&table()).unwrap();
    for text in ["missed, blind", "asks after 1.2 s", "passed", "skipped: needs node", "HTTP/2", NOTHING] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert!(!page.contains("<b>it</b>") && !page.contains("<i>\""), "{page}");
    assert_eq!(page.matches("<script").count(), 1, "the page has one script, its own");
    assert!(!page.contains("npm error"), "the log of an installation is no text for a cell");
}

/// Cells can be filtered by client and by each broken promise.
#[test]
fn the_page_offers_what_there_is_to_choose() {
    let page = html(&table()).unwrap();
    for text in
        ["<option>a-client</option>", "<option>blind</option>", "<option>failed</option>", "<option>skipped</option>"]
    {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert!(
        page.contains("data-outcomes=\"failed|missed|blind\"") && page.contains("data-client=\"b-client\""),
        "{page}"
    );
    assert!(!page.contains("<option>missed, blind</option>"));
}

/// The JSON file contains all facts of the table, so that `--resume` can continue.
#[test]
fn a_table_survives_its_file() {
    let table = table();
    let text = serde_json::to_string(&table).unwrap();
    assert_eq!(serde_json::from_str::<Table>(&text).unwrap(), table);
}

#[test]
fn what_was_not_decided_is_run_again() {
    assert!(Outcome::Passed.is_final() && Outcome::NotHit { faults: Vec::new() }.is_final());
    assert!(!Outcome::Inconclusive.is_final() && !Outcome::Skipped { needs: String::new() }.is_final());
}

#[test]
fn a_cell_is_entered_once() {
    let mut table = table();
    let cell = Cell { outcome: Outcome::Passed, ..table.cells[0].clone() };
    table.enter(cell);
    assert_eq!(table.cells.len(), 3);
    assert_eq!(table.cell("empty", "a").unwrap().outcome, Outcome::Passed);
}
