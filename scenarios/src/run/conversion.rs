//! The conversion webhooks in definitions of custom resources: the path that a definition names, and the patch that
//! leads the API server to the subject. Does no I/O.

use base64::Engine as _;
use serde_json::{Value, json};

/// The URL path of a definition's conversion webhook, if a webhook behind a Service converts its versions.
pub(crate) fn conversion_path(definition: &Value) -> Option<&str> {
    let conversion = &definition["spec"]["conversion"];
    let service = &conversion["webhook"]["clientConfig"]["service"];
    (conversion["strategy"] == "Webhook" && service.is_object()).then(|| service["path"].as_str().unwrap_or("/"))
}

/// A conversion of no objects, which a conversion webhook answers with any status but 404.
pub(crate) fn empty_conversion() -> Value {
    let request =
        json!({"uid": "00000000-0000-0000-0000-000000000000", "desiredAPIVersion": "longhaul.dev/v1", "objects": []});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request})
}

/// A merge patch of a definition, after which the API server calls the conversion webhook at `url`.
pub(crate) fn converting(url: &str, ca_pem: &str) -> Value {
    let bundle = base64::engine::general_purpose::STANDARD.encode(ca_pem);
    let client = json!({"service": null, "url": url, "caBundle": bundle});
    json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversion_behind_a_service_is_led_to_the_subject() {
        let service = json!({"name": "s", "namespace": "n", "path": "/convert"});
        let webhook = json!({"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]});
        let definition = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}});
        assert_eq!(conversion_path(&definition), Some("/convert"));
        let client = json!({"service": null, "url": "https://127.0.0.1:9443/convert", "caBundle": "cGVt"});
        let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}});
        assert_eq!(converting("https://127.0.0.1:9443/convert", "pem"), patch);
        let known = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a/convert"}}});
        assert_eq!(conversion_path(&json!({"spec": {"conversion": known}})), None, "its address is known already");
        assert_eq!(conversion_path(&json!({"spec": {"conversion": {"strategy": "None"}}})), None);
    }
}
