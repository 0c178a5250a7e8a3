//! The action `finalize`: adds the action's finalizer to an object, and removes it when the hook has agreed to the
//! object's deletion.
//!
//! Any answer of the hook except 2xx keeps the object. The hook is called again, at longer and longer intervals, while
//! the object exists.

use std::sync::Arc;
use std::time::Duration;

use service_watch::{Change, Object, RawObject};

use crate::api::Written;
use crate::hook::Failure;
use crate::meta::Meta;
use crate::reconcile::bring;
use crate::visit::{Pending, Tools, Visited};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Add,
    /// The object is being deleted and waits for the removal of the action's finalizer.
    Remove,
    None,
}

/// The next step for an object. The filter (`is_meant`) decides only whether the finalizer is added: an existing
/// finalizer must be removed in any case.
pub fn step(object: &Object<Meta>, finalizer: &str, is_meant: bool) -> Step {
    let has = object.body.finalizers.iter().any(|known| &**known == finalizer);
    match (object.body.deleting, has) {
        // The API server accepts no new finalizer on an object under deletion.
        (false, false) if is_meant => Step::Add,
        (true, true) => Step::Remove,
        _ => Step::None,
    }
}

pub async fn visit(tools: &Tools, finalizer: &str, pending: &mut Pending) -> Visited {
    let mut object = pending.object.clone();
    if object.body.crowded {
        match read(tools, &object).await {
            Ok(Some(fresh)) => object = fresh,
            Ok(None) => return Visited::Done("gone"),
            Err((why, asked)) => return Visited::Later(why, asked),
        }
    }
    let mut finalizers = object.body.finalizers.to_vec();
    // It is queued only if the filter matched.
    match step(&object, finalizer, true) {
        Step::None => return Visited::Done("skipped"),
        Step::Add => finalizers.push(finalizer.into()),
        Step::Remove => {
            finalizers.retain(|known| **known != *finalizer);
            if !pending.approved {
                let whole = match tools.api.read(&object.key).await {
                    Ok(Some(body)) => String::from_utf8_lossy(&body).into_owned(),
                    Ok(None) => return Visited::Done("gone"),
                    Err(error) => return Visited::Later(error.to_string(), error.retry_after()),
                };
                match bring(tools, Change::Deleted, whole).await {
                    Ok(()) => pending.approved = true,
                    Err(Failure::Later(why, asked)) => return Visited::Later(why, asked),
                    Err(Failure::Never(why)) => return Visited::Later(why, None),
                }
            }
        }
    }
    match tools.api.finalizers(&object, &finalizers).await {
        Ok(Written::Yes) if pending.approved => Visited::Done("taken"),
        Ok(Written::Yes) => Visited::Done("kept"),
        Ok(Written::Gone) => Visited::Done("gone"),
        // The watch delivers the other write, and with it the next visit; if it was delivered already, that visit
        // waits.
        Ok(Written::Conflict) => Visited::Later("somebody else wrote at the same moment".into(), None),
        Err(error) => Visited::Later(error.to_string(), error.retry_after()),
    }
}

/// Reads the object with all its finalizers, of which the watch keeps only a few; `None` if the object is gone.
async fn read(tools: &Tools, known: &Object<Meta>) -> Result<Option<Arc<Object<Meta>>>, (String, Option<Duration>)> {
    let body = tools.api.read(&known.key).await.map_err(|error| (error.to_string(), error.retry_after()))?;
    let Some(body) = body else { return Ok(None) };
    let raw: RawObject<'_> =
        serde_json::from_slice(&body).map_err(|error| (format!("the API server's answer: {error}"), None))?;
    let fresh = raw.into_object_by(Meta::with_finalizers);
    Ok((fresh.uid == known.uid).then(|| Arc::new(fresh)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::object;

    #[test]
    fn what_it_has_comes_off_whether_it_is_meant_or_not() {
        let one =
            |rest: &str| object(&format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"5"{rest}}}}}"#));
        let (plain, kept) = (one(""), one(r#","finalizers":["x/y","a.b/c"]"#));
        let going = one(r#","finalizers":["a.b/c"],"deletionTimestamp":"2026-01-01T00:00:00Z""#);
        let others = one(r#","finalizers":["x/y"],"deletionTimestamp":"2026-01-01T00:00:00Z""#);
        let steps = [&plain, &kept, &going, &others];
        assert_eq!(steps.map(|object| step(object, "a.b/c", true)), [Step::Add, Step::None, Step::Remove, Step::None]);
        assert_eq!(
            steps.map(|object| step(object, "a.b/c", false)),
            [Step::None, Step::None, Step::Remove, Step::None]
        );
    }
}
