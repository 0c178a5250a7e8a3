//! The catalogue of faults in `docs/faults.md` against the faults that there are. Tests only: a fault or key that nobody
//! described, and an example that is refused, must not be released.

use mocks::faults::{Fault, Name, check_all};

const PAGE: &str = include_str!("../../../docs/faults.md");

/// The YAML examples of the page.
fn examples() -> Vec<&'static str> {
    PAGE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_fault_is_described() {
    let missing: Vec<&str> =
        Name::ALL.iter().map(|name| name.as_str()).filter(|name| !PAGE.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/faults.md does not describe {missing:?}");
}

#[test]
fn every_key_is_described() {
    let schema = serde_json::to_value(schemars::schema_for!(Fault)).unwrap();
    let keys = schema["properties"].as_object().unwrap().keys();
    let missing: Vec<&String> = keys.filter(|key| *key != "name" && !PAGE.contains(&format!("`{key}"))).collect();
    assert!(missing.is_empty(), "docs/faults.md does not describe {missing:?}");
}

#[test]
fn every_example_is_accepted() {
    assert!(examples().len() >= 6, "the page has examples");
    for example in examples() {
        let faults: Vec<Fault> = serde_saphyr::from_str(example).unwrap_or_else(|error| panic!("{error}\n{example}"));
        assert!(check_all(&faults).is_ok(), "{:?}\n{example}", check_all(&faults));
    }
}
