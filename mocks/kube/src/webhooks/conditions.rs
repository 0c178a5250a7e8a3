//! `matchConditions`: CEL conditions of a webhook in addition to its rules (KEP-3716).
//!
//! Owns checking and evaluating match conditions. If one condition is false, the webhook is skipped, whatever the other
//! conditions return. If no condition is false but one fails, the failure policy decides whether the request is
//! refused.

use mock_cel::formats::NAME_PART;
use mock_cel::{BUDGET, Input, Program};
use mock_objects::object::check_label_key;
use mock_objects::status::Cause;
use serde_json::Value;

/// `failurePolicy`: the decision about a request whose webhook cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailurePolicy {
    Fail,
    Ignore,
}

/// Maximum number of match conditions of one webhook, as in the API.
const CONDITIONS_MAX: usize = 64;

/// The result of a webhook's match conditions for a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    Call,
    Skip,
    /// The request is refused, and the webhook is not called.
    Refuse(String),
}

/// The errors in a webhook's match conditions; `field` is the path of the webhook in its configuration.
pub(super) fn check(conditions: &Value, field: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let list = conditions.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.len() > CONDITIONS_MAX {
        let message = format!("Too many: {}: must have at most {CONDITIONS_MAX} items", list.len());
        causes.push(Cause { reason: "FieldValueTooMany", field: field.to_owned(), message });
        return causes;
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, condition) in list.iter().enumerate() {
        let (name, expression) = (text(condition, "name"), text(condition, "expression"));
        let at = |key: &str| format!("{field}[{index}].{key}");
        if expression.trim().is_empty() {
            causes.push(Cause::required(&at("expression"), ""));
        } else if let Err(why) = Program::compile(expression) {
            causes.push(Cause::invalid(&at("expression"), &Value::from(expression).to_string(), &why));
        }
        if name.is_empty() {
            causes.push(Cause::required(&at("name"), ""));
        } else if !check_label_key(name) {
            causes.push(Cause::invalid(&at("name"), &Value::from(name).to_string(), NAME_PART));
        } else if names.contains(&name) {
            let message = format!("Duplicate value: {}", Value::from(name));
            causes.push(Cause { reason: "FieldValueDuplicate", field: at("name"), message });
        }
        names.push(name);
    }
    causes
}

/// Compiles conditions that were already checked.
pub(super) fn read(conditions: &Value) -> Vec<Program> {
    let list = conditions.as_array().into_iter().flatten();
    list.filter_map(|condition| Program::compile(text(condition, "expression")).ok()).collect()
}

/// Evaluates all conditions of a webhook, which share one CEL budget.
pub(crate) fn judge(programs: &[Program], input: &Input<'_>, policy: FailurePolicy) -> Opinion {
    let mut budget = BUDGET;
    let mut errors = Vec::new();
    for program in programs {
        match program.run(input, &mut budget) {
            Ok(true) => {}
            Ok(false) => return Opinion::Skip,
            Err(why) => errors.push(why.to_string()),
        }
    }
    match (&errors[..], policy) {
        ([], _) => Opinion::Call,
        (_, FailurePolicy::Ignore) => Opinion::Skip,
        ([only], FailurePolicy::Fail) => Opinion::Refuse(only.clone()),
        (several, FailurePolicy::Fail) => Opinion::Refuse(format!("[{}]", several.join(", "))),
    }
}

fn text<'a>(condition: &'a Value, key: &str) -> &'a str {
    condition[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// If each of two conditions uses less than the CEL budget and both together exceed it, the second condition fails.
    #[test]
    fn the_conditions_of_a_webhook_share_one_budget() {
        let (object, null) = (json!({"items": (0..250).collect::<Vec<u32>>()}), Value::Null);
        let input = Input { object: &object, old_object: &null, request: &null };
        let condition = json!({"name": "x", "expression": "object.items.all(a, object.items.all(b, a + b >= 0))"});
        let judged = |count| judge(&read(&Value::from(vec![condition.clone(); count])), &input, FailurePolicy::Fail);
        assert_eq!(judged(1), Opinion::Call);
        let Opinion::Refuse(why) = judged(2) else { panic!("the second one has nothing left") };
        assert!(why.ends_with("actual cost limit exceeded"), "{why}");
    }

    /// If one condition is false and another fails, the webhook is skipped. Without a false condition, the failure
    /// policy decides about an error.
    #[test]
    fn opinions() {
        let judged = |expressions: &[&str], policy| {
            let list: Vec<Value> = expressions.iter().map(|e| json!({"name": "x", "expression": e})).collect();
            let (object, null) = (json!({"kind": "ConfigMap"}), Value::Null);
            let input = Input { object: &object, old_object: &null, request: &null };
            judge(&read(&Value::from(list)), &input, policy)
        };
        let broken = "object.x == 1";
        assert_eq!(judged(&[], FailurePolicy::Fail), Opinion::Call);
        assert_eq!(judged(&["true", "object.kind == 'ConfigMap'"], FailurePolicy::Fail), Opinion::Call);
        assert_eq!(judged(&[broken, "false"], FailurePolicy::Fail), Opinion::Skip);
        assert_eq!(judged(&[broken, "true"], FailurePolicy::Ignore), Opinion::Skip);
        let why = "expression 'object.x == 1' resulted in error: no such key: x";
        assert_eq!(judged(&[broken, "true"], FailurePolicy::Fail), Opinion::Refuse(why.to_owned()));
        assert_eq!(judged(&[broken, broken], FailurePolicy::Fail), Opinion::Refuse(format!("[{why}, {why}]")));
    }
}
