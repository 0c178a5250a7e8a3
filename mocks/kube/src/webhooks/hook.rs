//! One configured webhook: its rules and its address.
//!
//! Parses configurations of webhooks and finds their errors. This module must not know requests.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use go_rules::admission::Version as ReviewVersion;
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use mock_cel::Program;
use mock_objects::catalogue::Resource;
use mock_objects::kinds::Meaning;
use mock_objects::selector::{Requirement, from_label_selector};
use mock_objects::status::Cause;
use mock_store::Version;
use serde_json::Value;

use super::conditions::{self, FailurePolicy};

/// The default of a webhook's `timeoutSeconds`, as in the API.
const TIMEOUT_DEFAULT_S: u64 = 10;
const TIMEOUT_MAX_S: u64 = 30;

/// All configured webhooks, in the order in which the server calls them.
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
    /// The first review version in the webhook's list that this server supports.
    pub review: ReviewVersion,
    pub matches: Matches,
    pub place: WebhookAddress,
    pub ca_pem: String,
}

/// The requests that a webhook or a policy wants to see.
#[derive(Debug)]
pub(crate) struct Matches {
    pub policy: MatchPolicy,
    /// The rules, of which at least one must match the request. `None` matches all requests; only bindings may have no
    /// rules.
    pub rules: Option<Vec<Rule>>,
    pub excluded: Vec<Rule>,
    pub namespaces: Vec<Requirement>,
    pub objects: Vec<Requirement>,
}

/// Whether a rule also matches requests through other versions and APIs of the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchPolicy {
    Exact,
    Equivalent,
}

/// The configured address of a webhook.
#[derive(Debug)]
pub(crate) enum WebhookAddress {
    Url { host: String, port: u16, path: String },
    Service { namespace: String, name: String, port: u16, path: String },
    Unusable(Unusable),
}

/// Why the address in a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("url \"{0}\" must begin with https://")]
    Scheme(String),
    #[error("url \"{0}\" has no host or port")]
    Authority(String),
    #[error("exactly one of url or service is required")]
    NeitherOrHalf,
    #[error("service.port is not a port")]
    Port,
}

/// The requests that a webhook wants to see.
#[derive(Debug)]
pub(crate) struct Rule {
    pub operations: Vec<String>,
    pub groups: Vec<String>,
    pub versions: Vec<String>,
    pub resources: Vec<String>,
    pub scope: String,
    /// Names of objects that the rule matches; an empty list matches all names.
    pub names: Vec<String>,
}

/// Whether a resource is one of the two kinds of webhook configurations.
pub(crate) fn is_configuration(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::Webhooks
}

/// Refuses webhook settings that this server does not support, so that no user relies on them.
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
        if let WebhookAddress::Unusable(why) = place(&hook["clientConfig"]) {
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
}

impl Hook {
    fn read(raw: &Value, mutating: bool) -> Self {
        let text = |key: &str| raw[key].as_str().unwrap_or_default();
        let timeout_s = raw["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_DEFAULT_S).clamp(1, TIMEOUT_MAX_S);
        Self {
            name: text("name").to_owned(),
            mutating,
            failure_policy: if text("failurePolicy") == "Ignore" { FailurePolicy::Ignore } else { FailurePolicy::Fail },
            timeout: Duration::from_secs(timeout_s),
            reinvoke: text("reinvocationPolicy") == "IfNeeded",
            conditions: conditions::read(&raw["matchConditions"]),
            review: review_versions(raw).find_map(ReviewVersion::of).unwrap_or(ReviewVersion::V1),
            matches: Matches { rules: Some(Rule::list(&raw["rules"])), ..Matches::read(raw) },
            place: place(&raw["clientConfig"]),
            ca_pem: authority(&raw["clientConfig"]),
        }
    }

    pub fn path_and_query(&self) -> String {
        self.place.path_and_query(self.timeout)
    }

    /// The URL as error messages show it.
    pub fn shown_url(&self) -> String {
        self.place.shown(&self.path_and_query())
    }
}

impl Matches {
    /// Reads a policy's or binding's settings for matching requests.
    pub fn read(raw: &Value) -> Self {
        let is_exact = raw["matchPolicy"] == "Exact";
        Self {
            policy: if is_exact { MatchPolicy::Exact } else { MatchPolicy::Equivalent },
            rules: Some(Rule::list(&raw["resourceRules"])).filter(|rules| !rules.is_empty()),
            excluded: Rule::list(&raw["excludeResourceRules"]),
            namespaces: from_label_selector(&raw["namespaceSelector"]).unwrap_or_default(),
            objects: from_label_selector(&raw["objectSelector"]).unwrap_or_default(),
        }
    }
}

impl Rule {
    fn list(raw: &Value) -> Vec<Self> {
        raw.as_array().into_iter().flatten().map(Self::read).collect()
    }

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
            names: list("resourceNames"),
        }
    }
}

impl WebhookAddress {
    /// The path with the query `?timeout=` in whole seconds, as a real server sends it.
    pub fn path_and_query(&self, timeout: Duration) -> String {
        let path = match self {
            Self::Url { path, .. } | Self::Service { path, .. } => path.as_str(),
            Self::Unusable(_) => "/",
        };
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("{path}{sign}timeout={}s", timeout.as_secs())
    }

    /// The URL as error messages show it.
    pub fn shown(&self, path_and_query: &str) -> String {
        match self {
            Self::Url { host, port, .. } => format!("https://{host}:{port}{path_and_query}"),
            Self::Service { namespace, name, port, .. } => {
                format!("https://{name}.{namespace}.svc:{port}{path_and_query}")
            }
            Self::Unusable(_) => String::new(),
        }
    }
}

/// The certificate authority in a `clientConfig`, as PEM; empty if there is none.
pub(crate) fn authority(config: &Value) -> String {
    let ca = config["caBundle"].as_str().unwrap_or_default();
    BASE64.decode(ca).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The address of a webhook in its `clientConfig`.
pub(crate) fn place(config: &Value) -> WebhookAddress {
    if let Some(url) = config["url"].as_str() {
        let uri: Uri = url.parse().unwrap_or_default();
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return WebhookAddress::Unusable(Unusable::Scheme(url.to_owned()));
        }
        let (authority, host) = (uri.authority().map_or("", Authority::as_str), uri.host().unwrap_or_default());
        let port = uri.port_u16().or_else(|| authority.ends_with(host).then_some(443));
        let host = host.trim_matches(['[', ']']).to_owned();
        let path = cleaned(uri.path_and_query().map_or("/", PathAndQuery::as_str));
        return match port {
            Some(port) if !host.is_empty() => WebhookAddress::Url { host, port, path },
            _ => WebhookAddress::Unusable(Unusable::Authority(url.to_owned())),
        };
    }
    let service = &config["service"];
    let text = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
    if text("name").is_empty() || text("namespace").is_empty() {
        return WebhookAddress::Unusable(Unusable::NeitherOrHalf);
    }
    let port = service["port"].as_u64().map_or(Ok(443), u16::try_from);
    let path = cleaned(service["path"].as_str().unwrap_or("/"));
    match port {
        Ok(port) => WebhookAddress::Service { namespace: text("namespace"), name: text("name"), port, path },
        Err(_) => WebhookAddress::Unusable(Unusable::Port),
    }
}

/// A path after client-go's `path.Join`: without empty segments, `.`, `..` and a slash at the end. A query stays
/// unchanged.
fn cleaned(path: &str) -> String {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = format!("/{}", parts.join("/"));
    query.map_or(path.clone(), |query| format!("{path}?{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path of a webhook with a double slash is cleaned before the request: envtest writes
    /// `https://127.0.0.1:PORT//path`, and Go's server redirects such paths.
    #[test]
    fn a_path_is_cleaned_before_it_is_asked() {
        for (written, asked) in
            [("//failing", "/failing"), ("a/./b/", "/a/b"), ("/a/../b?c=/", "/b?c=/"), ("", "/"), ("/..", "/")]
        {
            assert_eq!(cleaned(written), asked, "{written}");
        }
    }
}
