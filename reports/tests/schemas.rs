//! Tests that the committed JSON schemas equal the schemas that the Rust types generate. `LONGHAUL_UPDATE_SCHEMAS=1`
//! writes these schemas again.

use std::path::PathBuf;

use reports::compare::Comparison;
use reports::diff::Diff;
use reports::history::{Entry, Series};
use reports::judge::Judgement;
use reports::record::{
    AnomalyRow, Answers, CommitEvent, CrashRow, End, EndState, FaultRow, Interval, Manifest, MetricsRow, Objects,
    RequestLine, Sample,
};
use schemars::{JsonSchema, Schema, schema_for};

fn schema<T: JsonSchema>() -> Schema {
    schema_for!(T)
}

#[test]
fn schemas_are_current() {
    let schemas = [
        ("manifest", schema::<Manifest>()),
        ("interval", schema::<Interval>()),
        ("metrics", schema::<MetricsRow>()),
        ("crash", schema::<CrashRow>()),
        ("sample", schema::<Sample>()),
        ("fault", schema::<FaultRow>()),
        ("anomaly", schema::<AnomalyRow>()),
        ("commit", schema::<CommitEvent>()),
        ("observation", schema::<facts::Observation>()),
        ("request", schema::<RequestLine>()),
        ("end-state", schema::<EndState>()),
        ("objects", schema::<Objects>()),
        ("answers", schema::<Answers>()),
        ("end", schema::<End>()),
        ("comparison", schema::<Comparison>()),
        ("diff", schema::<Diff>()),
        ("history", schema::<Entry>()),
        ("history-show", schema::<Vec<Series>>()),
        ("verdict", schema::<Judgement>()),
        ("gate", schema::<reports::gate::Judgement>()),
        ("gate-line", schema::<reports::gate::record::Line>()),
        ("size", schema::<reports::size::Sizes>()),
        ("size-beside", schema::<reports::size::Beside>()),
    ];
    let update = std::env::var_os("LONGHAUL_UPDATE_SCHEMAS").is_some();
    for (name, schema) in schemas {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schemas").join(format!("{name}.schema.json"));
        let current = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if update {
            std::fs::write(&path, &current).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == current, "{name}.schema.json is stale: run the test with LONGHAUL_UPDATE_SCHEMAS=1");
    }
}
