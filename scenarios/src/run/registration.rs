//! The registration of the subject's webhooks in the control plane, made before the load and removed after it.
//!
//! Owns the configuration objects, which come from the built-in manifest with the scenario's changes, or from the
//! project. Waits until the configurations are in force. At the end of the run, reads the API server's number of calls
//! to each webhook.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use hyper::Method;
use kind::manifests::Reach;
use loadgen::admission::{Through, through};
use reports::record::{WebhookPlan, WebhookRow};
use serde_json::{Value, json};

use super::conversion::{conversion_path, converting, empty_conversion};
use super::install::{Api, JSON};
use crate::scenario::{
    Configuration, ControlPlaneKind, Hook, Install, Manifest, Registration as Wanted, Scenario, written,
};

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// Longest wait until a configuration is in force. kube-apiserver reads configurations from a cache, which hardly ever
/// lags by a second. For a webhook without a visible effect the whole time passes, because the harness cannot notice a
/// call.
const EFFECT_LIMIT: Duration = Duration::from_secs(3);
/// Longest wait until the namespaces of the load have service accounts; a busy controller manager needs a second or
/// two.
const ACCOUNTS_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for the subject's answer to an empty conversion.
const SERVED_LIMIT: Duration = Duration::from_secs(2);
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";
const POLL: Duration = Duration::from_millis(50);
const SERVICE_PATH: &str = "/mutate";
/// JSON pointer to a field that Kubernetes before 1.28 silently drops.
const CONDITIONS: &str = "/webhooks/0/matchConditions";
/// The metric of kube-apiserver that counts calls to a webhook by result: admitted, refused, failed.
const CALLS: &str = "apiserver_admission_webhook_request_total";
const REJECTED: &str = "apiserver_admission_webhook_rejection_count";

#[derive(Debug, Clone)]
pub(super) struct Registration {
    configurations: Vec<Configured>,
    /// Whether the configurations are the project's own, so that their webhooks review all later writes.
    is_own: bool,
    /// The conversion webhooks of the definitions in the scenario.
    conversions: Vec<Conversion>,
    /// How long a control plane may take to apply a registration without a visible effect.
    settle: Duration,
    /// Whether the control plane creates a service account in each namespace.
    makes_accounts: bool,
}

#[derive(Debug, Clone)]
struct Configured {
    mutating: bool,
    object: Value,
}

/// A conversion webhook that the subject may serve.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Conversion {
    /// The name of the definition.
    definition: String,
    /// The address of the subject, without a path.
    base: String,
    path: String,
    ca_pem: String,
}

/// The URL path at which the subject answers direct reviews.
pub(super) fn path(scenario: &Scenario) -> String {
    let told = scenario.subject.profile().serves.and_then(|serves| serves.path.clone());
    let own = || {
        let configurations = scenario.subject.own_webhooks().ok()?;
        let mut hooks = configurations.iter().flat_map(Configuration::hooks);
        hooks.next().map(|hook| hook.path())
    };
    told.or_else(own).unwrap_or_else(|| SERVICE_PATH.to_owned())
}

/// Facts about the webhooks before a run: their names, and the reason if a webhook would not be called.
pub(super) fn webhook_plans(scenario: &Scenario) -> Vec<WebhookPlan> {
    let Ok(Some(registration)) = Registration::of(scenario, "https://127.0.0.1/", "") else { return Vec::new() };
    let written = written(scenario);
    let directly = directly(scenario);
    let hooks = registration.hooks();
    hooks
        .map(|hook| {
            let direct = !registration.is_own || directly.iter().any(|path| *path == hook.path());
            WebhookPlan {
                name: hook.name().to_owned(),
                direct: direct && !directly.is_empty(),
                unmatched: hook.unmatched(&written),
            }
        })
        .collect()
}

/// The URL paths for reviews that the harness sends directly to the webhook.
fn directly(scenario: &Scenario) -> Vec<String> {
    let Some(config) = scenario.admission.as_ref().filter(|config| config.through == Through::Webhook) else {
        return Vec::new();
    };
    let mut paths: Vec<String> =
        config.objects.iter().flat_map(|own| &own.hooks).map(|hook| hook.path.clone()).collect();
    if paths.is_empty() {
        paths.push(path(scenario));
    }
    paths
}

impl Registration {
    /// Returns the webhook registration of a scenario; `None` without a webhook. The API server calls the webhook of a
    /// process at `url`, and the webhook of Pods through their Service.
    pub(super) fn of(scenario: &Scenario, url: &str, ca_pem: &str) -> Result<Option<Self>> {
        let is_mock = scenario.control_plane.kind == ControlPlaneKind::Mock;
        let settle = if is_mock { Duration::ZERO } else { EFFECT_LIMIT };
        let (configurations, is_own) = match &scenario.subject.install {
            None => return Ok(None),
            Some(Install::Webhook(wanted)) => (vec![usual(scenario, wanted, url, ca_pem)?], false),
            Some(Install::Webhooks(_)) => (own(scenario, url, ca_pem)?, true),
        };
        let makes_accounts = scenario.control_plane.kind.has_nodes();
        let conversions = if is_own { conversions(scenario, url, ca_pem)? } else { Vec::new() };
        Ok(Some(Self { configurations, is_own, conversions, settle, makes_accounts }))
    }

    /// Whether the configurations are the project's own. The project's own configurations must exist before the first
    /// write.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    /// All webhooks as their configurations have them, each with the fact whether it may change objects.
    pub(super) fn raw(&self) -> Vec<(bool, Value)> {
        let of = |one: &Configured| {
            let hooks = one.object["webhooks"].as_array().cloned().unwrap_or_default();
            hooks.into_iter().map(|hook| (one.mutating, hook)).collect::<Vec<_>>()
        };
        self.configurations.iter().flat_map(of).collect()
    }

    fn hooks(&self) -> impl Iterator<Item = Hook<'_>> {
        self.configurations.iter().flat_map(|one| {
            let hooks = one.object["webhooks"].as_array().into_iter().flatten();
            hooks.map(|raw| Hook::of(one.mutating, raw))
        })
    }

    /// Whether a webhook reviews creations of this resource.
    pub(super) fn covers(&self, group: &str, plural: &str) -> bool {
        self.hooks().any(|hook| hook.covers("CREATE", group, "v1", plural))
    }

    /// The writes of a churned resource that are reviewed by a webhook.
    pub(super) fn covered(&self, resource: &str) -> loadgen::churn::Covers {
        let Some((group, version, plural)) = crate::scenario::parts(resource) else {
            return loadgen::churn::Covers::default();
        };
        let any = |operation: &str| self.hooks().any(|hook| hook.covers(operation, &group, &version, &plural));
        loadgen::churn::Covers { create: any("CREATE"), update: any("UPDATE"), delete: any("DELETE") }
    }

    /// Waits until the load can create Pods. If a controller creates service accounts, a namespace accepts no Pods
    /// before its account exists.
    pub(super) async fn await_accounts(&self, api: &loadgen::churn::Api, plan: &through::Plan) -> Result<()> {
        if !self.makes_accounts {
            return Ok(());
        }
        let api = Api::from(api);
        let deadline = Instant::now() + ACCOUNTS_LIMIT;
        for namespace in plan.namespaces() {
            let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
            for name in plan.accounts() {
                let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
                let (status, answer) = api.ask(Method::POST, &accounts, account.to_string()).await?;
                if !status.is_success() {
                    bail!("failed to make the account {name}: {status}: {}", String::from_utf8_lossy(&answer));
                }
            }
            let path = format!("{accounts}/default");
            while !api.ask(Method::GET, &path, String::new()).await?.0.is_success() {
                anyhow::ensure!(
                    Instant::now() < deadline,
                    "the namespace {namespace} has no service account for its Pods"
                );
                tokio::time::sleep(POLL).await;
            }
        }
        Ok(())
    }

    /// Registers the webhooks, and waits until a Pod with this image in this namespace is changed or refused.
    pub(super) async fn install(&self, api: &Api<'_>, probe: Option<(&str, &str)>) -> Result<()> {
        for Configured { mutating, object } in &self.configurations {
            let collection = if *mutating { MUTATING } else { VALIDATING };
            let (status, answer) = api.create(collection, object).await?;
            if !status.is_success() {
                bail!("failed to register the webhook: {status}: {}", String::from_utf8_lossy(&answer));
            }
            let stored: Value = serde_json::from_slice(&answer).unwrap_or_default();
            if object.pointer(CONDITIONS).is_some() && stored.pointer(CONDITIONS).is_none() {
                bail!(
                    "this control plane does not know `matchConditions` (Kubernetes 1.28 and later do): leave them out"
                );
            }
        }
        for conversion in &self.conversions {
            conversion.install(api).await?;
        }
        let Some((namespace, image)) = probe else {
            if self.is_own {
                tokio::time::sleep(self.settle).await;
            }
            return Ok(());
        };
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

    /// Number of the API server's calls to each webhook, from the metrics of the API server.
    pub(super) async fn webhook_calls(&self, api: &Api<'_>) -> Result<Vec<WebhookRow>> {
        let (status, page) = api.ask(Method::GET, "/metrics", String::new()).await?;
        anyhow::ensure!(status.is_success(), "the control plane does not show its metrics: {status}");
        let page = String::from_utf8_lossy(&page);
        Ok(self.hooks().map(|hook| counted(&page, hook.name())).collect())
    }

    pub(super) async fn remove(&self, api: &Api<'_>) -> Result<()> {
        for Configured { mutating, object } in &self.configurations {
            let collection = if *mutating { MUTATING } else { VALIDATING };
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let (status, answer) = api.ask(Method::DELETE, &format!("{collection}/{name}"), String::new()).await?;
            if !status.is_success() && status != hyper::StatusCode::NOT_FOUND {
                bail!("failed to remove the webhook's registration: {status}: {}", String::from_utf8_lossy(&answer));
            }
        }
        Ok(())
    }
}

impl Conversion {
    /// Leads the API server to the subject, if the subject serves this conversion with the certificate of the run.
    async fn install(&self, api: &Api<'_>) -> Result<()> {
        let Self { definition, base, path, ca_pem } = self;
        let subject = Api { url: base, ca_pem, token: "", mark: None };
        let asked = subject.ask(Method::POST, path, empty_conversion().to_string());
        let answer = tokio::time::timeout(SERVED_LIMIT, asked).await;
        if !matches!(&answer, Ok(Ok((status, _))) if *status != hyper::StatusCode::NOT_FOUND) {
            return Ok(());
        }
        let patch = converting(&format!("{base}{path}"), ca_pem).to_string();
        let (status, answer) = api.ask_as(Method::PATCH, &format!("{CRDS}/{definition}"), patch, JSON, MERGE).await?;
        if !status.is_success() {
            bail!("failed to register the conversion of {definition}: {status}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(())
    }
}

/// The conversion webhooks of the definitions in the scenario's manifests. Pods are called through their Service, as
/// the definitions say.
fn conversions(scenario: &Scenario, url: &str, ca_pem: &str) -> Result<Vec<Conversion>> {
    if scenario.subject.profile().needs_node {
        return Ok(Vec::new());
    }
    let manifests = scenario.control_plane.manifests().map_err(anyhow::Error::msg)?;
    let of = |object: &Value| {
        let (path, name) = (conversion_path(object)?, object["metadata"]["name"].as_str()?);
        let (base, ca_pem) = (base(url).to_owned(), ca_pem.to_owned());
        Some(Conversion { definition: name.to_owned(), base, path: path.to_owned(), ca_pem })
    };
    Ok(manifests.iter().filter(|one| one.is_definition()).filter_map(|one| of(&one.object)).collect())
}

/// A URL without its path.
fn base(url: &str) -> &str {
    url.find("://").and_then(|at| url[at + 3..].find('/').map(|end| &url[..at + 3 + end])).unwrap_or(url)
}

/// The configuration of the built-in manifest, with the scenario's changes.
fn usual(scenario: &Scenario, wanted: &Wanted, url: &str, ca_pem: &str) -> Result<Configured> {
    let reach = if scenario.subject.profile().needs_node { Reach::Service } else { Reach::Url(url) };
    let configuration = kind::manifests::webhook(ca_pem, reach);
    let mut object = configuration.context("failed to read the webhook's manifest")?;
    for hook in object["webhooks"].as_array_mut().into_iter().flatten() {
        if let Some(rules) = &wanted.rules {
            hook["rules"] = serde_json::to_value(rules)?;
        }
        if let Some(policy) = wanted.failure_policy {
            hook["failurePolicy"] = serde_json::to_value(policy)?;
        }
        if let Some(timeout) = wanted.timeout {
            hook["timeoutSeconds"] = json!(timeout.0.as_secs());
        }
        if let Some(policy) = wanted.reinvocation_policy {
            hook["reinvocationPolicy"] = serde_json::to_value(policy)?;
        }
        if !wanted.match_conditions.is_empty() {
            hook["matchConditions"] = serde_json::to_value(&wanted.match_conditions)?;
        }
    }
    Ok(Configured { mutating: true, object })
}

/// The project's own configurations, with the address of this run and with unused names.
fn own(scenario: &Scenario, url: &str, ca_pem: &str) -> Result<Vec<Configured>> {
    let base = base(url);
    let in_pods = scenario.subject.profile().needs_node;
    let bundle = base64::engine::general_purpose::STANDARD.encode(ca_pem);
    let read = scenario.subject.own_webhooks().map_err(anyhow::Error::msg)?;
    let (mut objects, mut hooks) = (BTreeSet::new(), BTreeSet::new());
    let mut all = Vec::new();
    for configuration in read {
        let mutating = configuration.mutating;
        let mut object = configuration.object;
        let name = object["metadata"]["name"].as_str().unwrap_or("webhooks").to_owned();
        let name = unique(&mut objects, &format!("longhaul-{name}"));
        object["metadata"] = json!({"name": name, "labels": {"app.kubernetes.io/part-of": "longhaul"}});
        for raw in object["webhooks"].as_array_mut().into_iter().flatten() {
            let hook = Hook::of(mutating, raw);
            let (path, name) = (hook.path(), unique(&mut hooks, hook.name()));
            raw["clientConfig"] = match raw["clientConfig"].get("service").filter(|_| in_pods) {
                Some(service) => json!({"service": service, "caBundle": bundle}),
                None => json!({"url": format!("{base}{path}"), "caBundle": bundle}),
            };
            raw["name"] = name.into();
        }
        all.push(Configured { mutating, object });
    }
    Ok(all)
}

/// The project's own configurations with their own names and without rules, for a control plane of this run.
///
/// An operator that makes its own certificates writes them into its configurations, and is not ready before it has done
/// so (cert-controller in gatekeeper and kueue). Without rules the API server calls no webhook of these configurations:
/// it calls the webhooks of [`own`].
pub(super) fn named(scenario: &Scenario) -> Result<Vec<Manifest>> {
    if scenario.subject.profile().needs_node {
        return Ok(Vec::new());
    }
    let read = scenario.subject.own_webhooks().map_err(anyhow::Error::msg)?;
    let file = scenario.subject.own_webhooks_file().unwrap_or(Path::new("")).to_owned();
    let without_rules = |mut object: Value| {
        object["webhooks"].as_array_mut().into_iter().flatten().for_each(|raw| raw["rules"] = json!([]));
        Manifest { file: file.clone(), object }
    };
    let has_name = |object: &Value| object["metadata"]["name"].is_string();
    Ok(read.into_iter().map(|one| one.object).filter(has_name).map(without_rules).collect())
}

/// Returns the name, or a similar name that is not used. A webhook's name begins with a DNS label, and so does the new
/// name.
fn unique(known: &mut BTreeSet<String>, name: &str) -> String {
    let mut found = name.to_owned();
    for number in 2.. {
        if known.insert(found.clone()) {
            break;
        }
        found = format!("{number}-{name}");
    }
    found
}

/// The counts of one webhook's calls on a metrics page.
fn counted(page: &str, name: &str) -> WebhookRow {
    let label = format!("name=\"{name}\"");
    let sum = |metric: &str| -> u64 {
        let lines = page.lines().filter(|line| {
            line.strip_prefix(metric).is_some_and(|rest| rest.starts_with('{')) && line.contains(&label)
        });
        let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counters of a server that runs for days at most"
        )]
        let sum = values.sum::<f64>() as u64;
        sum
    };
    WebhookRow { name: name.to_owned(), calls: sum(CALLS), rejected: sum(REJECTED) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Source;

    fn registration(install: &str) -> Registration {
        let smoke = crate::scenario::library::text("smoke").unwrap();
        let text = smoke.replace("subject:\n", &format!("subject:\n  install: {install}\n"));
        let scenario = Source::parse(&text, "test", Path::new(".")).unwrap_or_else(|e| panic!("{e}")).scenario;
        let url = format!("https://127.0.0.1:8443{}", path(&scenario));
        Registration::of(&scenario, &url, "pem").unwrap().unwrap()
    }

    /// The scenario's values replace values of the manifest; all other values stay.
    #[test]
    fn the_manifest_is_used_but_for_what_the_scenario_says() {
        let usual = registration("webhook");
        let manifest: Value = serde_saphyr::from_str(kind::manifests::WEBHOOK).unwrap();
        let mut hook = usual.configurations[0].object["webhooks"][0].clone();
        let client = hook.as_object_mut().unwrap().remove("clientConfig").unwrap();
        assert_eq!(client["url"], "https://127.0.0.1:8443/mutate");
        assert_eq!(client["caBundle"], "cGVt");
        let mut wanted = manifest["webhooks"][0].clone();
        wanted.as_object_mut().unwrap().remove("clientConfig");
        assert_eq!(hook, wanted);
        assert!(usual.covers("apps", "deployments") && usual.covers("", "pods"));
        assert!(!usual.covers("", "configmaps") && !usual.covers("apps", "pods"));

        let told = registration(
            "{webhook: {failurePolicy: Fail, timeout: 3s, reinvocationPolicy: Never, rules: \
             [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}}",
        );
        let hook = &told.configurations[0].object["webhooks"][0];
        assert_eq!((&hook["failurePolicy"], &hook["timeoutSeconds"]), (&json!("Fail"), &json!(3)));
        assert_eq!(hook["reinvocationPolicy"], "Never");
        assert!(told.covers("", "pods") && !told.covers("apps", "deployments"));
    }

    /// Only address and names change in a project's own configurations.
    #[test]
    fn own_configurations_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let hook = |kind: &str, name: &str, path: &str| {
            format!(
                "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}WebhookConfiguration\nmetadata: {{name: config, annotations: {{a: b}}}}\n\
                 webhooks:\n- name: {name}\n  sideEffects: None\n  failurePolicy: Fail\n  timeoutSeconds: 7\n  admissionReviewVersions: [v1]\n  \
                 clientConfig: {{service: {{name: s, namespace: n, path: {path}}}}}\n  rules: [{{operations: [CREATE], apiGroups: \
                 [cache.example.com], apiVersions: [v1], resources: [caches]}}]\n"
            )
        };
        let text = format!(
            "{}---\n{}",
            hook("Mutating", "cache.kb.io", "/mutate"),
            hook("Validating", "cache.kb.io", "/validate")
        );
        std::fs::write(folder.path().join("webhooks.yaml"), text).unwrap();
        let scenario = "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {warmUp: 1s, steady: 2s, drain: 1s}\nsubject: \
            {command: [x], witness: {kind: http}, install: {webhooks: webhooks.yaml}}\nchurn: {resource: v1/configmaps, population: 5, rate: 1/s}\n";
        let scenario = Source::parse(scenario, "test", folder.path()).unwrap_or_else(|e| panic!("{e}")).scenario;
        let own = Registration::of(&scenario, "https://127.0.0.1:9443/mutate", "pem").unwrap().unwrap();
        assert!(own.is_own() && path(&scenario) == "/mutate");
        let told: Vec<_> = own
            .configurations
            .iter()
            .map(|one| (one.mutating, &one.object["webhooks"][0]))
            .map(|(mutating, hook)| {
                (mutating, hook["name"].as_str().unwrap(), hook["clientConfig"]["url"].as_str().unwrap())
            })
            .collect();
        assert_eq!(
            told,
            [
                (true, "cache.kb.io", "https://127.0.0.1:9443/mutate"),
                (false, "2-cache.kb.io", "https://127.0.0.1:9443/validate")
            ]
        );
        let named = named(&scenario).unwrap();
        assert!(named.iter().all(|one| one.object["metadata"]["name"] == "config"), "{named:?}");
        assert!(
            named.iter().all(|one| one.object["webhooks"][0]["rules"] == json!([])),
            "the API server calls neither"
        );
        let names: Vec<&Value> = own.configurations.iter().map(|one| &one.object["metadata"]["name"]).collect();
        assert_eq!(names, ["longhaul-config", "2-longhaul-config"]);
        let hook = &own.configurations[1].object["webhooks"][0];
        assert_eq!((&hook["failurePolicy"], &hook["timeoutSeconds"]), (&json!("Fail"), &json!(7)));
        assert_eq!(hook.get("namespaceSelector"), None, "nobody wrote one");
        let covers = own.covered("caches.cache.example.com/v1");
        assert!(covers.create && !covers.update && !covers.delete);
        let planned = webhook_plans(&scenario);
        assert!(
            planned[0]
                .unmatched
                .as_ref()
                .unwrap()
                .starts_with("its rules (CREATE caches.cache.example.com) match no written object"),
            "{planned:?}"
        );
    }

    /// A definition that names a conversion webhook leads to the subject; other definitions do not.
    #[test]
    fn conversions_of_own_definitions_are_led_to_the_subject() {
        let folder = tempfile::tempdir().unwrap();
        let crd = |name: &str, conversion: &str| {
            format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}s.example.com}}\nspec:\n  \
                 group: example.com\n  scope: Namespaced\n  names: {{kind: {name}, plural: {name}s}}\n{conversion}  versions: [{{name: v1, \
                 served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]\n---\n"
            )
        };
        let webhook = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: s, \
                       namespace: n, path: /convert}}}}\n";
        std::fs::write(folder.path().join("crds.yaml"), crd("a", webhook) + &crd("b", "")).unwrap();
        let scenario = "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {warmUp: 1s, steady: 2s, drain: 1s}\ncontrolPlane: \
            {manifests: [crds.yaml]}\nsubject: {command: [x], witness: {kind: http}}\nchurn: {resource: v1/configmaps, population: 5, rate: 1/s}\n";
        let scenario = Source::parse(scenario, "test", folder.path()).unwrap_or_else(|e| panic!("{e}")).scenario;
        let found = conversions(&scenario, "https://127.0.0.1:9443/mutate", "pem").unwrap();
        let definition = "as.example.com".to_owned();
        let (base, path) = ("https://127.0.0.1:9443".to_owned(), "/convert".to_owned());
        assert_eq!(found, [Conversion { definition, base, path, ca_pem: "pem".to_owned() }]);
    }

    #[test]
    fn calls_are_counted_by_name() {
        let page = "# TYPE apiserver_admission_webhook_request_total counter\n\
            apiserver_admission_webhook_request_total{code=\"200\",name=\"a.b.c\",operation=\"CREATE\"} 3\n\
            apiserver_admission_webhook_request_total{code=\"400\",name=\"a.b.c\",operation=\"CREATE\"} 2\n\
            apiserver_admission_webhook_request_total{code=\"200\",name=\"x.a.b.c\"} 7\n\
            apiserver_admission_webhook_rejection_count{name=\"a.b.c\"} 2\n";
        assert_eq!(counted(page, "a.b.c"), WebhookRow { name: "a.b.c".to_owned(), calls: 5, rejected: 2 });
    }
}
