//! Tests of the end state: the subject's own state and its children are compared with the control plane. Each planted
//! bug breaks only its own budget, and the subject without the bug passes.

use serde_json::Value;

use crate::support::{Soak, program, soak};

const CHILDREN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/children.yaml");
const EMPTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/empty.yaml");
const WATCHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/watcher.yaml");

fn planted(file: &str, name: &str) -> Option<Soak> {
    let service = program("longhaul-service-planted")?;
    Some(soak(&[file, "--plant", name, "--service", service.to_str().unwrap()]))
}

fn clean(file: &str) -> Option<Soak> {
    let service = program("longhaul-service")?;
    Some(soak(&[file, "--service", service.to_str().unwrap()]))
}

fn end_state(soak: &Soak) -> Value {
    serde_json::from_slice(&std::fs::read(soak.record().join("end-state.json")).unwrap()).unwrap()
}

/// A copy of the small watcher's scenario in which some lines are replaced.
fn watcher(changes: &[(&str, &str)]) -> Option<(tempfile::TempDir, String)> {
    watched_by("example-watcher", changes)
}

fn watched_by(subject: &str, changes: &[(&str, &str)]) -> Option<(tempfile::TempDir, String)> {
    let subject = program(subject)?;
    let mut text = std::fs::read_to_string(WATCHER).unwrap().replace("SUBJECT", subject.to_str().unwrap());
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watcher.yaml");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    Some((folder, file))
}

#[test]
#[ignore = "slow"]
fn children_that_drifted_are_restored_by_the_clean_service() {
    let Some(soak) = clean(CHILDREN) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let state = end_state(&soak);
    assert_eq!((state["source"].as_str(), state["agrees"].as_bool()), (Some("endpoint"), Some(true)), "{state:#}");
    assert!(state["children"]["found"].as_u64().unwrap() >= 40, "{state:#}");
    assert!(
        soak.finding("events.restored")["text"].as_str().unwrap().contains("after the harness deleted or edited"),
        "{}",
        soak.story()
    );
}

#[test]
#[ignore = "slow"]
fn children_that_are_not_as_they_should_be_are_found_and_nothing_else() {
    // They run side by side, because each mostly waits.
    std::thread::scope(|scope| {
        let plants = [
            ("no-child-watch", "too few children", &["events.restored"][..]),
            ("orphaned-child", "no parent", &["children.orphaned", "events.restored"]),
            ("old-child", "an old version", &["events.restored"]),
        ];
        let plays = plants.map(|(plant, words, broken)| scope.spawn(move || (words, broken, planted(CHILDREN, plant))));
        for played in plays {
            let (words, broken, Some(soak)) = played.join().unwrap() else { return };
            soak.fails_by(broken);
            assert!(soak.finding("events.restored")["text"].as_str().unwrap().contains(words), "{}", soak.story());
        }
    });
}

/// A subject reports every event but stores another state. Only the comparison of the end state can show this mistake.
#[test]
#[ignore = "slow"]
fn a_store_that_went_stale_is_found_and_nothing_else() {
    let Some(soak) = planted(CHILDREN, "stale-child") else { return };
    soak.fails_by(&["events.converged"]);
    let text = soak.finding("events.converged")["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("by its own page, the subject's state differs from a fresh list of "), "{text}");
    assert!(text.contains("first: lh-5-"), "an object is named: {text}");
}

#[test]
#[ignore = "slow"]
fn who_started_empty_ends_empty() {
    let Some(soak) = clean(EMPTY) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let state = end_state(&soak);
    let numbers = [&state["listed"], &state["believed"], &state["left"]["objects"]].map(Value::as_u64);
    assert_eq!(numbers, [Some(0); 3], "{state:#}");
}

/// A subject that misses deletions still has objects at the end, when the control plane has none.
#[test]
#[ignore = "slow"]
fn who_started_empty_and_kept_something_is_found() {
    let Some(soak) = planted(EMPTY, "missed-delete") else { return };
    soak.fails_by(&["events.converged", "events.ghost"]);
    assert!(
        soak.finding("events.converged")["text"].as_str().unwrap().contains("fresh list of 0 objects"),
        "{}",
        soak.story()
    );
}

/// For a subject without a state page and without children, the last reported versions count as its state.
#[test]
#[ignore = "slow"]
fn what_was_told_last_is_what_a_plain_watcher_believes() {
    let Some((_folder, file)) = watcher(&[TOLD]) else { return };
    let soak = soak(&[&file]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let state = end_state(&soak);
    assert_eq!((state["source"].as_str(), state["agrees"].as_bool()), (Some("told"), Some(true)), "{state:#}");
    assert_eq!(state["listed"], state["believed"]);
}

const TOLD: (&str, &str) = ("heal: 15s", "heal: 15s, converged: true");

/// If a subject reports no deletion, the state derived from its reports still has the deleted objects. The ledger finds
/// the missed deletions as well.
#[test]
#[ignore = "slow"]
fn what_was_told_last_of_what_is_gone_is_found() {
    let Some((_folder, file)) = watched_by("example-watcher-planted", &[TOLD]) else { return };
    let soak = soak(&[&file, "--plant", "missed-delete"]);
    soak.fails_by(&["events.converged", "events.ghost"]);
    let state = end_state(&soak);
    assert_eq!((state["source"].as_str(), state["agrees"].as_bool()), (Some("told"), Some(false)), "{state:#}");
    assert!(state["differences"]["gone"].as_u64().unwrap() > 0, "{state:#}");
    assert_eq!(state["differences"]["behind"].as_u64().unwrap_or_default(), 0, "{state:#}");
}

/// If a subject stops receiving events in the middle of a run, its last reports have old versions.
#[test]
#[ignore = "slow"]
fn what_was_told_last_before_going_deaf_is_found() {
    let Some((_folder, file)) = watched_by("example-watcher-planted", &[TOLD]) else { return };
    let soak = soak(&[&file, "--plant", "ignore-410"]);
    assert_eq!(soak.code(), Some(1), "{}", soak.story());
    let broken = soak.broken();
    assert!(
        ["events.converged", "events.missed"].iter().all(|budget| broken.iter().any(|other| other == budget)),
        "{}",
        soak.story()
    );
    assert!(broken.iter().all(|budget| budget.starts_with("events.")), "{}", soak.story());
    let state = end_state(&soak);
    let numbers = ["behind", "unknown"].map(|kind| state["differences"][kind].as_u64().unwrap_or_default());
    assert!(numbers.iter().all(|number| *number > 0), "{state:#}");
}

/// Runs the built-in service as a foreign controller. As a command without a known state page, the service shows its
/// state only by its children.
fn by_children(plant: Option<&str>) -> Option<(tempfile::TempDir, Soak)> {
    let service = program(if plant.is_some() { "longhaul-service-planted" } else { "longhaul-service" })?;
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("service.yaml");
    let mut text = std::fs::read_to_string(CHILDREN).unwrap();
    let replaced = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let (before, after) = text.split_once("  service:\n    settings:\n      watch: ").unwrap();
    let (watch, after) = after.split_once('\n').unwrap();
    std::fs::write(&settings, format!("watch: {watch}\n")).unwrap();
    let command =
        format!("  command: [{}, run, --role, packages, --config, {}]\n", service.display(), settings.display());
    text = format!("{before}{command}{after}");
    text = replaced(&text, "converged: true, restored: true", "converged: true");
    let file = folder.path().join("children.yaml");
    std::fs::write(&file, text).unwrap();
    let mut arguments = vec![file.to_str().unwrap()];
    arguments.extend(plant.iter().flat_map(|plant| ["--plant", plant]));
    let soak = soak(&arguments);
    Some((folder, soak))
}

#[test]
#[ignore = "slow"]
fn who_keeps_its_children_converges() {
    let Some((_folder, soak)) = by_children(None) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let state = end_state(&soak);
    assert_eq!((state["source"].as_str(), state["agrees"].as_bool()), (Some("children"), Some(true)), "{state:#}");
    assert!(state["children"]["found"].as_u64().unwrap() >= 40, "{state:#}");
}

/// A subject that reports all events but does not keep its children fails by its end state.
#[test]
#[ignore = "slow"]
fn nightly_who_does_not_keep_its_children_does_not_converge() {
    for (plant, problem) in [("no-child-watch", "lacking"), ("orphaned-child", "orphans"), ("old-child", "stale")] {
        let Some((_folder, soak)) = by_children(Some(plant)) else { return };
        let orphans = (plant == "orphaned-child").then_some("children.orphaned");
        let broken: Vec<&str> = orphans.into_iter().chain(["events.converged"]).collect();
        soak.fails_by(&broken);
        let state = end_state(&soak);
        assert_eq!(state["source"], "children", "{plant}: {state:#}");
        assert!(state["children"][problem].as_u64().unwrap_or_default() > 0, "{plant}: {problem}: {state:#}");
    }
}

/// If the subject's state page does not answer, the end state is inconclusive. No other source of the state replaces
/// the subject's state page.
#[test]
#[ignore = "slow"]
fn a_page_that_cannot_be_read_is_inconclusive() {
    let page = "witness: {kind: http}\n  world: http://127.0.0.1:1/world";
    let changes = [("witness: {kind: http}", page), ("heal: 15s", "heal: 15s, converged: true")];
    let Some((_folder, file)) = watcher(&changes) else { return };
    let soak = soak(&[&file]);
    assert_eq!(soak.code(), Some(2), "{}", soak.story());
    assert_eq!(soak.verdict()["verdict"], "inconclusive", "{}", soak.story());
    let text = soak.finding("events.converged")["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("the end state could not be compared: GET http://127.0.0.1:1/world"), "{text}");
}
