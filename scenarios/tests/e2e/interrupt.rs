//! Tests that Ctrl-C and SIGTERM end a run in order: the record is judged, and the subject is gone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{longhaul, program, verdict};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
/// Time limit of a wait in these tests. A busy machine may start all processes slowly; a wait that takes longer means
/// that a process hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Polls until `look` returns a value.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn record(runs: &Path) -> Option<PathBuf> {
    Some(std::fs::read_dir(runs).ok()?.next()?.ok()?.path())
}

/// The child processes of a process, from `/proc`.
fn children(pid: u32) -> Vec<String> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn interrupted_by(signal: Signal, name: &str) {
    let Some(service) = program("longhaul-service") else { return };
    let runs = tempfile::tempdir().unwrap();
    let mut command = longhaul(&["soak", "--quiet", SMALL, "--service", service.to_str().unwrap(), "--runs"]);
    let mut child = command.arg(runs.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the first samples", || {
        let samples = std::fs::read_to_string(record(runs.path())?.join("intervals.jsonl")).ok()?;
        (samples.lines().count() >= 1).then_some(())
    });
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let subjects: Vec<String> = tasks
        .flatten()
        .flat_map(|task| {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            children.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert!(!subjects.is_empty() || !children(child.id()).is_empty(), "the subject runs");
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
    let status = wait_for("the end of the run", || child.try_wait().unwrap());
    let output = child.wait_with_output().unwrap();
    let story = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(status.code(), Some(3), "{story}");
    let verdict = verdict(&record(runs.path()).unwrap());
    assert_eq!(verdict["verdict"], "invalid", "{story}");
    assert!(story.contains("interrupted") && story.contains(name), "{story}");
    for pid in subjects {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the subject {pid} is left running");
    }
}

#[test]
#[ignore = "slow"]
fn ctrl_c_leaves_a_judged_record_and_no_process() {
    interrupted_by(Signal::INT, "SIGINT");
}

#[test]
#[ignore = "slow"]
fn sigterm_leaves_a_judged_record_and_no_process() {
    interrupted_by(Signal::TERM, "SIGTERM");
}

/// The record of a killed run has all facts up to five seconds before the kill, and can be judged, even if its last row
/// is incomplete.
#[test]
#[ignore = "slow"]
fn a_run_that_is_killed_at_any_moment_loses_five_seconds_at_most() {
    let Some(service) = program("longhaul-service") else { return };
    // Times after a row was written: just then, in the middle, and just before the next one.
    let moments = [0, 1300, 2700, 4600].map(Duration::from_millis);
    std::thread::scope(|scope| {
        for moment in moments {
            let service = &service;
            scope.spawn(move || killed_after(moment, service));
        }
    });
}

/// Maximum lateness of an interval's row in the record on a busy machine, including the time until the test reads the
/// row.
const SEEN_LATE: Duration = Duration::from_millis(1500);

fn killed_after(moment: Duration, service: &Path) {
    let runs = tempfile::tempdir().unwrap();
    let mut command = longhaul(&["soak", "--quiet", SMALL, "--service", service.to_str().unwrap(), "--runs"]);
    let mut child = command.arg(runs.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let end_ms = |text: &str| {
        let row: serde_json::Value = serde_json::from_str(text.lines().last()?).ok()?;
        text.ends_with('\n').then(|| row["endMs"].as_u64()).flatten()
    };
    // The test sees it appear, so that its delay in the run's own time is known.
    let (record, first_ms) = wait_for("the first interval", || {
        let record = record(runs.path())?;
        let rows = std::fs::read_to_string(record.join("intervals.jsonl")).ok()?;
        Some((record, end_ms(&rows)?))
    });
    let seen = Instant::now();
    wait_for("the moment", || (seen.elapsed() >= moment).then_some(()));
    child.kill().unwrap();
    let killed_ms = first_ms + u64::try_from(seen.elapsed().as_millis()).unwrap();
    child.wait().unwrap();

    let output = longhaul(&["report", record.to_str().unwrap()]).output().unwrap();
    let story = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{story}");
    let verdict = verdict(&record);
    let text = verdict.to_string();
    assert!(text.contains("the harness was killed; the record reaches to "), "{text}");
    let last_of = |name: &str, key: &str| {
        let text = std::fs::read_to_string(record.join(name)).unwrap();
        let whole = &text[..=text.rfind('\n').unwrap()];
        let rows = whole.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        rows.filter_map(|row| row[key].as_u64()).max().unwrap_or_default()
    };
    let late_ms = u64::try_from(SEEN_LATE.as_millis()).unwrap();
    for (name, key) in [("intervals.jsonl", "endMs"), ("samples.jsonl", "tMs")] {
        let lost_ms = killed_ms.saturating_sub(last_of(name, key));
        // A sample is taken each second.
        let allowed_ms = 5000 + late_ms + if name == "intervals.jsonl" { 0 } else { 1000 };
        assert!(lost_ms <= allowed_ms, "{name}, killed {moment:?} after a row: {lost_ms} ms are lost");
    }
    let latency = std::fs::read_to_string(record.join("latency.hlog")).unwrap();
    assert!(latency.contains("Tag=response.allowed"), "{latency}");
}

/// A killed run leaves neither its subject, nor the subject's children, nor the folder with its keys. Only this user
/// can read the record of a killed run, which contains no secret.
#[test]
#[ignore = "slow"]
fn a_killed_run_leaves_no_process_and_no_keys() {
    let folder = tempfile::tempdir().unwrap();
    let (told, runs) = (folder.path().join("told"), folder.path().join("runs"));
    let scenario = folder.path().join("scenario.yaml");
    // It ignores gentle signals, and has a child of its own.
    let script = "trap '' TERM; sleep 600 & echo $$ $! $KUBECONFIG > $TOLD; wait; sleep 600";
    let text = format!(
        "apiVersion: longhaul/v1\nname: killed\ndescription: What is left?\nphases: {{warmUp: 1s, steady: 60s, drain: 3s}}\n\
         subject:\n  command:\n    run: [sh, -c, \"{script}\", '--token=hunter1', --password, hunter2]\n    \
         env: {{TOLD: {}, DB_PASSWORD: hunter3, REPO: 'https://me:hunter4@git.test/x'}}\n  witness: {{kind: http}}\n\
         churn: {{resource: packages.longhaul.dev/v1alpha1, population: 5, rate: 5/s, mix: {{create: 1, update: 1, delete: 1}}}}\n",
        told.display()
    );
    std::fs::write(&scenario, text).unwrap();
    let mut command = longhaul(&["soak", "--quiet", scenario.to_str().unwrap(), "--runs", runs.to_str().unwrap()]);
    let mut child = command.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = wait_for("the subject", || {
        let said = std::fs::read_to_string(&told).ok().filter(|said| said.ends_with('\n'))?;
        record(&runs)?.join("manifest.json").exists().then_some(said)
    });
    let [subject, grandchild, kubeconfig] = said.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
    let keys = Path::new(kubeconfig).parent().unwrap();
    assert!(keys.starts_with(folder.path()) && keys.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    for pid in [subject, grandchild] {
        wait_for("the end of the subject", || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (state.is_empty() || state.contains(") Z ")).then_some(())
        });
    }
    wait_for("the end of the keys", || (!keys.exists()).then_some(()));
    // The keeper reports the remains that it removed, and those that it cannot.
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert!(said.contains(&format!("the harness was killed; its process group {subject} was ended")), "{said}");
    assert!(said.contains(&format!("the harness was killed; its folder {} was removed", keys.display())), "{said}");
    let record = record(&runs).unwrap();
    let mode = std::fs::metadata(&record).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let manifest = std::fs::read_to_string(record.join("manifest.json")).unwrap();
    assert!(!manifest.contains("hunter"), "{manifest}");
}
