//! The proposed witness for a project, and the budgets that this witness can decide.
//!
//! The witness type itself lists the facts that it can observe, so that no undecidable budget is proposed. Does no I/O.

use reports::budgets::Events;
use reports::record::Sight;
use serde_json::{Value, json};
use units::Span;

use super::go::Flags;
use super::seen::{By, Reaction};
use super::yaml::quoted;
use super::{Found, Framework, Habits};
use crate::witness::{About, Preset, Witness};

/// Proposed budget for the time of recovery from an outage. After an outage, a client usually waits between some
/// seconds and a minute before it tries again.
const HEAL: Span = Span::from_secs(20);

pub(super) struct Proposal {
    /// The keys of the witness on one line of YAML.
    pub(super) keys: String,
    /// Whether the observed program really writes the fields that this witness reads.
    pub(super) is_seen: bool,
    /// Comments with the reason for the choice, and the values to check.
    pub(super) comments: Vec<String>,
    /// The environment variable, with its value, that makes the subject print the witness's lines.
    pub(super) env: Option<(&'static str, &'static str)>,
    /// The event budgets that this witness can decide, on one line of YAML.
    pub(super) budgets: String,
    /// Facts that the proposed witness cannot observe.
    pub(super) untold: Vec<Sight>,
}

/// The witness from the observation, if the program was observed, otherwise from the project's files.
pub(super) fn propose(found: &Found, best: Option<&Reaction>) -> Proposal {
    best.and_then(by_what_was_seen).unwrap_or_else(|| proposed(found))
}

/// The witness from fields that the observed program wrote into the object.
fn by_what_was_seen(best: &Reaction) -> Option<Proposal> {
    let seen = |keys: &Value, comment: &str| Some(Proposal { is_seen: true, ..proposal(keys, &[comment], None) });
    if best.observes {
        return seen(
            &json!({"kind": "status"}),
            "It wrote the generation into `status.observedGeneration`, which proves the observation.",
        );
    }
    if let Some(condition) = best.conditions.first() {
        let keys = json!({"kind": "status", "condition": condition});
        return seen(
            &keys,
            "It wrote this condition with the generation that it handled, which proves the observation.",
        );
    }
    match best.finalizers.as_slice() {
        [name] if best.is_gone != Some(false) => {
            let keys = json!({"kind": "finalizer", "name": name});
            return seen(&keys, "It added this finalizer to the object, and removed it after the deletion.");
        }
        _ => {}
    }
    let has_children = best.children.iter().any(|child| child.by == By::Owner && !child.varies);
    has_children
        .then(|| seen(&json!({"kind": "children"}), "It made children for the object, which proves the observation."))
        .flatten()
}

fn proposed(found: &Found) -> Proposal {
    let program = found.program().filter(|program| program.framework.is_some());
    let framework = program.and_then(|program| program.framework);
    let nothing = Habits::default();
    let habits = program.map_or(&nothing, |program| &program.habits);
    if framework == Some(Framework::Pepr) {
        return preset(found, Preset::Pepr, &["Pepr logs each event of its watches."], Some(("LOG_LEVEL", "debug")));
    }
    by_generation(found, habits)
        .or_else(|| by_finalizer(framework, habits))
        .unwrap_or_else(|| by_lines(found, framework))
}

/// The witness `status`, if the `CustomResourceDefinition` has the observed generation and the sources may write it.
fn by_generation(found: &Found, habits: &Habits) -> Option<Proposal> {
    let crd = found.crd()?;
    if crd.observes && habits.observes != Some(false) {
        let comment = "Its custom resources have `status.observedGeneration`: a write there proves the observation.";
        return Some(proposal(&json!({"kind": "status"}), &[comment], None));
    }
    let condition = habits.condition.as_ref().filter(|_| crd.has_conditions)?;
    let comment = "It writes this condition with the generation that it handled, which proves the observation.";
    Some(proposal(&json!({"kind": "status", "condition": condition}), &[comment], None))
}

/// The witness that reads the finalizer that the program adds to objects.
fn by_finalizer(framework: Option<Framework>, habits: &Habits) -> Option<Proposal> {
    let name = habits.finalizer.as_ref()?;
    let comments: &[&str] = match framework {
        Some(Framework::Kopf) => &[
            "kopf adds this finalizer to each object, because of a handler of deletions, a timer or a daemon.",
            "check: one of them is for this resource.",
        ],
        Some(Framework::JavaOperatorSdk) => {
            &["With a cleaner the Java Operator SDK adds this finalizer to each object."]
        }
        _ => &["It adds this finalizer to each object, and removes it after its cleanup."],
    };
    Some(proposal(&json!({"kind": "finalizer", "name": name}), comments, None))
}

/// The witness that reads lines of the program's log.
fn by_lines(found: &Found, framework: Option<Framework>) -> Proposal {
    match framework {
        Some(Framework::Kopf) => preset(
            found,
            Preset::Kopf,
            &["kopf logs a line for each object that one of its handlers has handled."],
            None,
        ),
        Some(Framework::KubeRs) => preset(
            found,
            Preset::KubeRs,
            &[
                "Every log line during a reconciliation of kube-rs names the object.",
                "check: it logs something then, at this level.",
            ],
            Some(("RUST_LOG", "info")),
        ),
        Some(Framework::ControllerRuntime) => {
            let has_zap = found.program().and_then(|program| program.habits.flags.as_ref()).is_some_and(Flags::has_zap);
            let logged: &[&str] = if has_zap {
                &[
                    "controller-runtime logs each reconciliation at the level that `--zap-log-level=5` above asks for.",
                    "A line with uid and resourceVersion also proves versions, by a `pattern`: docs/witnesses.md.",
                ]
            } else {
                &[
                    "Log lines of a reconciler from `log.FromContext(ctx)` name the object.",
                    "check: it logs something for each; with the usual flags `--zap-log-level=5` does.",
                    "A line with uid and resourceVersion also proves versions, by a `pattern`: docs/witnesses.md.",
                ]
            };
            preset(found, Preset::ControllerRuntime, logged, None)
        }
        _ => proposal(
            &json!({
                "kind": "log",
                "pattern": r#"saw.*uid"?[=:]\s*"?(?P<uid>[0-9a-f-]{36}).*resourceVersion"?[=:]\s*"?(?P<rv>\d+)"#,
            }),
            &[
                "check: best is a line in its log for each object that it handled, `saw uid=… resourceVersion=…`,",
                "or a status with the generation that it handled (`witness: {kind: status}`).",
            ],
            None,
        ),
    }
}

/// Whether the proposed witness is the log of controller-runtime.
pub(super) fn needs_lines(found: &Found) -> bool {
    let habits = found.program().map(|program| program.habits.clone()).unwrap_or_default();
    by_generation(found, &habits).is_none() && habits.finalizer.is_none()
}

/// The witness that reads the known log lines of a library.
fn preset(found: &Found, library: Preset, comments: &[&str], env: Option<(&'static str, &'static str)>) -> Proposal {
    let mut keys = json!({"kind": "log", "preset": library});
    if let Some(crd) = found.crd() {
        keys["of"] = json!(crd.kind);
    }
    proposal(&keys, comments, env)
}

fn proposal(keys: &Value, comments: &[&str], env: Option<(&'static str, &'static str)>) -> Proposal {
    // An invalid witness observes nothing, and `longhaul check` reports the error in it.
    let witness =
        serde_json::from_value::<Witness>(keys.clone()).unwrap_or(Witness::None(crate::witness::Nothing::default()));
    let sees = witness.sees(&About::default());
    let all = Events {
        missed: Some(0),
        unseen: Some(0),
        ghost: Some(0),
        regressed: Some(0),
        heal: Some(HEAL),
        ..Events::default()
    };
    let unseen: Vec<&str> = reports::judge::unseen_by(sees, &all).into_iter().map(|(key, _)| key).collect();
    let is_told = |key: &str| !unseen.contains(&key);
    let heal = HEAL.to_string();
    // If a witness sees versions, `missed` says more than `unseen`.
    let budgets: Vec<String> =
        [("missed", "0"), ("unseen", "0"), ("ghost", "0"), ("regressed", "0"), ("heal", heal.as_str())]
            .into_iter()
            .filter(|(key, _)| is_told(key) && !(*key == "unseen" && is_told("missed")))
            .map(|(key, limit)| format!("{key}: {limit}"))
            .collect();
    let untold = [Sight::Updated, Sight::Deleted].into_iter().filter(|sight| !sees.can(*sight)).collect();
    let comments = comments.iter().map(|&comment| comment.to_owned()).collect();
    Proposal { keys: flow(keys), is_seen: false, comments, env, budgets: format!("{{{}}}", budgets.join(", ")), untold }
}

/// A mapping with string values on one line of YAML, with `kind` first.
fn flow(keys: &Value) -> String {
    let pairs = keys.as_object().into_iter().flatten();
    let mut pairs: Vec<(bool, String)> = pairs
        .map(|(key, value)| (key != "kind", format!("{key}: {}", quoted(value.as_str().unwrap_or_default()))))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(_, pair)| pair).collect();
    format!("{{{}}}", pairs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::{Crd, Language};

    fn found(framework: Option<Framework>, finalizer: Option<&'static str>, observes: bool) -> Found {
        let language = Language {
            name: "Any",
            file: "any".into(),
            framework,
            habits: Habits { finalizer: finalizer.map(str::to_owned), ..Habits::default() },
            build: None,
            command: vec!["./any".to_owned()],
            place: None,
            others: Vec::new(),
        };
        let crd = Crd {
            file: "crd.yaml".into(),
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            plural: "widgets".to_owned(),
            kind: "Widget".to_owned(),
            observes,
            ..Crd::default()
        };
        Found { languages: vec![language], crds: vec![crd], ..Found::default() }
    }

    /// The generation in the status is preferred as proof, then a condition with the generation, then the finalizer,
    /// then log lines.
    #[test]
    fn what_the_sources_tell_comes_before_the_lines_of_a_library() {
        let mut found = found(Some(Framework::ControllerRuntime), Some("widgets.example.com/hold"), true);
        found.languages[0].habits.observes = Some(false);
        let by_finalizer = propose(&found, None);
        assert_eq!(by_finalizer.keys, "{kind: finalizer, name: widgets.example.com/hold}");
        found.languages[0].habits.condition = Some("Ready".to_owned());
        found.crds[0].has_conditions = true;
        assert_eq!(propose(&found, None).keys, "{kind: status, condition: Ready}");
        found.languages[0].habits.observes = Some(true);
        assert_eq!(propose(&found, None).keys, "{kind: status}");
    }

    /// The proposed budgets are exactly the budgets that the proposed witness can decide.
    #[test]
    fn the_budgets_are_those_that_the_witness_decides() {
        let marker = Some("kopf.zalando.org/KopfFinalizerMarker");
        for (found, keys, budgets) in [
            (found(Some(Framework::ControllerRuntime), None, true), "{kind: status}", "{missed: 0}"),
            (
                found(Some(Framework::ControllerRuntime), None, false),
                "{kind: log, of: Widget, preset: controller-runtime}",
                "{unseen: 0}",
            ),
            (found(Some(Framework::KubeRs), None, false), "{kind: log, of: Widget, preset: kube-rs}", "{unseen: 0}"),
            (found(Some(Framework::Kopf), None, false), "{kind: log, of: Widget, preset: kopf}", "{unseen: 0}"),
            (
                found(Some(Framework::Kopf), marker, false),
                "{kind: finalizer, name: kopf.zalando.org/KopfFinalizerMarker}",
                "{unseen: 0, ghost: 0}",
            ),
            (
                found(Some(Framework::Pepr), None, true),
                "{kind: log, of: Widget, preset: pepr}",
                "{missed: 0, ghost: 0, regressed: 0, heal: 20s}",
            ),
        ] {
            let proposal = propose(&found, None);
            assert_eq!((proposal.keys.as_str(), proposal.budgets.as_str()), (keys, budgets));
        }
        let unknown = propose(&found(None, None, false), None);
        assert!(unknown.keys.starts_with("{kind: log, pattern: 'saw"), "{}", unknown.keys);
        assert_eq!(unknown.budgets, "{missed: 0, regressed: 0}");
    }
}
