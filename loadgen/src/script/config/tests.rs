use super::*;

fn config(steps: &str) -> Config {
    let text =
        format!(r#"{{"resource": "configmaps/v1", "objects": ["a", "b"], "objectsMany": 3, "steps": [{steps}]}}"#);
    serde_json::from_str(&text).unwrap()
}

fn problem(steps: &str) -> String {
    config(steps).check().unwrap_err().to_string()
}

#[test]
fn a_step_may_name_one_object_or_several() {
    let config = config(r#"{"at": "1s", "update": "a"}, {"when": {"hit": "x"}, "delete": ["a", "p00002"]}"#);
    config.check().unwrap();
    assert_eq!(config.steps[0].verb().unwrap().1, ["a"]);
    assert_eq!(config.steps[1].verb().unwrap().1, ["a", "p00002"]);
}

#[test]
fn every_refusal_names_the_step_and_what_to_write() {
    assert_eq!(
        problem(r#"{"at": "1s", "create": "c", "delete": "a"}"#),
        "script.steps[1]: has `create` and `delete`: write a step of its own for each"
    );
    assert!(problem(r#"{"at": "1s", "deleteCollection": {"selector": " "}}"#).contains("write `burst=yes`"));
    assert!(
        problem(r#"{"at": "1s", "deleteCollection": {"selector": "a=b"}, "times": 2}"#).contains("have no meaning")
    );
    assert!(problem(r#"{"at": "1s", "create": "c", "labels": {"a b": "c"}}"#).contains("is no label: write"));
    assert!(problem(r#"{"at": "1s"}"#).contains("does nothing: write one of `create`"));
    assert!(problem(r#"{"update": "a"}"#).contains("has no time: write `at: 3s` or `when: {hit: ID}`"));
    assert!(problem(r#"{"at": "1s", "when": {"hit": "x"}, "update": "a"}"#).contains("keep one"));
    assert_eq!(
        problem(r#"{"at": "1s", "update": "a"}, {"at": "2s", "update": "c"}"#),
        "script.steps[2].update: there is no object `c`: known are a, b, p00000, p00001, p00002"
    );
    assert!(problem(r#"{"at": "1s", "update": "A_"}"#).contains("lower-case letters"));
    assert!(problem(r#"{"at": "1s", "update": "a", "times": 0}"#).contains("makes 0 writes"));
    assert!(problem(r#"{"at": "1s", "update": "a", "size": "2MiB"}"#).contains("at most `1MiB`"));
    assert!(problem(r#"{"at": "1s", "update": "a", "resource": "pods/v1"}"#).contains("cannot be written"));
    let error = serde_json::from_str::<Step>(r#"{"at": "1s", "upsert": "a"}"#).unwrap_err().to_string();
    assert!(error.contains("unknown field `upsert`"), "{error}");
}

#[test]
fn names_that_a_step_makes_are_known_to_the_others() {
    config(r#"{"at": "1s", "create": "n", "times": 2}, {"at": "2s", "delete": ["n-1", "n-2"]}"#).check().unwrap();
    config(r#"{"at": "1s", "create": ["c"]}, {"at": "2s", "recreate": "c"}"#).check().unwrap();
}

#[test]
fn a_collection_is_a_step_of_its_own() {
    let config = config(
        r#"{"at": "1s", "create": "c", "labels": {"burst": "yes"}}, {"at": "2s", "deleteCollection": {"selector": "burst=yes"}}"#,
    );
    config.check().unwrap();
    assert_eq!(config.steps[1].verb(), Some((Verb::DeleteCollection, &[][..])));
}
