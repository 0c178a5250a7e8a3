//! The project's webhooks in an observation: finds the URL paths that the program serves, and registers these webhooks.
//!
//! The webhooks review every template, as in a run, because the churn cannot use an object that a webhook denies.

use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use serde_json::{Value, json};

use super::world::World;
use crate::init::Found;
use crate::init::seen::Seen;

/// Timeout of the answer to a test review.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Maximum number of URL paths tried. A large project has twenty paths for each of its programs.
const PATHS_MAX: usize = 100;

/// Creates the project's configurations with webhooks without rules, so that the server calls none of them.
///
/// A program that makes its own certificates writes them into its configurations, and is not ready before it has done
/// so. [`register`] adds the rules.
pub(super) async fn prepare(found: &Found, world: &World) -> Result<()> {
    for mut configuration in found.registrations(|_| true) {
        for hook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            hook["rules"] = json!([]);
        }
        // If the server refuses a configuration, a run reports that too.
        let _ = world.api.create(&configuration, None, false).await?;
    }
    Ok(())
}

/// Registers the webhooks that the program serves with the certificate of this run. Returns the URL paths that the program does not serve.
pub(super) async fn register(found: &Found, world: &World, seen: &Seen) -> Result<Vec<String>> {
    let Some(port) = seen.webhook_port() else { return Ok(Vec::new()) };
    let url = format!("https://127.0.0.1:{port}");
    let mut paths: Vec<&str> = found.hooks.iter().map(|hook| hook.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.truncate(PATHS_MAX);
    let (mut served, mut unserved) = (Vec::new(), Vec::new());
    let question = question();
    for path in paths {
        let asked = tokio::time::timeout(ANSWER_MAX, world.api.review(&url, path, &question));
        match asked.await.unwrap_or_default() {
            // No answer means another certificate, so the API server of a run could not call the webhook either.
            Some(404) | None => unserved.push(path.to_owned()),
            Some(_) => served.push(path),
        }
    }
    convert(found, world, &url).await?;
    let bundle = base64::engine::general_purpose::STANDARD.encode(world.api.ca_pem());
    for mut configuration in found.registrations(|path| served.contains(&path)) {
        for hook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap_or_default().to_owned();
            hook["clientConfig"] = json!({"url": format!("{url}{path}"), "caBundle": bundle});
        }
        // If the server refuses a configuration, a run reports that too.
        if let Some(at) = world.api.path(&configuration).await? {
            let _ = world.api.patch(&at, &json!({"webhooks": configuration["webhooks"]}), false).await?;
        }
    }
    Ok(unserved)
}

/// Points the conversion webhooks of the project's definitions at the program, if the program serves them with the
/// certificate of this run. Other definitions stay as they are: the server calls a conversion webhook only for versions
/// that are not stored.
async fn convert(found: &Found, world: &World, url: &str) -> Result<()> {
    let question = crate::run::empty_conversion();
    for definition in found.crds.iter().map(|crd| &crd.definition) {
        let Some(path) = crate::run::conversion_path(definition) else { continue };
        let asked = tokio::time::timeout(ANSWER_MAX, world.api.review(url, path, &question)).await;
        if matches!(asked.unwrap_or_default(), None | Some(404)) {
            continue;
        }
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let patch = crate::run::converting(&format!("{url}{path}"), world.api.ca_pem());
        let at = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        // If the server refuses it, the definition stays as it is.
        let _ = world.api.patch(&at, &patch, false).await?;
    }
    Ok(())
}

/// A review of an empty `ConfigMap`. A handler answers or refuses a review of an empty `ConfigMap`; a path without a
/// handler answers with status 404.
fn question() -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "00000000-0000-4000-8000-000000000000", "operation": "CREATE", "name": "longhaul-init", "dryRun": true,
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "userInfo": {"username": "longhaul-init"}, "object": {"apiVersion": "v1", "kind": "ConfigMap"}}})
}
