//! The verb `patch`: merges the body into the stored object. `apply` handles server-side apply.

use http::StatusCode;
use mock_objects::object;
use mock_objects::patch::Patch;
use mock_objects::status::Failure;

use super::shape::Twice;
use super::write::{change, from_storage};
use super::{apply, read_body, shape};
use crate::answer::Answer;
use crate::call::Call;
use crate::payload::Payload;
use crate::represent::Renderer;

pub(super) async fn patch(call: &Call, body: Payload, status_only: bool) -> Result<Answer, Failure> {
    let renderer = Renderer::negotiate(call)?;
    let bytes = read_body(&call.app.limits, body).await?;
    let (patch, noted) = match Patch::decode(&call.content_type, &bytes, !call.resource.custom) {
        // Errors in a patch matter only if its object exists.
        Err(failure) if failure.code != StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            let name = call.target.name.as_deref().unwrap_or_default();
            let exists = call.cluster().get(&call.resource, call.namespace(), name).is_some();
            return Err(if exists { failure } else { Failure::not_found(call.resource.about(name)) });
        }
        decoded => decoded?,
    };
    if let Patch::Apply(applied) = &patch {
        return apply::answer(call, &renderer, applied, noted, status_only).await;
    }
    let noted = Twice::Patch(noted);
    let mut told = Vec::new();
    let answer = change(call, &renderer, status_only, |current| {
        let mut patched = from_storage(call, current);
        patch.apply(&mut patched, &call.resource)?;
        if let Err(failure) = object::check_type(&mut patched, &call.resource, call.served()) {
            return Err(patch.made_nonsense(failure));
        }
        told = shape::prune(call, &mut patched, &noted).map_err(|failure| patch.made_nonsense(failure))?;
        shape::fill(call, &mut patched)?;
        if let Err(failure) = object::conform(&mut patched, &call.resource) {
            return Err(patch.made_nonsense(failure));
        }
        let (name, given) = (call.target.name.as_deref().unwrap_or_default(), object::meta(&patched, "name"));
        if given != name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        Ok(patched)
    })
    .await?;
    Ok(shape::tell(answer, told))
}
