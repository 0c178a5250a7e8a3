//! Sequences of requests with unknown fields at every depth of objects of every kind.

use serde_json::{Value, json};

use crate::generator::Kind;
use crate::sequence::{Sequence, Step};

/// Fields that are maps: their keys are data and not field names.
const MAPS: &[&str] =
    &["annotations", "binaryData", "data", "labels", "limits", "matchLabels", "nodeSelector", "requests", "stringData"];

pub fn all() -> Vec<Sequence> {
    Kind::ALL.iter().map(|kind| Sequence { name: format!("unknown fields of {kind:?}"), steps: steps(*kind) }).collect()
}

fn steps(kind: Kind) -> Vec<Step> {
    let path = kind.path();
    let one = format!("{path}/a");
    let mut object = kind.object("a", 0);
    stray(&mut object);
    let mut richer = kind.object("b", 1);
    stray(&mut richer);
    let patch =
        json!({"stray": {"x": 1}, "metadata": {"stray": 1, "labels": {"stray": "kept"}}, "spec": {"stray": [1]}});
    vec![
        Step::post(&path[..], object.clone()),
        Step::post(&path[..], richer),
        Step::put(&one[..], object),
        Step::patch(&one[..], "merge-patch", patch.clone()),
        Step::patch(&one[..], "strategic-merge-patch", patch),
        Step::patch(&one[..], "json-patch", json!([{"op": "add", "path": "/metadata/stray", "value": {"x": 1}}])),
        Step::get(&path[..]),
    ]
}

/// Adds an unknown field to every object.
fn stray(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, below) in map.iter_mut() {
                if !MAPS.contains(&key.as_str()) {
                    stray(below);
                }
            }
            map.insert("stray".to_owned(), json!({"x": 1}));
        }
        Value::Array(items) => items.iter_mut().for_each(stray),
        _ => {}
    }
}
