//! A trial as a scenario: the user's file with another load, other faults and other budgets.
//!
//! Owns which keys of the user's file a trial replaces. The same text is played by the hunt and saved as a finding.
//! Does no I/O.

use reports::hunt::{Sign, What};
use serde_json::{Map, Value, json};

use super::disturb::Disturbance;
use super::operations::{Extent, Operations};
use super::watching;

/// Keys of a file that a trial leaves out.
const DROPPED: [&str; 6] = ["churn", "admission", "api", "alerts", "repro", "faults"];

/// Requests a second that bring nothing, above which a program repeats them without a back-off. client-go sends at most
/// 15 in the first two seconds for one object.
const HOT_LOOP: &str = "30/s";

/// How long before the quiet a restart comes, in milliseconds.
const RESTART_BEFORE_MS: u64 = 50;

/// The contents of one trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trial {
    pub(crate) disturbances: Vec<Disturbance>,
    pub(crate) extent: Extent,
    pub(crate) quiet_ms: u64,
    /// Whether the program is killed and started again after all disturbances.
    pub(crate) restarts: bool,
}

impl Trial {
    /// A play without disturbances.
    pub(crate) fn reference(quiet_ms: u64) -> Self {
        Self { disturbances: Vec::new(), extent: Extent::ALL, quiet_ms, restarts: false }
    }

    /// A trial with disturbances.
    pub(crate) fn disturbed(disturbances: Vec<Disturbance>, quiet_ms: u64) -> Self {
        let course = watching::course(&disturbances).unwrap_or_default();
        Self { disturbances, extent: Extent { course, ..Extent::ALL }, ..Self::reference(quiet_ms) }
    }

    /// The trial as a scenario, and its length in milliseconds.
    pub(crate) fn scenario(&self, file: &Map<String, Value>, operations: &Operations) -> (Map<String, Value>, u64) {
        let mut scenario = file.clone();
        scenario.retain(|key, _| !DROPPED.contains(&key.as_str()));
        let lasts_ms = watching::lasts_ms(&self.disturbances);
        let (phases, length_ms) = operations.phases_of(self.extent.course, lasts_ms, self.quiet_ms);
        scenario.insert("phases".to_owned(), phases);
        scenario.insert("script".to_owned(), operations.script(self.extent));
        let mut faults: Vec<Value> = self.disturbances.iter().flat_map(Disturbance::faults).collect();
        // A kill ends each process once, and the harness starts it again.
        let of_all = processes(file).len().max(1);
        let mut kills: usize = self.disturbances.iter().map(|disturbance| disturbance.kind.ends(of_all)).sum();
        if self.restarts {
            let at = format!("{}ms", operations.loaded_ms().saturating_sub(RESTART_BEFORE_MS));
            faults.push(json!({"name": "process-kill", "at": at}));
            kills += of_all;
        }
        scenario.insert("faults".to_owned(), Value::Array(faults));
        let mut budgets = json!({"requests": {"hotLoop": HOT_LOOP}});
        if operations.watches() {
            budgets = watching::budgets(&self.disturbances, operations.peaks());
        }
        if kills > 0 {
            budgets["crashes"] = json!({"max": kills});
            start_again(&mut scenario);
        }
        scenario.insert("budgets".to_owned(), budgets);
        for child in self.disturbances.iter().filter_map(|disturbance| disturbance.kind.child()) {
            child.name_in(&mut scenario);
        }
        (scenario, length_ms)
    }

    /// The trial as a scenario that fails if the sign is there.
    pub(crate) fn saved(
        &self,
        file: &Map<String, Value>,
        operations: &Operations,
        name: &str,
        sign: &Sign,
    ) -> Map<String, Value> {
        let (mut scenario, _) = self.scenario(file, operations);
        scenario.insert("name".to_owned(), name.into());
        scenario.insert("description".to_owned(), sign.sentence().into());
        if let Some(expected) = expected(sign)
            && let Some(Value::Object(budgets)) = scenario.get_mut("budgets")
        {
            budgets.insert("ending".to_owned(), json!({"expected": [expected]}));
        }
        scenario
    }
}

/// The expectation of the end that a sign breaks; none for a judge, whose budget has a default.
fn expected(sign: &Sign) -> Option<Value> {
    let mut expected = json!({"resource": sign.subject});
    let name = sign.object.as_deref().map(|object| object.split('#').next().unwrap_or_default());
    if let Some(name) = name {
        expected["object"] = name.into();
    }
    match sign.what {
        What::Judge | What::Answer => return None,
        What::Made => expected["created"] = sign.most?.into(),
        What::Deleted => expected["deleted"] = sign.most?.into(),
        What::Most => expected["most"] = sign.most?.into(),
        What::Missing => expected["exists"] = true.into(),
        What::Additional => expected["exists"] = false.into(),
        What::Field => {
            expected["field"] = sign.field.as_deref()?.into();
            expected["value"] = sign.value.clone()?;
        }
    }
    Some(expected)
}

/// Lets the run start the subject again after a kill.
fn start_again(scenario: &mut Map<String, Value>) {
    let Some(Value::Object(subject)) = scenario.get_mut("subject") else { return };
    let Some(command) = subject.get_mut("command") else { return };
    if command.is_array() {
        *command = json!({"run": command.take()});
    }
    if let Value::Object(keys) = command {
        keys.insert("restart".to_owned(), "always".into());
    }
}

/// Whether a file's subject is a command, which a run can kill and start again.
pub(crate) fn is_command(file: &Map<String, Value>) -> bool {
    file.get("subject").is_some_and(|subject| !subject["command"].is_null())
}

/// The names of the subject's processes, if there are several.
pub(crate) fn processes(file: &Map<String, Value>) -> Vec<String> {
    let listed = file.get("subject").and_then(|subject| subject["command"]["processes"].as_array());
    let names = listed.into_iter().flatten().filter_map(|process| process["name"].as_str().map(str::to_owned));
    let names: Vec<String> = names.collect();
    if names.len() > 1 { names } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::disturb::Kind;
    use super::super::disturb::tests::at;
    use super::*;

    fn file() -> Map<String, Value> {
        let file = json!({
            "apiVersion": "longhaul/v1", "name": "mine", "description": "?", "phases": {"warmUp": "1m", "steady": "9m", "drain": "1m"},
            "subject": {"command": ["./manager"], "witness": {"kind": "status"}},
            "churn": {"resource": "configmaps/v1", "population": 3, "rate": "1/s"},
            "faults": [{"name": "watch-reset", "at": "1s"}], "budgets": {"memory": {"ceiling": "1MiB"}},
        });
        file.as_object().cloned().unwrap()
    }

    fn parse(scenario: Map<String, Value>) -> crate::scenario::Scenario {
        let text = Value::Object(scenario).to_string();
        let read = crate::scenario::Source::parse(&text, "trial", std::path::Path::new("."));
        read.unwrap_or_else(|error| panic!("{error}")).scenario
    }

    /// Every trial is a valid scenario without the user's own faults, load and budgets.
    #[test]
    fn a_trial_is_a_scenario() {
        let operations = Operations::of(&file()).unwrap();
        for kind in [Kind::HoldOwn, Kind::Hide, Kind::Conflict, Kind::Time, Kind::KillOld] {
            let kills = kind.ends(1) > 0;
            let trial = Trial { disturbances: vec![at(kind, "update")], ..Trial::reference(4000) };
            let (scenario, length_ms) = trial.scenario(&file(), &operations);
            let scenario = parse(scenario);
            assert!(scenario.churn.is_empty() && scenario.budgets.memory.is_none());
            assert_eq!(u128::from(length_ms), scenario.phases.total().as_millis());
            assert_eq!(scenario.budgets.crashes.is_some(), kills);
            assert!(scenario.faults.iter().all(|fault| fault.when.is_some()));
        }
        let restarted = Trial { restarts: true, ..Trial::reference(4000) };
        let scenario = parse(restarted.scenario(&file(), &operations).0);
        assert_eq!((scenario.faults.iter().count(), scenario.budgets.crashes.is_some()), (1, true));
    }

    /// A saved finding expects the end that the references had.
    #[test]
    fn a_finding_is_a_scenario_that_expects_the_right_end() {
        let operations = Operations::of(&file()).unwrap();
        let trial = Trial { disturbances: vec![at(Kind::HoldOwn, "update")], ..Trial::reference(4000) };
        let sign = |what| Sign {
            what,
            subject: "pods".to_owned(),
            object: Some("n/a-*#2".to_owned()),
            field: Some("status.x".to_owned()),
            happened: "absent".to_owned(),
            expected: "1".to_owned(),
            most: Some(2),
            value: Some(json!(1)),
        };
        let all = [What::Judge, What::Made, What::Deleted, What::Most, What::Missing, What::Additional, What::Field];
        for what in all {
            let scenario = parse(trial.saved(&file(), &operations, "hunt-1", &sign(what)));
            assert_eq!(scenario.name, "hunt-1");
            assert_eq!(scenario.budgets.ending.is_some(), what != What::Judge, "{what:?}");
        }
    }
}
