//! The webhooks of a play, and the kinds of objects about which they are asked.
//!
//! Webhooks come from the registration of the run. Objects come from the scenario's templates, from definitions, and
//! from samples of built-in kinds.

use anyhow::{Context as _, Result};
use kind::manifests::Reach;
use loadgen::admission::Operation;
use loadgen::churn::{self, Sample};
use serde_json::Value;

use super::bed::Bed;
use crate::hunt::webhook::corpus::Kind;
use crate::hunt::webhook::{Question, Resource, built_in_kinds};
use crate::scenario::{self, parts};

/// Maximum number of samples of one kind.
const SAMPLES_MAX: usize = 12;
/// The namespace of all objects, which every cluster has.
pub(super) const NAMESPACE: &str = "default";
/// The name of all objects.
const NAME: &str = "hunt";
/// Values of `sideEffects` with which the API server asks a webhook about dry runs.
const DRY: [&str; 2] = ["None", "NoneOnDryRun"];
const OPERATIONS: [Operation; 3] = [Operation::Create, Operation::Update, Operation::Delete];
/// Built-in kinds about which a webhook without a registration is asked.
const USUAL: [&str; 2] = ["pods", "deployments"];

/// One webhook.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub(super) path: String,
    pub(super) mutating: bool,
    /// Whether the API server asks it about dry runs.
    pub(super) answers_dry_runs: bool,
    /// The webhook as its configuration has it; `None` without a registration.
    raw: Option<Value>,
}

impl Hook {
    fn of(mutating: bool, raw: Value) -> Self {
        let path = scenario::Hook::of(mutating, &raw).path();
        let answers_dry_runs = raw["sideEffects"].as_str().is_some_and(|effects| DRY.contains(&effects));
        Self { path, mutating, answers_dry_runs, raw: Some(raw) }
    }

    /// Whether the webhook reviews this operation on the resource.
    fn reviews(&self, operation: Operation, resource: &Resource, plural: &str) -> bool {
        let Some(raw) = &self.raw else { return operation != Operation::Delete && plural == resource.plural };
        let hook = scenario::Hook::of(self.mutating, raw);
        hook.covers(operation.name(), &resource.group, &resource.version, plural)
    }

    /// Whether the webhook reviews updates of a subresource. A rule for `*` does not cover subresources.
    fn reviews_sub(&self, resource: &Resource, sub: &str) -> bool {
        let covers = |plural: &str| self.reviews(Operation::Update, resource, plural);
        covers(&format!("{}/{sub}", resource.plural)) && (covers(&resource.plural) || !covers("no/such"))
    }

    /// Whether the API server would ask this question.
    pub(super) fn covers(&self, question: &Question) -> bool {
        match question.subresource {
            Some(sub) => self.reviews_sub(&question.resource, sub),
            None => self.reviews(question.operation, &question.resource, &question.resource.plural),
        }
    }
}

/// The webhooks in the order of calls: mutating ones first.
pub(super) fn hooks(bed: &Bed<'_>) -> Result<Vec<Hook>> {
    let mut all: Vec<Hook> = match &bed.registration {
        Some(registration) => registration.raw().into_iter().map(|(mutating, raw)| Hook::of(mutating, raw)).collect(),
        None if bed.scenario.subject.profile().is_service => {
            let configuration = kind::manifests::webhook(&bed.target.ca_pem, Reach::Url(&bed.target.url));
            let configuration = configuration.context("failed to read the webhook's manifest")?;
            let hooks = configuration["webhooks"].as_array().cloned().unwrap_or_default();
            hooks.into_iter().map(|raw| Hook::of(true, raw)).collect()
        }
        None => {
            let path = crate::run::registration::path(bed.scenario);
            vec![Hook { path, mutating: true, answers_dry_runs: true, raw: None }]
        }
    };
    all.sort_by_key(|hook| !hook.mutating);
    Ok(all)
}

/// The kinds of objects that some webhook reviews: the scenario's own kinds first.
pub(super) fn kinds(bed: &Bed<'_>, hooks: &[Hook]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for (resource, called, template) in templates(bed) {
        if let Some(kind) = kind_of(bed, &mut kinds, &resource)
            && kind.samples.len() < SAMPLES_MAX
            && let Ok(object) = churn::example(&template, &kind.resource.api_version(), NAMESPACE, NAME)
        {
            let name = called.unwrap_or_else(|| format!("sample {}", kind.samples.len() + 1));
            kind.samples.push((name, object));
        }
    }
    definitions(bed, hooks, &mut kinds);
    let image = bed.world.images.iter().find(|image| image.digest.is_some()).map(|image| image.reference.clone());
    let has_rules = hooks.iter().any(|hook| hook.raw.is_some());
    let is_usual = |kind: &Kind| USUAL.contains(&kind.resource.plural.as_str());
    if has_rules || kinds.is_empty() {
        kinds.extend(built_in_kinds(image.as_deref()).into_iter().filter(|kind| has_rules || is_usual(kind)));
    }
    for kind in &mut kinds {
        let resource = kind.resource.clone();
        let reviewed =
            |operation: &Operation| hooks.iter().any(|hook| hook.reviews(*operation, &resource, &resource.plural));
        kind.operations = OPERATIONS.into_iter().filter(|operation| reviewed(operation)).collect();
        let subs: &[&'static str] = match resource.plural.as_str() {
            "pods" if resource.group.is_empty() => &["ephemeralcontainers"],
            _ => &["status"],
        };
        let reviewed = |sub: &&&'static str| hooks.iter().any(|hook| hook.reviews_sub(&resource, sub));
        kind.subresources = subs.iter().filter(reviewed).copied().collect();
        if !kind.subresources.is_empty() && !kind.operations.contains(&Operation::Update) {
            kind.operations.push(Operation::Update);
        }
    }
    kinds.retain(|kind| !kind.operations.is_empty());
    kinds
}

/// The scenario's templates: resource, name for a reader, and template.
fn templates(bed: &Bed<'_>) -> Vec<(String, Option<String>, Value)> {
    let objects = bed.scenario.admission.iter().flat_map(|config| &config.objects);
    let mut all: Vec<_> = objects
        .map(|own| {
            let called = own.called.clone().or_else(|| own.made.then(|| "a generated object".to_owned()));
            (own.resource.clone(), called, own.object.clone())
        })
        .collect();
    if all.is_empty() {
        for config in bed.scenario.churn.iter() {
            let sample = |sample: &Sample| Some((config.resource.clone(), sample.file.clone(), sample.object.clone()?));
            all.extend(config.template.iter().map(|template| (config.resource.clone(), None, template.clone())));
            all.extend(config.templates.iter().filter_map(sample));
        }
    }
    all
}

/// Adds objects that are generated from the definitions of kinds that some webhook reviews.
fn definitions(bed: &Bed<'_>, hooks: &[Hook], kinds: &mut Vec<Kind>) {
    let Ok(manifests) = bed.scenario.control_plane.manifests() else { return };
    for definition in manifests.iter().filter(|one| one.is_definition()).map(|one| &one.object) {
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        let version = versions.into_iter().find(|version| version["served"] != false);
        let version = version.and_then(|version| version["name"].as_str()).unwrap_or_default();
        let name = format!("{}/{version}", definition["metadata"]["name"].as_str().unwrap_or_default());
        let Some((group, version, plural)) = parts(&name) else { continue };
        let is_asked = kinds.iter().any(|kind| kind.resource.group == group && kind.resource.plural == plural);
        let covers = |hook: &Hook| {
            let reviewed = Resource {
                group: group.clone(),
                version: version.clone(),
                plural: plural.clone(),
                ..Resource::default()
            };
            hook.raw.is_some() && OPERATIONS.iter().any(|operation| hook.reviews(*operation, &reviewed, &plural))
        };
        if !is_asked && !hooks.iter().any(covers) {
            continue;
        }
        let Some(kind) = kind_of(bed, kinds, &name) else { continue };
        for template in churn::variants(definition, &version) {
            if kind.samples.len() >= SAMPLES_MAX {
                break;
            }
            if let Ok(object) = churn::example(&template, &kind.resource.api_version(), NAMESPACE, NAME)
                && kind.samples.iter().all(|(_, known)| *known != object)
            {
                kind.samples.push(("an object generated from the definition".to_owned(), object));
            }
        }
    }
}

/// The kind of a resource, which is added if it is new; `None` if the API server does not serve it.
fn kind_of<'k>(bed: &Bed<'_>, kinds: &'k mut Vec<Kind>, resource: &str) -> Option<&'k mut Kind> {
    let (group, version, plural) = parts(resource)?;
    let is_it = |kind: &Kind| kind.resource.group == group && kind.resource.plural == plural;
    if let Some(number) = kinds.iter().position(is_it) {
        return kinds.get_mut(number);
    }
    let full = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
    let known = bed.world.plane.mock()?.server.kind_of(&full)?;
    let schema = known.definition.as_ref().and_then(|definition| {
        let versions = definition["spec"]["versions"].as_array()?;
        versions.iter().find(|one| one["name"] == version.as_str())?.pointer("/schema/openAPIV3Schema").cloned()
    });
    let resource = Resource { group, version, plural, kind: known.kind, is_namespaced: known.is_namespaced };
    kinds.push(Kind { resource, schema, ..Kind::default() });
    kinds.last_mut()
}
