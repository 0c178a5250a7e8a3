//! The fields of a `MutatingWebhookConfiguration` with the called server and the authorities that the API server
//! trusts.
//!
//! The functions parse bytes without I/O. A missing field is read as empty; an object of another kind is an error.

use base64::Engine as _;
use rustls_pki_types::CertificateDer;
use serde::Deserialize;
use serde_json::Value;

use crate::wire::certificates_from_pem;

const COLLECTION: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
/// Maximum number of bytes of a webhook configuration. The API server allows objects of 1.5 MiB; this service's
/// configuration has a few KiB.
const CONFIGURATION_BYTES_MAX: usize = 1 << 20;
/// Maximum number of certificates of a `caBundle` that are read.
const BUNDLE_MAX: usize = 64;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Webhooks {
    pub webhooks: Vec<Webhook>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    pub name: String,
    client_config: ClientConfig,
    rules: Vec<Value>,
    namespace_selector: Value,
    object_selector: Value,
    match_conditions: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClientConfig {
    service: Option<Service>,
    ca_bundle: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Service {
    namespace: String,
    name: String,
    path: Option<String>,
}

impl Webhooks {
    pub fn path(name: &str) -> String {
        format!("{COLLECTION}/{name}")
    }

    /// Maximum number of bytes of an answer with one webhook configuration.
    pub const fn bytes_max() -> usize {
        CONFIGURATION_BYTES_MAX
    }

    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    /// The webhooks that call the Service `name` in `namespace`.
    pub fn of_service<'a>(&'a self, namespace: &'a str, name: &'a str) -> impl Iterator<Item = &'a Webhook> {
        self.webhooks.iter().filter(move |webhook| {
            let service = webhook.client_config.service.as_ref();
            service.is_some_and(|service| service.namespace == namespace && service.name == name)
        })
    }
}

impl Webhook {
    /// Namespace and name of the called Service; `None` if the webhook has a URL.
    pub fn service(&self) -> Option<(&str, &str)> {
        self.client_config.service.as_ref().map(|service| (&*service.namespace, &*service.name))
    }

    pub fn path(&self) -> &str {
        self.client_config.service.as_ref().and_then(|service| service.path.as_deref()).unwrap_or("/")
    }

    /// The authorities in `caBundle`; empty if the webhook has none, an error if they are invalid.
    pub fn bundle(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let Some(text) = self.client_config.ca_bundle.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(Vec::new());
        };
        let pem = base64::engine::general_purpose::STANDARD.decode(text).map_err(|error| error.to_string())?;
        let mut bundle = certificates_from_pem(&pem).map_err(|error| error.to_string())?;
        bundle.truncate(BUNDLE_MAX);
        Ok(bundle)
    }

    /// Whether the webhook is called for every created Pod in the selected namespaces. If the webhook has further
    /// conditions, a created Pod does not prove that the webhook should have been called.
    pub fn asks_about_every_pod(&self) -> bool {
        let no = |selector: &Value| selector.is_null() || selector.as_object().is_some_and(serde_json::Map::is_empty);
        let has = |rule: &Value, key: &str, wanted: &[&str]| {
            let found = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            found.into_iter().any(|text| wanted.contains(&text))
        };
        let pods =
            |rule: &Value| has(rule, "resources", &["pods", "*", "*/*"]) && has(rule, "operations", &["CREATE", "*"]);
        no(&self.object_selector) && self.match_conditions.is_empty() && self.rules.iter().any(pods)
    }

    /// The namespace selector as a query, without escapes; empty if the selector selects all namespaces. `None` if the
    /// selector has an unknown operator.
    pub fn namespace_selector(&self) -> Option<String> {
        let labels = self.namespace_selector["matchLabels"].as_object().into_iter().flatten();
        let mut terms: Vec<String> =
            labels.map(|(key, value)| value.as_str().map(|value| format!("{key}={value}"))).collect::<Option<_>>()?;
        for expression in self.namespace_selector["matchExpressions"].as_array().into_iter().flatten() {
            let key = expression["key"].as_str()?;
            let values: Vec<_> =
                expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            terms.push(match expression["operator"].as_str()? {
                "In" => format!("{key} in ({})", values.join(",")),
                "NotIn" => format!("{key} notin ({})", values.join(",")),
                "Exists" => key.to_owned(),
                "DoesNotExist" => format!("!{key}"),
                _ => return None,
            });
        }
        Some(terms.join(","))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(webhook: &Value) -> Webhook {
        Webhooks::read(json!({"webhooks": [webhook]}).to_string().as_bytes()).unwrap().webhooks.remove(0)
    }

    #[test]
    fn entries_of_a_service_and_what_they_ask_about_are_read() {
        let webhook = one(&json!({
            "name": "w", "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "/mutate"}},
            "rules": [{"resources": ["jobs"], "operations": ["*"]}, {"resources": ["pods"], "operations": ["CREATE"]}],
            "objectSelector": {},
            "namespaceSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [
                {"key": "c", "operator": "NotIn", "values": ["d", "e"]}, {"key": "f", "operator": "DoesNotExist"}]},
        }));
        assert_eq!((webhook.service(), webhook.path()), (Some(("n", "s")), "/mutate"));
        assert!(webhook.asks_about_every_pod());
        assert_eq!(webhook.namespace_selector().unwrap(), "a=b,c notin (d,e),!f");
        let all = Webhooks { webhooks: vec![webhook] };
        assert_eq!((all.of_service("n", "s").count(), all.of_service("n", "other").count()), (1, 0));
    }

    #[test]
    fn what_leaves_some_out_is_not_asked_about_and_odd_ones_are_empty_or_an_error() {
        let rules = json!([{"resources": ["pods"], "operations": ["CREATE"]}]);
        let with = |key: &str, value: Value| -> Webhook {
            let mut webhook = json!({"rules": rules});
            webhook[key] = value;
            one(&webhook)
        };
        assert!(!with("objectSelector", json!({"matchLabels": {"a": "b"}})).asks_about_every_pod());
        assert!(!with("matchConditions", json!([{"name": "x"}])).asks_about_every_pod());
        assert!(!one(&json!({})).asks_about_every_pod());
        assert_eq!(one(&json!({})).namespace_selector().unwrap(), "");
        assert_eq!(
            one(&json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}}))
                .namespace_selector(),
            None
        );
        assert_eq!(one(&json!({"clientConfig": {"caBundle": ""}})).bundle().unwrap(), Vec::new());
        assert!(one(&json!({"clientConfig": {"caBundle": "!"}})).bundle().is_err());
        assert!(Webhooks::read(b"[1").is_err());
    }
}
