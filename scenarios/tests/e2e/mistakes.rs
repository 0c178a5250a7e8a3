//! Tests that, for every mistake in the library of bugs, the verdict contains the expected words, and that the client
//! without the mistake passes. The tests show that each scenario detects its own bug and no other bug.
//!
//! One test runs the whole library, several runs at a time. Because the runs mostly wait, other tests may run at the
//! same time.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::plays::{PlayResult, left_open, play_all, stalled};
use crate::support::{longhaul, program};

/// Bugs whose scenarios take a few seconds. The quick tests run only these bugs.
const SHORT: [&str; 3] = ["bad-line-swallowed", "cache-before-callback", "list-then-watch-without-rv"];

/// One run: a client, and the scenario of a bug.
#[derive(Debug, Clone)]
struct Cell {
    bug: String,
    /// The mistakes of the client; empty for the correct client.
    mistakes: Vec<String>,
    /// The words that the verdict must contain, and no others.
    words: BTreeSet<String>,
}

#[test]
#[ignore = "slow"]
fn nightly_mistakes_are_caught_and_the_correct_client_passes() {
    let Some(client) = program("planted-client") else { return };
    let cells = cells();
    let mistakes = cells.iter().filter(|cell| !cell.mistakes.is_empty()).count();
    let played = play_all(cells, |cell| play(&client, cell));
    let wrong = played.done.iter().filter(|(_, seen)| !seen.wrong.is_empty());
    let (alarms, escaped): (Vec<_>, Vec<_>) = wrong.partition(|(cell, _)| cell.mistakes.is_empty());
    let summary = format!(
        "{} of {mistakes} mistakes caught, {} false alarms of {} correct clients, {}",
        mistakes - escaped.len(),
        alarms.len(),
        played.done.len() - mistakes,
        played.summary()
    );
    println!("{summary}");
    assert!(alarms.is_empty() && escaped.is_empty(), "{summary}\n{}", played.wrong(Cell::name));
}

/// Three bugs, each with the correct client and with one mistake, get the expected verdicts.
#[test]
#[ignore = "slow"]
fn six_cells_are_right() {
    let Some(client) = program("planted-client") else { return };
    let of = |bug: &str| cells().into_iter().filter(|cell| cell.bug == bug).take(2).collect::<Vec<_>>();
    let cells: Vec<Cell> = SHORT.into_iter().flat_map(of).collect();
    assert_eq!(cells.len(), 2 * SHORT.len());
    let played = play_all(cells, |cell| play(&client, cell));
    println!("{}", played.summary());
    let wrong = played.wrong(Cell::name);
    assert!(wrong.is_empty(), "{wrong}");
}

/// All runs: every bug with the correct client and with each of the bug's mistakes.
fn cells() -> Vec<Cell> {
    let output = longhaul(&["show", "library", "--json"]).output().unwrap();
    let mut bugs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    bugs.retain(|scenario| !scenario["repro"].is_null());
    assert!(bugs.len() >= 60, "the library has {} bugs", bugs.len());
    let mut cells = Vec::new();
    for bug in in_order(bugs) {
        let id = bug["id"].as_str().unwrap();
        let mistakes = bug["repro"]["mistakes"].as_object().unwrap();
        assert!(!mistakes.is_empty(), "{id} names no mistake, so nothing shows that it would be caught");
        cells.push(Cell { bug: id.to_owned(), mistakes: Vec::new(), words: BTreeSet::new() });
        for (names, words) in mistakes {
            let words = words.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
            cells.push(Cell { bug: id.to_owned(), mistakes: names.split('+').map(str::to_owned).collect(), words });
        }
    }
    cells
}

/// The bugs ordered by the length of their runs, the longest first, so that no long run starts at the end.
fn in_order(mut bugs: Vec<Value>) -> Vec<Value> {
    bugs.sort_by(|one, other| other["seconds"].as_f64().unwrap().total_cmp(&one["seconds"].as_f64().unwrap()));
    bugs
}

/// Runs a bug with the planted client as a user does: `longhaul soak bugs/NAME -- planted-client --mistake …`.
fn play(client: &Path, cell: &Cell) -> PlayResult {
    let out = tempfile::tempdir().unwrap();
    let mut run = longhaul(&["soak", &format!("bugs/{}", cell.bug), "--json", "--quiet", "--runs"]);
    run.arg(out.path()).arg("--").arg(client);
    for mistake in &cell.mistakes {
        run.args(["--mistake", mistake]);
    }
    let output = run.output().unwrap();
    let Ok(answer) = serde_json::from_slice::<Value>(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr);
        return PlayResult { wrong: format!("exit {:?}: {said}", output.status.code()), ..PlayResult::default() };
    };
    let words = answer["words"].as_array().into_iter().flatten();
    let words: BTreeSet<String> = words.filter_map(|word| Some(word.as_str()?.to_owned())).collect();
    let code = i32::from(!cell.mistakes.is_empty());
    let right = output.status.code() == Some(code) && words == cell.words;
    let said = || format!("exit {:?} {words:?}, wanted {:?}: {}", output.status.code(), cell.words, answer["reason"]);
    let stalled =
        stalled(&answer).or_else(|| if words.is_subset(&cell.words) && !right { left_open(&answer) } else { None });
    PlayResult { wrong: if right { String::new() } else { said() }, stalled, ..PlayResult::default() }
}

impl Cell {
    fn name(&self) -> String {
        let client = if self.mistakes.is_empty() { "correct".to_owned() } else { self.mistakes.join("+") };
        format!("{:32} {client:40}", self.bug)
    }
}
