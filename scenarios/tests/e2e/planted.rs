//! Tests that every planted bug breaks the budget for this bug and no other budget, and that the same program without
//! the bug passes.

use crate::causes;
use crate::support::{Soak, longhaul, program, soak};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");

fn plant(name: &str) -> Option<Soak> {
    let service = program("longhaul-service-planted")?;
    Some(soak(&[SMALL, "--plant", name, "--service", service.to_str().unwrap()]))
}

fn clean() -> Option<Soak> {
    let service = program("longhaul-service")?;
    Some(soak(&[SMALL, "--service", service.to_str().unwrap()]))
}

#[test]
#[ignore = "slow"]
fn the_clean_service_passes() {
    let Some(soak) = clean() else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let verdict = soak.verdict();
    assert_eq!(verdict["verdict"], "pass");
    for file in ["manifest.json", "intervals.jsonl", "samples.jsonl", "latency.hlog", "faults.jsonl", "end.json"] {
        assert!(soak.record().join(file).is_file(), "the record lacks {file}");
    }
    for file in ["report.html", "report.md", "junit.xml", "ctrf.json", "metrics.txt", "subject.log"] {
        assert!(soak.record().join(file).is_file(), "the record lacks {file}");
    }
    let record = soak.record();
    let printed =
        longhaul(&["report", record.to_str().unwrap(), "--csv", "samples.subject.rssBytes"]).output().unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(text.starts_with("tMs,subject.rssBytes\n") && text.lines().count() > 5, "{text}");
    let page = record.join("both.html");
    let record = record.to_str().unwrap();
    let both = longhaul(&["compare", record, record, "--draw", page.to_str().unwrap()]).output().unwrap();
    assert_eq!(both.status.code(), Some(0), "{both:?}");
    assert!(std::fs::read_to_string(page).unwrap().contains("id=\"plot-memory\""), "the series of both");
}

#[test]
#[ignore = "slow"]
fn a_missed_delete_is_a_ghost_and_nothing_else() {
    let Some(soak) = plant("missed-delete") else { return };
    soak.fails_by(&["events.ghost"]);
    causes::lost_in_the_client(&soak);
}

#[test]
#[ignore = "slow"]
fn a_leak_breaks_the_memory_ceiling_and_nothing_else() {
    let Some(soak) = plant("leak-per-object") else { return };
    soak.fails_by(&["memory.ceiling"]);
}

#[test]
#[ignore = "slow"]
fn a_wrong_allow_is_a_wrong_verdict_and_nothing_else() {
    let Some(soak) = plant("wrong-allow") else { return };
    soak.fails_by(&["admission.wrongVerdicts"]);
}

#[test]
#[ignore = "slow"]
fn ignoring_410_misses_events_and_nothing_else() {
    let Some(soak) = plant("ignore-410") else { return };
    assert_eq!(soak.code(), Some(1), "{}", soak.story());
    let broken = soak.broken();
    assert!(broken.contains(&"events.missed".to_owned()), "{}", soak.story());
    assert!(broken.iter().all(|budget| budget.starts_with("events.")), "{}", soak.story());
    assert!(soak.stdout().contains("410"), "the summary names the cause: {}", soak.story());
    // A client that repeats a refused request makes no progress.
    causes::check_cause(&soak.record(), "because requests were refused", &["the last with 410"]);
}

/// An unknown bug is refused. If it were accepted, the run would pass like that of a correct program.
#[test]
#[ignore = "slow"]
fn an_unknown_plant_is_refused() {
    let Some(soak) = plant("no-such-bug") else { return };
    assert_eq!(soak.code(), Some(3), "{}", soak.story());
    assert!(soak.stdout().contains("no-such-bug"), "{}", soak.story());
}

/// A service that keeps everything it receives exceeds its memory budget, although it answers all reviews. The service
/// without the bug passes.
#[test]
#[ignore = "slow"]
fn attacks_are_held_within_the_memory_or_the_ceiling_is_broken() {
    let Some(service) = program("longhaul-service-planted") else { return };
    let stage = include_str!("../../library/calibration/calibrate-hostile.yaml");
    // The limit is that of the shipped build. Unoptimized, the program itself takes some 15 MiB more.
    let (_folder, file) = roomy(stage);
    let (file, service) = (file.as_str(), service.to_str().unwrap());
    let clean = soak(&[file, "--service", service]);
    assert_eq!((clean.code(), clean.broken()), (Some(0), Vec::new()), "{}", clean.story());
    let planted = soak(&[file, "--plant", "holds-everything", "--service", service]);
    assert!(planted.broken().contains(&"memory.ceiling".to_owned()), "{}", planted.story());
}

/// A scenario of `cargo xtask calibrate`, with the memory budget of an unoptimized build, in a folder with the files
/// that it names.
fn roomy(stage: &str) -> (tempfile::TempDir, String) {
    let roomy = stage.replace("ceiling: 64MiB", "ceiling: 80MiB");
    assert_ne!(stage, roomy);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roomy.yaml");
    std::fs::write(&file, roomy).unwrap();
    let path = file.to_str().unwrap().to_owned();
    (folder, path)
}

/// The service's memory limit counts streams without bodies, unread answers, and alerts of 500 images each. If a bug
/// removes the count of streams, answers or alerts, an attack exceeds the memory budget.
#[test]
#[ignore = "slow: four runs of 20 seconds"]
fn streams_answers_and_alerts_are_counted_or_the_ceiling_is_broken() {
    let Some(service) = program("longhaul-service-planted") else { return };
    let (_folder, file) = roomy(include_str!("../../library/calibration/calibrate-attacks.yaml"));
    let service = service.to_str().unwrap();
    let clean = soak(&[file.as_str(), "--service", service]);
    assert_eq!((clean.code(), clean.broken()), (Some(0), Vec::new()), "{}", clean.story());
    let record = std::fs::read_to_string(clean.record().join("faults.jsonl")).unwrap();
    for name in ["attack-open-streams", "attack-unread-answers"] {
        let mut rows = record.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let ended = rows.find(|row| row["name"] == name && row["event"] == "ended").unwrap();
        assert!(ended["hits"].as_u64().unwrap() > 100, "{ended}");
    }
    for name in ["uncounted-streams", "unbounded-answers", "alerts-by-number"] {
        let planted = soak(&[file.as_str(), "--plant", name, "--service", service]);
        let broken = planted.broken();
        assert!(broken.contains(&"memory.ceiling".to_owned()), "{name}: {}", planted.story());
        let other = broken.iter().find(|budget| !["memory.ceiling", "admission.errors"].contains(&budget.as_str()));
        assert_eq!(other, None, "{name}: {}", planted.story());
    }
}

/// A policy that admits images while signatures are unavailable must still deny an image with too much evidence. If a
/// bug treats too much evidence as unavailable, an image is admitted that must not run.
#[test]
#[ignore = "slow: two runs of 14 seconds, side by side"]
fn too_much_evidence_is_denied_or_an_image_is_let_in_that_must_not_run() {
    let Some(service) = program("longhaul-service-planted") else { return };
    let (file, service) = ("calibrate-evidence", service.to_str().unwrap());
    std::thread::scope(|scope| {
        let planted = scope.spawn(|| soak(&[file, "--plant", "evidence-as-unavailable", "--service", service]));
        let clean = soak(&[file, "--service", service]);
        assert_eq!((clean.code(), clean.broken()), (Some(0), Vec::new()), "{}", clean.story());
        let planted = planted.join().unwrap();
        assert_eq!(planted.broken(), ["admission.wrongVerdicts"], "{}", planted.story());
        let rows = std::fs::read_to_string(planted.record().join("intervals.jsonl")).unwrap();
        assert!(rows.contains("hostile/bundles-"), "{}", planted.story());
    });
}

/// Each bug that accepts too many signatures breaks the budget of wrong verdicts. The runs take place in parallel,
/// because each run mostly waits.
#[test]
#[ignore = "slow"]
fn signatures_that_are_believed_too_much_are_wrong_verdicts_and_nothing_else() {
    let Some(service) = program("longhaul-service-planted") else { return };
    let stage = include_str!("../../library/calibration/calibrate-verify.yaml");
    let short = stage.replace("warmUp: 4s, steady: 20s, drain: 3s", "warmUp: 1s, steady: 9s, drain: 1s");
    let short = short.replace("at: 8s, for: 5s", "at: 4s, for: 3s");
    assert!(short.contains("steady: 9s") && short.contains("at: 4s"), "{short}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.yaml");
    std::fs::write(&file, short).unwrap();
    let (file, service) = (file.to_str().unwrap(), service.to_str().unwrap());
    std::thread::scope(|scope| {
        let names = ["accepts-any-signature", "ignores-digest-binding", "caches-cannot-tell", "threshold-counts-twice"];
        let run = |name| (name, soak(&[file, "--plant", name, "--service", service]));
        for played in names.map(|name| scope.spawn(move || run(name))) {
            let (name, soak) = played.join().unwrap();
            assert_eq!(soak.broken(), ["admission.wrongVerdicts"], "{name}: {}", soak.story());
            assert!(soak.stdout().contains("allowed a request that had to be denied"), "{name}: {}", soak.story());
        }
    });
}

/// A service that sends too few or too many alerts, or ignores a lock, breaks only the budget for this mistake. The
/// service without these bugs breaks no budget.
#[test]
#[ignore = "slow"]
fn alerts_and_locks_that_are_wrong_are_found_by_their_own_judges_alone() {
    let (Some(planted), Some(clean)) = (program("longhaul-service-planted"), program("longhaul-service")) else {
        return;
    };
    let (file, planted) = ("calibrate-alerts", planted.to_str().unwrap());
    let twin = soak(&[file, "--service", clean.to_str().unwrap()]);
    assert_eq!((twin.code(), twin.broken()), (Some(0), Vec::new()), "{}", twin.story());
    std::thread::scope(|scope| {
        let plants = [
            ("alert-lost", "alerts.lost"),
            ("alert-twice", "alerts.twice"),
            ("alert-on-dry-run", "alerts.onDryRun"),
            ("lock-ignored", "admission.unlocked"),
        ];
        let run = |(name, judge)| (name, judge, soak(&[file, "--plant", name, "--service", planted]));
        for played in plants.map(|plant| scope.spawn(move || run(plant))) {
            let (name, judge, soak) = played.join().unwrap();
            assert_eq!(soak.broken(), [judge], "{name}: {}", soak.story());
        }
    });
}

/// A Redis as shared cache returns forged verdicts. Only a service with the bug of not checking the authentication code
/// of verdicts believes forged verdicts.
#[test]
#[ignore = "slow"]
fn a_shared_cache_that_forges_verdicts_is_found_where_it_is_believed() {
    let (Some(planted), Some(clean)) = (program("longhaul-service-planted"), program("longhaul-service")) else {
        return;
    };
    let twin = soak(&["calibrate-shared-cache", "--service", clean.to_str().unwrap()]);
    assert_eq!((twin.code(), twin.broken()), (Some(0), Vec::new()), "{}", twin.story());
    let service = planted.to_str().unwrap();
    let soak = soak(&["calibrate-shared-cache", "--plant", "believes-redis", "--service", service]);
    assert_eq!(soak.broken(), ["admission.wrongVerdicts"], "{}", soak.story());
    assert!(soak.stdout().contains("allowed a request that had to be denied"), "{}", soak.story());
}

/// Four actions of the watching service, with different filters, together receive every event. If a bug keeps deletions
/// from passing the filters, the service still shows deleted objects (ghosts).
#[test]
#[ignore = "slow: two runs of half a minute, side by side"]
fn a_filter_that_drops_deletions_leaves_ghosts_and_its_clean_twin_passes() {
    let (Some(planted), Some(clean)) = (program("longhaul-service-planted"), program("longhaul-service")) else {
        return;
    };
    std::thread::scope(|scope| {
        let planted = scope
            .spawn(|| soak(&["watcher", "--plant", "watcher-drops-delete", "--service", planted.to_str().unwrap()]));
        let twin = soak(&["watcher", "--service", clean.to_str().unwrap()]);
        assert_eq!((twin.code(), twin.broken()), (Some(0), Vec::new()), "{}", twin.story());
        let planted = planted.join().unwrap();
        assert!(planted.broken().contains(&"events.ghost".to_owned()), "{}", planted.story());
    });
}

/// If validators (the processes that verify signatures) restart or answer late, the service loses no review. A service
/// that uses only one validator, or ignores a validator's time limit, breaks a budget.
#[test]
#[ignore = "slow"]
fn nightly_validators_that_go_or_are_late_are_found_out_by_who_cannot_bear_it() {
    let (Some(planted), Some(clean)) = (program("longhaul-service-planted"), program("longhaul-service")) else {
        return;
    };
    let (planted, clean) = (planted.to_str().unwrap(), clean.to_str().unwrap());
    for (file, name, judge) in [
        ("validator-restart", "asks-one-validator", "admission.wrongVerdicts"),
        ("validator-slow", "ignores-deadline", "admission.errors"),
    ] {
        let twin = soak(&[file, "--service", clean]);
        assert_eq!((twin.code(), twin.broken()), (Some(0), Vec::new()), "{file}: {}", twin.story());
        let soak = soak(&[file, "--plant", name, "--service", planted]);
        assert_eq!(soak.broken(), [judge], "{name}: {}", soak.story());
    }
}

/// A lock file handles two cases that k8s-digester cannot handle: a race and a rollback. Without the lock file another
/// image runs, which breaks the budget; with the lock file the right image runs.
#[test]
#[ignore = "slow"]
fn nightly_without_a_lock_a_race_and_a_rollback_run_another_image_and_with_it_they_do_not() {
    let Some(service) = program("longhaul-service") else { return };
    let service = service.to_str().unwrap();
    let stories = [
        ("race", include_str!("../../library/lock-race.yaml")),
        ("rollback", include_str!("../../library/lock-rollback.yaml")),
    ];
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        let played = stories.map(|(name, handed)| {
            let withheld = handed.replace("images: 30, lock: handed", "images: 30, lock: withheld");
            assert_ne!(handed, withheld);
            let file = |kind: &str, text: &str| {
                let path = folder.path().join(format!("{name}-{kind}.yaml"));
                std::fs::write(&path, text).unwrap();
                path
            };
            let (with, without) = (file("with", handed), file("without", &withheld));
            scope.spawn(move || {
                let play = |path: &std::path::Path| soak(&[path.to_str().unwrap(), "--service", service]);
                (name, play(&with), play(&without))
            })
        });
        for story in played {
            let (name, with, without) = story.join().unwrap();
            assert_eq!((with.code(), with.broken()), (Some(0), Vec::new()), "{name}: {}", with.story());
            assert_eq!(without.broken(), ["admission.unlocked"], "{name}: {}", without.story());
            assert!(without.stdout().contains("named a digest that is not the locked one"), "{}", without.story());
        }
    });
}
