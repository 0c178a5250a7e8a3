//! `ValidatingAdmissionPolicy`: rules in CEL that refuse objects before they are stored (KEP-3488).
//!
//! Owns the choice of policies, bindings and parameters for a request, and the effect of failed validations. The module
//! `webhooks::policy` parses policies and bindings when one changes. No policy sees requests for policies and bindings.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use mock_cel::{BUDGET, Evaluation, Input, Surroundings};
use mock_objects::catalogue::Resource;
use mock_objects::selector::{from_label_selector, labels_match};
use mock_objects::status::Failure;
use mock_store::Version;
use serde_json::{Value, json};

use super::form::ReviewedObjects;
use super::matching::is_exempt;
use super::{Attempt, label, review};
use crate::audit::cut;
use crate::call::Call;
use crate::cluster::Cluster;
use crate::webhooks::{Binding, FailurePolicy, Policies, Policy, Validation};

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";
const MUTATING: &str = "mutatingadmissionpolicies.admissionregistration.k8s.io";
const MUTATING_BINDINGS: &str = "mutatingadmissionpolicybindings.admissionregistration.k8s.io";
/// Maximum length of a message (`celconfig` of Kubernetes, 5 KiB).
const MESSAGE_MAX_BYTES: usize = 5 * 1024;

/// Returns the configured policies; `None` if no policy or no binding exists, or if the request is exempt.
pub(super) fn configured(call: &Call) -> Option<Arc<Policies>> {
    if is_exempt(&call.resource) {
        return None;
    }
    let (cluster, catalogue) = (call.cluster(), call.cluster().catalogue());
    let resources = [POLICIES, BINDINGS, MUTATING, MUTATING_BINDINGS].map(|name| catalogue.by_full_name(name));
    let counts = cluster.read(|store| resources.map(|one| one.map_or(0, |resource| store.count(resource.id, None))));
    let bound = |at: usize| counts[at] > 0 && counts[at + 1] > 0;
    if !bound(0) && !bound(2) {
        return None;
    }
    let found = resources.map(|resource| all(cluster, resource));
    let revisions: Vec<u64> = found.iter().flatten().map(|version| version.revision).collect();
    let mut parsed = cluster.webhooks.policies.lock();
    if let Some((known, read)) = &*parsed
        && *known == revisions
    {
        return Some(read.clone());
    }
    let [policies, bindings, mutating, of_mutating] =
        found.map(|versions| versions.iter().map(|version| version.value()).collect::<Vec<_>>());
    let validating = Policies::read(&policies, &bindings);
    let read = Arc::new(Policies { validating, mutating: Policies::read(&mutating, &of_mutating) });
    *parsed = Some((revisions, read.clone()));
    Some(read)
}

fn all(cluster: &Cluster, resource: Option<&Arc<Resource>>) -> Vec<Arc<Version>> {
    let Some(resource) = resource else { return Vec::new() };
    let page = cluster.read(|store| store.list(resource.id, None, store.revision(), None, usize::MAX, |_| true));
    page.map(|page| page.items).unwrap_or_default()
}

/// The key of the audit annotation for failed validations, if the binding has the action `Audit`.
const FAILURE_KEY: &str = "validation.policy.admission.k8s.io/validation_failure";
/// Maximum length of the value of an audit annotation.
const ANNOTATION_MAX_BYTES: usize = 10 * 1024;

/// A failed validation of a policy.
struct Denial {
    message: String,
    reason: String,
    /// The index of the validation; 0 for an error in a match condition or in an audit annotation.
    index: usize,
}

/// The result of a policy for one object.
#[derive(Default)]
struct Judged {
    denials: Vec<Denial>,
    /// `(key, value)` of each audit annotation.
    annotations: Vec<(String, String)>,
}

/// Lets the validating policies refuse the object before it is stored; returns their warnings. After a denial, the
/// other policies are still evaluated for their warnings and audit annotations.
pub(super) async fn ask(attempt: &Attempt<'_>, policies: &Policies, object: &Value) -> Result<Vec<String>, Failure> {
    let (mut warnings, mut refusal) = (Vec::new(), None);
    for policy in &policies.validating {
        let Some(form) = policy.matches.form(attempt, object) else { continue };
        let seen = ReviewedObjects::new(attempt, object, form).await?;
        let bindings = policy.bindings.iter();
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in bindings.filter(|one| one.matches.as_ref().is_none_or(|of| of.form(attempt, object).is_some())) {
            let judged = match judge(attempt, policy, binding, &seen).await {
                Ok(judged) => judged,
                // A policy with `failurePolicy: Fail` and no parameters refuses even if the binding does not deny.
                Err(why) => {
                    refusal.get_or_insert_with(|| refused(attempt, policy, binding, &why, ""));
                    continue;
                }
            };
            for Denial { message, reason, index } in judged.denials {
                let (name, of) = (&policy.name, &binding.name);
                if binding.warns {
                    warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{of}': {message}"
                    ));
                }
                if binding.audits {
                    let failure = json!([{"message": message, "policy": name, "binding": of, "expressionIndex": index,
                                          "validationActions": binding.actions}]);
                    attempt.call.annotate(FAILURE_KEY.to_owned(), failure.to_string());
                }
                if binding.denies {
                    refusal.get_or_insert_with(|| refused(attempt, policy, binding, &message, &reason));
                }
            }
            for (key, value) in judged.annotations {
                let values = annotations.entry(key).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        for (key, values) in annotations {
            attempt.call.annotate(format!("{}/{key}", policy.name), values.join(", "));
        }
    }
    refusal.map_or(Ok(warnings), Err)
}

/// Evaluates a policy with each of its parameter objects. The error says why these objects are not available.
async fn judge(
    attempt: &Attempt<'_>,
    policy: &Policy,
    binding: &Binding,
    seen: &ReviewedObjects<'_>,
) -> Result<Judged, String> {
    let parameters = match bound_parameters(attempt, policy, binding) {
        Ok(found) => found,
        Err(why) if policy.failure == FailurePolicy::Fail => return Err(why),
        Err(_) => return Ok(Judged::default()),
    };
    let (none, request) = (Value::Null, review::request(attempt, &seen.form));
    let namespace = namespace(attempt).unwrap_or_default();
    let input = Input { object: &seen.object, old_object: seen.old.as_deref().unwrap_or(&none), request: &request };
    let mut judged = Judged::default();
    for params in &parameters {
        evaluate(policy, &input, &Surroundings { params, namespace: &namespace }, &mut judged);
        // Each evaluation has a budget of its own; other requests go in between.
        tokio::task::yield_now().await;
    }
    Ok(judged)
}

fn evaluate(policy: &Policy, input: &Input<'_>, around: &Surroundings<'_>, judged: &mut Judged) {
    let (mut evaluation, mut budget) = (Evaluation::new(input, around), BUDGET);
    let denials = &mut judged.denials;
    let failed = |index: usize, why: String| match policy.failure {
        FailurePolicy::Fail => Some(Denial { message: why, reason: String::new(), index }),
        FailurePolicy::Ignore => None,
    };
    match conditions_hold(policy, &evaluation) {
        Ok(true) => {}
        Ok(false) => return,
        Err(why) => return denials.extend(failed(0, why)),
    }
    for (name, program) in &policy.variables {
        evaluation.define(name, program, &mut budget);
    }
    for (index, validation) in policy.validations.iter().enumerate() {
        match evaluation.holds(&validation.program, &mut budget) {
            Ok(true) => {}
            Ok(false) => {
                let message = message(validation, &evaluation, &mut budget);
                denials.push(Denial { message, reason: validation.reason.clone(), index });
            }
            Err(why) => denials.extend(failed(index, why.to_string())),
        }
    }
    for (key, program) in &policy.annotations {
        match evaluation.text(program, &mut budget) {
            Ok(text) => {
                let text = text.unwrap_or_default();
                let text = cut(text.trim(), ANNOTATION_MAX_BYTES);
                judged.annotations.extend((!text.is_empty()).then(|| (key.clone(), text.to_owned())));
            }
            Err(why) => {
                let why = format!("expression '{}' resulted in error: {why}", program.source());
                judged.denials.extend(failed(0, why));
            }
        }
    }
}

/// Whether all match conditions of a policy hold. If one condition is false, the result is false even if another fails.
/// Match conditions have a cost budget of their own.
pub(super) fn conditions_hold(policy: &Policy, evaluation: &Evaluation<'_>) -> Result<bool, String> {
    let (mut budget, mut failed) = (BUDGET, None);
    for condition in &policy.conditions {
        match evaluation.holds(condition, &mut budget) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => {
                failed.get_or_insert_with(|| why.to_string());
            }
        }
    }
    failed.map_or(Ok(true), Err)
}

/// The client's message for a failed validation: the result of `messageExpression`, or else `message`, or else the
/// source of the expression.
fn message<'a>(validation: &'a Validation, evaluation: &Evaluation<'a>, budget: &mut u64) -> String {
    let made = validation.message_program.as_ref().and_then(|program| evaluation.text(program, budget).ok().flatten());
    let made = made.map(|text| text.trim().to_owned());
    let fits = |text: &String| !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_MAX_BYTES;
    made.filter(fits).unwrap_or_else(|| match validation.message.trim() {
        "" => format!("failed expression: {}", validation.program.source().trim()),
        text => text.to_owned(),
    })
}

/// The parameters with which a binding evaluates its policy; `null` if the policy has none.
pub(super) fn bound_parameters(
    attempt: &Attempt<'_>,
    policy: &Policy,
    binding: &Binding,
) -> Result<Vec<Value>, String> {
    match (&policy.parameters, &binding.reference) {
        (Some(kind), Some(reference)) => {
            parameters(attempt, kind, reference).map_err(|why| format!("failed to configure binding: {why}"))
        }
        _ => Ok(vec![Value::Null]),
    }
}

/// The objects that a binding names as parameters. The error says why the binding has no parameters.
fn parameters(attempt: &Attempt<'_>, (api_version, kind): &(String, String), of: &Value) -> Result<Vec<Value>, String> {
    let cluster = attempt.call.cluster();
    let catalogue = cluster.catalogue();
    let resource: &Arc<Resource> = catalogue
        .by_kind(api_version, kind)
        .ok_or_else(|| format!("failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'"))?;
    let namespace = match of["namespace"].as_str().filter(|namespace| !namespace.is_empty()) {
        _ if !resource.namespaced => None,
        Some(namespace) => Some(namespace),
        None => match attempt.call.target.namespace.as_deref() {
            Some(namespace) => Some(namespace),
            None => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned()
                );
            }
        },
    };
    let found: Vec<Value> = if let Some(name) = of["name"].as_str().filter(|name| !name.is_empty()) {
        cluster.get(resource, namespace.unwrap_or_default(), name).iter().map(|one| one.value()).collect()
    } else {
        let wanted = from_label_selector(&of["selector"]).unwrap_or_default();
        let list =
            cluster.read(|store| store.list(resource.id, namespace, store.revision(), None, usize::MAX, |_| true));
        let objects = list.map(|page| page.items).unwrap_or_default().into_iter().map(|version| version.value());
        objects.filter(|one| labels_match(&wanted, |key| label(one, key))).collect()
    };
    match (found.is_empty(), of["parameterNotFoundAction"].as_str()) {
        (true, Some("Deny")) => {
            Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned())
        }
        _ => Ok(found),
    }
}

pub(super) fn namespace(attempt: &Attempt<'_>) -> Option<Value> {
    let name = attempt.call.target.namespace.as_deref()?;
    let cluster = attempt.call.cluster();
    let catalogue = cluster.catalogue();
    Some(cluster.get(catalogue.by_full_name("namespaces")?, "", name)?.value())
}

fn refused(attempt: &Attempt<'_>, policy: &Policy, binding: &Binding, message: &str, reason: &str) -> Failure {
    let (policy, binding) = (&policy.name, &binding.name);
    let why = format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}");
    let (code, reason) = match reason {
        "Unauthorized" => (StatusCode::UNAUTHORIZED, "Unauthorized"),
        "Forbidden" => (StatusCode::FORBIDDEN, "Forbidden"),
        "RequestEntityTooLarge" => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
        _ => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
    };
    Failure { code, reason, ..with_cause(attempt, &why) }
}

/// The refusal for the reason `why`, which is also the message of the only `details.causes` entry.
pub(super) fn with_cause(attempt: &Attempt<'_>, why: &str) -> Failure {
    let mut failure = Failure::forbidden(attempt.call.resource.about(attempt.name), why);
    if let Some(details) = &mut failure.details {
        details["causes"] = json!([{"message": why}]);
    }
    failure
}
