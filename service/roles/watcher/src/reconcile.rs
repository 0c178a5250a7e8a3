//! The visit of `reconcile`: the present object is sent to the hook.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use service_watch::Change;

use crate::hook::Failure;
use crate::meta::partial;
use crate::tell;
use crate::visit::{Pending, Tools, Visited};

/// The body of a call to the hook.
#[derive(Serialize)]
struct Call<'a> {
    action: &'a str,
    resource: &'a str,
    change: &'a str,
    object: &'a RawValue,
}

pub async fn visit(tools: &Tools, pending: &Pending) -> Visited {
    if pending.change == Change::Deleted {
        return visit_result(bring(tools, pending.change, partial(&pending.object).to_string()).await);
    }
    match tools.api.read(&pending.object.key).await {
        Ok(Some(body)) => match String::from_utf8(body.to_vec()) {
            Ok(text) => visit_result(bring(tools, pending.change, text).await),
            Err(error) => Visited::Later(format!("the API server's answer: {error}"), None),
        },
        // The watch reports the deletion.
        Ok(None) => Visited::Done("gone"),
        Err(error) => Visited::Later(error.to_string(), error.retry_after()),
    }
}

/// Calls the hook about `object`, JSON.
pub async fn bring(tools: &Tools, change: Change, object: String) -> Result<(), Failure> {
    let later = |error: serde_json::Error| Failure::Later(format!("the API server's answer: {error}"), None);
    let object = RawValue::from_string(object).map_err(later)?;
    let call = Call { action: &tools.action, resource: &tools.resource, change: tell::name(change), object: &object };
    let body = serde_json::to_vec(&call).map_err(later)?;
    tools.hook.post("application/json", Bytes::from(body)).await
}

fn visit_result(result: Result<(), Failure>) -> Visited {
    match result {
        Ok(()) => Visited::Done("taken"),
        Err(Failure::Later(why, asked)) => Visited::Later(why, asked),
        Err(Failure::Never(why)) => Visited::Never(why),
    }
}
