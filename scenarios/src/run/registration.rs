//! The registration of the subject's webhook in the control plane: made before the load, removed after it.
//!
//! Owns the configuration object, from the manifest and what the scenario says otherwise, and waiting until the API server goes by it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hyper::Method;
use serde_json::{Value, json};

use super::install::Api;
use crate::scenario::{Install, Scenario};

const COLLECTION: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
/// kube-apiserver reads the configuration from a cache of its own, which is hardly ever a second behind. A webhook that changes
/// nothing cannot be told from one that is not asked yet: then this time is waited and no more.
const EFFECT_LIMIT: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(50);
/// Where the service serves reviews.
const SERVICE_PATH: &str = "/mutate";
/// What 1.20 calls a field that it does not know: nothing, it drops it.
const CONDITIONS: &str = "/webhooks/0/matchConditions";

/// A webhook that is to be registered.
#[derive(Debug, Clone)]
pub(super) struct Registration {
    configuration: Value,
}

/// Where the subject serves reviews.
pub(super) fn path(scenario: &Scenario) -> &str {
    scenario.subject.webhook.as_ref().and_then(|webhook| webhook.path.as_deref()).unwrap_or(SERVICE_PATH)
}

impl Registration {
    /// The registration that the scenario asks for; `url` is where the API server finds the webhook.
    pub(super) fn of(scenario: &Scenario, url: &str, ca_pem: &str) -> Result<Option<Self>> {
        let Some(Install::Webhook) = scenario.subject.install else { return Ok(None) };
        let configuration = kind::manifests::webhook(ca_pem, kind::manifests::Reach::Url(url));
        let mut configuration = configuration.context("failed to read the webhook's manifest")?;
        let told = scenario.subject.webhook.clone().unwrap_or_default();
        for hook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            if let Some(rules) = &told.rules {
                hook["rules"] = serde_json::to_value(rules)?;
            }
            if let Some(policy) = told.failure_policy {
                hook["failurePolicy"] = serde_json::to_value(policy)?;
            }
            if let Some(timeout) = told.timeout {
                hook["timeoutSeconds"] = json!(timeout.0.as_secs());
            }
            if let Some(policy) = told.reinvocation_policy {
                hook["reinvocationPolicy"] = serde_json::to_value(policy)?;
            }
            if !told.match_conditions.is_empty() {
                hook["matchConditions"] = serde_json::to_value(&told.match_conditions)?;
            }
        }
        Ok(Some(Self { configuration }))
    }

    /// Whether creations of this resource are shown to the webhook.
    pub(super) fn covers(&self, group: &str, plural: &str) -> bool {
        let rules = self.configuration.pointer("/webhooks/0/rules").and_then(Value::as_array);
        let has = |rule: &Value, key: &str, wanted: &str| {
            rule[key].as_array().into_iter().flatten().any(|item| item == "*" || item == wanted)
        };
        rules.into_iter().flatten().any(|rule| {
            has(rule, "apiGroups", group)
                && (has(rule, "resources", plural) || has(rule, "resources", "*/*"))
                && has(rule, "operations", "CREATE")
        })
    }

    /// Registers it, and waits until a Pod in this namespace with this image comes back changed or refused.
    pub(super) async fn install(&self, api: &Api<'_>, probe: Option<(&str, &str)>) -> Result<()> {
        let (status, answer) = api.ask(Method::POST, COLLECTION, self.configuration.to_string()).await?;
        if !status.is_success() {
            bail!("failed to register the webhook: {status}: {}", String::from_utf8_lossy(&answer));
        }
        let stored: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if self.configuration.pointer(CONDITIONS).is_some() && stored.pointer(CONDITIONS).is_none() {
            bail!("this control plane does not know `matchConditions` (Kubernetes 1.28 and later do): leave them out");
        }
        let Some((namespace, image)) = probe else { return Ok(()) };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "longhaul-probe", "namespace": namespace},
            "spec": {"containers": [{"name": "probe", "image": image}]}
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
        let deadline = Instant::now() + EFFECT_LIMIT;
        while Instant::now() < deadline {
            let (status, answer) = api.ask(Method::POST, &path, pod.to_string()).await?;
            let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
            let same = answer.pointer("/spec/containers/0/image").and_then(Value::as_str) == Some(image);
            if !(status.is_success() && same) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Removes it.
    pub(super) async fn remove(&self, api: &Api<'_>) -> Result<()> {
        let name = self.configuration["metadata"]["name"].as_str().unwrap_or_default();
        let (status, answer) = api.ask(Method::DELETE, &format!("{COLLECTION}/{name}"), String::new()).await?;
        if !status.is_success() && status != hyper::StatusCode::NOT_FOUND {
            bail!("failed to remove the webhook's registration: {status}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Source;

    fn registration(subject: &str) -> Registration {
        let smoke = crate::scenario::library::text("smoke").unwrap();
        let text = smoke.replace("subject:\n", &format!("subject:\n  install: webhook\n{subject}"));
        let scenario =
            Source::parse(&text, "test", std::path::Path::new(".")).unwrap_or_else(|e| panic!("{e}")).scenario;
        let url = format!("https://127.0.0.1:8443{}", path(&scenario));
        Registration::of(&scenario, &url, "pem").unwrap().unwrap()
    }

    /// What the scenario says stands instead of the manifest's word, and everything else is the manifest's.
    #[test]
    fn the_manifest_is_used_but_for_what_the_scenario_says() {
        let usual = registration("");
        let manifest: Value = serde_saphyr::from_str(kind::manifests::WEBHOOK).unwrap();
        let mut hook = usual.configuration["webhooks"][0].clone();
        let client = hook.as_object_mut().unwrap().remove("clientConfig").unwrap();
        assert_eq!(client["url"], "https://127.0.0.1:8443/mutate");
        assert_eq!(client["caBundle"], "cGVt");
        let mut wanted = manifest["webhooks"][0].clone();
        wanted.as_object_mut().unwrap().remove("clientConfig");
        assert_eq!(hook, wanted);
        assert!(usual.covers("apps", "deployments") && usual.covers("", "pods"));
        assert!(!usual.covers("", "configmaps") && !usual.covers("apps", "pods"));

        let told = registration(
            "  webhook:\n    failurePolicy: Fail\n    timeout: 3s\n    reinvocationPolicy: Never\n    rules:\n      \
             - {apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods]}\n",
        );
        let hook = &told.configuration["webhooks"][0];
        assert_eq!((&hook["failurePolicy"], &hook["timeoutSeconds"]), (&json!("Fail"), &json!(3)));
        assert_eq!(hook["reinvocationPolicy"], "Never");
        assert!(told.covers("", "pods") && !told.covers("apps", "deployments"));
    }
}
