//! The operations of a trial: one or two objects of the subject's kind come, change, go and come again.
//!
//! Owns how the operations follow from a scenario's load, and their times. The operations are a `script`, so a finding
//! is an ordinary scenario. Does no I/O.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::bystanders::bystanders;
use super::course::Course;
use super::peaks::Peaks;

/// Length of the warm-up and of the steady phase, in milliseconds: all operations and every disturbance end in it.
const WARM_UP_MS: u64 = 200;
const STEADY_MS: u64 = 6800;
/// Default length of the quiet at the end, in milliseconds.
pub(crate) const QUIET_MS: u64 = 4000;
/// The times of changes of an object, in milliseconds. The last one comes late, so that a long hold sees it.
const CHANGES_MS: [u64; 4] = [1200, 1800, 2400, 3900];
/// Fields of a spec that have a number of replicas.
const REPLICAS: [&str; 6] = ["replicas", "instances", "size", "nodes", "members", "count"];
/// The time of the change after all disturbances, in milliseconds.
const LATE_CHANGE_MS: u64 = 6900;
/// The object that stays: what goes wrong with it is there at the end.
const STAYS: &str = "hunt-a";
/// The object that is deleted and made again.
const RETURNS: &str = "hunt-b";
/// The object that is deleted.
const GOES: &str = "hunt-c";
/// The object that is scaled to zero.
const SCALED: &str = "hunt-d";

/// The operations of a hunt, and how much of them a trial keeps.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Operations {
    script: Map<String, Value>,
    /// Whether the user wrote the script; then its steps stay as they are.
    is_own: bool,
    /// The last time of a step that the user wrote, in milliseconds.
    loaded_ms: u64,
    /// The merge patch that scales an object to zero; empty if the objects have no number of replicas.
    zero: Map<String, Value>,
    /// Whether the subject is hunted as a watch client, with other changes.
    watches: bool,
    /// The highest numbers of the references of a watch client.
    peaks: Option<Peaks>,
}

/// The operations of one trial, which shrinking makes fewer.
#[expect(clippy::struct_excessive_bools, reason = "each operation is there or not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    /// Number of changes of the object that stays.
    pub(crate) changes: usize,
    /// Whether another object is deleted and made again.
    pub(crate) returns: bool,
    /// Whether another object is deleted.
    pub(crate) goes: bool,
    /// Whether another object is scaled to zero, if the objects have a number of replicas.
    pub(crate) scaled: bool,
    /// Whether the object that stays changes once more after all disturbances.
    pub(crate) late: bool,
    /// The changes of a watch client's trial.
    pub(crate) course: Course,
}

impl Extent {
    pub(crate) const ALL: Self = Self {
        changes: CHANGES_MS.len(),
        returns: true,
        goes: true,
        scaled: true,
        late: false,
        course: Course::Standard,
    };

    /// The extents with one operation less, the largest step first.
    pub(crate) fn smaller(self) -> Vec<Self> {
        let mut all = Vec::new();
        if self.returns {
            all.push(Self { returns: false, ..self });
        }
        if self.goes {
            all.push(Self { goes: false, ..self });
        }
        if self.scaled {
            all.push(Self { scaled: false, ..self });
        }
        if self.changes > 0 {
            all.push(Self { changes: 0, ..self });
        }
        all
    }

    /// For example `one object stays and changes 3 times, one is deleted`.
    pub(crate) fn describe(self) -> String {
        let changes = if self.changes > 0 { format!(" and changes {} times", self.changes) } else { String::new() };
        let returns = if self.returns { ", one is deleted and made again" } else { "" };
        let goes = if self.goes { ", one is deleted" } else { "" };
        format!("one object stays{changes}{returns}{goes}")
    }
}

impl Operations {
    /// The operations for a scenario file: its own `script`, or a script from its `churn`. The error says what is
    /// missing.
    pub(crate) fn of(file: &Map<String, Value>) -> Result<Self, String> {
        if let Some(Value::Object(script)) = file.get("script") {
            let loaded_ms = phase(file, "warmUp") + phase(file, "steady");
            return Ok(Self {
                script: script.clone(),
                is_own: true,
                loaded_ms,
                zero: Map::new(),
                watches: false,
                peaks: None,
            });
        }
        let churn = match file.get("churn") {
            Some(Value::Array(sections)) => sections.first(),
            other => other,
        };
        let Some(Value::Object(churn)) = churn else {
            let why =
                "the scenario has neither `churn` nor `script`: name the resource whose objects come, change and go";
            return Err(why.to_owned());
        };
        let mut script = Map::new();
        for key in ["resource", "template", "vary", "scope", "namespace", "with"] {
            script.extend(churn.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        if !script.contains_key("template") {
            let template = churn.get("templates").and_then(Value::as_array).and_then(|all| all.iter().find_map(sample));
            script.extend(template.map(|template| ("template".to_owned(), template)));
        }
        Ok(Self {
            script,
            is_own: false,
            loaded_ms: WARM_UP_MS + STEADY_MS,
            zero: Map::new(),
            watches: false,
            peaks: None,
        })
    }

    /// Adds an operation that scales an object to zero, if the sample has a number of replicas.
    pub(crate) fn scale_like(&mut self, sample: &Value) {
        if let Some(Value::Object(zero)) = zeroed(sample).filter(|_| !self.is_own) {
            self.zero = zero;
        }
    }

    /// Leaves the scaling out, if the API server has refused it for this reason. Returns whether it was left out.
    pub(crate) fn leave_out_scaling(&mut self, why: &str) -> bool {
        let is_refused = !self.zero.is_empty() && why.contains(SCALED);
        if is_refused {
            self.zero.clear();
        }
        is_refused
    }

    /// Makes the changes of a watch client's trials, unless the user wrote a script.
    pub(crate) fn watch(&mut self) {
        self.watches = true;
        if !self.is_own {
            let (warm_up_ms, steady_ms) = Course::Standard.phases(0);
            self.loaded_ms = warm_up_ms + steady_ms;
        }
    }

    /// Whether the subject is hunted as a watch client.
    pub(crate) fn watches(&self) -> bool {
        self.watches
    }

    /// Limits later trials to somewhat more than the references needed.
    pub(crate) fn needed(&mut self, peaks: Peaks) {
        self.peaks = Some(peaks);
    }

    pub(crate) fn peaks(&self) -> Option<&Peaks> {
        self.peaks.as_ref()
    }

    /// The operations of one trial, for people.
    pub(crate) fn describe(&self, extent: Extent) -> String {
        if self.watches { extent.course.describe().to_owned() } else { extent.describe() }
    }

    /// Whether the user wrote the script.
    pub(crate) fn is_own(&self) -> bool {
        self.is_own
    }

    /// Whether fewer operations are possible.
    pub(crate) fn can_shrink(&self) -> bool {
        !self.is_own && !self.watches
    }

    /// The script of one trial.
    pub(crate) fn script(&self, extent: Extent) -> Value {
        let mut script = self.script.clone();
        if self.watches && !self.is_own {
            extent.course.fill(&mut script);
        } else if !self.is_own {
            script.insert("steps".to_owned(), Value::Array(steps(extent, &self.zero)));
        }
        if self.watches {
            // A client that watches their kinds would be judged by them.
            return Value::Object(script);
        }
        let with = script.entry("with").or_insert_with(|| json!([]));
        if let Value::Array(with) = with {
            with.extend(bystanders());
        }
        Value::Object(script)
    }

    /// The phases of a trial with this quiet, and their length in milliseconds.
    pub(crate) fn phases(&self, quiet_ms: u64) -> (Value, u64) {
        self.phases_of(Course::Standard, 0, quiet_ms)
    }

    /// Like [`Operations::phases`], with the changes of this course and a disturbance that lasts so long.
    pub(crate) fn phases_of(&self, course: Course, lasts_ms: u64, quiet_ms: u64) -> (Value, u64) {
        let ms = |ms: u64| format!("{ms}ms");
        let (warm_up_ms, steady_ms) = if self.watches && !self.is_own {
            course.phases(lasts_ms)
        } else {
            (WARM_UP_MS, self.loaded_ms - WARM_UP_MS.min(self.loaded_ms))
        };
        let phases = json!({"warmUp": ms(warm_up_ms), "steady": ms(steady_ms.max(1000)), "drain": ms(quiet_ms)});
        (phases, warm_up_ms + steady_ms + quiet_ms)
    }

    /// The steps of a trial with their times in milliseconds, for people.
    pub(crate) fn planned(&self, extent: Extent) -> Vec<(u64, String)> {
        let script = self.script(extent);
        let steps = script["steps"].as_array().into_iter().flatten().filter_map(Value::as_object);
        let step = |step: &Map<String, Value>| {
            let at = serde_json::from_value::<units::Span>(step.get("at")?.clone()).ok()?;
            let verbs = ["create", "update", "delete", "recreate", "deleteCollection"];
            let (verb, of) = verbs.into_iter().find_map(|verb| Some((verb, step.get(verb)?)))?;
            Some((at.as_millis(), format!("{verb} {}", of.as_str().map_or_else(|| of.to_string(), str::to_owned))))
        };
        steps.filter_map(step).collect()
    }

    /// The time after all operations and disturbances, in milliseconds.
    pub(crate) fn loaded_ms(&self) -> u64 {
        self.loaded_ms
    }

    /// The time of the last operation, in milliseconds.
    pub(crate) fn last_ms(&self) -> u64 {
        self.planned(Extent::ALL).into_iter().map(|(at_ms, _)| at_ms).max().unwrap_or_default()
    }

    /// The names of the objects that are deleted at the end, and of those that stay.
    pub(crate) fn gone_and_staying(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let script = self.script(Extent::ALL);
        let mut steps: Vec<&Value> = script["steps"].as_array().into_iter().flatten().collect();
        let at = |step: &Value| serde_json::from_value::<units::Span>(step["at"].clone()).unwrap_or_default();
        steps.sort_by_key(|step| at(step));
        let (mut gone, mut stay) = (BTreeSet::new(), names(&script["objects"]));
        for step in steps {
            stay.extend(names(&step["create"]));
            for name in names(&step["delete"]) {
                stay.remove(&name);
                gone.insert(name);
            }
            for name in names(&step["create"]).into_iter().chain(names(&step["recreate"])) {
                gone.remove(&name);
            }
        }
        (gone, stay)
    }

    /// The resource of the objects, without its version.
    pub(crate) fn plural(&self) -> &str {
        self.resource().split('/').next().unwrap_or_default()
    }

    /// The resource of the objects, with its version.
    pub(crate) fn resource(&self) -> &str {
        self.script.get("resource").and_then(Value::as_str).unwrap_or_default()
    }
}

/// A sample that the API must accept: a file name or an object.
fn sample(sample: &Value) -> Option<Value> {
    match sample {
        Value::String(file) => Some(json!(file)),
        Value::Object(keys) if keys.get("expect").is_none_or(|expect| expect != "denied") => {
            keys.get("object").or_else(|| keys.get("file")).cloned()
        }
        _ => None,
    }
}

/// The names in a step: one, or a list.
fn names(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(name) => BTreeSet::from([name.clone()]),
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => BTreeSet::new(),
    }
}

/// A merge patch with which every number of replicas in the spec of a sample is 0; `None` if it has none.
fn zeroed(sample: &Value) -> Option<Value> {
    fn below(value: &Value) -> Option<Value> {
        let mut patch = Map::new();
        for (key, value) in value.as_object()? {
            let is_number = value.is_u64() || value.as_str().is_some_and(|text| text.starts_with("${random "));
            if is_number && REPLICAS.contains(&key.as_str()) {
                patch.insert(key.clone(), 0.into());
            } else if let Some(zeroed) = below(value) {
                patch.insert(key.clone(), zeroed);
            }
        }
        (!patch.is_empty()).then_some(Value::Object(patch))
    }
    Some(json!({"spec": below(&sample["spec"])?}))
}

fn steps(extent: Extent, zero: &Map<String, Value>) -> Vec<Value> {
    let at = |ms: u64| format!("{ms}ms");
    let mut steps = vec![json!({"at": at(100), "create": STAYS})];
    if extent.returns {
        steps.push(json!({"at": at(400), "create": RETURNS}));
    }
    if extent.goes {
        steps.push(json!({"at": at(700), "create": GOES}));
    }
    if extent.scaled && !zero.is_empty() {
        steps.push(json!({"at": at(900), "create": SCALED}));
        steps.push(json!({"at": at(2100), "update": SCALED, "set": zero}));
    }
    for change in CHANGES_MS.iter().take(extent.changes) {
        steps.push(json!({"at": at(*change), "update": STAYS}));
    }
    if extent.late {
        steps.push(json!({"at": at(LATE_CHANGE_MS), "update": STAYS}));
    }
    if extent.returns {
        steps.push(json!({"at": at(2600), "recreate": RETURNS}));
    }
    if extent.goes {
        steps.push(json!({"at": at(3200), "delete": GOES}));
    }
    steps
}

/// The length of a phase in milliseconds, as the file has it.
fn phase(file: &Map<String, Value>, name: &str) -> u64 {
    let span = file.get("phases").and_then(|phases| phases.get(name)).cloned().unwrap_or_default();
    serde_json::from_value::<units::Span>(span).map_or(0, units::Span::as_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(file: &Value) -> Result<Operations, String> {
        Operations::of(file.as_object().unwrap())
    }

    fn parsed(script: Value) -> loadgen::script::Config {
        serde_json::from_value(script).unwrap()
    }

    /// The script that follows from churn is a valid script, whatever is left of it.
    #[test]
    fn churn_becomes_a_script() {
        let file = json!({"churn": [{"resource": "caches.x/v1", "template": {"kind": "Cache"}, "population": 50, "rate": "auto"}]});
        let operations = operations(&file).unwrap();
        let mut extents = vec![Extent::ALL, Extent { late: true, ..Extent::ALL }];
        while let Some(extent) = extents.pop() {
            let script = parsed(operations.script(extent));
            script.check().unwrap();
            assert_eq!(script.resource, "caches.x/v1");
            extents.extend(extent.smaller());
        }
        let (phases, length_ms) = operations.phases(QUIET_MS);
        assert_eq!((phases["steady"].as_str(), length_ms), (Some("6800ms"), 11_000));
    }

    /// A sample that must be refused is not played.
    #[test]
    fn the_first_accepted_sample_is_the_template() {
        let of = |templates: Value| {
            let file = json!({"churn": {"resource": "r/v1", "templates": templates}});
            operations(&file).unwrap().script(Extent::ALL)["template"].clone()
        };
        assert_eq!(of(json!([{"file": "bad.yaml", "expect": "denied"}, {"file": "a.yaml"}])), "a.yaml");
        assert_eq!(of(json!(["b.yaml"])), "b.yaml");
        assert_eq!(of(json!([{"object": {"kind": "A"}}])), json!({"kind": "A"}));
    }

    /// Objects with a number of replicas are scaled to zero, unless the API server refuses that.
    #[test]
    fn an_object_is_scaled_to_zero() {
        let file = json!({"churn": {"resource": "caches.x/v1", "template": {"kind": "Cache"}}});
        let mut operations = operations(&file).unwrap();
        let steps = |operations: &Operations| operations.script(Extent::ALL)["steps"].to_string();
        operations.scale_like(&json!({"spec": {"size": "large", "memory": 5}}));
        assert!(!steps(&operations).contains(SCALED), "there is no number of replicas");
        operations.scale_like(&json!({"spec": {"workers": {"replicas": "${random 1..4}"}, "size": 3}}));
        let zero = json!({"spec": {"workers": {"replicas": 0}, "size": 0}});
        let script = operations.script(Extent::ALL);
        let set = script["steps"].as_array().unwrap().iter().find_map(|step| step.get("set"));
        assert_eq!(set, Some(&zero));
        parsed(script).check().unwrap();
        assert!(!operations.leave_out_scaling("step 4 (`update: hunt-a`): denied"));
        assert!(
            operations.leave_out_scaling("step 4 (`update: hunt-d`): denied") && !steps(&operations).contains(SCALED)
        );
    }

    #[test]
    fn deleted_objects_are_told_from_those_that_stay() {
        let file = json!({"churn": {"resource": "caches.x/v1", "template": {"kind": "Cache"}}});
        let (gone, stay) = operations(&file).unwrap().gone_and_staying();
        let names = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>();
        assert_eq!(
            (names(gone), names(stay)),
            (vec!["hunt-c".to_owned()], vec!["hunt-a".to_owned(), "hunt-b".to_owned()])
        );
    }

    #[test]
    fn a_script_of_the_user_stays() {
        let steps = json!([{"at": "1s", "create": "x"}]);
        let file = json!({"phases": {"warmUp": "1s", "steady": "9s"}, "script": {"resource": "r/v1", "steps": steps}});
        let operations = operations(&file).unwrap();
        assert!(!operations.can_shrink());
        assert_eq!(operations.script(Extent::ALL)["steps"], steps);
        assert_eq!(operations.phases(2000).1, 12_000);
    }

    #[test]
    fn without_load_the_error_says_what_to_write() {
        assert!(operations(&json!({})).unwrap_err().contains("`churn` nor `script`"));
    }
}
