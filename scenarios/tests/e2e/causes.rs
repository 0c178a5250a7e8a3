//! Tests that each mistake of the planted client gets its own cause: in the summary, in the Markdown, in the HTML
//! report, and computed again from the record.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Soak, longhaul, program, rows, soak};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");

/// Runs a library bug, or a scenario of these tests, with the planted client as subject; returns the record.
fn play(bug: &str, mistakes: &[&str]) -> Option<(PathBuf, tempfile::TempDir)> {
    let client = program("planted-client")?;
    let out = tempfile::tempdir().unwrap();
    let own = format!("{}/tests/files/{bug}.yaml", env!("CARGO_MANIFEST_DIR"));
    let bug = if Path::new(&own).exists() { &own } else { bug };
    let mut run = longhaul(&["soak", bug, "--json", "--quiet", "--runs"]);
    run.arg(out.path()).arg("--").arg(client);
    for mistake in mistakes {
        run.args(["--mistake", mistake]);
    }
    let output = run.output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    Some((answer["record"].as_str().unwrap().into(), out))
}

/// Checks that the reports begin with the cause and its sentence, and that each anomaly has a history.
pub fn check_cause(record: &Path, cause: &str, parts: &[&str]) {
    let rows = rows(record, "anomalies.jsonl");
    assert!(!rows.is_empty(), "nothing was found");
    for row in &rows {
        assert_eq!(row["evidence"]["wire"], true, "{row}");
        let steps = row["evidence"]["steps"].as_array().unwrap();
        assert!(steps.iter().any(|step| step["kind"] == "committed"), "{row}");
        // Requests from before the run's time zero are read at that time.
        assert!(row["tMs"] == 0 || steps.iter().any(|step| step["kind"] == "watched"), "{row}");
    }
    let markdown = std::fs::read_to_string(record.join("report.md")).unwrap();
    let line = markdown.lines().find(|line| line.contains(cause)).unwrap_or_else(|| panic!("{cause}:\n{markdown}"));
    for part in parts {
        assert!(line.contains(part), "no `{part}` in: {line}\n{rows:#?}");
    }
    assert!(markdown.contains("What to do next: "), "{markdown}");
    let page = std::fs::read_to_string(record.join("report.html")).unwrap();
    let first = page.split(r#"<section id="causes""#).nth(1).unwrap().split("</section>").next().unwrap();
    assert!(first.contains(cause), "{first}");
    assert!(page.find(r#"<section id="causes""#) < page.find(r#"<section id="timeline""#));
    let again = longhaul(&["report"]).arg(record).output().unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(said.lines().any(|line| line.starts_with("cause ") && line.contains(cause)), "{said}");
}

/// The correct client in the same scenario gets no cause.
fn clean(bug: &str) {
    let Some((record, _out)) = play(bug, &[]) else { return };
    let markdown = std::fs::read_to_string(record.join("report.md")).unwrap();
    assert!(!markdown.contains("What to do next"), "{markdown}");
}

/// Checks the cause "lost in the client" of a deletion that was sent but not reported.
pub fn lost_in_the_client(soak: &Soak) {
    check_cause(&soak.record(), "lost in the client", &["sent on watch ", "never reported"]);
    // The mock remembers a thousand lines; on a busy machine some are gone before their deletion is overdue.
    let own = |row: &Value| {
        let [name, revision] = ["name", "revision"].map(|key| row[key].as_str().unwrap().to_owned());
        let parts = ["DELETED", &format!("\"resourceVersion\":\"{revision}\""), &format!("\"name\":\"{name}\"")];
        row["wire"]
            .as_array()
            .unwrap()
            .iter()
            .any(|line| parts.iter().all(|part| line.as_str().unwrap().contains(part)))
    };
    let rows = soak.rows("anomalies.jsonl");
    assert!(rows.iter().any(|row| row["outcome"] == "ghost" && own(row)), "{rows:#?}");
    assert!(soak.stdout().lines().any(|line| line.starts_with("next ")), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn what_is_told_twice_and_was_sent_once_is_the_clients() {
    let Some(service) = program("longhaul-service-planted") else { return };
    let soak = soak(&[SMALL, "--plant", "duplicate-events", "--service", service.to_str().unwrap()]);
    check_cause(&soak.record(), "reported twice by the client", &["sent once, on watch ", "again at "]);
}

#[test]
#[ignore = "slow"]
fn who_resumes_from_a_too_new_revision_has_skipped_it() {
    let Some((record, _out)) = play("resumes", &["resumes-one-further"]) else { return };
    check_cause(
        &record,
        "skipped by the client",
        &["not sent: watch ", "ended at revision ", "the client resumed from "],
    );
    clean("resumes");
}

#[test]
#[ignore = "slow"]
fn who_watches_without_a_revision_has_skipped_what_vanished() {
    let Some((record, _out)) = play("list-then-watch-without-rv", &["watches-without-rv"]) else { return };
    check_cause(&record, "skipped by the client", &["not sent: ", "without a revision"]);
}

#[test]
#[ignore = "slow"]
fn what_a_fault_withheld_is_not_the_clients() {
    let Some((record, _out)) = play("withheld", &["never-relists"]) else { return };
    check_cause(&record, "withheld by a fault", &["dropped by the fault event-dropped on watch "]);
}

#[test]
#[ignore = "slow"]
fn what_a_list_showed_is_lost_from_the_list() {
    let Some((record, _out)) = play("watchcache-lost-delete", &["relist-without-diff"]) else { return };
    check_cause(&record, "lost from a list", &["no longer had the object"]);
    clean("watchcache-lost-delete");
}

#[test]
#[ignore = "slow"]
fn who_asks_no_more_is_said_to_ask_no_more() {
    let Some((record, _out)) = play("clean-close-not-told", &["gives-up-silently-at-end"]) else { return };
    check_cause(
        &record,
        "because the client stopped asking",
        &["not sent: watch ", "the client sent no further request"],
    );
    let page = std::fs::read_to_string(record.join("report.html")).unwrap();
    assert!(page.contains("What happened") && page.contains("fault begins: watch-end"), "the story is in its page");
    clean("clean-close-not-told");
}

/// If a client opens two watches after each end of a stream, the named cause is the number of watches and not a queue,
/// although reports are repeated.
#[test]
#[ignore = "slow"]
fn watches_that_multiply_are_told_as_that() {
    let Some((record, _keep)) = play("multiplies", &["both-ends-reconnect"]) else { return };
    check_cause(
        &record,
        "from duplicate watches",
        &["were open at once after", "compared with 1 before the first end"],
    );
    let verdict = |record: &Path| -> Value {
        serde_json::from_str(&std::fs::read_to_string(record.join("verdict.json")).unwrap()).unwrap()
    };
    let growth = |verdict: &Value| {
        let findings = verdict["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["budget"] == "events.watchGrowth").cloned().unwrap()
    };
    let planted = growth(&verdict(&record));
    assert_eq!(planted["verdict"], "fail", "{planted}");
    assert!(planted["text"].as_str().unwrap().starts_with("8 watches of packages.longhaul.dev"), "{planted}");
    let Some((record, _keep)) = play("multiplies", &[]) else { return };
    let clean = verdict(&record);
    assert_eq!(
        (clean["verdict"].as_str(), growth(&clean)["verdict"].as_str()),
        (Some("pass"), Some("pass")),
        "{clean}"
    );
}
