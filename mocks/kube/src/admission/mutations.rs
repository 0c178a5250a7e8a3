//! `MutatingAdmissionPolicy`: expressions in CEL that change objects before they are stored (KEP-3962).
//!
//! Owns the order of policies and mutations, the budget of each evaluation, and the effect of a failed mutation. The
//! module `policies` chooses the policies for a request and their parameters.

use mock_cel::{BUDGET, Evaluation, Input, Surroundings};
use mock_objects::patch;
use mock_objects::status::Failure;
use serde_json::Value;

use super::form::{Form, ReviewedObjects};
use super::policies::{self, bound_parameters, namespace, with_cause};
use super::{Attempt, Operation, review, settle};
use crate::webhooks::{FailurePolicy, Mutation, Policies, Policy};

/// Lets the policies change `object`; returns whether a policy changed it. If `again` is set, only policies with
/// `reinvocationPolicy: IfNeeded` are evaluated.
pub(super) async fn mutate(
    attempt: &Attempt<'_>,
    policies: &Policies,
    object: &mut Value,
    again: bool,
) -> Result<bool, Failure> {
    if attempt.operation == Operation::Delete {
        return Ok(false);
    }
    let before = object.clone();
    let mut failed: Option<String> = None;
    for policy in policies.mutating.iter().filter(|policy| !again || policy.reinvoke) {
        let Some(form) = policy.matches.form(attempt, &before) else { continue };
        let bindings = policy.bindings.iter();
        for binding in bindings.filter(|one| one.matches.as_ref().is_none_or(|of| of.form(attempt, &before).is_some()))
        {
            let mut fail = |why: String| {
                if policy.failure == FailurePolicy::Fail {
                    let (policy, binding) = (&policy.name, &binding.name);
                    let text = format!("policy '{policy}' with binding '{binding}' denied request: {why}");
                    failed.get_or_insert(text);
                }
            };
            match bound_parameters(attempt, policy, binding) {
                Ok(all) => {
                    for params in &all {
                        if let Err(why) = invoke(attempt, policy, params, &form, object).await? {
                            fail(why);
                        }
                    }
                }
                Err(why) => fail(why),
            }
        }
        // Each policy has a budget of its own; other requests run in between.
        tokio::task::yield_now().await;
    }
    match failed {
        Some(why) => Err(Failure { reason: "Invalid", message: why.clone(), ..with_cause(attempt, &why) }),
        None => Ok(*object != before),
    }
}

/// Applies all mutations of a policy. The inner error says why a mutation failed; the mutations after a failed mutation
/// still apply.
async fn invoke(
    attempt: &Attempt<'_>,
    policy: &Policy,
    params: &Value,
    form: &Form,
    object: &mut Value,
) -> Result<Result<(), String>, Failure> {
    let namespace = namespace(attempt).unwrap_or_default();
    let around = Surroundings { params, namespace: &namespace };
    let mut failed = Ok(());
    let first = object.clone();
    let seen = ReviewedObjects::new(attempt, &first, form.clone()).await?;
    match conditions_hold(attempt, policy, &seen, &around) {
        Ok(true) => {}
        Ok(false) => return Ok(Ok(())),
        Err(why) => return Ok(Err(why)),
    }
    for mutation in &policy.mutations {
        let current = object.clone();
        let seen = ReviewedObjects::new(attempt, &current, form.clone()).await?;
        match mutated(attempt, policy, mutation, &seen, &around) {
            Ok(mut next) => {
                form.convert(attempt.call, &Form::of_path(attempt.call), &mut next).await?;
                settle(attempt, &mut next)?;
                *object = next;
            }
            Err(why) => failed = failed.and(Err(why)),
        }
    }
    Ok(failed)
}

fn conditions_hold(
    attempt: &Attempt<'_>,
    policy: &Policy,
    seen: &ReviewedObjects<'_>,
    around: &Surroundings<'_>,
) -> Result<bool, String> {
    let (none, request) = (Value::Null, review::request(attempt, &seen.form));
    let input = Input { object: &seen.object, old_object: seen.old.as_deref().unwrap_or(&none), request: &request };
    policies::conditions_hold(policy, &Evaluation::new(&input, around))
}

/// Evaluates one mutation of a policy; returns the changed object.
fn mutated(
    attempt: &Attempt<'_>,
    policy: &Policy,
    mutation: &Mutation,
    seen: &ReviewedObjects<'_>,
    around: &Surroundings<'_>,
) -> Result<Value, String> {
    let (none, request, mut budget) = (Value::Null, review::request(attempt, &seen.form), BUDGET);
    let input = Input { object: &seen.object, old_object: seen.old.as_deref().unwrap_or(&none), request: &request };
    let mut evaluation = Evaluation::new(&input, around);
    for (name, program) in &policy.variables {
        evaluation.define(name, program, &mut budget);
    }
    let (Mutation::Json(program) | Mutation::Apply(program)) = mutation;
    if let Some(wrong) = &program.misnamed {
        return Err(format!("type mismatch: {wrong}"));
    }
    let made = evaluation.value(program, &mut budget).map_err(|why| why.to_string())?;
    let mut next = Value::clone(&seen.object);
    match mutation {
        Mutation::Json(_) => {
            let operations: json_patch::Patch =
                serde_json::from_value(made).map_err(|error| format!("JSON Patch: {error}"))?;
            let mut steps = patch::Steps::of(&next);
            for operation in &operations.0 {
                match steps.apply(&mut next, operation) {
                    Ok(()) => {}
                    // A failed test drops the whole patch.
                    Err(_) if matches!(operation, json_patch::PatchOperation::Test(_)) => {
                        return Ok(Value::clone(&seen.object));
                    }
                    Err(error) => return Err(format!("JSON Patch: {error}")),
                }
            }
        }
        Mutation::Apply(_) => {
            let api_version = seen.object["apiVersion"].as_str().unwrap_or_default();
            patch::merge(&mut next, &made, &attempt.call.resource, api_version)
                .map_err(|why| format!("error applying patch: {why}"))?;
        }
    }
    Ok(next)
}
