//! Sets an image: before the change is sent, admission reviews it, as if the API server had sent a review.
//!
//! So the webhook's rules and credentials pin or refuse the image, even if the cluster does not call the webhook. The
//! image that admission returns is written to the Deployment. This module makes the review and interprets its answer.

use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::Refusal;
use super::route::Target;
use super::scale::{Terms, Writer, Written, path};
use service_core::kube::Write;
use service_core::role::Review;

/// The lists of a pod spec with the containers whose images a call can set.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// The result of setting an image, or of a dry run.
#[derive(Debug)]
pub struct Set {
    pub written: Written,
    /// The image that was written to the API server.
    pub image: String,
    pub warnings: Vec<String>,
}

/// The position of a container in a Deployment.
struct ContainerField {
    list: &'static str,
    index: usize,
}

/// Sets the image of `container` in `target` to the image that `admit` returns for `image`.
pub async fn set(
    writer: &Writer,
    admit: &dyn Review,
    (target, container): (Target<'_>, &str),
    image: &str,
    terms: Terms<'_>,
) -> Result<Set, Refusal> {
    let path = path(target);
    let known = writer.read(&path, terms).await?;
    let place = place(&known, container)?;
    let (image, warnings) = admitted(admit, &known, &place, image, terms.deadline).await?;
    let written = writer.change(&path, Write::Strategic, terms, |known| {
        let place = self::place(&known, container)?;
        let before = known["spec"]["template"]["spec"][place.list][place.index]["image"].as_str().unwrap_or_default();
        let containers = json!({place.list: [{"name": container, "image": image}]});
        // The version limits the change to the object that was read: without it a removed container would be made
        // again, incomplete.
        let version = &known["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"template": {"spec": containers}}});
        Ok((before.to_owned(), patch))
    });
    let written = written.await?;
    Ok(Set { written, image, warnings })
}

fn place(deployment: &Value, container: &str) -> Result<ContainerField, Refusal> {
    let pod = &deployment["spec"]["template"]["spec"];
    let found = LISTS.iter().find_map(|list| {
        let index = pod[list].as_array()?.iter().position(|one| one["name"] == container)?;
        Some(ContainerField { list, index })
    });
    found.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "the deployment has no such container"))
}

/// The image that admission returns, and admission's warnings.
async fn admitted(
    admit: &dyn Review,
    known: &Value,
    place: &ContainerField,
    image: &str,
    deadline: Instant,
) -> Result<(String, Vec<String>), Refusal> {
    let pointer = format!("/spec/template/spec/{}/{}/image", place.list, place.index);
    let mut object = known.clone();
    // The position was just found.
    if let Some(slot) = object.pointer_mut(&pointer) {
        *slot = image.into();
    } else if let Some(container) = object.pointer_mut(pointer.trim_end_matches("/image")) {
        container["image"] = image.into();
    }
    let meta = &known["metadata"];
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": format!("{:032x}", rand::random::<u128>()),
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "namespace": meta["namespace"], "name": meta["name"], "operation": "UPDATE",
            "object": object, "oldObject": known,
            // The API server sends another review for the write: that one causes the alerts about images.
            "dryRun": true,
        },
    });
    let answer = admit.review(review.to_string().into(), deadline).await;
    let answer = answer.map_err(|text| Refusal::new(StatusCode::BAD_GATEWAY, text))?;
    let unreadable = |_| Refusal::new(StatusCode::BAD_GATEWAY, "the answer of admission cannot be read");
    let answer: Value = serde_json::from_slice(&answer).map_err(unreadable)?;
    let response = &answer["response"];
    if response["allowed"] != true {
        let text = response["status"]["message"].as_str().unwrap_or("the image was refused");
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text));
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(|text| text.as_str().map(str::to_owned)).collect();
    Ok((patched(response, &pointer)?.unwrap_or_else(|| image.to_owned()), warnings))
}

/// The text that the patch in `response` sets at `pointer`; `None` if the patch does not change the field.
fn patched(response: &Value, pointer: &str) -> Result<Option<String>, Refusal> {
    use base64::Engine as _;
    let Some(patch) = response["patch"].as_str() else { return Ok(None) };
    let unreadable = || Refusal::new(StatusCode::BAD_GATEWAY, "the patch of admission cannot be read");
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).map_err(|_| unreadable())?;
    let operations: Vec<Value> = serde_json::from_slice(&patch).map_err(|_| unreadable())?;
    let value = operations.iter().rev().find(|operation| operation["path"] == pointer).map(|found| &found["value"]);
    Ok(value.and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    #[test]
    fn the_container_is_found_by_its_name_and_the_patch_by_its_place() {
        let deployment = json!({"spec": {"template": {"spec": {
            "containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}],
        }}}});
        let found = |name: &str| place(&deployment, name).map(|place| (place.list, place.index)).ok();
        assert_eq!(found("b"), Some(("containers", 1)));
        assert_eq!(found("i"), Some(("initContainers", 0)));
        assert_eq!(found("x"), None);
        let patch =
            json!([{"op": "replace", "path": "/spec/x", "value": "1"}, {"op": "replace", "path": "/p", "value": "2"}]);
        let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
        assert_eq!(patched(&json!({ "patch": patch }), "/p").unwrap().as_deref(), Some("2"));
        assert_eq!(patched(&json!({ "patch": patch }), "/q").unwrap(), None);
        assert_eq!(patched(&json!({}), "/p").unwrap(), None);
        assert!(patched(&json!({"patch": "%"}), "/p").is_err());
    }
}
