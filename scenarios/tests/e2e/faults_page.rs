//! Tests of `docs/faults.md` as its readers use it. Every example of the document runs, and each fault in it has as
//! many hits as the document states. All examples together use every key of a scenario for faults, scripts, events and
//! requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use mock_faults::{Fault, Name};
use serde_json::{Value, json};

use crate::plays::{PlayResult, play_all, stalled};
use crate::support::{commits, longhaul, program, rows};

mod hits;
mod registry;

use hits::Hits;

const PAGE: &str = include_str!("../../../docs/faults.md");
/// The documents with examples. The first example of the first document is a whole scenario file, and all other
/// examples change this scenario.
const PAGES: [(&str, &str); 2] =
    [("docs/faults.md", PAGE), ("docs/examples/faults.md", include_str!("../../../docs/examples/faults.md"))];
const SCHEMA: &str = include_str!("../../scenario.schema.json");

/// Beginning of the comment in a document that gives the client's arguments for an example.
const PLAYED_WITH: &str = "played with ";
/// The comment in a document before an example with faults that only a registry injects.
const PLAYED_TO: &str = "played to a registry's clients";
/// The comments in a document before examples with faults that only a cluster can inject. Tests in other files inject
/// the faults of a node. The tests of this file only check that such an example is a valid scenario.
const PLAYED_IN: [(&str, &str); 2] = [("played on a node", "node"), ("played on kind", "kind")];
/// The comment in a document before an example whose subject is the built-in service.
const PLAYED_WITH_SERVICE: &str = "played with the built-in service";
/// Beginning of the comment in a document that states the hits of each fault; see `hits`.
const HITS: &str = "hits: ";
/// Keys of a fault that select requests. Every other key of a fault is a parameter, and the examples must use each
/// parameter with every fault that has this parameter.
const CHOOSING: [&str; 15] = [
    "id",
    "at",
    "when",
    "for",
    "nth",
    "every",
    "afterEvents",
    "count",
    "probability",
    "resource",
    "on",
    "query",
    "userAgent",
    "repository",
    "endpoint",
];

/// One YAML block of a document.
#[derive(Debug, Clone)]
struct Example {
    /// The document, and the line in which the block begins.
    place: String,
    /// Arguments of the client for this example.
    arguments: Vec<String>,
    /// Whether the faults of the example are injected by a registry.
    registry: bool,
    /// Whether the subject is the built-in service.
    service: bool,
    /// Whether the example needs a cluster.
    in_cluster: bool,
    /// The expected hits of each fault of the example.
    hits: Vec<Hits>,
    /// The scenario to run. If the block is a list, it replaces the faults of the first example, else its keys replace
    /// those of the first example.
    scenario: Value,
}

#[test]
#[ignore = "slow"]
fn nightly_every_example_is_played_and_every_fault_in_it_is_hit_as_often_as_it_says() {
    let Some(client) = program("planted-client") else { return };
    let examples = examples();
    let all = examples.len();
    let played = play_all(examples, |example| play(&client, example));
    for needs in played.done.iter().filter_map(|(_, seen)| seen.skipped.as_ref()) {
        println!("skipped: needs {}", needs.trim());
    }
    println!("{all} examples, {}", played.summary());
    let wrong = played.wrong(|example| example.place.clone());
    assert!(wrong.is_empty(), "{wrong}");
}

/// Runs the example as a reader does: the YAML in a file, and `longhaul soak FILE -- client`.
fn play(client: &Path, example: &Example) -> PlayResult {
    if example.registry {
        return PlayResult { wrong: registry::play(example.faults(), &example.hits), ..PlayResult::default() };
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my-bug.yaml");
    std::fs::write(&file, example.scenario.to_string()).unwrap();
    if example.in_cluster {
        let checked = longhaul(&["check", "--plan", file.to_str().unwrap()]).output().unwrap();
        let wrong = if checked.status.success() {
            String::new()
        } else {
            String::from_utf8_lossy(&checked.stderr).into_owned()
        };
        return PlayResult { wrong, ..PlayResult::default() };
    }
    let mut run = longhaul(&["soak", file.to_str().unwrap(), "--json", "--quiet", "--runs"]);
    run.arg(folder.path());
    if example.service {
        let Some(service) = program("longhaul-service") else { return PlayResult::default() };
        run.arg("--keep-events").arg("--service").arg(service);
    } else {
        run.arg("--").arg(client).args(&example.arguments);
    }
    let output = run.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut seen = PlayResult::default();
    let lossy = example.faults().iter().any(|fault| fault["name"] == "net-loss");
    match (serde_json::from_slice::<Value>(&output.stdout), said.split_once("skipped: ")) {
        (Ok(answer), _) => {
            seen.wrong = judge(example, folder.path(), output.status.code(), &answer);
            seen.stalled = stalled(&answer);
        }
        // Only lost packets need features that some machines lack.
        (Err(_), Some((_, why))) if lossy => seen.skipped = why.split_once(" need ").map(|(_, needs)| needs.to_owned()),
        (Err(error), _) => seen.wrong = format!("exit {:?}, {error}: {said}", output.status.code()),
    }
    seen
}

/// The differences between the run of an example and the statements of its document; empty if there are none.
fn judge(example: &Example, runs: &Path, code: Option<i32>, answer: &Value) -> String {
    let mut wrong = String::new();
    if code != Some(0) {
        let _ = write!(wrong, "exit {code:?}, {}: {}; ", answer["words"], answer["reason"]);
    }
    // Only the answer of a run with a client names its record.
    let Some(record) = answer["record"].as_str().or(answer["runId"].as_str()).map(|name| runs.join(name)) else {
        return format!("{wrong}no record: {answer}");
    };
    let record = record.as_path();
    let mut hits: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows(record, "faults.jsonl") {
        let most = hits.entry(row["id"].as_str().unwrap().to_owned()).or_default();
        *most = (*most).max(row["hits"].as_u64().unwrap_or(0));
    }
    let mut counted = Vec::new();
    for (index, (fault, meant)) in example.faults().iter().zip(&example.hits).enumerate() {
        let name = fault["name"].as_str().unwrap();
        let hits = hits.get(&format!("{}-{name}", index + 1)).copied().unwrap_or(0);
        counted.push(format!("{hits} of {name}"));
        if !meant.hold(hits) {
            let _ = write!(wrong, "{hits} hits of {fault}, where {meant} are meant; ");
        }
    }
    println!("{}: hits: {}", example.place, counted.join(", "));
    for (what, times) in unwritten(example, record) {
        let _ = write!(wrong, "{what} is missing {times} times among the commits; ");
    }
    wrong
}

/// The writes of the example's script that are missing in the record.
fn unwritten(example: &Example, record: &Path) -> BTreeMap<String, i64> {
    let mut missing: BTreeMap<String, i64> = BTreeMap::new();
    let script = &example.scenario["script"];
    let steps = script["steps"].as_array().map_or(&[][..], Vec::as_slice);
    for step in steps.iter().filter(|step| step.get("resource").is_none()) {
        let times = step["times"].as_i64().unwrap_or(1);
        for (verb, changes) in [
            ("create", &["added"][..]),
            ("update", &["modified"]),
            ("delete", &["deleted"]),
            ("recreate", &["deleted", "added"]),
        ] {
            for (name, change) in
                written(step, verb).iter().flat_map(|name| changes.iter().map(move |change| (name, change)))
            {
                let each = if verb == "create" { 1 } else { times };
                *missing.entry(format!("{name} {change}")).or_default() += each;
            }
        }
        for name in step["deleteCollection"]["selector"].as_str().map_or(vec![], |with| labelled(script, with)) {
            *missing.entry(format!("{name} deleted")).or_default() += 1;
        }
    }
    for commit in commits(record) {
        let what = format!("{} {}", commit["name"].as_str().unwrap(), commit["change"].as_str().unwrap());
        // Objects from before the start of the client are no step.
        if commit["tMs"] != 0
            && let Some(times) = missing.get_mut(&what)
        {
            *times -= 1;
        }
    }
    missing.retain(|_, times| *times > 0);
    missing
}

/// The names of the objects that a step writes with this verb.
fn written(step: &Value, verb: &str) -> Vec<String> {
    let names = texts(&step[verb]);
    match step["times"].as_i64() {
        Some(times @ 2..) if verb == "create" => {
            names.iter().flat_map(|name| (1..=times).map(move |number| format!("{name}-{number}"))).collect()
        }
        _ => names,
    }
}

/// The objects of a script that have this label, `key=value`.
fn labelled(script: &Value, selector: &str) -> Vec<String> {
    let (key, value) = selector.split_once('=').expect("a selector of the page is an equality");
    let has = |labels: &Value| labels[key] == value;
    let made = script["steps"].as_array().into_iter().flatten().filter(|step| has(&step["labels"]));
    let made = made.flat_map(|step| written(step, "create"));
    if has(&script["labels"]) { texts(&script["objects"]).into_iter().chain(made).collect() } else { made.collect() }
}

/// The texts in a value that is one text or a list of texts.
fn texts(value: &Value) -> Vec<String> {
    let owned = |text: &Value| text.as_str().map(str::to_owned);
    owned(value).into_iter().chain(value.as_array().into_iter().flatten().filter_map(owned)).collect()
}

impl Example {
    fn faults(&self) -> &[Value] {
        self.scenario["faults"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// All examples of the documents, in order.
fn examples() -> Vec<Example> {
    let (mut examples, mut base) = (Vec::new(), Value::Null);
    for (name, page) in PAGES {
        let mut at = 0;
        while let Some(found) = page[at..].find("```yaml\n") {
            let (begin, text) = (at + found, at + found + "```yaml\n".len());
            let end = text + page[text..].find("```\n").expect("a block of the page ends");
            let place = format!("{name}:{}", page[..begin].lines().count() + 1);
            examples.push(example(place, &said_before(&page[..begin]), &page[text..end], &mut base));
            at = end;
        }
    }
    examples
}

/// Parses the example in a YAML block, with the comments before the block. The first example becomes the base of all
/// other examples.
fn example(place: String, said: &[&str], text: &str, base: &mut Value) -> Example {
    let find = |word: &str| said.iter().find_map(|comment| comment.strip_prefix(word));
    let (registry, service, hits) = (find(PLAYED_TO).is_some(), find(PLAYED_WITH_SERVICE).is_some(), find(HITS));
    let arguments = find(PLAYED_WITH).filter(|_| !service).unwrap_or_default();
    let cluster = PLAYED_IN.iter().find_map(|(mark, kind)| find(mark).map(|_| *kind));
    let yaml: Value = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{place}: {error}\n{text}"));
    let mut scenario = base.clone();
    if service {
        let settings = json!({"policy": {"cache": {"ttl": "1s"}}});
        scenario["subject"] = json!({"service": {"validators": 2, "settings": settings}, "witness": {"kind": "http"}});
        scenario["registry"] = json!({"kind": "mock", "signed": true});
        scenario["sharedCache"] = json!({});
        scenario["admission"] = json!({"rate": "20/s", "client": "apiserver", "mix": {"createPod": 1}});
    }
    match yaml {
        whole @ Value::Object(_) if whole.get("apiVersion").is_some() => scenario = whole,
        list @ Value::Array(_) => {
            scenario["faults"] = list;
            if let Some(kind) = cluster {
                scenario["controlPlane"] = json!({"kind": kind});
                scenario["subject"] = json!({"deployment": {"build": "service"}, "witness": {"kind": "http"}});
            }
        }
        Value::Object(keys) => scenario.as_object_mut().expect("the first is whole").extend(keys),
        other => panic!("{place}: {other} is no example"),
    }
    if base.is_null() {
        *base = scenario.clone();
    }
    let arguments = arguments.split_whitespace().map(str::to_owned).collect();
    let faults = scenario["faults"].as_array().map_or(&[][..], Vec::as_slice);
    let hits = hits::meant(hits, faults).unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
    Example { place, arguments, registry, service, in_cluster: cluster.is_some(), hits, scenario }
}

/// The comments at the end of a text, the last comment first.
fn said_before(text: &'static str) -> Vec<&'static str> {
    let comment = |line: &'static str| line.strip_prefix("<!-- ")?.strip_suffix(" -->");
    text.lines().rev().map_while(comment).collect()
}

/// The keys that the schema allows at a path from the top.
fn keys(schema: &Value, path: &[&str]) -> BTreeSet<String> {
    let at = path.iter().fold(resolved(schema, schema), |at, key| {
        let at = &at["properties"][*key];
        resolved(schema, if at["type"] == "array" { &at["items"] } else { at })
    });
    at["properties"].as_object().unwrap_or_else(|| panic!("{path:?} has keys")).keys().cloned().collect()
}

/// The target of a reference in the JSON schema. If the schema has alternatives, this is the first reference, or the
/// item type of a list.
fn resolved<'a>(schema: &'a Value, at: &'a Value) -> &'a Value {
    let of = |at: &'a Value| at["$ref"].as_str().and_then(|text| text.strip_prefix("#/$defs/"));
    let reference = |at: &'a Value| of(at).or_else(|| of(&at["items"]));
    let mut choices = std::iter::once(at).chain(at["anyOf"].as_array().into_iter().flatten());
    choices.find_map(reference).map_or(at, |name| resolved(schema, &schema["$defs"][name]))
}

/// The allowed words of a key in the schema, if its value is a word.
fn words(schema: &Value, key: &str) -> Vec<String> {
    let values = resolved(schema, &schema["$defs"]["Fault"]["properties"][key]);
    let words = values["oneOf"].as_array().into_iter().flatten();
    words.filter_map(|word| Some(word["const"].as_str()?.to_owned())).collect()
}

/// All keys that the examples use below a path. For a list on the path, the keys of all its items are collected.
fn used(path: &[&str]) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for example in examples() {
        let mut at = vec![&example.scenario];
        for key in path {
            at = at.into_iter().map(|at| &at[*key]).collect();
            at = at.into_iter().flat_map(|at| at.as_array().map_or(vec![at], |all| all.iter().collect())).collect();
        }
        used.extend(at.into_iter().filter_map(Value::as_object).flat_map(|keys| keys.keys().cloned()));
    }
    used
}

#[test]
#[ignore = "slow"]
fn every_fault_key_and_word_is_in_an_example() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let faults: Vec<Value> = examples().iter().flat_map(|example| example.faults().to_vec()).collect();
    let known = keys(&schema, &["faults"]);
    let mut missing: Vec<String> = Vec::new();
    for key in CHOOSING {
        assert!(known.contains(key), "the schema has no `{key}`: it is no choosing key any more");
        if !faults.iter().any(|fault| fault.get(key).is_some()) {
            missing.push(format!("`{key}`"));
        }
    }
    // `process-kill` needs a command with `restart`; the client of the page has none.
    for name in Name::ALL.iter().map(|name| name.as_str()).filter(|name| *name != "process-kill") {
        let its: Vec<&Value> = faults.iter().filter(|fault| fault["name"] == name).collect();
        if its.is_empty() {
            missing.push(format!("`{name}`"));
        }
        for key in known.iter().filter(|key| *key != "name" && !CHOOSING.contains(&key.as_str())) {
            // A key belongs to this fault if it accepts any value shown for the key elsewhere.
            let mut shown = faults.iter().filter_map(|fault| fault.get(key));
            let accepted = |value: &Value| {
                let fault = serde_json::from_value::<Fault>(json!({"name": name, "at": "1s", (key): value}));
                fault.is_ok_and(|fault| fault.check().is_ok())
            };
            if shown.any(accepted) && !its.iter().any(|fault| fault.get(key).is_some()) {
                missing.push(format!("`{key}` of `{name}`"));
            }
        }
    }
    // The client of the page is one process: `library/clock.yaml` shows `process`. It is in no Pod.
    for key in known.iter().filter(|key| *key != "process") {
        if !faults.iter().any(|fault| fault.get(key).is_some()) {
            missing.push(format!("`{key}`"));
        }
        let unseen = |word: &String| !faults.iter().any(|fault| fault.get(key) == Some(&json!(word)));
        let is_elsewhere = |word: &String| word == "process-kill";
        for word in words(&schema, key).into_iter().filter(unseen).filter(|word| !is_elsewhere(word)) {
            // HTTP/2 has many codes with the same effect; the page names them.
            if key != "code" || !PAGE.contains(&format!("`{word}`")) {
                missing.push(format!("`{key}: {word}`"));
            }
        }
    }
    assert!(missing.is_empty(), "docs/examples/faults.md has no example of {}", missing.join(", "));
}

#[test]
#[ignore = "slow"]
fn every_key_of_scripts_and_budgets_is_in_an_example() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let paths: [&[&str]; 10] = [
        &["faults", "when"],
        &["script"],
        &["script", "steps"],
        &["script", "steps", "when"],
        &["budgets", "events"],
        &["budgets", "requests"],
        &["budgets", "requests", "watches"],
        &["budgets", "requests", "connections"],
        &["phases"],
        &["faults"],
    ];
    for path in paths {
        let (known, used) = (keys(&schema, path), used(path));
        // The client of the page creates no children: `library/children-drift.yaml` shows `restored`. It watches
        // packages, which need no template. `library/soak-10h.yaml` and docs/clock.md show phases and rates of another
        // clock.
        let elsewhere = ["restored", "template", "vary", "scope", "clock", "rates", "process"];
        let missing: Vec<&String> = known.difference(&used).filter(|key| !elsewhere.contains(&key.as_str())).collect();
        assert!(missing.is_empty(), "docs/examples/faults.md has no example of {missing:?} in `{}`", path.join("."));
        let unknown: Vec<&String> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "an example shows {unknown:?} in `{}`, which is not there", path.join("."));
    }
    // The schema of `nth` has both a number and a range.
    assert_eq!(used(&["faults", "nth"]), ["from", "to"].map(str::to_owned).into());
}

/// The tables of docs/faults.md list every fault and key that exists, and no other.
#[test]
#[ignore = "slow"]
fn the_tables_name_everything_and_nothing_else() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut known: BTreeSet<String> = Name::ALL.iter().map(|name| name.as_str().to_owned()).collect();
    for path in [&["faults"][..], &["script"], &["script", "steps"], &["budgets", "events"], &["budgets", "requests"]] {
        known.extend(keys(&schema, path));
    }
    let cells = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let named: BTreeSet<String> = cells
        .flat_map(|cell| cell.split(", `"))
        .map(|name| name.split(['`', ':']).next().unwrap_or_default().to_owned())
        .collect();
    // The page shows some sections of budgets whole, and other sections have some of their keys too.
    let mut more: BTreeSet<String> = keys(&schema, &["budgets"]).iter().map(|key| format!("budgets.{key}")).collect();
    for section in ["memory", "descriptors", "threads", "crashes", "writes", "finalizers", "children", "objects"] {
        more.extend(keys(&schema, &["budgets", section]));
    }
    more.extend(keys(&schema, &["faults", "when"]));
    more.extend(keys(&schema, &["faults", "when", "write"]).iter().map(|key| format!("write.{key}")));
    let unknown: Vec<&String> = named.difference(&known).filter(|name| !more.contains(*name)).collect();
    assert!(unknown.is_empty(), "docs/faults.md describes {unknown:?}, which is not there");
    // Parameters stand in the row of their fault.
    let missing: Vec<&String> =
        known.difference(&named).filter(|name| *name != "name" && !PAGE.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/faults.md does not describe {missing:?}");
}
