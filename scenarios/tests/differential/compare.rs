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
    /// The servers are in different states from there on: later steps of the sequence say nothing.
    pub diverges: bool,
    applies: fn(&Step, &Difference) -> bool,
}

/// All meant differences.
pub const MEANT: &[Meant] = &[
    Meant {
        name: "The generation of pods",
        diverges: false,
        applies: |step, found| step.path.contains("/pods") && found.at.ends_with("/metadata/generation"),
    },
    Meant {
        name: "The condition of an evicted pod",
        diverges: false,
        applies: |step, found| {
            let evicted = found.mock.as_ref().is_some_and(|conditions| conditions.to_string().contains(EVICTED));
            step.path.contains("/pods") && found.at.ends_with("/status/conditions") && evicted
        },
    },
    Meant {
        name: "The name label of namespaces",
        diverges: false,
        applies: |_, found| {
            let label = "kubernetes.io/metadata.name";
            found.at.ends_with("/metadata/labels/kubernetes.io~1metadata.name")
                || found.at.ends_with("/metadata/labels")
                    && found.real.is_none()
                    && found.mock.as_ref().is_some_and(|labels| labels.get(label).is_some())
        },
    },
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
        name: "A name beside generateName that is taken",
        diverges: false,
        applies: |step, found| {
            let both = step.body.as_ref().is_some_and(|body| body.pointer("/metadata/generateName").is_some());
            both && found.at == "/status" && is(found.real.as_ref(), 500) && is(found.mock.as_ref(), 409)
        },
    },
    Meant {
        name: "What an update of an event may change",
        diverges: true,
        applies: |step, found| {
            let newer =
                step.path.starts_with("/apis/events.k8s.io/v1/") && matches!(step.method.as_str(), "PATCH" | "PUT");
            let refused = found.at == "/status" && is(found.real.as_ref(), 200) && is(found.mock.as_ref(), 422);
            // Where both refuse it, the newer one has more reasons.
            newer && (refused || found.at == "/body/details/causes")
        },
    },
    Meant {
        name: "Less than no time to end",
        diverges: true,
        applies: |_, found| {
            found.at.ends_with("/metadata/deletionGracePeriodSeconds") && found.real == Some(Value::from(-1))
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
        name: "The count of a series of events",
        diverges: false,
        applies: |step, found| {
            step.path.contains("/events") && found.at.starts_with("/body/rows/") && found.at.ends_with("/cells/8")
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
        name: "List types beside a field that is an integer or a text",
        diverges: true,
        applies: |step, found| {
            let applied = step.content.as_deref() == Some("application/apply-patch+yaml");
            let merged = found.at == "/status" && is(found.real.as_ref(), 409) && is(found.mock.as_ref(), 200);
            applied && step.path.contains("/loose/") && merged
        },
    },
    Meant {
        name: "Taking the last items of a list away",
        diverges: true,
        applies: |step, found| {
            let applied = step.content.as_deref() == Some("application/apply-patch+yaml");
            let body = step.body.as_ref().map(Value::to_string).unwrap_or_default();
            let shorter = ["\"set\":[", "\"entries\":[", "\"ports\":["].iter().any(|list| !body.contains(list));
            let refused = found.at == "/status" && is(found.real.as_ref(), 422) && is(found.mock.as_ref(), 200);
            applied && shorter && step.path.contains("/widgets/") && refused
        },
    },
    Meant {
        name: "Patching an older Secret",
        diverges: true,
        applies: |step, found| {
            let replaces = step.content.as_deref() == Some("application/json-patch+json");
            let differs = found.at == "/status" && is(found.real.as_ref(), 200) && is(found.mock.as_ref(), 422);
            replaces && step.path.contains("/secrets/") && differs
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
        name: "Reasons in the causes of schemas",
        diverges: false,
        applies: |step, found| {
            let custom = ["/widgets", "/loose"].iter().any(|kind| step.path.contains(kind));
            custom && found.at.starts_with("/body/details/causes")
        },
    },
    Meant {
        name: "The remaining count of metadata lists",
        diverges: false,
        applies: |step, found| {
            let metadata = step.accept.as_deref().is_some_and(|accept| accept.contains("PartialObjectMetadataList"));
            metadata && found.at == "/body/metadata/remainingItemCount" && found.real.is_none()
        },
    },
    Meant {
        name: "Copying what is absent",
        diverges: true,
        applies: |step, found| {
            let copies = step.body.as_ref().is_some_and(|body| body.to_string().contains("\"op\":\"copy\""));
            copies && found.at == "/status" && is(found.real.as_ref(), 200) && is(found.mock.as_ref(), 422)
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
        name: "Fields that newer releases fill in",
        diverges: false,
        applies: |step, found| {
            let newer = NEWER_FIELDS.iter().filter(|(kind, _)| step.path.contains(kind));
            found.real.is_none() && newer.flat_map(|(_, fields)| *fields).any(|field| found.at.contains(field))
        },
    },
    Meant {
        name: "Labels of jobs",
        diverges: false,
        applies: |step, found| {
            step.path.contains("/jobs") && (found.at.contains("controller-uid") || found.at.ends_with("/cells/7"))
        },
    },
    Meant {
        name: "Columns that newer releases have",
        diverges: false,
        applies: |step, found| {
            let kinds = ["/jobs/", "/csidrivers/", "/persistentvolume", "/priorityclasses/", "/resourcequotas/"];
            let table = found.at.starts_with("/body/columnDefinitions") || found.at.starts_with("/body/rows/0/cells");
            table && kinds.iter().any(|kind| step.path.contains(kind))
        },
    },
    Meant {
        name: "The generation of a daemon set's template",
        diverges: false,
        applies: |step, found| {
            step.path.contains("/daemonsets/") && found.at == "/body/rows/0/object/metadata/annotations"
        },
    },
    Meant {
        name: "Restarts of pods are a text",
        diverges: false,
        applies: |step, found| {
            let column = found.at.ends_with("/cells/3") || found.at == "/body/columnDefinitions/3/type";
            let event = found.at.ends_with("/object/columnDefinitions/3/type");
            step.path.contains("/pods") && (column || event) && found.mock.as_ref().is_some_and(Value::is_string)
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
            step.path.contains("/persistentvolume") && found.at == "/body/metadata/finalizers" && found.mock.is_none()
        },
    },
    Meant {
        name: "The time of creation that nobody set",
        diverges: false,
        applies: |_, found| {
            found.at.ends_with("/creationTimestamp") && found.real == Some(Value::Null) && found.mock.is_none()
        },
    },
    Meant {
        name: "What the deletion of a service answers",
        diverges: false,
        applies: |step, found| {
            let object =
                ["/body/spec", "/body/metadata", "/body/status", "/body/details", "/body/kind", "/body/apiVersion"];
            step.method == "DELETE"
                && step.path.contains("/services/")
                && object.iter().any(|at| found.at.starts_with(at))
        },
    },
    Meant {
        name: "The revision in the answer to a deletion",
        diverges: false,
        applies: |step, found| {
            step.method == "DELETE"
                && found.at == "/body/metadata/resourceVersion"
                && found.mock.as_ref().is_some_and(|mock| mock == crate::normalise::DELETION)
        },
    },
    Meant {
        name: "An update with a uid of what is absent",
        diverges: true,
        applies: |step, found| {
            step.method == "PUT"
                && found.at == "/status"
                && is(found.real.as_ref(), 409)
                && is(found.mock.as_ref(), 404)
        },
    },
    Meant {
        name: "Options of a deletion that are no JSON",
        diverges: false,
        applies: |step, found| {
            step.method == "DELETE"
                && found.at == "/status"
                && is(found.real.as_ref(), 500)
                && is(found.mock.as_ref(), 400)
        },
    },
    Meant {
        name: "Times in the query that are none",
        diverges: false,
        applies: |step, found| {
            let real = found.real.as_ref().and_then(Value::as_u64).unwrap_or_default();
            step.path.contains("timeout=")
                && found.at == "/status"
                && (200..300).contains(&real)
                && is(found.mock.as_ref(), 400)
        },
    },
    Meant {
        name: "Paths outside the API",
        diverges: false,
        applies: |step, found| step.path == "/nothing/here" && matches!(found.at.as_str(), "/media" | "/body"),
    },
    Meant {
        name: "The group in errors about network policies",
        diverges: false,
        applies: |_, found| found.at == "/body/details/group" && found.real == Some(Value::from("extensions")),
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

/// The reason of a condition that newer releases give to an evicted pod, by a write of its own.
pub const EVICTED: &str = "EvictionByEvictionAPI";

/// `(part of the path, fields)`.
const NEWER_FIELDS: &[(&str, &[&str])] = &[
    ("/services", &["/internalTrafficPolicy", "/ipFamilies", "/ipFamilyPolicy", "/allocateLoadBalancerNodePorts"]),
    ("/statefulsets", &["/persistentVolumeClaimRetentionPolicy", "/status/availableReplicas"]),
    ("/daemonsets", &["/rollingUpdate/maxSurge"]),
    (
        "/jobs",
        &[
            "/generation",
            "batch.kubernetes.io",
            "/completionMode",
            "/manualSelector",
            "/podReplacementPolicy",
            "/suspend",
        ],
    ),
    ("/csidrivers", &["/requiresRepublish", "/seLinuxMount", "/storageCapacity"]),
];

fn is(value: Option<&Value>, number: u64) -> bool {
    value.and_then(Value::as_u64) == Some(number)
}

/// The differences that are not meant, up to the first step that has any: later ones may only follow from it.
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
    // What diverges explains everything else of its step, and what watches show of it.
    kept.retain(|difference| {
        diverged.is_none_or(|at| difference.step < at && !sequence.steps[difference.step].is_watch())
    });
    kept
}

/// All differences, meant or not, in order of steps.
fn differences(real: &[Value], mock: &[Value]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (step, (real, mock)) in real.iter().zip(mock).enumerate() {
        // Below a different status everything differs; that would say nothing.
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
