//! Code that bindings, evictions and token requests share, because all are POSTs to a subresource of a named object.
//!
//! For such a request, webhooks see the creation of the body, which is an object of another kind, instead of a change
//! of the object in the path.

use http::Method;
use mock_objects::object;
use mock_objects::status::Failure;
use serde_json::Value;

use crate::admission::{Attempt, Chain, Operation};
use crate::call::Call;

/// Sets the kind and namespace of the request's body from the path.
pub(super) fn begin(call: &Call, body: &mut Value, api_version: &str, kind: &str) -> Result<(), Failure> {
    debug_assert_eq!(call.method, Method::POST);
    let Some(fields) = body.as_object_mut() else {
        return Err(Failure::bad_request("the body of the request is not an object"));
    };
    for (key, own) in [("apiVersion", api_version), ("kind", kind)] {
        fields.insert(key.to_owned(), Value::from(own));
    }
    object::check_namespace(&call.resource, object::meta(body, "namespace"), call.namespace())?;
    let meta = object::metadata(body);
    meta.insert("namespace".to_owned(), Value::from(call.namespace()));
    Ok(())
}

/// Lets mutating webhooks change the request's body; returns the webhooks' warnings.
pub(super) async fn mutate(call: &Call, chain: &Chain, body: &mut Value) -> Result<Vec<String>, Failure> {
    Ok(chain.mutate(&attempt(call), body).await?.warnings)
}

/// Lets validating webhooks refuse the request's body; returns the webhooks' warnings.
pub(super) async fn validate(call: &Call, chain: &Chain, body: &Value) -> Result<Vec<String>, Failure> {
    chain.validate(&attempt(call), body).await
}

pub(super) fn check_name(call: &Call, body: &Value, kind: &str) -> Result<(), Failure> {
    if call.target.name.as_deref() == Some(object::meta(body, "name")) {
        return Ok(());
    }
    Err(Failure::bad_request(format!("name in URL does not match name in {kind} object")))
}

fn attempt(call: &Call) -> Attempt<'_> {
    let name = call.target.name.as_deref().unwrap_or_default();
    Attempt { call, operation: Operation::Create, name, old: None }
}
