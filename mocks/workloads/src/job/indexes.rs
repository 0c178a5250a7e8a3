//! The Pods of a Job; with the mode `Indexed`, each has a completion index.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{BY, index, is_tracked, new_pod};
use crate::fields::{name, number, text};
use crate::kind::Kind;
use crate::pod;
use crate::scene::Scene;
use crate::template::set;

pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Maximum number of indexes that are read from a status, because clients can write any text into a status. A Job never
/// has more Pods than this limit.
const NUMBERS_MAX: usize = 100_000;

fn is_indexed(job: &Value) -> bool {
    text(job, "/spec/completionMode") == "Indexed"
}

pub(super) fn make(scene: &mut Scene<'_>, job: &Value, pods: &[Arc<Value>], more: i64) {
    let more = usize::try_from(more).unwrap_or(0).min(scene.room());
    let mut free: Vec<i64> = Vec::new();
    if is_indexed(job) {
        let done = numbers(text(job, "/status/completedIndexes"));
        let taken = pods
            .iter()
            .filter(|pod| pod::is_active(pod) || is_tracked(pod) && text(pod, "/status/phase") == "Succeeded");
        let taken: BTreeSet<i64> = taken.filter_map(|pod| index(pod)).collect();
        let all = 0..number(job, "/spec/completions");
        free = all.filter(|number| !done.contains(number) && !taken.contains(number)).take(more).collect();
    }
    for turn in 0..more {
        let mut body = new_pod(job);
        if is_indexed(job) {
            let Some(number) = free.get(turn) else { return };
            give_index(&mut body, job, *number);
        }
        scene.create(BY, Kind::Pod, body);
    }
}

fn give_index(body: &mut Value, job: &Value, number: i64) {
    let text = number.to_string();
    set(body, "annotations", INDEX, &text);
    set(body, "labels", INDEX, &text);
    body["metadata"]["generateName"] = Value::from(format!("{}-{text}-", name(job)));
    body["spec"]["hostname"] = Value::from(format!("{}-{text}", name(job)));
    let told = json!({
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": format!("metadata.labels['{INDEX}']")}},
    });
    for list in ["initContainers", "containers"] {
        for container in body["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            match container.get_mut("env").and_then(Value::as_array_mut) {
                Some(env) => env.push(told.clone()),
                None => container["env"] = json!([told]),
            }
        }
    }
}

/// Writes the completion indexes of succeeded Pods into the Job's status.
pub(super) fn note(job: &Value, pods: &[Arc<Value>], status: &mut Value) {
    if !is_indexed(job) {
        return;
    }
    let mut done = numbers(text(status, "/completedIndexes"));
    let ended = pods.iter().filter(|pod| text(pod, "/status/phase") == "Succeeded");
    done.extend(ended.filter_map(|pod| index(pod)));
    if !done.is_empty() {
        status["completedIndexes"] = Value::from(ranges(&done));
    }
}

/// The numbers in a text such as `0-2,5`.
fn numbers(text: &str) -> BTreeSet<i64> {
    let parts = text.split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse::<i64>().ok()?..=to.parse::<i64>().ok()?)
    });
    parts.flatten().take(NUMBERS_MAX).collect()
}

fn ranges(numbers: &BTreeSet<i64>) -> String {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 == *number => *to = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let shown = ranges.iter().map(|(from, to)| match to - from {
        0 => from.to_string(),
        1 => format!("{from},{to}"),
        _ => format!("{from}-{to}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_in_ranges_of_three_and_more() {
        let all = BTreeSet::from([0, 1, 2, 5, 7, 8]);
        assert_eq!(ranges(&all), "0-2,5,7,8");
        assert_eq!(numbers("0-2,5,7,8"), all);
        assert!(numbers("").is_empty());
        assert_eq!(numbers(&format!("0-{}", i64::MAX)).len(), NUMBERS_MAX);
    }
}
