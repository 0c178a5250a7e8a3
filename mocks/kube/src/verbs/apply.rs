//! The verb `apply`: server-side apply.
//!
//! Owns the order in which an applied object is checked: owners, type, fields that do not fit the type, conflicts,
//! duplicate fields, name. The module also handles the case that another client creates or deletes the object at the
//! same time. `patch::server_side` merges the applied object into the stored object.

use mock_objects::status::{About, Cause, Failure};
use mock_objects::{object, patch};
use mock_store::Version;
use serde_json::{Value, json};

use super::shape;
use super::write::{TRIES, change, create_object, from_storage, manager};
use crate::answer::Answer;
use crate::call::Call;
use crate::represent::Renderer;

/// The fields that one manager applies to an object.
struct Intent<'a> {
    call: &'a Call,
    applied: Value,
    by: patch::Manager<'a>,
    /// Messages about duplicate fields in the applied YAML.
    twice: Vec<String>,
}

/// Applies the fields in the body; creates the object if it does not exist. `twice` contains messages about duplicate
/// fields.
pub(super) async fn answer(
    call: &Call,
    renderer: &Renderer,
    applied: &Value,
    twice: Vec<String>,
    status_only: bool,
) -> Result<Answer, Failure> {
    let intent = Intent::read(call, applied.clone(), twice, status_only)?;
    let about = call.resource.about(intent.name());
    let mut last = Failure::stale(about);
    // The object may be created or deleted between the look and the commit. The intent stays the same, so it is tried
    // again with the current state.
    for _ in 0..TRIES {
        if call.cluster().get(&call.resource, call.namespace(), intent.name()).is_none() {
            if status_only || call.resource.rules.part(call.target.subresource.as_deref()).is_some() {
                intent.check_name()?;
                return Err(Failure::not_found(about));
            }
            let (fresh, told) = intent.alone()?;
            match create_object(call, renderer, fresh).await {
                // Another client was faster; the intent is now merged into that client's object.
                Err(failure) if failure.is_already_exists() => {}
                created => return Ok(shape::tell(created?, told)),
            }
        }
        let mut told = Vec::new();
        let merge = |current: &Version| {
            let merged;
            (merged, told) = intent.merged(current)?;
            Ok(merged)
        };
        match change(call, renderer, status_only, merge).await {
            Err(failure) if failure == Failure::not_found(about) => last = failure,
            changed => return Ok(shape::tell(changed?, told)),
        }
    }
    Err(last)
}

impl<'a> Intent<'a> {
    /// Checks an applied object, and refuses the object if it is invalid.
    fn read(call: &'a Call, mut applied: Value, twice: Vec<String>, status_only: bool) -> Result<Self, Failure> {
        check_manager(call)?;
        patch::check_intent(&applied)?;
        object::check_type(&mut applied, &call.resource, call.served())?;
        let mut untyped = shape::untyped(call, &mut applied);
        let says_spec = applied.get("spec").is_some();
        if untyped.is_empty()
            && let Err(failure) = object::conform(&mut applied, &call.resource)
        {
            untyped.push(failure.message);
        }
        if !untyped.is_empty() {
            return Err(patch::untyped(&applied, &untyped));
        }
        // Every built-in object has a `spec`; a manager that sends none does not own it.
        if !says_spec && let Some(fields) = applied.as_object_mut() {
            fields.remove("spec");
        }
        let is_part = call.resource.rules.part(call.target.subresource.as_deref()).is_some();
        if !status_only
            && !is_part
            && call.served().status
            && let Some(fields) = applied.as_object_mut()
        {
            // Only the subresource writes the status, so a manager that applies the whole object neither sets nor owns
            // any of it.
            fields.remove("status");
        }
        Ok(Self { call, applied, by: manager(call, status_only), twice })
    }

    fn name(&self) -> &'a str {
        self.call.target.name.as_deref().unwrap_or_default()
    }

    fn check_name(&self) -> Result<(), Failure> {
        match object::meta(&self.applied, "name") {
            "" => Ok(()),
            same if same == self.name() => Ok(()),
            other => Err(Failure::bad_request(format!(
                "the name of the object ({other}) does not match the name on the URL ({})",
                self.name()
            ))),
        }
    }

    /// The new object, made only from the applied fields, and the warnings for the client.
    fn alone(&self) -> Result<(Value, Vec<String>), Failure> {
        let name = self.name();
        let mut fresh = json!({"metadata": {"name": name}});
        patch::server_side(&mut fresh, &self.applied, &self.by, &self.call.resource)?;
        let uid = object::meta(&self.applied, "uid");
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Failure::conflict(self.call.resource.about(name), &why));
        }
        // There is no object yet, so it cannot have a revision.
        object::metadata(&mut fresh).remove("resourceVersion");
        self.check_name()?;
        if object::meta(&self.applied, "name").is_empty() {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        Ok((fresh, shape::applied_twice(self.call, self.twice.clone())?))
    }

    /// The applied fields merged into an existing object, and the warnings for the client.
    fn merged(&self, current: &Version) -> Result<(Value, Vec<String>), Failure> {
        let call = self.call;
        let mut merged = from_storage(call, current);
        patch::server_side(&mut merged, &self.applied, &self.by, &call.resource)?;
        // A conflict comes first.
        let told = shape::applied_twice(call, self.twice.clone())?;
        self.check_name()?;
        // The uid must not change; the check of immutable fields finds that.
        let uid = object::meta(&self.applied, "uid");
        if !uid.is_empty() {
            object::metadata(&mut merged).insert("uid".to_owned(), Value::from(uid));
        }
        shape::fill(call, &mut merged)?;
        Ok((merged, told))
    }
}

/// Refuses an apply that does not name its field manager.
pub(super) fn check_manager(call: &Call) -> Result<(), Failure> {
    if call.query.field_manager.is_some() {
        return Ok(());
    }
    let cause = Cause::required("fieldManager", "is required for apply patch");
    let about = About { group: "meta.k8s.io", kind: "PatchOptions", name: "" };
    Err(Failure::invalid(about, &[cause]))
}
