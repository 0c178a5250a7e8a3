//! Writes of the server to its own API, which a real server sends over its loopback connection. The writes have the
//! server's user name, bypass webhooks, and appear in `managedFields`.

use std::sync::Arc;

use http::Method;
use mock_faults::Injection;
use mock_objects::catalogue::Resource;
use mock_objects::status::Failure;
use serde_json::Value;

use super::write;
use crate::call::Call;
use crate::path::{Query, Target};
use crate::represent::Renderer;
use crate::users::Who;

const NAME: &str = "system:apiserver";
const GROUP: &str = "system:masters";
const PROGRAM: &str = "kube-apiserver";

/// Changes the status of an object in the namespace of `call`. `next` makes the new status; it is called again if
/// another client writes the object first.
pub(super) async fn change_status(
    call: &Call,
    resource: &Arc<Resource>,
    name: &str,
    mut next: impl FnMut(&mut Value) -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    let inner = Call {
        app: call.app.clone(),
        connection: call.connection.clone(),
        who: Arc::new(Who::new(NAME, &[GROUP.to_owned()])),
        audit: call.audit.clone(),
        // The new status is made from the stored object, not from a client's body.
        method: Method::PATCH,
        target: Target {
            group: resource.group.to_string(),
            version: resource.storage_version().name.to_string(),
            namespace: Some(call.namespace().to_owned()),
            plural: resource.plural.to_string(),
            name: Some(name.to_owned()),
            subresource: Some("status".to_owned()),
        },
        query: Query::default(),
        accept: "application/json".to_owned(),
        content_type: "application/json".to_owned(),
        user_agent: PROGRAM.into(),
        in_protobuf: false,
        resource: resource.clone(),
        raw_query: "".into(),
        injection: Injection::default(),
    };
    let renderer = Renderer::plain(&inner);
    let changed = write::change(&inner, &renderer, true, |current| {
        let mut value = current.value();
        next(&mut value)?;
        Ok(value)
    });
    changed.await.map(drop)
}
