//! Parsed admission policies and their bindings.
//!
//! Owns the compiled expressions and the settings of a policy. The module `admission::policies` chooses the policies
//! for a request and refuses the request if a validation fails.

use mock_cel::{Program, Wanted};
use mock_objects::object;
use serde_json::{Value, json};

use super::conditions::FailurePolicy;
use super::hook::Matches;

#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub validating: Vec<Policy>,
    pub mutating: Vec<Policy>,
}

#[derive(Debug)]
pub(crate) struct Policy {
    pub name: String,
    pub matches: Matches,
    pub failure: FailurePolicy,
    /// `apiVersion` and kind of the policy's parameters.
    pub parameters: Option<(String, String)>,
    pub conditions: Vec<Program>,
    pub variables: Vec<(String, Program)>,
    pub validations: Vec<Validation>,
    pub mutations: Vec<Mutation>,
    /// Whether the policy is evaluated again after the object has changed.
    pub reinvoke: bool,
    pub bindings: Vec<Binding>,
}

#[derive(Debug)]
pub(crate) struct Validation {
    pub program: Program,
    pub message: String,
    pub message_program: Option<Program>,
    pub reason: String,
}

#[derive(Debug)]
pub(crate) enum Mutation {
    /// The expression returns the operations of a JSON patch.
    Json(Program),
    /// The expression returns fields to set, as in server-side apply.
    Apply(Program),
}

#[derive(Debug)]
pub(crate) struct Binding {
    pub name: String,
    pub matches: Option<Matches>,
    pub reference: Option<Value>,
    pub denies: bool,
    pub warns: bool,
}

impl Policies {
    /// Reads policies with their bindings, and leaves out policies without a binding.
    pub fn read(policies: &[Value], bindings: &[Value]) -> Vec<Policy> {
        let read = policies.iter().map(|policy| Policy::read(policy, bindings));
        read.filter(|policy| !policy.bindings.is_empty()).collect()
    }
}

impl Policy {
    /// Reads a policy that was validated when a client wrote the policy.
    fn read(value: &Value, bindings: &[Value]) -> Self {
        let (spec, name) = (&value["spec"], object::meta(value, "name"));
        let list = |key: &str| spec[key].as_array().into_iter().flatten();
        let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
        let program = |of: &Value, key: &str, wanted| Program::compile_in_policy(of[key].as_str()?, wanted).ok();
        let validation = |of: &Value| {
            Some(Validation {
                program: program(of, "expression", Some(Wanted::Truth))?,
                message: text(of, "message"),
                message_program: program(of, "messageExpression", Some(Wanted::Text)),
                reason: text(of, "reason"),
            })
        };
        let mutation = |of: &Value| match of["patchType"].as_str() {
            Some("JSONPatch") => program(&of["jsonPatch"], "expression", Some(Wanted::Patches)).map(Mutation::Json),
            _ => program(&of["applyConfiguration"], "expression", Some(Wanted::Object)).map(Mutation::Apply),
        };
        let kind = spec.get("paramKind").filter(|kind| kind.is_object());
        let own = bindings.iter().filter(|binding| binding["spec"]["policyName"] == name);
        Self {
            name: name.to_owned(),
            matches: Matches::read(&spec["matchConstraints"]),
            failure: if spec["failurePolicy"] == "Ignore" { FailurePolicy::Ignore } else { FailurePolicy::Fail },
            parameters: kind.map(|kind| (text(kind, "apiVersion"), text(kind, "kind"))),
            conditions: list("matchConditions")
                .filter_map(|of| program(of, "expression", Some(Wanted::Truth)))
                .collect(),
            variables: list("variables")
                .filter_map(|of| Some((text(of, "name"), program(of, "expression", None)?)))
                .collect(),
            validations: list("validations").filter_map(validation).collect(),
            mutations: list("mutations").filter_map(mutation).collect(),
            reinvoke: spec["reinvocationPolicy"] == "IfNeeded",
            bindings: own.map(Binding::read).collect(),
        }
    }
}

impl Binding {
    fn read(value: &Value) -> Self {
        let spec = &value["spec"];
        let acts = |action: &str| spec["validationActions"].as_array().is_some_and(|all| all.contains(&json!(action)));
        Self {
            name: object::meta(value, "name").to_owned(),
            matches: spec.get("matchResources").filter(|matches| matches.is_object()).map(Matches::read),
            reference: spec.get("paramRef").filter(|reference| reference.is_object()).cloned(),
            denies: acts("Deny"),
            warns: acts("Warn"),
        }
    }
}
