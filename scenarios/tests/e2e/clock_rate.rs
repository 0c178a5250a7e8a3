//! Tests of a faster clock for the subject: mistakes that come after ten minutes show in seconds, even in a Go
//! operator. Longhaul refuses programs whose clock it cannot change.

use std::io::Write;

use crate::support::{Soak, has_python, program, soak, soak_text};

const WATCHER: &str = include_str!("../files/watcher.yaml");
const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
const SUBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects");

/// The example watcher in Python, with a planted bug. If `TIRES` is set, the watcher stops handling events after ten
/// minutes of its own clock.
const SHIM: &str = r#"
import os, runpy, sys, time
module = runpy.run_path(sys.argv[1])
Watcher, began, report = module["Watcher"], time.monotonic(), module["Watcher"].report
def tired(self, metadata, change):
    if os.environ["TIRES"] != "yes" or time.monotonic() - began < 600:
        report(self, metadata, change)
Watcher.report = tired
Watcher().run()
"#;

/// Runs the example watcher for about 18 s. `None` if Python is missing.
fn watcher(tires: &str, more: &[&str]) -> Option<Soak> {
    if !has_python() {
        return None;
    }
    let mut shim = tempfile::Builder::new().suffix(".py").tempfile().unwrap();
    shim.write_all(SHIM.as_bytes()).unwrap();
    let command =
        format!("{{run: [python3, {}, {SUBJECTS}/watcher.py], env: {{TIRES: '{tires}'}}}}", shim.path().display());
    let text = WATCHER.replace("[SUBJECT]", &command);
    Some(soak_text(&text, more))
}

/// In real time, a bug that comes after ten minutes of the watcher's clock does not show. With a clock a hundred times
/// faster the run fails, and the watcher without the bug passes.
#[test]
#[ignore = "slow"]
fn what_fails_after_ten_minutes_fails_in_seconds() {
    let Some(slow) = watcher("yes", &[]) else { return };
    assert_eq!(slow.code(), Some(0), "{}", slow.story());
    let Some(clean) = watcher("no", &["--clock-rate", "100"]) else { return };
    assert_eq!(clean.code(), Some(0), "{}", clean.story());
    assert!(clean.stdout().contains("the subject's own clock ran 100 times faster"), "{}", clean.story());
    let Some(fast) = watcher("yes", &["--clock-rate", "100"]) else { return };
    assert_eq!(fast.code(), Some(1), "{}", fast.story());
    assert!(fast.broken().iter().any(|budget| budget == "events.missed"), "{}", fast.story());
}

/// A Go operator with controller-runtime reads the kernel's clock itself. With a clock thirty times faster the operator
/// still passes, in spite of conflicts, errors, a reset and a 410.
#[test]
#[ignore = "slow"]
fn an_operator_in_go_does_right_thirty_times_faster() {
    let Some(project) = crate::operator::project() else { return };
    let file = project.path().join("kubebuilder.yaml");
    std::fs::write(&file, include_str!("../files/kubebuilder.yaml")).unwrap();
    let soak = soak(&[file.to_str().unwrap(), "--clock-rate", "30"]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert!(soak.stdout().contains("the subject's own clock ran 30 times faster"), "{}", soak.story());
}

/// A program whose clock cannot be changed is not started. The exit code for such a program is that of an invalid
/// scenario.
#[test]
#[ignore = "slow"]
fn what_cannot_have_another_clock_is_refused_by_name() {
    use std::os::unix::fs::PermissionsExt as _;

    let script = tempfile::Builder::new().suffix(".sh").tempfile().unwrap();
    std::fs::write(script.path(), "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(script.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = WATCHER.replace("[SUBJECT]", &format!("[{}]", script.path().display()));
    let soak = soak_text(&text, &["--clock-rate", "30"]);
    assert_eq!(soak.code(), Some(64), "{}", soak.story());
    assert!(soak.stderr().contains("needs the interpreter /no/such/interpreter"), "{}", soak.story());
}

/// Runs the scenario `clock`, whose faults change clocks. `None` if a program is missing.
fn clocks(plant: Option<&str>) -> Option<Soak> {
    program("example-watcher-planted").filter(|_| cfg!(target_arch = "x86_64"))?;
    let plant: Vec<&str> = plant.into_iter().flat_map(|plant| ["--plant", plant]).collect();
    Some(soak(&[&["clock"][..], &plant].concat()))
}

/// Two correct replicas share one Lease whatever their clocks show. A run fails if replicas trust each other's wall
/// clock, or renew the Lease late by their own clock.
#[test]
#[ignore = "slow: three runs of a minute"]
fn nightly_clocks_that_disagree_show_who_believes_them() {
    let Some(clean) = clocks(None) else { return };
    assert_eq!(clean.code(), Some(0), "{}", clean.story());
    for plant in ["wall-clock-lease", "late-renewal"] {
        let planted = clocks(Some(plant)).unwrap();
        assert_eq!(planted.code(), Some(1), "{plant}: {}", planted.story());
        assert!(planted.broken().iter().any(|budget| budget == "events.duplicate"), "{plant}: {}", planted.story());
    }
}

/// The certificates expire after 160 s of the service's faster clock, which are eight real seconds. The checks of
/// certificates use the service's clock too.
#[test]
#[ignore = "slow: half a minute"]
fn certificates_end_by_the_subjects_clock() {
    let Some(service) = program("longhaul-service") else { return };
    let text = include_str!("../../library/cert-rotation.yaml");
    let text = text
        .replace("service: {}", "service: {clockRate: 20}")
        .replace("at: 15s, pause: 15s, valid: 40s", "at: 3s, pause: 60s, valid: 160s")
        .replace("steady: 70s", "steady: 20s");
    let text = text.replace("rate: 100/s", "rate: 40/s").replace("p50: 100ms, ", "");
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let soak = soak(&[file.path().to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let replaced = soak
        .rows("faults.jsonl")
        .iter()
        .filter(|row| row["name"] == "certificate-rotation" && row["event"] == "hit")
        .count();
    assert!(replaced >= 6, "{replaced} in 25 s, one each three");
}

/// Whether tests that take longer than a whole CI run are to be run. Prints a message if they are skipped.
fn has_hours() -> bool {
    let is_there = std::env::var_os("LONGHAUL_HOURS").is_some();
    if !is_there {
        println!("skipped: needs LONGHAUL_HOURS, a machine of its own and more than ten minutes");
    }
    is_there
}

/// The scenario `soak-10h` of the library ends in ten minutes at 60 times the speed.
#[test]
#[ignore = "slow: ten minutes, asked for by LONGHAUL_HOURS"]
fn ten_hours_are_over_in_ten_minutes() {
    let Some(service) = program("longhaul-service").filter(|_| has_hours()) else { return };
    let soak = soak(&["soak-10h", "--clock-rate", "60", "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
}

/// One hour of `soak-10h` at sixty times the speed ends in a minute. An hour is too short to decide growth, but shows
/// mistakes of the service that come with a faster clock.
#[test]
#[ignore = "slow: a minute"]
fn nightly_an_hour_of_ten_is_over_in_a_minute() {
    let Some(service) = program("longhaul-service") else { return };
    let text = include_str!("../../library/soak-10h.yaml");
    let short = text.replace("warmUp: 60m, steady: 480m, drain: 60m", "warmUp: 5m, steady: 40m, drain: 15m");
    // As much as fits: one fault, and fifteen seconds to heal.
    let short = short.replace("heal: 60s", "heal: 15s").replace("every: 30s", "every: 23s");
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(short.as_bytes()).unwrap();
    let soak = soak(&[file.path().to_str().unwrap(), "--clock-rate", "60", "--service", service.to_str().unwrap()]);
    assert!(matches!(soak.code(), Some(0 | 2)) && soak.broken().is_empty(), "{}", soak.story());
}

/// An operator with two replicas and leader election runs for a day of its own clock. In a day, the operator's token
/// changes every hour, and its certificate changes twice.
#[test]
#[ignore = "slow: 24 minutes, asked for by LONGHAUL_HOURS"]
fn an_operator_lasts_a_day_of_its_own() {
    let Some(project) = crate::operator::project().filter(|_| has_hours()) else { return };
    let file = project.path().join("operator-24h.yaml");
    std::fs::write(&file, include_str!("../files/operator-24h.yaml")).unwrap();
    let soak = soak(&[file.to_str().unwrap(), "--clock-rate", "60"]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
}

/// The service requests watches of ten seconds. With `compress`, these watches end after one second, and no event is
/// lost.
#[test]
#[ignore = "slow"]
fn a_days_watches_are_remade_in_seconds() {
    let Some(service) = program("longhaul-service") else { return };
    let watches = |more: &[&str]| {
        let mut arguments = vec![SMALL, "--service", service.to_str().unwrap()];
        arguments.extend(more);
        let soak = soak(&arguments);
        assert_eq!(soak.code(), Some(0), "{}", soak.story());
        let watches = |row: &serde_json::Value| row["api"]["subjectWatches"].as_u64().unwrap_or(0);
        (soak.rows("intervals.jsonl").iter().map(watches).sum::<u64>(), soak.stdout())
    };
    let (before, _) = watches(&[]);
    let (after, said) = watches(&["--compress", "10"]);
    assert!(after >= before + 5, "{before} and {after}");
    assert!(said.contains("lived 10 times shorter"), "{said}");
}
