//! The questions of a play: samples, generated objects and small changes of both, for each operation.
//!
//! Owns how many questions there are, and which. One seed gives the same questions. Does no I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadgen::admission::Operation;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::mutate::{Class, Mutation, mutations};
use super::question::{Question, Resource, User};

/// Maximum number of questions of one play: a round of them takes less than a second for a typical webhook.
pub(crate) const QUESTIONS_MAX: usize = 320;
/// Maximum number of kinds in the questions.
const KINDS_MAX: usize = 8;
/// Maximum number of samples of a kind that are changed.
const CHANGED_MAX: usize = 4;
/// Every n-th changed object is also asked as an update.
const UPDATE_EACH: usize = 3;
/// Every n-th question comes from another user.
const USER_EACH: usize = 5;

/// A kind of object that a webhook reviews.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Kind {
    pub(crate) resource: Resource,
    /// Objects as a client writes them, with their names for a reader; the first one is the most usual.
    pub(crate) samples: Vec<(String, Value)>,
    /// The schema of the kind, if it has a definition.
    pub(crate) schema: Option<Value>,
    /// The operations that some webhook reviews.
    pub(crate) operations: Vec<Operation>,
    /// The subresources whose updates some webhook reviews.
    pub(crate) subresources: Vec<&'static str>,
}

/// The questions about these kinds. The kinds take turns, so that each has questions if time ends early.
pub(crate) fn questions(kinds: &[Kind], seed: u64) -> Vec<Question> {
    let kinds: Vec<&Kind> = kinds.iter().filter(|kind| !kind.samples.is_empty()).take(KINDS_MAX).collect();
    let each = QUESTIONS_MAX / kinds.len().max(1);
    let mut by_kind = Vec::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_add(number as u64));
        let mut of_kind = basic(kind);
        let resource = Arc::new(kind.resource.clone());
        of_kind.extend(changed(kind, &resource, each.saturating_sub(of_kind.len()), &mut rng));
        of_kind.truncate(each);
        by_kind.push(of_kind.into_iter());
    }
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(by_kind.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

/// The questions without a change: each sample, each user, and the operations on the first sample.
fn basic(kind: &Kind) -> Vec<Question> {
    let resource = Arc::new(kind.resource.clone());
    let Some((_, first)) = kind.samples.first() else { return Vec::new() };
    let ask = |operation, user, about: &str, object: &Value, old: &Value| Question {
        resource: Arc::clone(&resource),
        subresource: None,
        operation,
        object: object.clone(),
        old: old.clone(),
        user,
        about: about.to_owned(),
    };
    let mut all = Vec::new();
    let has = |operation| kind.operations.contains(&operation);
    if has(Operation::Create) {
        for (name, sample) in &kind.samples {
            all.push(ask(Operation::Create, User::Admin, name, sample, &Value::Null));
        }
        let others = User::ALL.into_iter().filter(|user| *user != User::Admin);
        all.extend(others.map(|user| ask(Operation::Create, user, &kind.samples[0].0, first, &Value::Null)));
    }
    if has(Operation::Update) {
        all.extend(User::ALL.map(|user| ask(Operation::Update, user, "unchanged", first, first)));
        let mut finished = first.clone();
        finished["metadata"]["finalizers"] = json!(["example.com/longhaul"]);
        all.push(ask(Operation::Update, User::Account, "its last finalizer removed", first, &finished));
        for (name, sample) in kind.samples.iter().skip(1) {
            all.push(ask(Operation::Update, User::Admin, &format!("changed to {name}"), sample, first));
        }
        for sub in &kind.subresources {
            let (about, object) = sub_update(sub, first);
            let question = ask(Operation::Update, User::Account, about, &object, first);
            all.push(Question { subresource: Some(sub), ..question });
        }
    }
    if has(Operation::Delete) {
        all.extend(User::ALL.map(|user| ask(Operation::Delete, user, &kind.samples[0].0, &Value::Null, first)));
    }
    all
}

/// The object of an update of a subresource.
fn sub_update(sub: &str, first: &Value) -> (&'static str, Value) {
    let mut object = first.clone();
    if sub == "ephemeralcontainers" {
        let mut container = object["spec"]["containers"][0].clone();
        container["name"] = "debugger".into();
        object["spec"]["ephemeralContainers"] = json!([container]);
        return ("with a debugger", object);
    }
    object["status"] = json!({"observedGeneration": 1});
    ("with a status", object)
}

/// The questions about changed samples: each class of changes in turn, and chosen changes where there are too many.
fn changed(kind: &Kind, resource: &Arc<Resource>, most: usize, rng: &mut ChaCha8Rng) -> Vec<Question> {
    let mut classes: BTreeMap<Class, Vec<(Mutation, Value)>> = BTreeMap::new();
    for (number, (_, sample)) in kind.samples.iter().take(CHANGED_MAX).enumerate() {
        for mutation in mutations(sample, kind.schema.as_ref()) {
            // Keys and absent fields do not depend on the sample.
            if number == 0 || !matches!(mutation.class, Class::Key | Class::Schema | Class::Metadata) {
                classes.entry(mutation.class).or_default().push((mutation, sample.clone()));
            }
        }
    }
    for (class, changes) in &mut classes {
        // Words are sorted by how often rules are about them.
        if *class != Class::Key {
            changes.shuffle(rng);
        }
        changes.reverse();
    }
    let mut all = Vec::new();
    let (creates, updates) =
        (kind.operations.contains(&Operation::Create), kind.operations.contains(&Operation::Update));
    let mut number = 0_usize;
    while all.len() < most {
        let before = number;
        for changes in classes.values_mut() {
            let Some((mutation, sample)) = changes.pop() else { continue };
            number += 1;
            let user = if number.is_multiple_of(USER_EACH) {
                User::ALL[rng.random_range(0..User::ALL.len())]
            } else {
                User::Admin
            };
            let mut ask = |operation, old: Value| {
                all.push(Question {
                    resource: Arc::clone(resource),
                    subresource: None,
                    operation,
                    object: mutation.object.clone(),
                    old,
                    user,
                    about: mutation.about.clone(),
                });
            };
            if creates {
                ask(Operation::Create, Value::Null);
            }
            let is_same_name = mutation.object["metadata"]["name"] == sample["metadata"]["name"];
            if updates && is_same_name && (!creates || number.is_multiple_of(UPDATE_EACH)) {
                ask(Operation::Update, sample);
            }
        }
        if number == before {
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::built_in;
    use super::*;

    fn kind(operations: &[Operation]) -> Kind {
        let mut pod = built_in::kinds(None).remove(0);
        pod.operations = operations.to_vec();
        pod
    }

    /// One seed gives the same questions, and the number of questions is bounded.
    #[test]
    fn questions_are_bounded_and_repeatable() {
        let all = [Operation::Create, Operation::Update, Operation::Delete];
        let mut kinds = built_in::kinds(None);
        for kind in &mut kinds {
            kind.operations = all.to_vec();
        }
        let one = questions(&kinds, 7);
        assert_eq!(one, questions(&kinds, 7));
        assert_ne!(one, questions(&kinds, 8));
        assert!(one.len() <= QUESTIONS_MAX && one.len() > QUESTIONS_MAX / 2, "{}", one.len());
        let single = questions(&[kind(&all)], 7);
        assert!(single.len() <= QUESTIONS_MAX);
        for operation in all {
            assert!(single.iter().any(|question| question.operation == operation), "{operation:?}");
        }
        assert!(User::ALL.iter().all(|user| single.iter().any(|question| question.user == *user)));
    }

    #[test]
    fn only_reviewed_operations_are_asked() {
        let created = questions(&[kind(&[Operation::Create])], 1);
        assert!(created.iter().all(|question| question.operation == Operation::Create && question.old.is_null()));
        assert_eq!(questions(&[Kind::default()], 1), Vec::new());
        let sub = Kind { subresources: vec!["ephemeralcontainers"], ..kind(&[Operation::Update]) };
        let asked = questions(&[sub], 1);
        let sub = asked.iter().find(|question| question.subresource.is_some()).unwrap();
        assert_eq!(sub.object["spec"]["ephemeralContainers"][0]["name"], "debugger");
    }

    /// The words of the dictionary are all asked for a small kind, so that a rule about one of them shows.
    #[test]
    fn every_word_is_a_key_of_a_small_kind() {
        let schema =
            json!({"properties": {"spec": {"properties": {"settings": {"additionalProperties": {"type": "string"}}}}}});
        let sample = json!({"kind": "Cache", "metadata": {"name": "a"}, "spec": {"settings": {"x": "1"}}});
        let cache = Kind {
            samples: vec![("a.yaml".to_owned(), sample)],
            schema: Some(schema),
            operations: vec![Operation::Create],
            ..Kind::default()
        };
        let asked = questions(&[cache], 1);
        let words = asked.iter().filter(|question| question.about.contains("with the key")).count();
        assert_eq!(words, 36);
    }
}
