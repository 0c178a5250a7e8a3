//! The objects to churn and the faults in the proposed scenario.

use std::fmt::Write as _;

use super::{
    CHILDREN, OTHERS, is_asked_of_pods, is_idle, is_of_controller_runtime, is_restored, is_webhook_only, owned,
};
use crate::init::seen::{Reaction, Seen};
use crate::init::yaml::{block, printable, quoted};
use crate::init::{Crd, Found, WITH, sample};

/// Proposed rate: the warm-up measures the highest rate that the subject sustains, and the run uses half of this rate.
const RATE: &str = "auto";
const FIELDS: usize = 5;

pub(super) fn load(text: &mut String, found: &Found, seen: &Seen) {
    if is_asked_of_pods(found) {
        line!(text, "# check: reviews of pods and deployments, as users cause them.");
        line!(text, "admission: {{rate: 50/s}}");
        line!(text, "");
    }
    if found.own_hooks().next().is_some() {
        line!(
            text,
            "# check: reviews of the same objects beside that, without the API server; a gate compares these: admission: {{rate: 50/s}}"
        );
    }
    if is_webhook_only(found) {
        return;
    }
    let built_in = BUILT_IN.iter().find(|(resource, ..)| seen.ran() && seen.follows(resource));
    match (seen.best().filter(|_| seen.ran()), found.crd()) {
        (Some(best), _) => seen_churn(text, found, seen, best),
        (None, Some(crd)) => match seen.reactions.iter().find(|one| one.kind == crd.kind && one.refused.is_none()) {
            Some(taken) if seen.ran() => {
                line!(text, "# check: seen: an object like this was taken, and the program asked for nothing then.");
                template(text, found, seen, taken);
            }
            _ => churn(text, found, crd),
        },
        (None, None) if let Some((_, resource, template)) = built_in => {
            line!(
                text,
                "# check: seen: it follows this kind, and no custom resource. If it reacts only to other objects of this kind, give them \
                 a `template`."
            );
            line!(text, "churn: {{resource: {resource}, population: 50, rate: {RATE}, template: {template}}}");
        }
        (None, None) => {
            line!(text, "# check: objects that come, change and go; no custom resource was found: what does it watch?");
            line!(text, "churn: {{resource: v1/configmaps, population: 50, rate: {RATE}}}");
        }
    }
    others(text, found, seen);
    line!(text, "");
    line!(
        text,
        "# check: the two faults that clients handle wrong most often. All faults: docs/faults.md; `longhaul check --plan` explains these."
    );
    line!(text, "faults:");
    line!(text, "  - {{name: watch-reset, at: 20s}}");
    line!(text, "  # check: the form of current servers; `form: both` alternates with the other form.");
    line!(text, "  - {{name: watch-410, at: 40s, form: stream}}");
    if let Some(crd) = found.crd().filter(|_| is_of_controller_runtime(found)) {
        // The outage is short, because client-go doubles its back-off with each refusal.
        line!(text, "  # check: conflicts of its writes: a controller that treats 409 as done loses a write.");
        line!(
            text,
            "  - {{name: http-error, at: 50s, for: 1500ms, resource: {}, on: [update, patch], status: 409}}",
            quoted(&crd.plural)
        );
    }
    drifts(text, found, seen);
    line!(text, "");
}

/// Writes faults that delete children of the subject after the load, for children that the subject creates again.
fn drifts(text: &mut String, found: &Found, seen: &Seen) {
    if seen.ran() {
        let children = seen.best().into_iter().flat_map(|best| best.children.iter().take(CHILDREN));
        for child in children.filter(|child| child.is_restored == Some(true) && !child.varies) {
            line!(text, "  # seen: it makes {} again: this deletes some after the load.", child.resource);
            let children = quoted(&child.churned);
            line!(text, "  - {{name: children-drift, afterLoad: 1s, children: {children}, share: 0.3}}");
        }
        return;
    }
    let known = owned(found);
    let mut restored = known.iter().filter(|resource| is_restored(resource)).peekable();
    if restored.peek().is_some() {
        line!(
            text,
            "  # check: with `children` above, this deletes some after the load. Leave out what it does not create again."
        );
    }
    for resource in restored {
        let children = quoted(resource);
        line!(text, "  # - {{name: children-drift, afterLoad: 1s, children: {children}, share: 0.3}}");
    }
}

/// Built-in kinds, for a program that watches no custom resource: resource name, name in scenarios, and an example
/// object.
const BUILT_IN: [(&str, &str, &str); 4] = [
    ("configmaps", "configmaps/v1", "{kind: ConfigMap, data: {a: '${random 1..9}'}}"),
    ("services", "services/v1", "{kind: Service, spec: {ports: [{port: 80}]}}"),
    ("pods", "pods/v1", "{kind: Pod, spec: {containers: [{name: a, image: registry.example/a}]}}"),
    ("secrets", "secrets/v1", "{kind: Secret, stringData: {a: '${random 1..9}'}}"),
];

/// Writes churn of the kind to which the program reacted most, with an accepted object.
fn seen_churn(text: &mut String, found: &Found, seen: &Seen, best: &Reaction) {
    let from = best
        .from
        .as_ref()
        .map_or_else(|| "made from its definition".to_owned(), |file| format!("the sample in {}", file.display()));
    line!(text, "# seen: of all kinds it reacts to this one most: {}.", best.line());
    line!(text, "# seen: an object like this ({from}) was taken.");
    for change in best.changes.iter().take(FIELDS) {
        let what = match (&change.refused, change.is_noticed) {
            (Some(why), _) => format!("may not change: {why}"),
            (None, true) => "may change, and it notices".to_owned(),
            (None, false) => "may change, and it asked for nothing then".to_owned(),
        };
        line!(text, "# seen: {} {what}.", change.pointer);
    }
    if best.is_lazy {
        line!(text, "# seen: its status did not have the generation of each change, so the status is no proof.");
    }
    if best.varies().is_none() {
        line!(
            text,
            "# check: no field was found that may change, so updates change an annotation, which makes no new generation."
        );
    }
    for (resource, name) in &best.missing {
        line!(
            text,
            "# check: seen: it looks for {resource} `{name}`, which does not exist: put one into a file and name the file under `with`."
        );
    }
    template(text, found, seen, best);
}

/// Writes churn of objects like an object that the observation created.
fn template(text: &mut String, found: &Found, seen: &Seen, taken: &Reaction) {
    line!(text, "churn:");
    line!(text, "  resource: {}", quoted(&taken.churned));
    line!(text, "  population: 50");
    if is_idle(seen) {
        line!(
            text,
            "  # Objects are only changed: a program that looks once a minute does not see an object that is gone by then."
        );
        line!(text, "  mix: {{update: 1}}");
    }
    let is_namespaced = !found.crds.iter().any(|crd| crd.resource() == taken.churned && crd.is_cluster_wide);
    if let Some(only) = seen.only.as_ref().filter(|_| is_namespaced) {
        line!(text, "  # seen: it looks at objects in this namespace alone.");
        line!(text, "  namespace: {}", quoted(only));
    }
    line!(text, "  # The warm-up measures how many changes a second it sustains; the run takes half of that.");
    line!(text, "  rate: {RATE}");
    if found.made.iter().any(|(name, _)| *name == WITH) {
        line!(text, "  # seen: objects that the sample names; each namespace has them.");
        line!(text, "  with: [{WITH}]");
    }
    line!(text, "  template:");
    block(&taken.template, 4, text);
}

/// Writes a comment on each kind that is not churned, with the program's reaction.
fn others(text: &mut String, found: &Found, seen: &Seen) {
    let best = seen.best().filter(|_| seen.ran()).map(|best| best.kind.as_str());
    for reaction in seen.reactions.iter().filter(|reaction| Some(reaction.kind.as_str()) != best).take(OTHERS) {
        line!(text, "# seen: with {} ({}): {}.", reaction.kind, reaction.churned, reaction.line());
    }
    let is_tried = |crd: &&Crd| seen.reactions.iter().any(|reaction| reaction.kind == crd.kind);
    let rest = found.crds.iter().skip(usize::from(best.is_none())).filter(|crd| !is_tried(crd));
    for other in rest.take(OTHERS) {
        if seen.ran() {
            line!(text, "# seen: it does not follow {} ({}).", other.kind, other.resource());
        } else {
            line!(text, "# check: another run may churn {} ({}).", other.kind, other.resource());
        }
    }
}

fn churn(text: &mut String, found: &Found, crd: &Crd) {
    let Some(template) = sample::template(&found.samples, crd) else {
        line!(
            text,
            "# check: objects that come, change and go. A `template:` says what they look like; without one they are made from the schema."
        );
        line!(text, "churn: {{resource: {}, population: 50, rate: {RATE}}}", quoted(&crd.resource()));
        return;
    };
    line!(text, "# check: objects that come, change and go. They look like the sample in {}.", template.file.display());
    if let Some(pointer) = &template.varies {
        line!(text, "# Each write changes {pointer}; `longhaul show schema` lists other placeholders.");
    } else {
        line!(
            text,
            "# check: no field of it was found that may change, so updates change an annotation, which makes no new generation."
        );
        line!(text, "# Write for example '${{random 1..3}}' for a value.");
    }
    line!(text, "churn:");
    line!(text, "  resource: {}", quoted(&crd.resource()));
    line!(text, "  population: 50");
    line!(text, "  rate: {RATE}");
    line!(text, "  template:");
    block(&template.object, 4, text);
    if found.own_hooks().any(|hook| !hook.is_mutating) {
        line!(
            text,
            "  # check: for objects that your webhook must refuse, add `templates: [{{file: bad.yaml, expect: denied}}]`."
        );
    }
}
