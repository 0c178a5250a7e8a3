//! Every mistake that the library of bugs names is caught with its words, and the client without it passes: the proof that
//! the scenarios show what they say, and nothing else.
//!
//! One test that plays the whole library, so many runs at a time. They mostly wait, so it may run beside other tests. A
//! cell that is wrong is played once more, alone: on a machine that stalls for seconds a clean client may be late. What
//! needed that is said at the end, as nextest does with tests.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use crate::support::{longhaul, program};

/// Runs at a time. Each is a harness and a client that sleep most of the time.
const AT_ONCE: usize = 8;
/// Cells that may need a second try before the machine, or the library, is to blame.
const SECOND_TRIES_MAX: usize = 12;

/// Bugs of a few seconds, for the quick test.
const SHORT: [&str; 3] = ["bad-line-swallowed", "cache-before-callback", "list-then-watch-without-rv"];

/// One client against one bug.
#[derive(Debug, Clone)]
struct Cell {
    bug: String,
    /// None of them: the correct client.
    mistakes: Vec<String>,
    /// The words that it must get.
    words: Vec<String>,
}

/// What became of it.
struct Seen {
    cell: Cell,
    code: Option<i32>,
    words: Vec<String>,
    reason: String,
    seconds: f64,
}

#[test]
fn mistakes_are_caught_and_the_correct_client_passes() {
    let Some(client) = program("planted-client") else { return };
    let began = Instant::now();
    let cells = cells();
    let seen = play_all(&client, cells.clone(), AT_ONCE);
    let (mut right, wrong): (Vec<Seen>, Vec<Seen>) = seen.into_iter().partition(Seen::is_right);
    let again: Vec<Cell> = wrong.iter().map(|seen| seen.cell.clone()).collect();
    assert!(again.len() <= SECOND_TRIES_MAX, "{} of {} cells are wrong:\n{}", again.len(), cells.len(), table(&wrong));
    let (second, wrong_again): (Vec<Seen>, Vec<Seen>) =
        play_all(&client, again, 1).into_iter().partition(Seen::is_right);
    let flaky = table(&second);
    right.extend(second);
    let caught = right.iter().filter(|seen| !seen.cell.mistakes.is_empty()).count();
    let expected = cells.iter().filter(|cell| !cell.mistakes.is_empty()).count();
    let alarms = wrong_again.iter().filter(|seen| seen.cell.mistakes.is_empty()).count();
    let summary = format!(
        "{caught} of {expected} mistakes caught, {alarms} false alarms of {} correct clients, {:.0} s",
        cells.len() - expected,
        began.elapsed().as_secs_f64()
    );
    println!("{summary}\nright at the second try:\n{flaky}");
    assert!(wrong_again.is_empty(), "{summary}\n{}", table(&wrong_again));
}

/// The same on three bugs: each with its correct client and with one mistake, and none is played twice.
#[test]
fn six_cells_are_right() {
    let Some(client) = program("planted-client") else { return };
    let of = |bug: &str| cells().into_iter().filter(|cell| cell.bug == bug).take(2).collect::<Vec<_>>();
    let cells: Vec<Cell> = SHORT.into_iter().flat_map(of).collect();
    assert_eq!(cells.iter().filter(|cell| cell.mistakes.is_empty()).count(), SHORT.len(), "{cells:?}");
    assert_eq!(cells.len(), 2 * SHORT.len());
    let seen = play_all(&client, cells, AT_ONCE);
    let wrong: Vec<Seen> = seen.into_iter().filter(|seen| !seen.is_right()).collect();
    assert!(wrong.is_empty(), "{}", table(&wrong));
}

/// Every bug with its correct client and with each of its mistakes.
fn cells() -> Vec<Cell> {
    let output = longhaul(&["repro", "--list", "--json"]).output().unwrap();
    let bugs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(bugs.len() >= 60, "the library has {} bugs", bugs.len());
    let mut cells = Vec::new();
    for bug in bugs {
        let id = bug["id"].as_str().unwrap();
        let mistakes = bug["repro"]["mistakes"].as_object().unwrap();
        assert!(!mistakes.is_empty(), "{id} names no mistake, so nothing shows that it would be caught");
        cells.push(Cell { bug: id.to_owned(), mistakes: Vec::new(), words: Vec::new() });
        for (names, words) in mistakes {
            let words = words.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
            cells.push(Cell { bug: id.to_owned(), mistakes: names.split('+').map(str::to_owned).collect(), words });
        }
    }
    cells
}

fn play_all(client: &Path, cells: Vec<Cell>, at_once: usize) -> Vec<Seen> {
    let waiting = Mutex::new(VecDeque::from(cells));
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let Some(cell) = waiting.lock().unwrap().pop_front() else { return };
                    let result = play(client, cell);
                    seen.lock().unwrap().push(result);
                }
            });
        }
    });
    seen.into_inner().unwrap()
}

/// As a person does it: `longhaul repro ID -- planted-client --mistake …`.
fn play(client: &Path, cell: Cell) -> Seen {
    let began = Instant::now();
    let out = tempfile::tempdir().unwrap();
    let mut run = longhaul(&["repro", &cell.bug, "--json", "--quiet", "--out"]);
    run.arg(out.path()).arg("--").arg(PathBuf::from(client));
    for mistake in &cell.mistakes {
        run.args(["--mistake", mistake]);
    }
    let output = run.output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let words = answer["words"].as_array().into_iter().flatten();
    let words = words.filter_map(|word| Some(word.as_str()?.to_owned())).collect();
    let reason = answer["reason"].as_str().map(str::to_owned);
    let reason = reason.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned());
    Seen { cell, code: output.status.code(), words, reason, seconds: began.elapsed().as_secs_f64() }
}

impl Seen {
    fn is_right(&self) -> bool {
        if self.cell.mistakes.is_empty() {
            return self.code == Some(0);
        }
        self.code == Some(1) && self.cell.words.iter().all(|word| self.words.contains(word))
    }
}

fn table(seen: &[Seen]) -> String {
    let mut text = String::new();
    for Seen { cell, code, words, reason, seconds } in seen {
        let client = if cell.mistakes.is_empty() { "correct".to_owned() } else { cell.mistakes.join("+") };
        let (says, wanted) = (words.join(","), cell.words.join(","));
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        let _ = writeln!(
            text,
            "{:32} {client:40} exit {code} [{says}] wanted [{wanted}] {seconds:.0} s: {reason}",
            cell.bug
        );
    }
    text
}
