//! Computes the status to write from the known status and a report; `None` if the known status is already right.
//!
//! This service owns the condition `Ready`; conditions of other types are not changed. `lastTransitionTime` changes
//! only with the condition's status, as Kubernetes' API conventions demand.

use serde_json::{Map, Value, json};

use service_watch::Status;

const READY: &str = "Ready";
/// Maximum number of characters of a message in a status or an event; Kubernetes limits the note of an event to 1024
/// bytes.
const MESSAGE_CHARS_MAX: usize = 400;

#[derive(Debug, Default)]
pub(super) struct Report<'a> {
    pub phase: &'static str,
    /// The generation whose reconciliation ended; `None` if the work on it continues.
    pub observed: Option<i64>,
    pub message: &'a str,
    /// Number of existing network policies, if known.
    pub policies: Option<usize>,
    /// Number of failed attempts to reconcile this generation.
    pub retries: usize,
}

/// The merge patch for `status` that makes `known` show `report` about `generation`; `None` if `known` already shows
/// it.
pub(super) fn merge(known: &Status, generation: i64, report: &Report<'_>, now: &str) -> Option<Value> {
    let mut changes = Map::new();
    if *known.phase != *report.phase {
        changes.insert("phase".into(), report.phase.into());
    }
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let numbers = [
        ("retryAttempts", known.retry_attempts, Some(count(report.retries))),
        ("observedGeneration", known.observed_generation, report.observed),
        ("networkPolicyCount", known.network_policy_count, report.policies.map(count)),
    ];
    for (key, known, wanted) in numbers {
        if let Some(wanted) = wanted.filter(|wanted| known != Some(*wanted)) {
            changes.insert(key.into(), wanted.into());
        }
    }
    let mut conditions: Vec<Value> =
        known.conditions.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let place = conditions.iter().position(|condition| condition["type"] == READY);
    let old = place.map_or(Value::Null, |place| conditions[place].take());
    let fresh = condition(&old, generation, report, now);
    if fresh != old {
        match place {
            Some(place) => conditions[place] = fresh,
            None => conditions.push(fresh),
        }
        changes.insert("conditions".into(), conditions.into());
    }
    (!changes.is_empty()).then(|| changes.into())
}

fn condition(old: &Value, generation: i64, report: &Report<'_>, now: &str) -> Value {
    let status = if report.phase == READY { "True" } else { "False" };
    let since = old["lastTransitionTime"].as_str().filter(|_| old["status"] == status).unwrap_or(now);
    json!({
        "type": READY,
        "status": status,
        "reason": report.phase,
        "message": cut(report.message),
        "observedGeneration": generation,
        "lastTransitionTime": since,
    })
}

/// Cuts `message` to the maximum length in a status or an event.
pub(super) fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Status {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn only_what_changes_is_written_and_other_conditions_stay() {
        let report = Report { phase: "Ready", observed: Some(2), message: "m", policies: Some(1), retries: 0 };
        let first = merge(&Status::default(), 2, &report, "t1").unwrap();
        let after = known(&first.to_string());
        assert_eq!(merge(&after, 2, &report, "t2"), None, "nothing changes");
        let other = json!({"type": "Other", "status": "True"});
        let mut shared = first.clone();
        shared["conditions"].as_array_mut().unwrap().insert(0, other.clone());
        let shared = known(&shared.to_string());
        let failed = Report { phase: "Retrying", message: "why", retries: 1, ..Report::default() };
        let changes = merge(&shared, 3, &failed, "t3").unwrap();
        assert_eq!(changes["conditions"][0], other);
        assert_eq!(changes["conditions"][1]["lastTransitionTime"], "t3", "True became False");
        assert!(changes.get("observedGeneration").is_none() && changes.get("networkPolicyCount").is_none());
        let mut failing = first;
        json_patch::merge(&mut failing, &changes);
        let again = merge(&known(&failing.to_string()), 3, &Report { retries: 2, ..failed }, "t4").unwrap();
        assert_eq!(again, json!({"retryAttempts": 2}), "its status and words stay, so its time does");
    }

    #[test]
    fn conditions_that_are_none_are_replaced() {
        let report = Report { phase: "Ready", ..Report::default() };
        for text in [r#"{"conditions":7}"#, r#"{"conditions":null}"#, r#"{"conditions":[null,1]}"#] {
            let changes = merge(&known(text), 1, &report, "t").unwrap();
            let ready = changes["conditions"].as_array().unwrap().last().unwrap();
            assert_eq!(ready["status"], "True", "{text}");
        }
    }
}
