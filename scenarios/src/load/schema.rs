//! Tests of the checked-in schemas of JSON output.

use std::path::Path;

use schemars::JsonSchema;

/// Checks that the schema in `scenarios/schemas/` equals the schema that the type generates.
/// `LONGHAUL_UPDATE_SCHEMAS=1` rewrites the file.
pub(crate) fn is_checked_in<T: JsonSchema>(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(format!("{name}.schema.json"));
    let current = serde_json::to_string_pretty(&schemars::schema_for!(T)).unwrap() + "\n";
    if std::env::var_os("LONGHAUL_UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == current, "{name}.schema.json is stale: run the test with LONGHAUL_UPDATE_SCHEMAS=1");
}
