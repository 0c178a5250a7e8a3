//! The scenarios that come with `longhaul`, by name. One file each under `scenarios/library/`; those that show a documented bug
//! lie in `scenarios/library/bugs/` and are embedded by the build script, which lists that folder.

/// Name and text of the scenarios of everyday use, in the order of `longhaul show library`.
const SCENARIOS: [(&str, &str); 41] = [
    ("smoke", include_str!("../../library/smoke.yaml")),
    ("bad-network", include_str!("../../library/bad-network.yaml")),
    ("silence", include_str!("../../library/silence.yaml")),
    ("packet-loss", include_str!("../../library/packet-loss.yaml")),
    ("example-watcher", include_str!("../../library/example-watcher.yaml")),
    ("soak-10m", include_str!("../../library/soak-10m.yaml")),
    ("soak-1h", include_str!("../../library/soak-1h.yaml")),
    ("soak-night", include_str!("../../library/soak-night.yaml")),
    ("soak-10h", include_str!("../../library/soak-10h.yaml")),
    ("soak-100h", include_str!("../../library/soak-100h.yaml")),
    ("soak-fanout", include_str!("../../library/soak-fanout.yaml")),
    ("watch-storm", include_str!("../../library/watch-storm.yaml")),
    ("start-empty-stop-empty", include_str!("../../library/start-empty-stop-empty.yaml")),
    ("children-drift", include_str!("../../library/children-drift.yaml")),
    ("through-apiserver", include_str!("../../library/through-apiserver.yaml")),
    ("registry-slow", include_str!("../../library/registry-slow.yaml")),
    ("registry-down", include_str!("../../library/registry-down.yaml")),
    ("registry-flaky", include_str!("../../library/registry-flaky.yaml")),
    ("tag-moves", include_str!("../../library/tag-moves.yaml")),
    ("lock-race", include_str!("../../library/lock-race.yaml")),
    ("lock-rollback", include_str!("../../library/lock-rollback.yaml")),
    ("redis-loss", include_str!("../../library/redis-loss.yaml")),
    ("receiver-dead", include_str!("../../library/receiver-dead.yaml")),
    ("sidecar-reinvocation", include_str!("../../library/sidecar-reinvocation.yaml")),
    ("rolling-restart", include_str!("../../library/rolling-restart.yaml")),
    ("cert-rotation", include_str!("../../library/cert-rotation.yaml")),
    ("admission-burst", include_str!("../../library/admission-burst.yaml")),
    ("verify-steady", include_str!("../../library/verify-steady.yaml")),
    ("multi-pod", include_str!("../../library/multi-pod.yaml")),
    ("verify-burst", include_str!("../../library/verify-burst.yaml")),
    ("admission-hostile", include_str!("../../library/admission-hostile.yaml")),
    ("verify-registry-sick", include_str!("../../library/verify-registry-sick.yaml")),
    ("verify-keys-rotate", include_str!("../../library/verify-keys-rotate.yaml")),
    ("replicas-steady", include_str!("../../library/replicas-steady.yaml")),
    ("replicas-storm", include_str!("../../library/replicas-storm.yaml")),
    ("replicas-cert-matrix", include_str!("../../library/replicas-cert-matrix.yaml")),
    ("replicas-apiserver-down", include_str!("../../library/replicas-apiserver-down.yaml")),
    ("deployed", include_str!("../../library/deployed.yaml")),
    ("deployed-rollouts", include_str!("../../library/deployed-rollouts.yaml")),
    ("deployed-kills", include_str!("../../library/deployed-kills.yaml")),
    ("gate", include_str!("../../library/gate.yaml")),
];

/// Name and text of the stages of `cargo xtask calibrate`: what planted bugs are played in.
const STAGES: [(&str, &str); 15] = [
    ("calibrate-quick", include_str!("../../library/calibration/calibrate-quick.yaml")),
    ("calibrate-latency", include_str!("../../library/calibration/calibrate-latency.yaml")),
    ("calibrate-replicas", include_str!("../../library/calibration/calibrate-replicas.yaml")),
    ("calibrate-hostile", include_str!("../../library/calibration/calibrate-hostile.yaml")),
    ("calibrate-verify", include_str!("../../library/calibration/calibrate-verify.yaml")),
    ("calibrate-alerts", include_str!("../../library/calibration/calibrate-alerts.yaml")),
    ("calibrate-shared-cache", include_str!("../../library/calibration/calibrate-shared-cache.yaml")),
    ("calibrate-gate", include_str!("../../library/calibration/calibrate-gate.yaml")),
    ("calibrate-gate-objects", include_str!("../../library/calibration/calibrate-gate-objects.yaml")),
    ("calibrate-reviews", include_str!("../../library/calibration/calibrate-reviews.yaml")),
    ("calibrate-objects", include_str!("../../library/calibration/calibrate-objects.yaml")),
    ("calibrate-large-objects", include_str!("../../library/calibration/calibrate-large-objects.yaml")),
    ("calibrate-reviews-small", include_str!("../../library/calibration/calibrate-reviews-small.yaml")),
    ("calibrate-objects-small", include_str!("../../library/calibration/calibrate-objects-small.yaml")),
    ("calibrate-hours", include_str!("../../library/calibration/calibrate-hours.yaml")),
];

/// Name and text of the documented bugs, by name.
const BUGS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/bugs.rs"));

/// The names of everyday use, in the order of the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

/// The names of the stages of `cargo xtask calibrate`.
pub fn stage_names() -> impl Iterator<Item = &'static str> {
    STAGES.iter().map(|(name, _)| *name)
}

/// The names of the documented bugs, by name.
pub fn bug_names() -> impl Iterator<Item = &'static str> {
    BUGS.iter().map(|(name, _)| *name)
}

/// The text of one.
pub fn text(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().chain(&STAGES).chain(BUGS).find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Where one lies in the library, for messages.
pub fn origin(name: &str) -> String {
    let folder = match () {
        () if bug_names().any(|bug| bug == name) => "library/bugs",
        () if stage_names().any(|stage| stage == name) => "library/calibration",
        () => "library",
    };
    format!("{folder}/{name}.yaml")
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;

    /// Every scenario of the library is valid, is named like its file, and begins with its question.
    #[test]
    fn the_library_is_valid() {
        for name in names().chain(stage_names()) {
            let source = Source::read(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(source.scenario.name, name);
            let first = text(name).unwrap_or_default().lines().next().unwrap_or_default();
            assert!(first.starts_with("# ") && first.ends_with('?'), "{name} begins with its question: {first}");
        }
    }

    /// Every bug is valid, named like its file, asks a question, and says which bug it is; none takes longer than a minute.
    #[test]
    fn every_bug_is_valid() {
        for bug in Source::bugs().unwrap_or_else(|error| panic!("{error}")) {
            let scenario = &bug.scenario;
            assert_eq!(bug.origin, format!("library/bugs/{}.yaml", scenario.name), "named like its file");
            assert!(scenario.repro.is_some(), "{}: no `repro`", scenario.name);
            assert!(scenario.description.trim().ends_with('?'), "{}: the description is a question", scenario.name);
            assert!(scenario.phases.total().as_secs() <= 60, "{} takes longer than a minute", scenario.name);
        }
    }

    /// Every file in the folder is in the table: a forgotten one could not be run by name.
    #[test]
    fn no_file_is_forgotten() {
        let folder = |below: &str| {
            let folder = format!("{}/library{below}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path())
        };
        let files = folder("").chain(folder("/calibration"));
        for file in files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(names().chain(stage_names()).any(|known| known == name), "{name} is missing in library.rs");
        }
    }
}
