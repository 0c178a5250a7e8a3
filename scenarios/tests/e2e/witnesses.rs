//! Tests that every kind of witness carries observations, and that the ledger judges foreign subjects like the built-in
//! service.

use crate::support::{Soak, has_python, program, soak_text};

const WATCHER: &str = include_str!("../files/watcher.yaml");
const SMALL: &str = include_str!("../files/small.yaml");
const CHATTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/chatty.py");
const SUBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects");

fn python() -> Option<String> {
    has_python().then(|| format!("[python3, {SUBJECTS}/watcher.py]"))
}

/// The two example watchers (Rust and Python) pass a scenario with each kind of fault.
#[test]
#[ignore = "slow"]
fn the_example_watchers_pass() {
    let more = "faults:\n  - {name: watch-reset, at: 3s}\n  - {name: watch-410, at: 5s, form: stream}\n  - {name: silent-watch, at: 6s}\n";
    // Silence is noticed after twenty seconds.
    let text = WATCHER.replace("faults:\n", more).replace("drain: 5s", "drain: 28s").replace("heal: 15s", "heal: 32s");
    let commands = program("example-watcher").map(|_| "[example-watcher]".to_owned()).into_iter().chain(python());
    std::thread::scope(|scope| {
        let play = |command: String| {
            let soak = soak_text(&text.replace("[SUBJECT]", &command), &[]);
            assert_eq!(soak.code(), Some(0), "{command}: {}", soak.story());
        };
        for command in commands {
            scope.spawn(move || play(command));
        }
    });
}

/// A program without the named bug must refuse to run. If it ran, the run with the bug's name would pass without having
/// the bug.
#[test]
#[ignore = "slow"]
fn a_clean_program_refuses_a_plant() {
    let Some(service) = program("longhaul-service") else { return };
    let soak = soak_text(SMALL, &["--plant", "missed-delete", "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(3), "{}", soak.story());
    assert!(soak.stdout().contains("LONGHAUL_PLANTED_BUG"), "{}", soak.story());
}

/// Runs the Python watcher, which first posts the lines `lines`. `keys` are further keys of the scenario's witness.
fn chatty(lines: &[&str], keys: &str) -> Option<Soak> {
    python()?;
    let arguments = lines.iter().map(|line| format!("'{line}'")).collect::<Vec<_>>().join(", ");
    let command = format!("[python3, {CHATTY}, {SUBJECTS}/watcher.py, {arguments}]");
    Some(soak_text(
        &WATCHER.replace("[SUBJECT]", &command).replace("{kind: http}", &format!("{{kind: http{keys}}}")),
        &[],
    ))
}

/// Posted watch events without an object prove nothing, and do not count as unreadable lines.
#[test]
#[ignore = "slow"]
fn bookmarks_and_errors_may_be_posted_as_they_come() {
    let bookmark = r#"{"type": "BOOKMARK", "object": {"kind": "Package", "metadata": {"resourceVersion": "7"}}}"#;
    let error = r#"{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}"#;
    let Some(soak) = chatty(&[bookmark, error], ", tolerate: 0") else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
}

/// A run that tolerates no unreadable line reports the line's number. A run that tolerates ten unreadable lines reports
/// such a line too, but passes.
#[test]
#[ignore = "slow"]
fn a_line_that_cannot_be_read_is_shown_with_its_number() {
    let lines = [r#"{"type": "BOOKMARK"}"#, r#"{"change": "SYNCED", "uid": "a"}"#];
    let shown = "line 2 of a post, `change` is `SYNCED`: write added, modified or deleted: {\"change\": \"SYNCED\", \"uid\": \"a\"}";
    let Some(none) = chatty(&lines, ", tolerate: 0") else { return };
    assert_eq!(none.code(), Some(2), "{}", none.story());
    let said = format!("1 line of the witness could not be read, and 0 are tolerated; first: {shown}");
    assert!(none.stdout().contains(&said), "{}", none.story());
    let Some(ten) = chatty(&lines, ", tolerate: 10") else { return };
    assert_eq!(ten.code(), Some(0), "{}", ten.story());
    let verdict = ten.verdict();
    let note = format!("1 line of the witness could not be read; first: {shown}.");
    assert!(verdict["notes"].as_array().unwrap().iter().any(|other| *other == note.as_str()), "{}", verdict["notes"]);
}

#[test]
#[ignore = "slow"]
fn log_lines_prove_what_was_seen() {
    let Some(command) = python() else { return };
    // The watcher prints its lines instead of posting them: two of its methods are replaced from outside.
    let shim = "import os,runpy,sys; os.environ['LONGHAUL_WITNESS_URL']='http://127.0.0.1:9'; \
                m=runpy.run_path(sys.argv[1]); w=m['Watcher']; \
                w.post=lambda s: (print('\\\\n'.join(s.lines),flush=True) if s.lines else None, s.lines.clear()); w().run()";
    let command = command.replace("[python3, ", &format!("[python3, -c, \"{shim}\", "));
    let pattern = r#"'"uid": "(?P<uid>[^"]+)", "resourceVersion": "(?P<rv>\d+)", "change": "(?P<change>\w+)"'"#;
    let text = WATCHER.replace("{kind: http}", &format!("{{kind: log, pattern: {pattern}}}"));
    let soak = soak_text(&text.replace("[SUBJECT]", &command), &[]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn status_writes_prove_what_was_seen() {
    let Some(service) = program("longhaul-service") else { return };
    let text = SMALL
        .replace("witness: {kind: http}", "witness: {kind: status}")
        .replace("{missed: 0, ghost: 0, regressed: 0, heal: 15s}", "{missed: 0}");
    let soak = soak_text(&text, &["--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let note = "events.ghost, events.regressed, events.phantom, events.resurrected, events.identitySwap were not judged: the witness \
        `status` does not report deletions";
    assert!(soak.stdout().contains(note), "{}", soak.story());
}

/// If the subject never writes the field of a `status` witness, nothing counts as proven.
#[test]
#[ignore = "slow"]
fn a_status_that_nobody_writes_proves_nothing() {
    let Some(service) = program("longhaul-service") else { return };
    let text = SMALL.replace("witness: {kind: http}", "witness: {kind: status, pointer: /status/noSuchField}");
    let soak = soak_text(&text, &["--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(2), "{}", soak.story());
    assert!(soak.stdout().contains("status"), "{}", soak.story());
}
