//! `check`, `plan`, `list` and `schema`: everything about scenario files that runs nothing.

use std::process::ExitCode;

use crate::out::out;
use crate::run::plan_of;
use crate::scenario::{Reach, Scenario, Source, library};

/// Checks every file and reports all that are wrong.
pub(super) fn check(names: &[String], reach: Reach) -> ExitCode {
    let mut code = reports::exit::PASS;
    for name in names {
        match Source::read_within(name, reach) {
            Ok(source) => out!("{}: ok", source.origin),
            Err(error) => {
                crate::out::err!("{error}");
                code = reports::exit::USAGE;
            }
        }
    }
    ExitCode::from(code)
}

/// Prints the plan.
pub(super) fn plan(name: &str, reach: Reach) -> ExitCode {
    match Source::read_within(name, reach) {
        Ok(source) => {
            out!("{}", plan_of(&source.scenario).trim_end());
            ExitCode::from(reports::exit::PASS)
        }
        Err(error) => {
            crate::out::err!("{error}");
            ExitCode::from(reports::exit::USAGE)
        }
    }
}

/// Prints the library.
pub(super) fn list() -> ExitCode {
    for name in library::names() {
        match Source::read(name) {
            Ok(source) => out!("{name:24} {}", source.scenario.description),
            Err(error) => out!("{name:24} {error}"),
        }
    }
    ExitCode::from(reports::exit::PASS)
}

/// Prints the schema that is also checked in as `scenarios/scenario.schema.json`.
pub(super) fn schema() -> ExitCode {
    out!("{}", scenario_schema());
    ExitCode::from(reports::exit::PASS)
}

/// The JSON Schema of scenario files, generated from the types.
fn scenario_schema() -> String {
    let schema = schemars::schema_for!(Scenario);
    serde_json::to_string_pretty(&schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checked-in schema is the one that the types give. To renew it: `longhaul schema > scenarios/scenario.schema.json`.
    #[test]
    fn the_checked_in_schema_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scenario.schema.json");
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            checked_in.trim_end() == scenario_schema(),
            "run `cargo xtask longhaul schema > scenarios/scenario.schema.json`"
        );
    }
}
