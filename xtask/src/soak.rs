//! `cargo xtask soak`, `matrix`, `worlds`, `calibrate` and `longhaul`: build programs, then run `longhaul`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::cargo;

/// Builds `longhaul` and the subjects that a command needs, and runs `longhaul`.
pub(crate) fn longhaul(command: Option<&str>, arguments: Vec<String>) -> Result<ExitCode> {
    let all: Vec<String> = command.map(str::to_owned).into_iter().chain(arguments).collect();
    let program = cargo::build_soak(&all, &features(&all))?;
    if plays_planted(&all) {
        cargo::build_planted()?;
    }
    hand_over(&program, &all)
}

/// The features of the service in every soak: the lean service, and the memory allocator of releases, because runs
/// judge memory.
const LEAN: [&str; 3] = ["admission", "packages", "jemalloc"];
/// Texts that a scenario may contain, each with the feature of the service that it needs.
const ASKED_BY: [(&str, &str); 7] = [
    ("signed: true", "verify"),
    ("validators:", "validator"),
    ("alerts:", "alerting"),
    ("sharedCache:", "shared-cache"),
    ("watcher:", "watcher"),
    // Its callers get certificates of the command `certs dev`, whose feature implies `replicas`.
    ("api:", "certs-dev"),
    ("ownCertificates:", "own-certificates"),
];
/// Texts of a scenario that show that its subject or configuration is in another file.
const ELSEWHERE: [&str; 4] = ["config:", "deployment:", "command:", "programs:"];

/// The features of the service for a command. A soak of a library scenario gets the service with the features that the
/// scenario needs. Every other command gets the service with all features.
fn features(arguments: &[String]) -> String {
    let scenario = match arguments {
        [soak] if soak == "soak" => Some("smoke"),
        [soak, name] if soak == "soak" && !name.starts_with('-') && !name.contains('.') => Some(name.as_str()),
        _ => None,
    };
    let text = scenario.and_then(|name| {
        std::fs::read_to_string(cargo::root().join("scenarios/library").join(name).with_extension("yaml")).ok()
    });
    text.and_then(|text| features_of(&text)).unwrap_or_else(|| cargo::FULL.to_owned())
}

/// The features of the service that a scenario with this text needs; `None` if the text does not show the features.
fn features_of(scenario: &str) -> Option<String> {
    let lines = || scenario.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let has = |word: &str| lines().any(|line| line.contains(word));
    if !has("service:") || ELSEWHERE.into_iter().any(has) {
        return None;
    }
    let asked = ASKED_BY.into_iter().filter(|(word, _)| has(word)).map(|(_, feature)| feature);
    let features = LEAN.into_iter().chain(asked).map(|feature| format!("service/{feature}"));
    Some(format!("--features={}", features.collect::<Vec<_>>().join(",")))
}

/// Whether a command runs programs with planted bugs.
fn plays_planted(arguments: &[String]) -> bool {
    // The command of a client follows it.
    let ours = arguments.iter().take_while(|argument| *argument != "--");
    let has = |option: &str| ours.clone().any(|argument| argument.split('=').next() == Some(option));
    match arguments.first().map(String::as_str) {
        Some("calibrate") => !["--synthetic", "--list", "--help", "-h", "--planted"].into_iter().any(has),
        Some("soak") => has("--plant"),
        Some("worlds") => !["--table", "--help", "-h"].into_iter().any(has),
        _ => false,
    }
}

/// Environment variables that `.cargo/config.toml` sets for the C code in builds of this workspace. Cargo also passes
/// these variables to the programs that it runs.
const FOR_OUR_BUILD: [(&str, &str); 3] = [
    ("CFLAGS", "-g0"),
    ("MAKEFLAGS", "-- STATIC_LIBS=lib/libjemalloc_pic.a C_SYMS="),
    ("AWS_LC_SYS_NO_JITTER_ENTROPY", "1"),
];

/// The build variables that a subject must not inherit, because the subject may itself run `make`. The subject inherits
/// a build variable if the user has set another value.
fn only_for_our_build(value_of: impl Fn(&str) -> Option<OsString>) -> impl Iterator<Item = &'static str> {
    FOR_OUR_BUILD
        .into_iter()
        .filter(move |(name, ours)| value_of(name).is_some_and(|value| value == *ours))
        .map(|(name, _)| name)
}

/// Replaces this process by `longhaul`, in the caller's folder, so that relative paths on the command line work.
///
/// Ctrl-C therefore reaches `longhaul` alone, and the exit code is that of `longhaul`.
fn hand_over(program: &Path, arguments: &[String]) -> Result<ExitCode> {
    let mut command = Command::new(program);
    command.args(arguments).env("LONGHAUL_STARTED_AS", "cargo xtask");
    for name in only_for_our_build(|name| std::env::var_os(name)) {
        command.env_remove(name);
    }
    let error = command.exec();
    Err(error).with_context(|| format!("failed to start {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_our_build_is_kept_from_subjects() {
        let config = include_str!("../../.cargo/config.toml");
        let (_, set) = config.split_once("[env]").unwrap();
        let set: Vec<&str> = set.lines().filter(|line| line.contains('=')).collect();
        assert_eq!(set, FOR_OUR_BUILD.map(|(name, value)| format!("{name} = \"{value}\"")));
        let of = |makeflags: &'static str| {
            only_for_our_build(move |name| (name == "MAKEFLAGS").then(|| makeflags.into())).collect::<Vec<_>>()
        };
        assert_eq!(of(FOR_OUR_BUILD[1].1), ["MAKEFLAGS"]);
        assert!(of("-j8").is_empty());
    }

    #[test]
    fn a_soak_builds_the_features_of_its_scenario() {
        let built = |line: &str| features(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let lean = "--features=service/admission,service/packages,service/jemalloc";
        assert_eq!((built("soak"), built("soak smoke")), (lean.to_owned(), lean.to_owned()));
        assert_eq!(built("soak verify-steady"), format!("{lean},service/verify"));
        assert_eq!(built("soak multi-pod"), format!("{lean},service/verify,service/validator"));
        assert_eq!(built("soak receiver-dead"), format!("{lean},service/alerting"));
        assert_eq!(built("soak redis-loss"), format!("{lean},service/verify,service/shared-cache"));
        assert_eq!(built("soak watcher"), format!("{lean},service/watcher"));
        assert_eq!(built("soak replicas-steady"), format!("{lean},service/certs-dev"));
        for line in [
            "soak smoke --seed 3",
            "soak my.yaml",
            "soak smoke.yaml",
            "soak no-such",
            "soak deployed",
            "matrix",
            "calibrate",
            "soak --help",
        ] {
            assert_eq!(built(line), cargo::FULL, "{line}");
        }
    }

    #[test]
    fn planted_programs_are_built_for_what_plays_them() {
        let plays = |line: &str| plays_planted(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(plays("calibrate --repeats 2") && plays("soak --plant step") && plays("soak smoke --plant=step"));
        assert!(
            !plays("calibrate --synthetic")
                && !plays("calibrate --list")
                && !plays("soak smoke -- x --plant")
                && !plays("matrix")
        );
    }
}
