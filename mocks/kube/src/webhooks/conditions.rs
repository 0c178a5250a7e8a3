//! `matchConditions`: conditions of a webhook beyond its rules (KEP-3716).
//!
//! Owns their validation and their result. One false condition skips the webhook, whatever the others return; otherwise
//! an error follows the failure policy.

use mock_cel::formats::NAME_PART;
use mock_cel::{BUDGET, Input, Program};
use mock_objects::object::check_label_key;
use mock_objects::status::Cause;
use serde_json::Value;

/// `failurePolicy`: the fate of a request that cannot be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailurePolicy {
    Fail,
    Ignore,
}

/// The API's own limit.
const CONDITIONS_MAX: usize = 64;

/// The result of a webhook's conditions for a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    Call,
    Skip,
    /// The request is refused, and the webhook is not called.
    Refuse(String),
}

/// The errors in the conditions of the webhook at `field`.
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

/// Compiles conditions that were checked before.
pub(super) fn read(conditions: &Value) -> Vec<Program> {
    let list = conditions.as_array().into_iter().flatten();
    list.filter_map(|condition| Program::compile(text(condition, "expression")).ok()).collect()
}

/// Evaluates all conditions; they share one budget.
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

    /// Each of two conditions may use most of the budget, but both together may not exceed it.
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

    /// A false condition wins over an error, and errors follow the failure policy.
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
