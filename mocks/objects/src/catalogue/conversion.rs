//! The conversion between versions of a custom resource: `spec.conversion` of its definition.
//!
//! Owns checking `spec.conversion` and deciding whether a webhook converts. This module does not call the webhook.

use std::sync::Arc;

use serde_json::Value;

use crate::status::Cause;

/// The name of the webhook's field in error messages, which a real server takes from its internal type.
const CLIENT: &str = "spec.conversion.webhookClientConfig";
const REVIEWS: &str = "spec.conversion.conversionReviewVersions";

/// The conversion of a custom resource's objects between versions.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The webhook that converts. Without a webhook, a conversion only changes `apiVersion` and removes fields that the
    /// new version lacks.
    pub webhook: Option<Webhook>,
    pub stored: Arc<str>,
}

#[derive(Debug, Clone)]
pub struct Webhook {
    /// `clientConfig` as the definition contains it.
    pub client: Arc<Value>,
    /// The first version in `conversionReviewVersions` that this server supports: `v1` or `v1beta1`.
    pub review: &'static str,
}

impl Conversion {
    /// The conversion in a valid definition; `None` if the versions differ only in their names.
    pub(super) fn read(crd: &Value, stored: &str) -> Option<Self> {
        let conversion = &crd["spec"]["conversion"];
        let webhook = (conversion["strategy"] == "Webhook").then(|| Webhook {
            client: Arc::new(conversion["webhook"]["clientConfig"].clone()),
            review: reviews(conversion).find_map(known).unwrap_or("v1"),
        });
        let schemas = || crd["spec"]["versions"].as_array().into_iter().flatten().map(|version| &version["schema"]);
        let differs = schemas().any(|schema| Some(schema) != schemas().next());
        (webhook.is_some() || differs).then(|| Self { webhook, stored: stored.into() })
    }
}

fn known(version: &str) -> Option<&'static str> {
    match version {
        "v1" => Some("v1"),
        "v1beta1" => Some("v1beta1"),
        _ => None,
    }
}

fn reviews(conversion: &Value) -> impl Iterator<Item = &str> {
    conversion["webhook"]["conversionReviewVersions"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The errors in a definition's `spec.conversion` and storage versions.
pub(super) fn check(crd: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let conversion = &crd["spec"]["conversion"];
    if conversion.is_object() {
        match conversion["strategy"].as_str().unwrap_or_default() {
            "Webhook" => check_webhook(conversion, &mut causes),
            strategy => {
                match strategy {
                    "None" => {}
                    "" => causes.push(Cause::required("spec.conversion.strategy", "")),
                    other => {
                        let message =
                            format!("Unsupported value: \"{other}\": supported values: \"None\", \"Webhook\"");
                        let field = "spec.conversion.strategy".to_owned();
                        causes.push(Cause { reason: "FieldValueNotSupported", field, message });
                    }
                }
                let why = "should not be set when strategy is not set to Webhook";
                if conversion["webhook"]["clientConfig"].is_object() {
                    causes.push(Cause::forbidden(CLIENT, why));
                }
                if reviews(conversion).next().is_some() {
                    causes.push(Cause::forbidden(REVIEWS, why));
                }
            }
        }
    }
    let names = || crd["spec"]["versions"].as_array().into_iter().flatten().map(|version| &version["name"]);
    for (index, stored) in crd["status"]["storedVersions"].as_array().into_iter().flatten().enumerate() {
        if !names().any(|name| name == stored) {
            let name = stored.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a \
                 storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            causes.push(Cause::invalid(&format!("status.storedVersions[{index}]"), &stored.to_string(), &why));
        }
    }
    causes
}

fn check_webhook(conversion: &Value, causes: &mut Vec<Cause>) {
    let client = &conversion["webhook"]["clientConfig"];
    match (client["url"].as_str(), client["service"].as_object()) {
        _ if !client.is_object() => causes.push(Cause::required(CLIENT, "required when strategy is set to Webhook")),
        (Some(_), Some(_)) | (None, None) => {
            causes.push(Cause::required(CLIENT, "exactly one of url or service is required"));
        }
        (Some(url), None) => check_url(url, causes),
        (None, Some(_)) => check_service(&client["service"], causes),
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, version) in reviews(conversion).enumerate() {
        if seen.contains(&version) {
            causes.push(Cause::invalid(&format!("{REVIEWS}[{index}]"), &format!("\"{version}\""), "duplicate version"));
        }
        seen.push(version);
    }
    if seen.is_empty() {
        causes.push(Cause::required(REVIEWS, ""));
    } else if !seen.iter().any(|version| known(version).is_some()) {
        let shown = Value::from(seen).to_string();
        causes.push(Cause::invalid(REVIEWS, &shown, "must include at least one of v1, v1beta1"));
    }
}

fn check_url(url: &str, causes: &mut Vec<Cause>) {
    let form = "desired format: https://host[/path]";
    let field = format!("{CLIENT}.url");
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme; {form}");
        causes.push(Cause::invalid(&field, &format!("\"{scheme}\""), &why));
    }
    if rest.split('/').next().unwrap_or_default().is_empty() {
        causes.push(Cause::invalid(&field, "\"\"", &format!("host must be specified; {form}")));
    }
}

fn check_service(service: &Value, causes: &mut Vec<Cause>) {
    for name in ["name", "namespace"] {
        if service[name].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::required(&format!("{CLIENT}.service.{name}"), ""));
        }
    }
    if let Some(port) = service["port"].as_i64().filter(|port| !(1..=65_535).contains(port)) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(&format!("{CLIENT}.service.port"), &port.to_string(), why));
    }
    let Some(path) = service["path"].as_str() else { return };
    let field = format!("{CLIENT}.service.path");
    let mut wrong = |why: &str| causes.push(Cause::invalid(&field, &Value::from(path).to_string(), why));
    let Some(rest) = path.strip_prefix('/') else { return wrong("must start with a '/'") };
    let parts: Vec<&str> = rest.split('/').collect();
    for (index, part) in parts.iter().enumerate() {
        // A slash at the end is allowed.
        if part.is_empty() && index + 1 < parts.len() {
            wrong(&format!("segment[{index}] may not be empty"));
        }
    }
}
