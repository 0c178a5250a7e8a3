//! Says where two sets of answers differ, and which of these differences are meant.
//!
//! Owns the list of meant differences. Each has a name under which `mocks/DIFFERENCES.md` gives the reason, and is as
//! narrow as it can be said.

use serde_json::Value;

use crate::sequence::{Sequence, Step};

/// One value that is not the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub step: usize,
    /// A JSON pointer into the answer.
    pub at: String,
    pub real: Option<Value>,
    pub mock: Option<Value>,
}

/// A difference that is meant.
pub struct Meant {
    /// The heading in `mocks/DIFFERENCES.md`.
    pub name: &'static str,
    applies: fn(&Step, &Difference) -> bool,
}

/// All meant differences.
pub const MEANT: &[Meant] = &[];

/// All differences, meant or not, in order of steps.
pub fn differences(real: &[Value], mock: &[Value]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (step, (real, mock)) in real.iter().zip(mock).enumerate() {
        // Below a different status everything differs; that would say nothing.
        if real.get("status") != mock.get("status") || real.get("unsaid") != mock.get("unsaid") {
            let status = |answer: &Value| Some(answer.get("status").or(answer.get("unsaid")).cloned().unwrap_or_default());
            found.push(Difference { step, at: "/status".to_owned(), real: status(real), mock: status(mock) });
        } else {
            walk(step, String::new(), Some(real), Some(mock), &mut found);
        }
    }
    found
}

/// The name of the meant difference that this is.
pub fn meant(sequence: &Sequence, difference: &Difference) -> Option<&'static str> {
    let step = &sequence.steps[difference.step];
    MEANT.iter().find(|meant| (meant.applies)(step, difference)).map(|meant| meant.name)
}

fn walk(step: usize, at: String, real: Option<&Value>, mock: Option<&Value>, found: &mut Vec<Difference>) {
    match (real, mock) {
        (Some(real), Some(mock)) if real == mock => {}
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                walk(step, format!("{at}/{escaped}"), left.get(key), right.get(key), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                walk(step, format!("{at}/{index}"), Some(left), Some(right), found);
            }
        }
        _ => found.push(Difference { step, at, real: real.cloned(), mock: mock.cloned() }),
    }
}
