//! The policies of a job for the ends of its pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::at::At;
use super::super::causes::Refuse;
use crate::status::Cause;
use mock_cel::formats::qualified_name;

const RULES_MAX: usize = 20;
const CODES_MAX: usize = 255;
const CONDITIONS_MAX: usize = 20;
const INDEXES_MAX_BYTES: usize = 64 << 10;

/// Checks `podFailurePolicy`, `successPolicy` and `podReplacementPolicy`.
pub(super) fn check(spec: &Value, indexed: bool, at: At<'_>, causes: &mut Vec<Cause>) {
    let failure = &spec["podFailurePolicy"];
    if !failure.is_null() {
        let at = at.field("podFailurePolicy");
        let list = at.field("rules");
        bounded(&failure["rules"], RULES_MAX, list, causes);
        for (index, rule) in items(failure, "rules").iter().enumerate() {
            failed(spec, rule, list.item(index), causes);
        }
    }
    let success = &spec["successPolicy"];
    if !success.is_null() && !indexed {
        causes.invalid(at.field("successPolicy"), success, "requires indexed completion mode");
    } else if !success.is_null() {
        let at = at.field("successPolicy");
        let list = at.field("rules");
        if items(success, "rules").is_empty() {
            causes.required(list, "at least one rules must be specified when the successPolicy is specified");
        }
        bounded(&success["rules"], RULES_MAX, list, causes);
        let completions = spec["completions"].as_i64().unwrap_or(0);
        for (index, rule) in items(success, "rules").iter().enumerate() {
            succeeded(rule, completions, list.item(index), causes);
        }
    }
    let known: &[&str] = if failure.is_null() { &["Failed", "TerminatingOrFailed"] } else { &["Failed"] };
    causes.one_of(&spec["podReplacementPolicy"], at.field("podReplacementPolicy"), known);
}

fn items<'a>(value: &'a Value, list: &str) -> &'a [Value] {
    value[list].as_array().map_or(&[], Vec::as_slice)
}

fn bounded(list: &Value, most: usize, at: At<'_>, causes: &mut Vec<Cause>) {
    let count = list.as_array().map_or(0, Vec::len);
    if count > most {
        causes.too_many(at, count, most);
    }
}

/// Requires one of these texts.
fn must_be(value: &Value, at: At<'_>, known: &[&str], causes: &mut Vec<Cause>) {
    if value.as_str().unwrap_or_default().is_empty() {
        causes.required(at, &format!("valid values: {known:?}"));
    } else {
        causes.one_of(value, at, known);
    }
}

fn failed(spec: &Value, rule: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    must_be(&rule["action"], at.field("action"), &actions, causes);
    if rule["action"] == "FailIndex" && spec["backoffLimitPerIndex"].is_null() {
        causes.invalid_text(at.field("action"), "FailIndex", "requires the backoffLimitPerIndex to be set");
    }
    let (codes, conditions) = (&rule["onExitCodes"], items(rule, "onPodConditions"));
    if !codes.is_null() {
        exit_codes(spec, codes, at.field("onExitCodes"), causes);
    }
    let list = at.field("onPodConditions");
    bounded(&rule["onPodConditions"], CONDITIONS_MAX, list, causes);
    for (index, condition) in conditions.iter().enumerate() {
        let at = list.item(index);
        let kind = condition["type"].as_str().unwrap_or_default();
        causes.faults(at.field("type"), kind, qualified_name(kind));
        must_be(&condition["status"], at.field("status"), &["False", "True", "Unknown"], causes);
    }
    match (codes.is_null(), conditions.is_empty()) {
        (false, false) => {
            causes.refuse(
                "FieldValueInvalid",
                at,
                "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported".to_owned(),
            );
        }
        (true, true) => {
            causes.refuse(
                "FieldValueInvalid",
                at,
                "Invalid value: specifying one of OnExitCodes and OnPodConditions is required".to_owned(),
            );
        }
        _ => {}
    }
}

fn exit_codes(spec: &Value, codes: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    must_be(&codes["operator"], at.field("operator"), &["In", "NotIn"], causes);
    if let Some(name) = codes["containerName"].as_str() {
        let pod = &spec["template"]["spec"];
        let mut all = ["containers", "initContainers"].into_iter().flat_map(|list| items(pod, list));
        if !all.any(|container| container["name"] == name) {
            let why = "must be one of the container or initContainer names in the pod template";
            causes.invalid_text(at.field("containerName"), name, why);
        }
    }
    let (list, values) = (at.field("values"), items(codes, "values"));
    if values.is_empty() {
        causes.invalid(list, &json!([]), "at least one value is required");
    }
    bounded(&codes["values"], CODES_MAX, list, causes);
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        if codes["operator"] == "In" && *value == 0 {
            causes.invalid(list.item(index), value, "must not be 0 for the In operator");
        }
        if !seen.insert(value.as_i64()) {
            causes.duplicate(list.item(index), &value.to_string());
        }
    }
    if !values.is_sorted_by_key(|value| value.as_i64().unwrap_or(0)) {
        causes.invalid(list, &codes["values"], "must be ordered");
    }
}

fn succeeded(rule: &Value, completions: i64, at: At<'_>, causes: &mut Vec<Cause>) {
    let (count, indexes) = (rule["succeededCount"].as_i64(), rule["succeededIndexes"].as_str());
    if count.is_none() && indexes.is_none() {
        causes.required(at, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = 0;
    if let Some(text) = indexes {
        let at = at.field("succeededIndexes");
        if text.len() > INDEXES_MAX_BYTES {
            causes.too_long(at, INDEXES_MAX_BYTES);
        }
        match count_indexes(text, completions) {
            Ok(count) => total = count,
            Err(why) => causes.invalid_text(at, text, &format!("error parsing succeededIndexes: {why}")),
        }
    }
    let at = at.field("succeededCount");
    causes.not_negative(at, count);
    let mut at_most = |most: i64, what: &str| {
        if let Some(count) = count.filter(|count| *count > most) {
            causes.invalid(at, &count, &format!("must be less than or equal to {most} (the number of {what})"));
        }
    };
    at_most(completions, "specified completions");
    if indexes.is_some() {
        at_most(total, "indexes in the specified succeededIndexes field");
    }
}

/// The number of indexes in a text such as `0,2-4`; they must be ascending and below the completions.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut total, mut last) = (0, None);
    if text.is_empty() {
        return Ok(0);
    }
    let mut one = |text: &str| -> Result<i64, String> {
        let number: i64 =
            text.parse::<i32>().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?.into();
        if number >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        if last.is_some_and(|last| number <= last) {
            return Err(format!("non-increasing order, previous: {}, current: {number}", last.unwrap_or_default()));
        }
        last = Some(number);
        Ok(number)
    };
    for part in text.split(',') {
        let bounds: Vec<&str> = part.split('-').collect();
        match bounds[..] {
            [only] => {
                one(only)?;
                total += 1;
            }
            [from, to] => total += -(one(from)? - one(to)?) + 1,
            _ => {
                return Err(format!(
                    "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
                ));
            }
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_stand_in_order_below_the_completions() {
        assert_eq!(count_indexes("0,2-4", 5), Ok(4));
        assert_eq!(count_indexes("", 5), Ok(0));
        for wrong in ["5", "2,1", "1-1", "a", "1-2-3", "3-2"] {
            assert!(count_indexes(wrong, 5).is_err(), "{wrong}");
        }
    }
}
