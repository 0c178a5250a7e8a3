//! One webhook of a configuration: what it wants to see and where it lives.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use goadmit::Version as ReviewVersion;
use mock_cel::Program;
use mock_objects::catalogue::{Catalogue, Resource};
use mock_objects::kinds::Meaning;
use mock_objects::object;
use mock_objects::selector::{Requirement, from_label_selector, labels_match};
use mock_objects::status::Cause;
use mock_store::Version;
use serde_json::Value;

use super::client::Target;
use super::conditions::FailurePolicy;
use super::form::Form;
use super::{Attempt, conditions, label, namespace_of, subject_of};
use crate::call::Call;
use crate::cluster::Cluster;

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";
/// The API's own default and limits of `timeoutSeconds`.
const TIMEOUT_DEFAULT_S: u64 = 10;
const TIMEOUT_MAX_S: u64 = 30;

/// All webhooks, in the order in which they are called.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub mutating: Vec<Hook>,
    pub validating: Vec<Hook>,
}

#[derive(Debug)]
pub(crate) struct Hook {
    pub name: String,
    pub mutating: bool,
    pub failure_policy: FailurePolicy,
    pub timeout: Duration,
    pub reinvoke: bool,
    pub conditions: Vec<Program>,
    match_policy: MatchPolicy,
    /// The first of the webhook's list that this server knows.
    pub review: ReviewVersion,
    rules: Vec<Rule>,
    namespaces: Vec<Requirement>,
    objects: Vec<Requirement>,
    place: Place,
    ca_pem: String,
}

/// What a rule says about requests through other versions and APIs of the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchPolicy {
    Exact,
    Equivalent,
}

#[derive(Debug)]
enum Place {
    Url { host: String, port: u16, path: String },
    Service { namespace: String, name: String, port: u16, path: String },
    Unusable(Unusable),
}

/// Why a configuration names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    #[error("url \"{0}\" must begin with https://")]
    Scheme(String),
    #[error("url \"{0}\" has no host or port")]
    Authority(String),
    #[error("exactly one of url or service is required")]
    NeitherOrHalf,
    #[error("service.port is not a port")]
    Port,
}

/// Why there is nothing to connect to.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Nowhere {
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("service \"{name}\" in namespace \"{namespace}\" has no address")]
    NoAddress { namespace: String, name: String },
}

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
}

/// Whether a resource is one of the two kinds of configurations.
pub(crate) fn is_configuration(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::Webhooks
}

/// Refuses what this server cannot honour, so that nobody believes it is.
pub(crate) fn check_configuration(value: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !is_configuration(resource) {
        return causes;
    }
    for (index, hook) in value["webhooks"].as_array().into_iter().flatten().enumerate() {
        let field = |name: &str| format!("webhooks[{index}].{name}");
        causes.extend(conditions::check(&hook["matchConditions"], &field("matchConditions")));
        if hook["name"].as_str().is_none_or(|name| name.split('.').count() < 3) {
            let shown = hook["name"].to_string();
            causes.push(Cause::invalid(
                &field("name"),
                &shown,
                "should be a domain with at least three segments separated by dots",
            ));
        }
        if !matches!(hook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")) {
            causes.push(Cause::required(&field("sideEffects"), "must specify one of None, NoneOnDryRun"));
        }
        if let Some(policy) = hook["matchPolicy"].as_str().filter(|policy| !matches!(*policy, "Exact" | "Equivalent")) {
            let message = format!("Unsupported value: \"{policy}\": supported values: \"Equivalent\", \"Exact\"");
            causes.push(Cause { reason: "FieldValueNotSupported", field: field("matchPolicy"), message });
        }
        check_review_versions(hook, &field("admissionReviewVersions"), &mut causes);
        if let Some(timeout) = hook["timeoutSeconds"].as_u64()
            && !(1..=TIMEOUT_MAX_S).contains(&timeout)
        {
            let why = "the timeout value must be between 1 and 30 seconds";
            causes.push(Cause::invalid(&field("timeoutSeconds"), &timeout.to_string(), why));
        }
        if let Place::Unusable(why) = place(&hook["clientConfig"]) {
            causes.push(Cause::invalid(&field("clientConfig"), "", &why));
        }
        for selector in ["namespaceSelector", "objectSelector"] {
            if let Err(why) = from_label_selector(&hook[selector]) {
                causes.push(Cause::invalid(&field(selector), "", &why));
            }
        }
    }
    causes
}

fn review_versions(hook: &Value) -> impl Iterator<Item = &str> {
    hook["admissionReviewVersions"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn check_review_versions(hook: &Value, field: &str, causes: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, version) in review_versions(hook).enumerate() {
        if seen.contains(&version) {
            let at = format!("{field}[{index}]");
            causes.push(Cause::invalid(&at, &format!("\"{version}\""), "duplicate version"));
        }
        seen.push(version);
    }
    if seen.is_empty() {
        causes.push(Cause::required(field, "must specify one of v1, v1beta1"));
    } else if seen.iter().all(|version| ReviewVersion::of(version).is_none()) {
        let shown = hook["admissionReviewVersions"].to_string();
        causes.push(Cause::invalid(field, &shown, "must include at least one of v1, v1beta1"));
    }
}

/// Both kinds of configurations by name; true is mutating.
pub(super) fn configurations(cluster: &Cluster, catalogue: &Catalogue) -> Vec<(bool, Arc<Version>)> {
    let mut found = Vec::new();
    for (full_name, mutating) in [(MUTATING, true), (VALIDATING, false)] {
        let Some(resource) = catalogue.by_full_name(full_name) else { continue };
        let page = cluster.read(|store| store.list(resource.id, None, store.revision(), None, usize::MAX, |_| true));
        found.extend(page.into_iter().flat_map(|page| page.items).map(|version| (mutating, version)));
    }
    found
}

impl Hooks {
    pub fn read(configurations: &[(bool, Arc<Version>)]) -> Self {
        let mut hooks = Self::default();
        for (mutating, version) in configurations {
            let value = version.value();
            let read = value["webhooks"].as_array().into_iter().flatten().map(|raw| Hook::read(raw, *mutating));
            if *mutating { hooks.mutating.extend(read) } else { hooks.validating.extend(read) }
        }
        hooks
    }

    /// Whether anybody is to be asked about a request. Whoever configures webhooks must always be able to repair them.
    pub fn see(&self, call: &Call) -> bool {
        let nobody = self.mutating.is_empty() && self.validating.is_empty();
        !nobody && !is_configuration(&call.resource)
    }
}

impl Hook {
    fn read(raw: &Value, mutating: bool) -> Self {
        let text = |key: &str| raw[key].as_str().unwrap_or_default();
        let ca = raw.pointer("/clientConfig/caBundle").and_then(Value::as_str).unwrap_or_default();
        let ca_pem = BASE64.decode(ca).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let timeout_s = raw["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_DEFAULT_S).clamp(1, TIMEOUT_MAX_S);
        let rules = raw["rules"].as_array().into_iter().flatten().map(Rule::read);
        Self {
            name: text("name").to_owned(),
            mutating,
            failure_policy: if text("failurePolicy") == "Ignore" { FailurePolicy::Ignore } else { FailurePolicy::Fail },
            timeout: Duration::from_secs(timeout_s),
            reinvoke: text("reinvocationPolicy") == "IfNeeded",
            conditions: conditions::read(&raw["matchConditions"]),
            match_policy: if text("matchPolicy") == "Exact" { MatchPolicy::Exact } else { MatchPolicy::Equivalent },
            review: review_versions(raw).find_map(ReviewVersion::of).unwrap_or(ReviewVersion::V1),
            rules: rules.collect(),
            namespaces: from_label_selector(&raw["namespaceSelector"]).unwrap_or_default(),
            objects: from_label_selector(&raw["objectSelector"]).unwrap_or_default(),
            place: place(&raw["clientConfig"]),
            ca_pem,
        }
    }

    /// The form in which the webhook wants to see a request, if it does: rules, then the namespace's labels, then the
    /// labels of the object or of what it was before.
    pub fn form(&self, attempt: &Attempt<'_>, object: &Value) -> Option<Form> {
        let form = self.matching_form(attempt)?;
        let selected = self.namespace_matches(attempt, object)
            && (self.objects.is_empty()
                || labels_match(&self.objects, |key| label(object, key))
                || attempt.old.is_some_and(|old| labels_match(&self.objects, |key| label(old, key))));
        selected.then_some(form)
    }

    /// What the request named comes first.
    fn matching_form(&self, attempt: &Attempt<'_>) -> Option<Form> {
        let matches = |form: &Form| self.rules.iter().any(|rule| rule.matches(attempt, form));
        let asked = Form::asked(attempt.call);
        if matches(&asked) {
            return Some(asked);
        }
        if self.match_policy == MatchPolicy::Exact {
            return None;
        }
        Form::equivalents(attempt.call).into_iter().find(matches)
    }

    fn namespace_matches(&self, attempt: &Attempt<'_>, object: &Value) -> bool {
        if self.namespaces.is_empty() {
            return true;
        }
        let Some(name) = namespace_of(attempt, object) else { return true };
        if attempt.call.resource.rules.meaning == Meaning::Namespace {
            let subject = subject_of(attempt, object);
            return labels_match(&self.namespaces, |key| label(subject, key));
        }
        let cluster = attempt.call.cluster();
        let catalogue = cluster.catalogue();
        let namespace = catalogue.by_full_name("namespaces").and_then(|resource| cluster.get(resource, "", name));
        namespace.is_some_and(|version| labels_match(&self.namespaces, |key| version.label(key)))
    }

    /// The path with `?timeout=`, whole seconds as the real server sends them.
    pub fn path_and_query(&self) -> String {
        let path = match &self.place {
            Place::Url { path, .. } | Place::Service { path, .. } => path.as_str(),
            Place::Unusable(_) => "/",
        };
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("{path}{sign}timeout={}s", self.timeout.as_secs())
    }

    /// The URL as error texts show it.
    pub fn shown_url(&self) -> String {
        match &self.place {
            Place::Url { host, port, .. } => format!("https://{host}:{port}{}", self.path_and_query()),
            Place::Service { namespace, name, port, .. } => {
                format!("https://{name}.{namespace}.svc:{port}{}", self.path_and_query())
            }
            Place::Unusable(_) => String::new(),
        }
    }

    /// Where to connect now.
    pub fn target(&self, cluster: &Cluster) -> Result<Target, Nowhere> {
        let ca_pem = self.ca_pem.clone();
        match &self.place {
            Place::Url { host, port, .. } => {
                Ok(Target { host: host.clone(), port: *port, server_name: host.clone(), ca_pem })
            }
            Place::Service { namespace, name, port, .. } => {
                let (host, real_port) = resolve(cluster, namespace, name, *port)
                    .ok_or_else(|| Nowhere::NoAddress { namespace: namespace.clone(), name: name.clone() })?;
                Ok(Target { host, port: real_port, server_name: format!("{name}.{namespace}.svc"), ca_pem })
            }
            Place::Unusable(why) => Err(why.clone().into()),
        }
    }
}

impl Rule {
    fn read(raw: &Value) -> Self {
        let list = |key: &str| -> Vec<String> {
            raw[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources"),
            scope: raw["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }

    fn matches(&self, attempt: &Attempt<'_>, form: &Form) -> bool {
        let any = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        // A namespace counts as cluster-scoped, as the real rules say.
        let scope = match self.scope.as_str() {
            "Namespaced" => form.resource.namespaced,
            "Cluster" => !form.resource.namespaced,
            _ => true,
        };
        scope
            && any(&self.operations, attempt.operation.as_str())
            && any(&self.groups, &form.resource.group)
            && any(&self.versions, &form.version)
            && self.resources.iter().any(|item| resource_matches(item, attempt, form))
    }
}

/// `pods`, `pods/status`, `pods/*`, `*`, `*/scale`, `*/*`.
fn resource_matches(item: &str, attempt: &Attempt<'_>, form: &Form) -> bool {
    let (resource, sub) = item.split_once('/').map_or((item, None), |(resource, sub)| (resource, Some(sub)));
    let sub_matches = match (sub, attempt.call.target.subresource.as_deref()) {
        (None, None) | (Some("*"), _) => true,
        (Some(wanted), Some(is)) => wanted == is,
        _ => false,
    };
    sub_matches && (resource == "*" || resource == &*form.resource.plural)
}

fn place(config: &Value) -> Place {
    if let Some(url) = config["url"].as_str() {
        let Some(rest) = url.strip_prefix("https://") else {
            return Place::Unusable(Unusable::Scheme(url.to_owned()));
        };
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse()),
            _ => (authority, Ok(443)),
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        return match port {
            Ok(port) if !host.is_empty() => Place::Url { host, port, path: path.to_owned() },
            _ => Place::Unusable(Unusable::Authority(url.to_owned())),
        };
    }
    let service = &config["service"];
    let text = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
    if text("name").is_empty() || text("namespace").is_empty() {
        return Place::Unusable(Unusable::NeitherOrHalf);
    }
    let port = service["port"].as_u64().map_or(Ok(443), u16::try_from);
    let path = service["path"].as_str().unwrap_or("/");
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    match port {
        Ok(port) => Place::Service { namespace: text("namespace"), name: text("name"), port, path },
        Err(_) => Place::Unusable(Unusable::Port),
    }
}

/// There is no cluster network: an `ExternalName`, then the first ready address of the Endpoints, then the cluster IP.
fn resolve(cluster: &Cluster, namespace: &str, name: &str, port: u16) -> Option<(String, u16)> {
    let catalogue = cluster.catalogue();
    let service = cluster.get(catalogue.by_full_name("services")?, namespace, name)?.value();
    let text = |pointer: &str| service.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let entry = ports.into_iter().flatten().find(|entry| entry["port"].as_u64() == Some(u64::from(port)));
    let target = entry.and_then(|entry| entry["targetPort"].as_u64()).and_then(|port| u16::try_from(port).ok());
    let target = target.unwrap_or(port);
    if text("/spec/type") == "ExternalName" {
        return Some((text("/spec/externalName"), target));
    }
    let endpoints = catalogue.by_full_name("endpoints").and_then(|resource| cluster.get(resource, namespace, name));
    if let Some(endpoints) = endpoints {
        let value = endpoints.value();
        let ip = value.pointer("/subsets/0/addresses/0/ip").and_then(Value::as_str).map(str::to_owned);
        let port = value.pointer("/subsets/0/ports/0/port").and_then(Value::as_u64);
        if let Some(ip) = ip {
            return Some((ip, port.and_then(|port| u16::try_from(port).ok()).unwrap_or(target)));
        }
    }
    let ip = text("/spec/clusterIP");
    debug_assert_eq!(object::meta(&service, "name"), name);
    (!ip.is_empty() && ip != "None").then_some((ip, port))
}
