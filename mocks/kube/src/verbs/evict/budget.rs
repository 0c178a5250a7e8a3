//! The decision of a `PodDisruptionBudget` about the eviction of one pod ("Specifying a Disruption Budget for your
//! Application", policy/v1).
//!
//! Owns the selection of pods by a budget, the decision, and the budget's new status. This module is pure; the caller
//! writes the status.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use mock_objects::object;
use mock_objects::selector::{from_label_selector, labels_match};
use mock_objects::status::{About, Failure};

/// Maximum number of pods in a budget's `disruptedPods`: evictions that the controller has not processed yet, as in the
/// API.
const DISRUPTED_MAX: usize = 2000;
/// Seconds that a client should wait before it evicts again, if the controller has not processed the budget yet.
const RETRY_AFTER_S: u64 = 10;
const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// The error for a pod that several budgets select.
pub(super) const SEVERAL: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/// Whether budgets do not apply to a pod, because the pod does not run or is being deleted.
pub(super) fn is_unguarded(pod: &Value) -> bool {
    object::is_deleting(pod) || matches!(phase(pod), "Succeeded" | "Failed" | "Pending")
}

/// Whether a pod to which no budget applies now may soon become ready.
pub(super) fn may_become_ready(pod: &Value) -> bool {
    !object::is_deleting(pod) && phase(pod) == "Pending"
}

/// Whether the budget selects a pod with these labels. A budget without a selector selects no pod; an empty selector
/// selects all.
pub(super) fn selects<'a>(budget: &Value, label: impl Fn(&str) -> Option<&'a str>) -> bool {
    let selector = &budget["spec"]["selector"];
    selector.is_object() && from_label_selector(selector).is_ok_and(|wanted| labels_match(&wanted, label))
}

/// Whether the pod is not ready and the budget allows its eviction without counting a disruption.
pub(super) fn lets_unready_go(budget: &Value, pod: &Value) -> bool {
    if is_ready(pod) {
        return false;
    }
    let desired = number(budget, "desiredHealthy");
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || desired > 0 && number(budget, "currentHealthy") >= desired
}

/// Subtracts one allowed disruption from the budget for `pod`; the error says why the budget allows none.
pub(super) fn take(budget: &mut Value, pod: &str, now: Timestamp) -> Result<(), Failure> {
    let name = object::meta(budget, "name").to_owned();
    if number(budget, "observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        return Err(unsettled(&name));
    }
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(forbidden(&name, why, why));
    }
    if budget.pointer("/status/disruptedPods").and_then(Value::as_object).is_some_and(|pods| pods.len() > DISRUPTED_MAX)
    {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(&name, why, "too many pending evictions not confirmed by PDB controller"));
    }
    if allowed == 0 {
        return Err(too_many(&exhausted(&name, budget), None));
    }
    let observed = number(budget, "observedGeneration");
    let Some(status) = budget.get_mut("status").and_then(Value::as_object_mut) else { return Err(unsettled(&name)) };
    status.insert("disruptionsAllowed".to_owned(), Value::from(allowed - 1));
    if allowed == 1 {
        exhaust(status, observed, now);
    }
    let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
    if let Some(disrupted) = disrupted.as_object_mut() {
        disrupted.insert(pod.to_owned(), Value::from(object::seconds(now)));
    }
    Ok(())
}

/// The error if the controller has not processed the budget's current generation.
pub(super) fn unsettled(name: &str) -> Failure {
    let cause = format!("The disruption budget {name} is still being processed by the server.");
    too_many(&cause, Some(RETRY_AFTER_S))
}

/// Sets the condition `DisruptionTarget` in a pod; returns whether the pod changed.
pub(super) fn note_eviction(pod: &mut Value, now: Timestamp) -> bool {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return false };
    let (reason, message) = ("EvictionByEvictionAPI", "Eviction API: evicting");
    let mut condition = json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
        "lastProbeTime": null, "lastTransitionTime": object::seconds(now)});
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return false };
    let Some(known) = conditions.iter_mut().find(|known| known["type"] == "DisruptionTarget") else {
        conditions.push(condition);
        return true;
    };
    if known["status"] == "True" {
        condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
    }
    if ["status", "reason", "message"].iter().all(|key| known[*key] == condition[*key]) {
        return false;
    }
    *known = condition;
    true
}

/// Why a budget allows no disruption.
fn exhausted(name: &str, budget: &Value) -> String {
    let (desired, current) = (number(budget, "desiredHealthy"), number(budget, "currentHealthy"));
    let conditions = budget.pointer("/status/conditions").and_then(Value::as_array);
    let why = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "DisruptionAllowed" && condition["status"] == "False")
        .map(|condition| (text(condition, "reason"), text(condition, "message")))
        .filter(|(_, message)| !message.is_empty());
    match why {
        // The numbers are not reliable then.
        Some(("SyncFailed", message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some((reason, message)) => {
            format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Sets the budget's condition that no further disruption is allowed.
fn exhaust(status: &mut Map<String, Value>, observed_generation: i64, now: Timestamp) {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    let known = conditions.iter().position(|condition| condition["type"] == "DisruptionAllowed");
    let since = known
        .map(|index| &conditions[index])
        .filter(|condition| condition["status"] == "False")
        .map_or_else(|| Value::from(object::seconds(now)), |condition| condition["lastTransitionTime"].clone());
    let condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "observedGeneration": observed_generation, "lastTransitionTime": since});
    match known {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
}

fn too_many(cause: &str, retry_after_s: Option<u64>) -> Failure {
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
    if let Some(seconds) = retry_after_s {
        details["retryAfterSeconds"] = Value::from(seconds);
    }
    let mut failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", VIOLATED).with(details);
    failure.retry_after_s = retry_after_s;
    failure
}

fn forbidden(name: &str, why: &str, cause: &str) -> Failure {
    // The one refusal that names the resource in the singular.
    let mut failure = Failure::forbidden(About { group: "policy", kind: "poddisruptionbudget", name }, why);
    if let Some(details) = &mut failure.details {
        let message = format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
        details["causes"] = json!([{"reason": "DisruptionBudget", "message": message}]);
    }
    failure
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn phase(pod: &Value) -> &str {
    pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

/// A number in the status of the budget; 0 if absent.
fn number(budget: &Value, key: &str) -> i64 {
    budget["status"][key].as_i64().unwrap_or(0)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(status: &Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 2}, "spec": {"selector": {"matchLabels": {"app": "web"}}},
               "status": status})
    }

    fn refusal(status: &Value) -> (u16, String, Option<u64>) {
        let failure = take(&mut budget(status), "p", Timestamp::UNIX_EPOCH).unwrap_err();
        let cause = failure.details.as_ref().unwrap()["causes"][0]["message"].as_str().unwrap().to_owned();
        (failure.code.as_u16(), cause, failure.retry_after_s)
    }

    #[test]
    fn whom_a_budget_guards() {
        let labels = |key: &str| (key == "app").then_some("web");
        let with = |selector: Value| json!({"spec": {"selector": selector}});
        assert!(selects(&with(json!({"matchLabels": {"app": "web"}})), labels));
        assert!(selects(&with(json!({})), labels), "an empty selector is one of all pods");
        assert!(!selects(&with(json!({"matchLabels": {"app": "db"}})), labels));
        assert!(!selects(&json!({"spec": {}}), labels), "without a selector there is nothing to guard");
        assert!(!selects(&with(json!({"matchExpressions": [{"key": "app", "operator": "odd"}]})), labels));
        let pod = |phase: &str| json!({"metadata": {}, "status": {"phase": phase}});
        for phase in ["Succeeded", "Failed", "Pending"] {
            assert!(is_unguarded(&pod(phase)), "{phase}");
        }
        let mut going = pod("Running");
        assert!(!is_unguarded(&going) && !may_become_ready(&going) && may_become_ready(&pod("Pending")));
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(is_unguarded(&going));
    }

    #[test]
    fn an_unready_pod_goes_where_enough_are_healthy_or_the_policy_says_so() {
        let (ready, unready) =
            (json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}), json!({"status": {}}));
        let with = |desired: i64, current: i64| budget(&json!({"desiredHealthy": desired, "currentHealthy": current}));
        assert!(lets_unready_go(&with(2, 2), &unready) && !lets_unready_go(&with(2, 2), &ready));
        assert!(!lets_unready_go(&with(2, 1), &unready) && !lets_unready_go(&with(0, 0), &unready));
        let mut always = with(2, 1);
        always["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
        assert!(lets_unready_go(&always, &unready) && !lets_unready_go(&always, &ready));
    }

    #[test]
    fn a_disruption_is_taken_and_noted() {
        let mut one = budget(&json!({"observedGeneration": 2, "disruptionsAllowed": 2}));
        take(&mut one, "p", Timestamp::UNIX_EPOCH).unwrap();
        let status = &one["status"];
        assert_eq!((&status["disruptionsAllowed"], status.get("conditions")), (&json!(1), None));
        assert_eq!(status["disruptedPods"], json!({"p": "1970-01-01T00:00:00Z"}));
        take(&mut one, "q", Timestamp::UNIX_EPOCH).unwrap();
        let status = &one["status"];
        assert_eq!((&status["disruptionsAllowed"], status["disruptedPods"].as_object().unwrap().len()), (&json!(0), 2));
        let condition = &status["conditions"][0];
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("InsufficientPods")));
        assert_eq!(take(&mut one, "r", Timestamp::UNIX_EPOCH).unwrap_err().code.as_u16(), 429);
    }

    #[test]
    fn why_a_budget_lets_nothing_go() {
        let base = "The disruption budget b";
        let unsettled = format!("{base} is still being processed by the server.");
        assert_eq!(refusal(&json!({"observedGeneration": 1, "disruptionsAllowed": 5})), (429, unsettled, Some(10)));
        let needs = json!({"observedGeneration": 2, "desiredHealthy": 3, "currentHealthy": 3});
        assert_eq!(refusal(&needs), (429, format!("{base} needs 3 healthy pods and has 3 currently"), None));
        let no = format!("{base} does not allow evicting pods currently");
        let mut above = json!({"observedGeneration": 2, "desiredHealthy": 3, "currentHealthy": 4});
        assert_eq!(refusal(&above), (429, no.clone(), None));
        let condition =
            |reason: &str| json!([{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": "m"}]);
        above["conditions"] = condition("Odd");
        assert_eq!(refusal(&above), (429, format!("{no} (Odd): m"), None));
        above["conditions"] = condition("SyncFailed");
        assert_eq!(refusal(&above), (429, format!("{no} because it failed sync: m"), None));
        let negative = json!({"observedGeneration": 2, "disruptionsAllowed": -1});
        assert_eq!(refusal(&negative), (403, format!("{no}: pdb disruptions allowed is negative"), None));
        let pods: Map<String, Value> = (0..=DISRUPTED_MAX).map(|n| (n.to_string(), json!("x"))).collect();
        let crowded = json!({"observedGeneration": 2, "disruptionsAllowed": 1, "disruptedPods": pods});
        assert_eq!(refusal(&crowded).0, 403);
    }

    #[test]
    fn an_eviction_is_noted_once() {
        let (then, now) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let mut pod = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert!(note_eviction(&mut pod, then));
        assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
        let once = pod.clone();
        assert!(!note_eviction(&mut pod, now));
        assert_eq!(pod, once);
        pod["status"]["conditions"][1]["reason"] = json!("PreemptionByScheduler");
        assert!(note_eviction(&mut pod, now));
        assert_eq!(pod, once, "it has been a target all along");
    }
}
