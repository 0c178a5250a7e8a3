//! The manifest: the description of the run, written before the run starts.

use std::fmt::Write as _;
use std::time::Duration;

use mock_faults::On;
use reports::record::{Manifest, MetricsPlan, Need, Phases, PlannedFault, SCHEMA, Subject, Versions};

use units::Rate;

use super::load::LoadPlan;
use super::plane::Plane;
use super::{Options, attacks};
use crate::machine;
use crate::scenario::{ControlPlaneKind, Scenario};
use crate::secrets;

/// The identity of fault number `index` in a run, because a scenario may contain the same fault twice.
pub(super) fn fault_id(index: usize, fault: &mock_faults::Fault) -> String {
    format!("{}-{}", index + 1, fault.name.as_str())
}

/// Creates the manifest of the run. `digest` is the digest of the subject's program.
pub(super) fn manifest(
    options: &Options,
    command: &[String],
    digest: Option<String>,
    load: &LoadPlan,
    plane: &Plane,
    metrics: Option<MetricsPlan>,
) -> Manifest {
    let scenario = &options.source.scenario;
    let now = jiff::Timestamp::now();
    Manifest {
        schema: SCHEMA.to_owned(),
        run_id: format!("{}-{}-{}", now.strftime("%Y%m%dT%H%M%SZ"), scenario.name, scenario.seed),
        started_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        name: scenario.name.clone(),
        question: scenario.description.trim().to_owned(),
        scenario: secrets::scenario(serde_json::to_value(scenario).unwrap_or_default()),
        seed: scenario.seed,
        phases: Phases {
            warm_up_ms: scenario.phases.warm_up.as_millis(),
            steady_ms: scenario.phases.steady.as_millis(),
            drain_ms: scenario.phases.drain.as_millis(),
        },
        budgets: scenario.budgets.clone(),
        versions: Versions { longhaul: env!("CARGO_PKG_VERSION").to_owned(), git_revision: machine::git_revision() },
        machine: machine::machine(),
        control_plane: plane.describe(),
        subject: Subject {
            kind: scenario.subject.profile().name.to_owned(),
            command: secrets::arguments(command),
            digest,
            planted_bug: options.plant.clone(),
            restart: scenario.subject.upkeep().restart.map(|restart| restart.name().to_owned()),
            unsampled: scenario.subject.profile().notes.unsampled.map(str::to_owned),
            metrics,
        },
        witness: scenario.subject.witness.name().to_owned(),
        witness_sees: Some(scenario.sees()),
        witness_tolerates: scenario.subject.witness.tolerates(),
        compress: scenario.compression(),
        clock_rate: scenario.subject.upkeep().clock_rate.unwrap_or(1),
        judged: scenario.judged_resources().into_iter().map(|(name, _)| name).collect(),
        payload_fingerprint: load.admission.as_ref().map(|(plan, _)| plan.fingerprint()),
        faults: scenario
            .faults
            .iter()
            .enumerate()
            .map(|(index, fault)| {
                planned_fault(index, fault, index >= scenario.faults.planned().len(), scenario.phases.loaded())
            })
            .chain(attacked(scenario))
            .collect(),
        admission_rate_per_second: load
            .admission
            .as_ref()
            .map(|(plan, _)| plan.total() as f64 / plan.length().as_secs_f64()),
        churn_rate_per_second: churn_rate(scenario),
        webhooks: super::registration::webhook_plans(scenario),
        repeat: options.repeat.clone(),
        notes: notes(options, plane),
    }
}

/// Changes per second of all sections; `None` without churn, or if the warm-up searches the rate.
fn churn_rate(scenario: &Scenario) -> Option<f64> {
    let rates = scenario.churn.iter().map(|churn| churn.rate.at().map(Rate::as_per_second));
    rates.sum::<Option<f64>>().filter(|_| !scenario.churn.is_empty())
}

/// Notes that a reader of the report needs.
fn notes(options: &Options, plane: &Plane) -> Vec<String> {
    let mut notes = Vec::new();
    if plane.mock().is_none() && !options.source.scenario.judged_resources().is_empty() {
        notes.push(
            "commits have the time at which the harness's own watch saw them, not the time of the write".to_owned(),
        );
    }
    notes.extend(options.source.scenario.subject.profile().notes.note.map(str::to_owned));
    notes.extend(hurry(&options.source.scenario));
    if let Some(left_out) = &options.left_out {
        notes.push(left_out.clone());
    }
    notes
}

/// Notes on clocks and lifetimes that run faster than in a real cluster.
pub(super) fn hurry(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(rate) = scenario.subject.upkeep().clock_rate.filter(|rate| *rate > 1) {
        let own = scenario.phases.own_steady().map(|steady| format!(": the steady phase was {steady} of it"));
        let own = own.unwrap_or_default();
        notes.push(format!(
            "the subject's own clock ran {rate} times faster{own}; times of this report are real, unless they are called its own"
        ));
    }
    let compress = scenario.compression();
    if compress > 1 {
        notes.push(format!(
            "watches, tokens, history and idle connections lived {compress} times shorter than the control plane lets them live"
        ));
    }
    let played = scenario.control_plane.workloads.filter(|_| scenario.control_plane.kind == ControlPlaneKind::Mock);
    if let Some(workloads) = played {
        notes.push(format!("the mock let workloads become ready, each after {}", workloads.ready_after));
    }
    notes
}

fn planned_fault(index: usize, fault: &mock_faults::Fault, drawn: bool, loaded: Duration) -> PlannedFault {
    let late = fault.after_load().map(|after| units::Span(loaded.saturating_add(after.0)));
    PlannedFault {
        id: fault_id(index, fault),
        name: fault.name.as_str().to_owned(),
        at_ms: fault.at.or(late).unwrap_or_default().as_millis(),
        for_ms: fault.lasts.map(units::Span::as_millis),
        detail: describe(fault),
        drawn,
        needs: needs(fault),
        needs_resource: fault.resource.clone(),
    }
}

/// Features that the subject must have to be affected by a fault, as far as the fault's settings show them.
fn needs(fault: &mock_faults::Fault) -> Vec<Need> {
    let row = fault.name.row();
    let on = match row.family {
        mock_faults::Family::Watches => On::Watch,
        mock_faults::Family::Requests => fault.on.unwrap_or(row.on),
        _ => return Vec::new(),
    };
    let on = match on {
        On::List => Some(Need::List),
        On::Watch => Some(Need::Watch),
        On::Get => Some(Need::Get),
        On::Create => Some(Need::Create),
        On::Update => Some(Need::Update),
        On::Patch => Some(Need::Patch),
        On::Delete => Some(Need::Delete),
        // Any of several kinds of requests is enough, and the kind is unknown.
        _ => None,
    };
    let bookmarks = matches!(fault.name.as_str(), "no-bookmarks" | "bookmark-ahead").then_some(Need::Bookmarks);
    let asks = fault.query.as_deref().is_some_and(|query| query.contains("sendInitialEvents=true"));
    let initial = (asks || fault.name.as_str().starts_with("initial-end")).then_some(Need::InitialEvents);
    on.into_iter().chain(bookmarks).chain(initial).collect()
}

/// The planned attacks. Hits must prove each of them.
fn attacked(scenario: &Scenario) -> impl Iterator<Item = PlannedFault> {
    attacks::of(scenario).iter().map(|attack| PlannedFault {
        id: attacks::name(attack),
        name: attacks::name(attack),
        at_ms: attack.at.as_millis(),
        for_ms: Some(attack.lasts.as_millis()),
        detail: attack.describe(),
        drawn: false,
        needs: Vec::new(),
        needs_resource: None,
    })
}

/// A text that says when a fault begins.
pub(crate) fn begins(fault: &mock_faults::Fault) -> String {
    if let Some(after) = fault.after_load() {
        return format!("{after} after the load");
    }
    match (fault.at, &fault.when) {
        (Some(at), _) => format!("at {at}"),
        (None, Some(when)) => when.describe(),
        (None, None) => "before the subject starts".to_owned(),
    }
}

/// Settings that [`describe`] does not list as `key: value`.
const IN_WORDS: [&str; 8] = ["name", "id", "at", "when", "resource", "for", "count", "probability"];

/// A text that describes a fault with every setting of the scenario file.
pub(crate) fn describe(fault: &mock_faults::Fault) -> String {
    let mut text = fault.name.as_str().to_owned();
    if let Some(resource) = &fault.resource {
        let _ = write!(text, " on {resource}");
    }
    if let Some(length) = fault.lasts {
        let _ = write!(text, " for {length}");
    }
    if let Some(count) = fault.count {
        let _ = write!(text, ", at most {}", reports::words::counted(count, "time"));
    }
    if let Some(probability) = fault.probability {
        let _ = write!(text, ", with a chance of {probability}");
    }
    // A new setting is shown as written.
    let settings = serde_json::to_value(fault).unwrap_or_default();
    for (key, value) in settings.as_object().into_iter().flatten().filter(|(key, _)| !IN_WORDS.contains(&key.as_str()))
    {
        let _ = match value {
            serde_json::Value::String(word) => write!(text, ", {key} {word}"),
            serde_json::Value::Object(range) => {
                let parts: Vec<String> = range.iter().map(|(key, value)| format!("{key} {value}")).collect();
                write!(text, ", {key} {}", parts.join(" "))
            }
            serde_json::Value::Array(words) if words.iter().all(serde_json::Value::is_string) => {
                let words: Vec<&str> = words.iter().filter_map(serde_json::Value::as_str).collect();
                write!(text, ", {key} {}", words.join(" or "))
            }
            other => write!(text, ", {key} {other}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use mock_faults::Fault;
    use reports::record::Need;

    /// The text about a fault contains every setting.
    #[test]
    fn every_setting_of_a_fault_is_told() {
        let told = |text: &str| super::describe(&serde_saphyr::from_str::<Fault>(text).unwrap());
        assert_eq!(told("{name: http-error, at: 2s, on: [patch, update]}"), "http-error, on update or patch");
        assert_eq!(
            told("{name: http-error, at: 2s, for: 3s, on: watch, status: 429, retryAfter: 2s, nth: {from: 2, to: 4}}"),
            "http-error for 3s, nth from 2 to 4, on watch, retryAfter 2s, status 429"
        );
        assert_eq!(told("{name: watch-reset, at: 2s, resource: packages}"), "watch-reset on packages");
        let plan = crate::scenario::Source::read("soak-1h").unwrap().scenario;
        let all: String = plan.faults.iter().map(|fault| super::describe(fault) + "\n").collect();
        assert!(all.contains("error-event") && all.contains("code 410, then end"), "{all}");
    }

    /// The features that a fault needs follow from the fault's settings: a client that never sends a matching request
    /// is not affected.
    #[test]
    fn a_fault_says_which_requests_it_needs() {
        let needs = |text: &str| super::needs(&serde_saphyr::from_str::<Fault>(text).unwrap());
        assert_eq!(needs("{name: watch-reset, at: 2s}"), [Need::Watch]);
        assert_eq!(needs("{name: initial-end-missing, at: 2s}"), [Need::Watch, Need::InitialEvents]);
        assert_eq!(needs("{name: no-bookmarks, at: 2s}"), [Need::Watch, Need::Bookmarks]);
        assert_eq!(needs("{name: http-error, at: 2s, on: update, status: 409}"), [Need::Update]);
        assert_eq!(needs("{name: refuse-connections, at: 2s}"), []);
    }
}
