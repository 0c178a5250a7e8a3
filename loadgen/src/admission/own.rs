//! Reviews of a project's own objects: their contents, the called webhooks, and the right answers. Pure: no I/O.
//!
//! Each object is made as churn makes objects, and has reviews of its creation, changes and deletion. As in the API
//! server, each operation goes first to the webhooks that may change the object, then to those that only validate it.
//! Only the mutating webhooks know how they change an object; the module `settle` finds that out.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use units::Rate;

use super::Error;
use super::expected::Expected;
use super::review::{Actor, Later, Operation, PLACEHOLDER, Template};
use crate::churn::{self, Expect, Scope, Specimen};

/// Number of variants of each of the project's objects.
const VARIANTS: u64 = 16;
/// The size of all reviews in bytes after which no further variants are made.
const BYTES_MAX: usize = 32 << 20;
/// The weights of operations, as in the default mix of churn.
const WEIGHTS: [(Operation, u32); 3] = [(Operation::Create, 2), (Operation::Update, 7), (Operation::Delete, 2)];

/// An object of a project's own kind, and the webhooks that are called for it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Own {
    /// The resource of the object: `caches.cache.example.com/v1`.
    pub resource: String,
    /// The contents of the object, as in `churn.template`.
    pub object: Value,
    /// Whether the object is in a namespace. Default: `Namespaced`.
    pub scope: Option<Scope>,
    /// The required answer to the creation of the object.
    #[serde(default)]
    pub expect: Expect,
    /// Whether the object was made from the `CustomResourceDefinition` alone. A webhook has more rules than the
    /// definition, so a denial is right as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
    /// The name of the object in messages.
    pub called: Option<String>,
    /// The webhooks that are called for the object, in the order of their calls. Default: the webhook under load, for
    /// creations and changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
}

/// A webhook that is called for an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hook {
    /// The path of the webhook; empty means the path of the target.
    #[serde(default)]
    pub path: String,
    /// Whether the webhook may change the object.
    #[serde(default)]
    pub mutating: bool,
    /// The operations for which the webhook is called.
    pub operations: Vec<Operation>,
}

/// The reviews of a project's own objects, with the weights of operations.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    pub templates: Vec<Template>,
    /// The webhook paths to which templates are sent; the path of the load's target is first.
    pub paths: Vec<String>,
    /// Sequences of template numbers with their weights; the load draws one sequence after the other.
    pub sequences: Vec<(u32, Vec<Vec<u32>>)>,
}

/// Refuses objects that cannot be sent, with the reason.
pub(super) fn check(objects: &[Own]) -> Result<(), Error> {
    for own in objects {
        own.plan(1)?;
        if own.hooks.iter().any(|hook| !hook.path.is_empty() && !hook.path.starts_with('/')) {
            let problem =
                format!("has a webhook whose `path` is no path ({}): write for example `/validate`", own.resource);
            return Err(Error::Config { key: "objects", problem });
        }
    }
    Ok(())
}

/// All reviews of these objects, which [`check`] has accepted.
pub(super) fn reviews(objects: &[Own], seed: u64) -> Reviews {
    let mut reviews = Reviews { paths: vec![String::new()], ..Reviews::default() };
    // The number of each object's first creation review, for its later changes and deletions.
    let mut creations = BTreeMap::new();
    for (operation, weight) in WEIGHTS {
        let mut sequences = Vec::new();
        for variant in 0..VARIANTS {
            for (number, own) in objects.iter().enumerate() {
                let bytes: usize = reviews.templates.iter().map(|template| template.bytes().len()).sum();
                if variant > 0 && bytes > BYTES_MAX {
                    break;
                }
                let Ok(plan) = own.plan(seed) else { continue };
                let created = creations.get(&(number, variant)).copied();
                let sequence = own.sequence(operation, &plan.specimen(variant), created, &mut reviews);
                if let Some(&first) = sequence.first() {
                    if operation == Operation::Create {
                        creations.insert((number, variant), first);
                    }
                    sequences.push(sequence);
                }
            }
        }
        if !sequences.is_empty() {
            reviews.sequences.push((weight, sequences));
        }
    }
    reviews
}

impl Own {
    fn plan(&self, seed: u64) -> Result<churn::Plan, Error> {
        let config = churn::Config {
            resource: self.resource.clone(),
            template: Some(self.object.clone()),
            scope: self.scope,
            ..churn::Config::of_one(Rate::per_second(0.0))
        };
        churn::Plan::build(&config, seed, Duration::from_secs(1)).map_err(|error| Error::Config {
            key: "objects",
            problem: format!("cannot be made ({}): {error}", self.called.as_deref().unwrap_or(&self.resource)),
        })
    }

    fn hooks(&self) -> Vec<Hook> {
        if !self.hooks.is_empty() {
            return self.hooks.clone();
        }
        vec![Hook { path: String::new(), mutating: true, operations: vec![Operation::Create, Operation::Update] }]
    }

    /// The reviews of one operation, one for each webhook in the order of calls. `created` is the first review of the
    /// object's creation, if there was one.
    fn sequence(
        &self,
        operation: Operation,
        specimen: &Specimen,
        created: Option<u32>,
        reviews: &mut Reviews,
    ) -> Vec<u32> {
        let is_refused = self.expect == Expect::Denied;
        if is_refused && operation != Operation::Create {
            return Vec::new();
        }
        let hooks = self.hooks();
        let mut asked: Vec<&Hook> = hooks.iter().filter(|hook| hook.operations.contains(&operation)).collect();
        asked.sort_by_key(|hook| !hook.mutating);
        // If there are several webhooks, it is unknown which of them has to refuse; a single validating one does.
        let looks = asked.iter().filter(|hook| !hook.mutating).count();
        let refuses = |hook: &Hook| if looks == 0 { asked.len() == 1 } else { looks == 1 && !hook.mutating };
        let mut sequence = Vec::new();
        for hook in &asked {
            let expected = match () {
                () if self.made => Expected::Any,
                () if !is_refused => Expected::Admit,
                () if refuses(hook) => Expected::Refuse,
                () => Expected::Any,
            };
            let path = reviews.paths.iter().position(|path| *path == hook.path).unwrap_or_else(|| {
                reviews.paths.push(hook.path.clone());
                reviews.paths.len() - 1
            });
            let label = format!("{} {} {}/{}", specimen.kind, operation.name(), specimen.namespace, specimen.name);
            let label = match &self.called {
                Some(called) if is_refused => format!("{label} ({called})"),
                _ => label,
            };
            let bytes = review(operation, specimen, hook.mutating).to_string().into_bytes();
            let template = Template::of(bytes, label, expected);
            let template = template.answered_at(path, hook.mutating, operation == Operation::Update);
            let template = match created {
                Some(created) => template.later(Later { created, change: specimen.change.clone() }),
                None => template,
            };
            sequence.push(u32::try_from(reviews.templates.len()).expect("a few thousand templates at most"));
            reviews.templates.push(template);
        }
        sequence
    }
}

/// The review as kube-apiserver writes it, with a placeholder for the uid.
fn review(operation: Operation, specimen: &Specimen, mutating: bool) -> Value {
    let Specimen { group, version, plural, kind, namespace, name, .. } = specimen;
    let group_kind = json!({"group": group, "version": version, "kind": kind});
    let resource = json!({"group": group, "version": version, "resource": plural});
    let old = stored(specimen, &specimen.object, 1);
    let (object, old) = match operation {
        // A validating webhook sees the fields that the server has added meanwhile.
        Operation::Create if mutating => (specimen.object.clone(), Value::Null),
        Operation::Create => (stored(specimen, &specimen.object, 0), Value::Null),
        Operation::Update => (stored(specimen, &specimen.updated, 1), old),
        Operation::Delete => (Value::Null, old),
    };
    let mut request = json!({
        "uid": PLACEHOLDER,
        "kind": group_kind, "resource": resource, "requestKind": group_kind, "requestResource": resource,
        "name": name, "operation": operation.name(), "userInfo": Actor::Person.user_info(),
        "object": object, "oldObject": old, "dryRun": false,
        "options": {"kind": format!("{}Options", operation.verb()), "apiVersion": "meta.k8s.io/v1"},
    });
    if !namespace.is_empty() {
        request["namespace"] = json!(namespace);
    }
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
}

/// An object with the fields that the API server adds. With revision 0 the object has no fields of a stored object yet.
fn stored(specimen: &Specimen, object: &Value, revision: u64) -> Value {
    let hash = hex::encode(Sha256::digest(format!("{}/{}", specimen.namespace, specimen.name)));
    let uid = format!("{}-{}-4{}-8{}-{}", &hash[..8], &hash[8..12], &hash[13..16], &hash[17..20], &hash[20..32]);
    let mut object = object.clone();
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!(uid);
    metadata["creationTimestamp"] = json!("2026-01-05T08:00:00Z");
    metadata["generation"] = json!(1);
    if revision > 0 {
        metadata["resourceVersion"] = json!((1000 + revision).to_string());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(in crate::admission) fn cache(expect: Expect) -> Own {
        let hook = |path: &str, mutating| Hook {
            path: path.to_owned(),
            mutating,
            operations: vec![Operation::Create, Operation::Update],
        };
        Own {
            resource: "caches.cache.example.com/v1".to_owned(),
            object: json!({"kind": "Cache", "spec": {"size": "${random 1..5}"}}),
            scope: None,
            expect,
            made: false,
            called: Some("bad.yaml".to_owned()),
            hooks: vec![hook("/validate", false), hook("/mutate", true)],
        }
    }

    /// The reviews of an object go first to the webhooks that may change it, under their paths. A webhook gets only
    /// operations for which it is registered.
    #[test]
    fn an_object_is_shown_as_the_api_server_shows_it() {
        let reviews = reviews(&[cache(Expect::Allowed), cache(Expect::Denied)], 7);
        assert_eq!(reviews.paths, ["", "/mutate", "/validate"]);
        assert_eq!(reviews.sequences.iter().map(|(weight, _)| *weight).collect::<Vec<_>>(), [2, 7], "no deletions");
        let of = |number: u32| &reviews.templates[number as usize];
        let (_, creations) = &reviews.sequences[0];
        assert_eq!(creations.len(), 32);
        let (first, second) = (of(creations[0][0]), of(creations[0][1]));
        assert!(first.mutating && first.path == 1 && !second.mutating && second.path == 2);
        assert_eq!((&first.expected, &second.expected), (&Expected::Admit, &Expected::Admit));
        let (first, second) = (of(creations[1][0]), of(creations[1][1]));
        assert_eq!((&first.expected, &second.expected), (&Expected::Any, &Expected::Refuse));
        assert!(second.label.ends_with("(bad.yaml)"), "{}", second.label);
        let review: Value = serde_json::from_slice(first.bytes()).unwrap();
        assert_eq!(review["request"]["resource"]["resource"], "caches");
        assert!((1..=5).contains(&review["request"]["object"]["spec"]["size"].as_i64().unwrap()));
        assert_eq!(review["request"]["object"]["metadata"].get("uid"), None);
        let (_, updates) = &reviews.sequences[1];
        let review: Value = serde_json::from_slice(of(updates[0][0]).bytes()).unwrap();
        assert_ne!(review["request"]["object"]["spec"], Value::Null);
        assert_eq!(review["request"]["oldObject"]["metadata"]["resourceVersion"], "1001");
        assert_eq!(updates.len(), 16, "what must not be there is not changed");
        let later = of(updates[0][0]).later.as_ref().unwrap();
        assert_eq!(later.created, creations[0][0], "what is changed is what was created");
        assert_eq!(later.change["spec"]["size"], review["request"]["object"]["spec"]["size"]);
    }

    /// If an object was made from its definition alone, an admission and a denial are right, because a definition does
    /// not show a webhook's rules.
    #[test]
    fn of_what_was_made_from_the_definition_nobody_knows_what_is_right() {
        let reviews = reviews(&[Own { made: true, ..cache(Expect::Allowed) }], 7);
        assert!(!reviews.templates.is_empty());
        assert!(reviews.templates.iter().all(|template| template.expected == Expected::Any));
    }
}
