//! How the software in a folder proves what it saw, and which budgets that decides.
//!
//! Owns the choice. What a witness tells is asked of the witness itself, so that no budget is proposed that a run could not decide. Pure.

use reports::budgets::Events;
use reports::record::Sight;
use serde_json::{Value, json};
use units::Span;

use super::text::quoted;
use super::{Found, Framework};
use crate::witness::{About, Witness};

/// How long an outage may take to be made up for; the usual wait of a client is a minute at most, and of these the most are seconds.
const HEAL: Span = Span::from_secs(20);

/// A witness, and what has to be said of it.
pub(super) struct Proposal {
    /// Its keys, in one line of YAML.
    pub(super) keys: String,
    /// Why this one, and what to look at.
    pub(super) comments: Vec<String>,
    /// Variables without which the subject would not say it.
    pub(super) env: Option<(&'static str, &'static str)>,
    /// The budgets of events that it decides, in one line of YAML.
    pub(super) budgets: String,
    /// What it does not tell.
    pub(super) untold: Vec<Sight>,
}

/// The witness for what was found.
pub(super) fn propose(found: &Found) -> Proposal {
    let framework = found.languages.iter().find_map(|language| language.framework);
    let finalizer = found.languages.iter().find_map(|language| language.finalizer);
    let observes = found.crds.first().is_some_and(|crd| crd.observes);
    match (framework, finalizer) {
        (Some(Framework::Pepr), _) => {
            preset(found, Framework::Pepr, &["Pepr logs each event of its watches."], Some(("LOG_LEVEL", "debug")))
        }
        _ if observes => proposal(
            &json!({"kind": "status"}),
            &["Its custom resources have `status.observedGeneration`: what it writes there is the proof."],
            None,
        ),
        (_, Some(finalizer)) => proposal(
            &json!({"kind": "finalizer", "name": finalizer}),
            &[
                "kopf holds each object by this finalizer, because of a handler of deletions, a timer or a daemon.",
                "check: one of them is for this resource.",
            ],
            None,
        ),
        (Some(Framework::Kopf), _) => preset(
            found,
            Framework::Kopf,
            &["kopf logs a line for each object that one of its handlers has handled."],
            None,
        ),
        (Some(Framework::KubeRs), _) => preset(
            found,
            Framework::KubeRs,
            &[
                "Whatever is logged while kube-rs reconciles an object names it.",
                "check: it logs something then, at this level.",
            ],
            Some(("RUST_LOG", "info")),
        ),
        (Some(Framework::ControllerRuntime), _) => preset(
            found,
            Framework::ControllerRuntime,
            &[
                "What a reconciler logs with `log.FromContext(ctx)` names its object.",
                "check: it logs something for each; with the usual flags `--zap-log-level=5` does.",
                "A line with uid and resourceVersion tells of versions too, by a `pattern`: docs/witnesses.md.",
            ],
            None,
        ),
        (None, None) => proposal(
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

/// The known lines of a library.
fn preset(found: &Found, library: Framework, comments: &[&str], env: Option<(&'static str, &'static str)>) -> Proposal {
    let mut keys = json!({"kind": "log", "preset": library.preset()});
    if let Some(crd) = found.crds.first() {
        keys["of"] = json!(crd.kind);
    }
    proposal(&keys, comments, env)
}

fn proposal(keys: &Value, comments: &[&str], env: Option<(&'static str, &'static str)>) -> Proposal {
    // A witness that is not one tells nothing, and `longhaul check` says what is wrong with it.
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
    let unseen: Vec<&str> = all.unseen_by(sees).into_iter().map(|(key, _)| key).collect();
    let is_told = |key: &str| !unseen.contains(&key);
    let heal = HEAL.to_string();
    // Where versions are told, `missed` says more than `unseen`.
    let budgets: Vec<String> =
        [("missed", "0"), ("unseen", "0"), ("ghost", "0"), ("regressed", "0"), ("heal", heal.as_str())]
            .into_iter()
            .filter(|(key, _)| is_told(key) && !(*key == "unseen" && is_told("missed")))
            .map(|(key, limit)| format!("{key}: {limit}"))
            .collect();
    let untold = [Sight::Updated, Sight::Deleted].into_iter().filter(|sight| !sees.can(*sight)).collect();
    let comments = comments.iter().map(|&comment| comment.to_owned()).collect();
    Proposal { keys: flow(keys), comments, env, budgets: format!("{{{}}}", budgets.join(", ")), untold }
}

/// A mapping of texts in one line, the kind first.
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
            finalizer,
            build: None,
            command: vec!["./any".to_owned()],
        };
        let crd = Crd {
            file: "crd.yaml".into(),
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            plural: "widgets".to_owned(),
            kind: "Widget".to_owned(),
            observes,
        };
        Found { languages: vec![language], crds: vec![crd], ..Found::default() }
    }

    /// What is written beside each witness is what it tells, and nothing that it does not.
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
            let proposal = propose(&found);
            assert_eq!((proposal.keys.as_str(), proposal.budgets.as_str()), (keys, budgets));
        }
        let unknown = propose(&found(None, None, false));
        assert!(unknown.keys.starts_with("{kind: log, pattern: 'saw"), "{}", unknown.keys);
        assert_eq!(unknown.budgets, "{missed: 0, regressed: 0}");
    }
}
