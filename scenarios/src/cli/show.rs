//! `longhaul show`: the scenarios and the schema in this program, and the programs on the machine.

use anyhow::Result;
use reports::exit;
use schemars::Schema;
use serde_json::json;

use crate::out::out;
use crate::scenario::{Scenario, Source, library};

mod doctor;

/// The subcommands of `longhaul show`.
#[derive(clap::Subcommand)]
pub(super) enum Topic {
    /// The scenarios of the library with the question that each answers, and the documented bugs with their rows in the catalogue of bugs.
    Library {
        /// Print JSON instead of text.
        #[arg(long)]
        json: bool,
    },
    /// The JSON Schema of scenario files.
    Schema,
    /// The programs that this machine has, and the features that need the missing programs.
    Doctor,
}

pub(super) fn show(what: &Topic) -> Result<u8> {
    match what {
        Topic::Library { json } => library(*json)?,
        Topic::Schema => out!("{}", super::json(&scenario_schema())?),
        Topic::Doctor => doctor::doctor(),
    }
    Ok(exit::PASS)
}

fn library(is_json: bool) -> Result<()> {
    let scenarios = library::names().map(Source::read).collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::new();
    for Source { scenario, .. } in scenarios.into_iter().chain(Source::bugs()?) {
        let question = scenario.description.trim();
        let length = scenario.phases.total();
        let row = scenario.repro.as_ref().map(|repro| repro.row.0.clone());
        if !is_json {
            let (folder, row) = if row.is_some() { ("bugs/", row.unwrap_or_default()) } else { ("", String::new()) };
            let name = format!("{folder}{}", scenario.name);
            out!("{name:36} {row:>4} {:>6}  {question}", units::Span(length).to_string());
            continue;
        }
        all.push(json!({
            "id": scenario.name,
            "row": row,
            "seconds": length.as_secs_f64(),
            "question": question,
            "repro": scenario.repro,
        }));
    }
    if is_json {
        out!("{}", super::json(&all)?);
    }
    Ok(())
}

/// The JSON Schema of scenario files, generated from the types.
fn scenario_schema() -> Schema {
    schemars::schema_for!(Scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checked-in schema of scenario files equals the schema that is generated from the types.
    #[test]
    fn the_checked_in_schema_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scenario.schema.json");
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        let renew = "cargo xtask longhaul show schema > scenarios/scenario.schema.json";
        assert!(checked_in.trim_end() == super::super::json(&scenario_schema()).unwrap(), "run `{renew}`");
    }
}
