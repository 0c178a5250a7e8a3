//! Server-side apply as a verb.
//!
//! Owns the order in which an intent is refused: what it says of owners, its type, what does not fit the type, conflicts, lines that
//! came twice, its name. Merging it is done by `patch::server_side`.

use serde_json::{Value, json};

use super::shape;
use super::write::{change, create_object, from_storage, manager, show, to_storage};
use crate::kube::handler::{Answer, Call};
use crate::kube::represent::Renderer;
use crate::kube::status::{About, Cause, Failure};
use crate::kube::{convert, object, patch};

/// Applies an intent whose lines of YAML came `twice`; creates the object when it is absent.
pub(super) async fn answer(
    call: &Call,
    renderer: &Renderer,
    applied: &Value,
    twice: Vec<String>,
    status_only: bool,
) -> Result<Answer, Failure> {
    check_manager(call)?;
    let name = call.target.name.as_deref().unwrap_or_default();
    let mut applied = applied.clone();
    patch::check_intent(&applied)?;
    object::check_type(&mut applied, &call.resource, call.served())?;
    let mut untyped = shape::untyped(call, &mut applied);
    if untyped.is_empty()
        && let Err(failure) = object::conform(&mut applied, &call.resource)
    {
        untyped.push(failure.message);
    }
    if !untyped.is_empty() {
        return Err(patch::untyped(&applied, &untyped));
    }
    let (by, is_stored) = (manager(call, status_only), convert::changes_content(&call.resource));
    if is_stored {
        to_storage(call, &mut applied);
    }
    let given = object::meta(&applied, "name").to_owned();
    let check_name = || match given.as_str() {
        "" => Ok(()),
        same if same == name => Ok(()),
        other => Err(Failure::bad_request(format!(
            "the name of the object ({other}) does not match the name on the URL ({name})"
        ))),
    };
    if call.cluster().get(&call.resource, call.namespace(), name).is_none() {
        if status_only {
            check_name()?;
            return Err(Failure::not_found(call.resource.about(name)));
        }
        let mut fresh = json!({"metadata": {"name": name}});
        patch::server_side(&mut fresh, &applied, &by, &call.resource)?;
        if is_stored {
            show(call, &mut fresh);
        }
        check_name()?;
        if given.is_empty() {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        let told = shape::applied_twice(call, twice.clone())?;
        match create_object(call, renderer, fresh).await {
            // Somebody was faster: the intent is merged into what is there now, because it is the same whether that was there before.
            Err(failure) if failure.is_already_exists() => {}
            created => return Ok(shape::tell(created?, told)),
        }
    }
    let mut told = Vec::new();
    let answer = change(call, renderer, status_only, |current| {
        let mut merged = if is_stored { current.value() } else { from_storage(call, current) };
        patch::server_side(&mut merged, &applied, &by, &call.resource)?;
        if is_stored {
            show(call, &mut merged);
        }
        // A conflict comes first.
        told = shape::applied_twice(call, twice.clone())?;
        check_name()?;
        shape::fill(call, &mut merged);
        Ok(merged)
    })
    .await?;
    Ok(shape::tell(answer, told))
}

/// Who applies must say who it is.
pub(super) fn check_manager(call: &Call) -> Result<(), Failure> {
    if call.query.field_manager.is_some() {
        return Ok(());
    }
    let cause = Cause::required("fieldManager", "is required for apply patch");
    let about = About { group: "meta.k8s.io", kind: "PatchOptions", name: "" };
    Err(Failure::invalid(about, &[cause]))
}
