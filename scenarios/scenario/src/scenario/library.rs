//! The built-in scenarios of `longhaul`, which users select by name. Each scenario is one file under
//! `scenarios/library/`. The files in `scenarios/library/bugs/` show documented bugs; the build script lists that
//! folder and embeds its files.

/// Names and texts of the named files in one folder of the library.
macro_rules! files {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../library/", $folder, $name, ".yaml")))),+]
    };
}

/// The scenarios for everyday use, in the order of `longhaul show library`.
const SCENARIOS: &[(&str, &str)] = files! { "":
    "smoke", "bad-network", "silence", "packet-loss", "example-watcher", "soak-10m", "soak-1h", "soak-night",
    "soak-10h", "soak-100h", "soak-fanout", "watch-storm", "start-empty-stop-empty", "clock", "watcher", "children-drift",
    "through-apiserver", "registry-slow", "registry-down", "registry-flaky", "tag-moves", "lock-race",
    "lock-rollback", "redis-loss", "receiver-dead", "sidecar-reinvocation", "rolling-restart", "cert-rotation",
    "admission-burst", "verify-steady", "multi-pod", "validator-restart", "validator-slow", "verify-burst", "admission-hostile", "verify-registry-sick",
    "verify-keys-rotate", "replicas-steady", "replicas-storm", "replicas-cert-matrix", "replicas-apiserver-down",
    "deployed", "deployed-rollouts", "deployed-kills", "deployed-upheaval", "gate",
};

/// The scenarios with which `cargo xtask calibrate` runs programs with planted bugs.
const STAGES: &[(&str, &str)] = files! { "calibration/":
    "calibrate-quick", "calibrate-latency", "calibrate-replicas", "calibrate-hostile", "calibrate-attacks", "calibrate-evidence", "calibrate-verify",
    "calibrate-alerts", "calibrate-shared-cache", "calibrate-gate", "calibrate-gate-objects", "calibrate-reviews",
    "calibrate-objects", "calibrate-large-objects", "calibrate-reviews-small", "calibrate-objects-small",
    "calibrate-hours",
};

/// Names and texts of the scenarios that show documented bugs, sorted by name.
const BUGS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/bugs.rs"));

/// The names of the scenarios for everyday use, in the order of `longhaul show library`.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

pub fn stage_names() -> impl Iterator<Item = &'static str> {
    STAGES.iter().map(|(name, _)| *name)
}

pub fn bug_names() -> impl Iterator<Item = &'static str> {
    BUGS.iter().map(|(name, _)| *name)
}

pub fn text(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().chain(STAGES).chain(BUGS).find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The path of a library scenario in the repository, for messages.
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

    /// Every scenario of the library is valid, has the name of its file, and begins with the question that it answers.
    #[test]
    fn the_library_is_valid() {
        for name in names().chain(stage_names()) {
            let source = Source::read(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(source.scenario.name, name);
            let first = text(name).unwrap_or_default().lines().next().unwrap_or_default();
            assert!(first.starts_with("# ") && first.ends_with('?'), "{name} begins with its question: {first}");
        }
    }

    /// Every scenario of a documented bug is valid, has the name of its file, asks a question, names its bug, and takes
    /// a minute at most.
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

    /// Every file in the library's folder is in one of the library's lists of scenarios. A scenario file that is not
    /// listed could not be run by name.
    #[test]
    fn no_file_is_forgotten() {
        let folder = |below: &str| {
            let folder = format!("{}/../library{below}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path())
        };
        let files = folder("").chain(folder("/calibration"));
        for file in files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(names().chain(stage_names()).any(|known| known == name), "{name} is missing in library.rs");
        }
    }
}
