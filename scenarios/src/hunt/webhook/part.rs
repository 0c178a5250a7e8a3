//! Plays the part of a hunt that asks a webhook, and makes findings of its signs.
//!
//! Owns the scenario of a play, the order of replays, and the odds. Each play is a separate process with its own API
//! server and its own copy of the subject, and nothing else runs beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use reports::hunt::{Ending, Found, Hunt, Odds, Webhooks};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::super::confirm::REPLAYS;
use super::super::{Choice, files};
use super::{Condition, PLAN, Plan, REPORT, Report, Shown};

/// Longest time of a play: a start, nine rounds, and a restart.
const PATIENCE: Duration = Duration::from_mins(5);
/// Number of replays that must show a sign again.
const SHOWN_MIN: u32 = 2;
/// Keys of a file that a play leaves out.
const DROPPED: [&str; 6] = ["api", "alerts", "repro", "faults", "script", "budgets"];
/// Largest report of a play, in bytes.
const REPORT_MAX: u64 = 16 << 20;

/// Whether the file's subject is only a webhook, so that the hunt has no other part.
pub(in crate::hunt) fn is_alone(file: &Map<String, Value>) -> bool {
    let subject = file.get("subject").unwrap_or(&Value::Null);
    let has = |key: &str| file.contains_key(key);
    let is_service = subject.get("service").is_some() && has("admission") && !has("churn") && !has("script");
    is_service || subject["command"]["role"] == "webhook"
}

/// Asks the subject's webhooks, and adds the findings to the result.
pub(in crate::hunt) async fn ask(
    choice: &Choice,
    stop: &CancellationToken,
    result: &mut Hunt,
    say: &(dyn Fn(String) + Sync),
) {
    if !choice.asks {
        if is_alone(&choice.file) {
            let why = "the subject serves no webhook that a run can start".to_owned();
            result.ending = Ending::Stopped { why };
        }
        return;
    }
    say("its webhooks are asked on a quiet system, side by side, in other orders, while the API server fails …"
        .to_owned());
    let ends = Instant::now() + choice.lasts;
    let first = match play(choice, stop, 0, &Plan { conditions: Condition::ALL.to_vec() }).await {
        Some(Ok(report)) => report,
        Some(Err(why)) => return refused(choice, result, &why),
        None => return,
    };
    let plan = again(&first.signs);
    let mut shown = vec![1_u32; first.signs.len()];
    let mut plays = 1;
    for number in 1..=REPLAYS {
        if first.signs.is_empty() || Instant::now() >= ends {
            break;
        }
        say(format!("its webhooks are asked again ({number} of {REPLAYS}) …"));
        let Some(Ok(report)) = play(choice, stop, number, &plan).await else { continue };
        plays += 1;
        for (count, sign) in shown.iter_mut().zip(&first.signs) {
            *count += u32::from(report.signs.iter().any(|other| other.sign.is_like(&sign.sign)));
        }
    }
    let replayed = plays - 1;
    let mut unconfirmed = 0;
    for (sign, count) in first.signs.iter().zip(shown) {
        if count > SHOWN_MIN {
            let found = found(sign, Odds::of(count - 1, replayed), choice, &mut result.notes);
            say(format!("finding: {} {}", found.title, found.odds.words()));
            result.findings.push(found);
        } else if replayed >= SHOWN_MIN {
            unconfirmed += 1;
            say(format!("not seen again: {}", sign.sign.sentence()));
        }
    }
    result.notes.extend(first.notes.iter().cloned());
    result.webhooks = Some(covered(first, unconfirmed));
}

/// The plan of a replay: only the conditions that showed a sign.
fn again(signs: &[Shown]) -> Plan {
    let shown = |condition: &Condition| signs.iter().any(|sign| sign.conditions.contains(condition));
    let wanted = |condition: &Condition| {
        // The recovery follows the failure.
        shown(condition) || (*condition == Condition::Errors && shown(&Condition::Recovered))
    };
    Plan { conditions: Condition::ALL.into_iter().filter(wanted).collect() }
}

/// Notes that the webhooks could not be asked; this ends a hunt that has no other part.
fn refused(choice: &Choice, result: &mut Hunt, why: &str) {
    let path = crate::quoted(&choice.path);
    let text = format!("its webhooks could not be asked: {why} (`{} soak {path}` shows more)", crate::started_as());
    if is_alone(&choice.file) {
        result.ending = Ending::Stopped { why: text };
    } else {
        result.notes.push(format!("In this hunt {text}."));
    }
}

fn covered(report: Report, unconfirmed: u32) -> Webhooks {
    Webhooks {
        asked: report.webhooks,
        kinds: report.kinds,
        questions: report.questions,
        allowed: report.allowed,
        denied: report.denied,
        unanswered: report.unanswered,
        conditions: report.conditions,
        masked: report.masked,
        unconfirmed,
    }
}

fn found(shown: &Shown, odds: Odds, choice: &Choice, notes: &mut Vec<String>) -> Found {
    let mut story = shown.story.clone();
    story.push(format!("{} answers show it. The same seed asks the same questions: {}", shown.answers, choice.repeat));
    let (scenario, play) = files::saved(choice, |name| saved(&choice.file, name, shown), notes);
    Found {
        title: shown.sign.sentence(),
        sign: shown.sign.clone(),
        also: Vec::new(),
        disturbances: shown.conditions.first().map(|condition| condition.sentence().to_owned()).into_iter().collect(),
        shown_by: shown.conditions.iter().map(|condition| condition.name().to_owned()).collect(),
        trials: odds.plays + 1,
        odds,
        healing: Vec::new(),
        story,
        without: Vec::new(),
        scenario,
        play,
    }
}

/// One play. `None` if the hunt was interrupted; an error says why there is no report.
async fn play(choice: &Choice, stop: &CancellationToken, number: u32, plan: &Plan) -> Option<Result<Report, String>> {
    if stop.is_cancelled() {
        return None;
    }
    let folder = choice.out.join("trials").join(format!("webhook-{number}"));
    let result = run(choice, stop, &folder, plan).await;
    let _ = std::fs::remove_dir_all(&folder);
    result
}

async fn run(choice: &Choice, stop: &CancellationToken, folder: &Path, plan: &Plan) -> Option<Result<Report, String>> {
    let text = folder.join("play.yaml");
    let scenario = Value::Object(scenario(&choice.file)).to_string();
    let plan = serde_json::to_string(plan).unwrap_or_default();
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&text, scenario))
        .and_then(|()| std::fs::write(folder.join(PLAN), plan));
    if let Err(error) = written {
        return Some(Err(format!("failed to write a play: {error}")));
    }
    let path = |path: &Path| path.display().to_string();
    let mut arguments = vec!["soak".to_owned(), choice.path.clone(), "--quiet".to_owned()];
    for (flag, value) in [("--trial", path(&text)), ("--ask", path(folder)), ("--run-dir", path(&folder.join("run")))] {
        arguments.extend([flag.to_owned(), value]);
    }
    let mut words = choice.arguments.iter();
    while let Some(word) = words.next() {
        arguments.push(word.clone());
        if word == "--seed" {
            // The questions depend on the seed of the hunt.
            words.next();
            arguments.push(choice.seed.to_string());
        }
    }
    match crate::itself::play(&arguments, PATIENCE, stop).await? {
        Err(why) => Some(Err(why)),
        Ok(output) if output.status.success() => Some(read(&folder.join(REPORT))),
        Ok(output) => Some(Err(crate::itself::last_words(&output))),
    }
}

fn read(path: &Path) -> Result<Report, String> {
    let fails = |error: std::io::Error| format!("failed to read the report of a play: {error}");
    let length = std::fs::metadata(path).map_err(fails)?.len();
    if length > REPORT_MAX {
        return Err(format!("the report of a play has more than {} MiB", REPORT_MAX >> 20));
    }
    let text = std::fs::read_to_string(path).map_err(fails)?;
    serde_json::from_str(&text).map_err(|error| format!("failed to read the report of a play: {error}"))
}

/// The scenario of a play: the user's file with its objects, but without its load, faults and budgets.
fn scenario(file: &Map<String, Value>) -> Map<String, Value> {
    let mut scenario = file.clone();
    let script = scenario.remove("script");
    scenario.retain(|key, _| !DROPPED.contains(&key.as_str()));
    if let Some(script) = script.filter(|_| !scenario.contains_key("churn")) {
        let mut churn = json!({"population": 1, "rate": "1/s"});
        for key in ["resource", "template", "scope"] {
            if let Some(value) = script.get(key) {
                churn[key] = value.clone();
            }
        }
        scenario.insert("churn".to_owned(), churn);
    }
    let objects = file.get("admission").and_then(|admission| admission.get("objects")).cloned();
    let mut admission = json!({"rate": "1/s"});
    if let Some(objects) = objects {
        admission["objects"] = objects;
    }
    scenario.insert("admission".to_owned(), admission);
    // No phase is played; `rate: auto` needs a long warm-up.
    scenario.insert("phases".to_owned(), json!({"warmUp": "10s", "steady": "1m", "drain": "1s"}));
    scenario
}

/// A finding as a scenario: little load, and then the same questions under the conditions that showed the sign.
fn saved(file: &Map<String, Value>, name: &str, shown: &Shown) -> Map<String, Value> {
    let mut scenario = scenario(file);
    scenario.insert("name".to_owned(), name.into());
    scenario.insert("description".to_owned(), shown.sign.sentence().into());
    scenario.insert("phases".to_owned(), json!({"warmUp": "1s", "steady": "4s", "drain": "2s"}));
    if scenario.contains_key("churn") && scenario.get("subject").is_some_and(|subject| subject.get("command").is_some())
    {
        // Reviews of the load have another expectation: the right answer.
        scenario.remove("admission");
    }
    if let Some(churn) = scenario.get_mut("churn") {
        let sections =
            if churn.is_array() { churn.as_array_mut().into_iter().flatten().collect() } else { vec![churn] };
        for section in sections {
            section["population"] = 1.into();
            section["rate"] = "1/s".into();
        }
    }
    let under = again(std::slice::from_ref(shown)).conditions;
    // A sign of a quiet system needs no condition; the simplest one is asked beside it.
    let under = if under.is_empty() { vec![Condition::Order] } else { under };
    scenario.insert("budgets".to_owned(), json!({"admission": {"consistent": {"under": under}}}));
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &Value) -> Map<String, Value> {
        let mut file = json!({"apiVersion": "longhaul/v1", "name": "mine", "description": "?",
            "phases": {"warmUp": "1m", "steady": "9m", "drain": "1m"},
            "faults": [{"name": "watch-reset", "at": "1s"}], "budgets": {"memory": {"ceiling": "1MiB"}}});
        file.as_object_mut().unwrap().extend(text.as_object().unwrap().clone());
        file.as_object().cloned().unwrap()
    }

    /// A play is a valid scenario, with the objects of a churn or of a script.
    #[test]
    fn a_play_is_a_scenario() {
        let own = json!({"command": {"run": ["./hook"], "role": "webhook", "serves": {"path": "/mutate"}}});
        let both = json!({"command": {"run": ["./manager"], "role": "both", "serves": {"path": "/mutate"}}, "witness": {"kind": "status"}});
        let script = json!({"resource": "configmaps/v1", "template": {"kind": "ConfigMap"}, "steps": [{"at": "1s", "create": "x"}]});
        let churn = json!({"resource": "configmaps/v1", "population": 5, "rate": "auto"});
        let all = [
            json!({"subject": own}),
            json!({"subject": both, "script": script}),
            json!({"subject": both, "churn": churn}),
        ];
        for text in all {
            let scenario = scenario(&file(&text));
            assert_eq!(scenario.contains_key("churn"), text.as_object().unwrap().len() > 1);
            let text = Value::Object(scenario).to_string();
            let read = crate::scenario::Source::parse(&text, "play", Path::new("."));
            let scenario = read.unwrap_or_else(|error| panic!("{error}")).scenario;
            assert!(scenario.faults.iter().next().is_none() && scenario.admission.is_some());
        }
    }

    fn shown(conditions: &[Condition]) -> Shown {
        let sign = reports::hunt::Sign {
            what: reports::hunt::What::Answer,
            subject: String::new(),
            object: None,
            field: None,
            happened: String::new(),
            expected: String::new(),
            most: None,
            value: None,
        };
        Shown { sign, conditions: conditions.to_vec(), answers: 1, story: Vec::new() }
    }

    /// A saved finding is a valid scenario that asks under the conditions of the sign.
    #[test]
    fn a_finding_is_a_scenario_that_asks_again() {
        let hook = json!({"command": {"run": ["./hook"], "role": "webhook", "serves": {"path": "/mutate"}}});
        let churn = json!({"resource": "configmaps/v1", "population": 5, "rate": "auto"});
        let files = [json!({"subject": hook, "churn": churn}), json!({"subject": hook, "admission": {"rate": "9/s"}})];
        for text in files {
            let of = |conditions: &[Condition]| {
                let text = Value::Object(saved(&file(&text), "hunt-1", &shown(conditions))).to_string();
                let read = crate::scenario::Source::parse(&text, "hunt-1", Path::new("."));
                read.unwrap_or_else(|error| panic!("{error}"))
                    .scenario
                    .budgets
                    .admission
                    .unwrap()
                    .consistent
                    .unwrap()
                    .under
            };
            assert_eq!(of(&[Condition::Restart]), [Condition::Restart]);
            assert_eq!(of(&[]), [Condition::Order], "a sign without a condition needs one round");
        }
    }

    /// A replay repeats only what a sign needs.
    #[test]
    fn a_replay_has_the_conditions_of_the_signs() {
        let of = |conditions: &[Condition]| again(&[shown(conditions)]).conditions;
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[Condition::Together, Condition::Order]), [Condition::Order, Condition::Together]);
        assert_eq!(of(&[Condition::Recovered]), [Condition::Errors, Condition::Recovered]);
    }

    #[test]
    fn a_webhook_alone_has_no_other_part() {
        let of = |subject: Value| is_alone(&file(&json!({"subject": subject})));
        assert!(of(json!({"command": {"run": ["x"], "role": "webhook"}})) && !of(json!({"service": {}})));
        assert!(is_alone(&file(&json!({"subject": {"service": null}, "admission": {"rate": "1/s"}}))));
        assert!(!of(json!({"command": {"run": ["x"], "role": "both"}})) && !of(json!({"command": ["x"]})));
    }
}
