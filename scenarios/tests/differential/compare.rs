//! Finds the differences between the answers of two servers, and separates the intended differences.
//!
//! Each entry of [`MEANT`] covers as few answers as possible. The name of an entry is a heading in
//! `mocks/DIFFERENCES.md`, which has the reason.

use serde_json::Value;

use crate::sequence::{Sequence, Step};

/// One value that differs between the two servers' answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub step: usize,
    /// The JSON pointer of the value in the answer.
    pub at: String,
    pub real: Option<Value>,
    pub mock: Option<Value>,
}

/// An intended difference.
pub struct Meant {
    /// The heading in `mocks/DIFFERENCES.md`.
    pub name: &'static str,
    /// Whether this difference leaves the servers in different states, so that later requests of the sequence are not
    /// compared.
    pub diverges: bool,
    applies: fn(&Step, &Difference) -> bool,
}

/// All intended differences between the mock and a real server.
pub const MEANT: &[Meant] = &[
    Meant {
        name: "Writes that change nothing but owners",
        diverges: true,
        applies: |step, found| {
            let writes = matches!(step.method.as_str(), "PATCH" | "PUT");
            let kinds = ["/deployments/", "/pods/", "/secrets/", "/events/", "/widgets/"]
                .iter()
                .any(|kind| step.path.contains(kind));
            writes && kinds && found.at == "/body/metadata/resourceVersion"
        },
    },
    Meant {
        name: "Server-side apply in both APIs of events",
        diverges: true,
        applies: |step, found| {
            let applied = step.content.as_deref() == Some("application/apply-patch+yaml");
            let conflict = found.at == "/status" && is(found.mock.as_ref(), 409);
            applied && step.path.contains("/events/") && (conflict || found.at == "/body/details/causes")
        },
    },
    Meant {
        name: "A default of the status",
        diverges: true,
        applies: |step, found| {
            let status = step.method == "PATCH" && step.path.contains("/states/") && step.path.ends_with("/status");
            status && found.at == "/body/metadata/resourceVersion"
        },
    },
    Meant {
        name: "Applying null where there is a default",
        diverges: true,
        applies: |step, found| {
            let body = step.body.as_ref().map(Value::to_string).unwrap_or_default();
            let applied = step.content.as_deref() == Some("application/apply-patch+yaml");
            applied && body.contains("\"replicas\":null") && found.at == "/body/metadata/generation"
        },
    },
    Meant {
        name: "Definitions are established at once",
        diverges: false,
        applies: |step, found| {
            let definition =
                step.path.split('?').next().is_some_and(|path| path.ends_with("/customresourcedefinitions"));
            definition && (found.at.starts_with("/body/status/acceptedNames") || found.at == "/body/status/conditions")
        },
    },
    Meant {
        name: "A number of replicas of the wrong type",
        diverges: false,
        applies: |step, found| {
            let twice = found.real.as_ref().is_some_and(|causes| causes.to_string().contains("\".spec.replicas\""));
            step.path.contains("/widgets") && found.at == "/body/details/causes" && twice
        },
    },
    Meant {
        name: "Requests without a token",
        diverges: false,
        applies: |step, found| {
            step.token.as_deref() == Some("") && is(found.real.as_ref(), 403) && is(found.mock.as_ref(), 401)
        },
    },
    Meant {
        name: "The addresses of services",
        diverges: false,
        applies: |step, found| {
            let given =
                ["/spec/clusterIP", "odePort", "/cells/2", "/cells/4"].iter().any(|field| found.at.contains(field));
            step.path.contains("/services") && given && found.real.is_some() && found.mock.is_some()
        },
    },
    Meant {
        name: "Volumes and claims in use",
        diverges: true,
        applies: |step, found| {
            let of = ["persistentvolumes", "persistentvolumeclaims", "volumeattributesclasses"];
            let protection = found.real.as_ref().is_some_and(|real| real.to_string().contains("-protection"));
            of.contains(&step.resource())
                && found.at == "/body/metadata/finalizers"
                && protection
                && found.mock.is_none()
        },
    },
    Meant {
        name: "The conditions of flow schemas",
        diverges: true,
        applies: |step, found| {
            let written = ["/cells/5", "/resourceVersion", "/status/conditions"];
            step.resource() == "flowschemas" && written.iter().any(|field| found.at.ends_with(field))
        },
    },
    Meant {
        name: "Combined cluster roles",
        diverges: true,
        applies: |step, found| step.resource() == "clusterroles" && found.at.ends_with("/metadata/resourceVersion"),
    },
    Meant {
        name: "The generation of a slice with disabled fields",
        diverges: true,
        applies: |step, found| step.resource() == "resourceslices" && found.at == "/body/metadata/generation",
    },
    Meant {
        name: "Paths outside the API",
        diverges: false,
        applies: |step, found| step.path == "/nothing/here" && matches!(found.at.as_str(), "/media" | "/body"),
    },
    Meant {
        name: "Deleting from a map that is absent",
        diverges: true,
        applies: |step, found| {
            let strategic = step.content.as_deref() == Some("application/strategic-merge-patch+json");
            strategic
                && found.at.starts_with("/body/data/")
                && found.real == Some(Value::from(""))
                && found.mock.is_none()
        },
    },
    Meant {
        name: "Deleting from a list that is absent",
        diverges: true,
        applies: |step, found| {
            let patch = step.body.as_ref().map(Value::to_string).unwrap_or_default();
            patch.contains("$deleteFromPrimitiveList")
                && found.at == "/body/metadata/finalizers"
                && found.mock.is_none()
        },
    },
    Meant {
        name: "Which object of a collection is refused",
        diverges: true,
        applies: |step, found| {
            let collection = step.method == "DELETE" && step.path.contains("?resourceVersion=");
            let both = found.real.as_ref().is_some_and(Value::is_string) && found.mock.as_ref().is_some();
            collection && both && found.at == "/body/details/name"
        },
    },
];

fn is(value: Option<&Value>, number: u64) -> bool {
    value.and_then(Value::as_u64) == Some(number)
}

/// The unintended differences up to and including the first request (not a watch) that shows one. Later differences may
/// be consequences of this request.
pub fn unmeant(sequence: &Sequence, real: &[Value], mock: &[Value]) -> Vec<Difference> {
    let mut kept: Vec<Difference> = Vec::new();
    let mut diverged = None;
    for difference in differences(real, mock) {
        let step = &sequence.steps[difference.step];
        let after = |at: Option<usize>| at.is_some_and(|at| difference.step > at);
        let is_first = kept.iter().all(|kept| kept.step == difference.step || sequence.steps[kept.step].is_watch());
        if after(diverged) || !is_first {
            break;
        }
        match MEANT.iter().find(|meant| (meant.applies)(step, &difference)) {
            Some(meant) if meant.diverges => diverged = Some(difference.step),
            Some(_) => {}
            None => kept.push(difference),
        }
    }
    // A divergence explains all other differences of its step, and those of watches.
    kept.retain(|difference| {
        diverged.is_none_or(|at| difference.step < at && !sequence.steps[difference.step].is_watch())
    });
    kept
}

/// All differences between the two servers' answers, intended or not, in the order of the requests.
fn differences(real: &[Value], mock: &[Value]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (step, (real, mock)) in real.iter().zip(mock).enumerate() {
        // If the status differs, all other values differ as well, which says nothing.
        if real.get("status") != mock.get("status") || real.get("unsaid") != mock.get("unsaid") {
            let status =
                |answer: &Value| Some(answer.get("status").or(answer.get("unsaid")).cloned().unwrap_or_default());
            found.push(Difference { step, at: "/status".to_owned(), real: status(real), mock: status(mock) });
        } else {
            walk(step, String::new(), Some(real), Some(mock), &mut found);
        }
    }
    found
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
