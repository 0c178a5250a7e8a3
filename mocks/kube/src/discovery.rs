//! Discovery of groups, versions and resources.
//!
//! Owns the classic documents (`/api`, `/apis/…`) and the aggregated document (`apidiscovery.k8s.io/v2`, KEP-3352).

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::StatusCode;
use mock_objects::builtin;
use mock_objects::catalogue::{Catalogue, Resource, Served, version_priority};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answer::Answer;

/// The verbs of custom resources, in the order in which a real server lists them.
const VERBS_OF_CUSTOM: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const AGGREGATED: &[(&str, &str)] = &[
    ("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    ("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
];

/// API groups in alphabetical order, each with its versions; the preferred version is first.
type Groups = BTreeMap<Arc<str>, Vec<Arc<str>>>;

/// The answer for a discovery path; `None` for other paths.
pub(super) fn answer(path: &str, accept: &str, catalogue: &Catalogue) -> Option<Answer> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let value = match parts.as_slice() {
        [""] => paths(catalogue),
        ["api" | "apis"] => return Some(root(parts[0] == "api", accept, catalogue)),
        ["api", "v1"] => resource_list("", "v1", catalogue)?,
        ["apis", group] => {
            let (name, versions) = groups(catalogue).into_iter().find(|(name, _)| &**name == *group)?;
            let mut value = group_value(&name, &versions);
            value["kind"] = Value::from("APIGroup");
            value["apiVersion"] = Value::from("v1");
            value
        }
        ["apis", group, version] => resource_list(group, version, catalogue)?,
        _ => return None,
    };
    Some(Answer::value(StatusCode::OK, &value))
}

/// Whether a client accepts only a table or metadata, which do not exist for discovery documents.
pub(super) fn is_unfit(path: &str, accept: &str) -> bool {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let is_discovery = matches!(parts.as_slice(), ["api" | "apis"] | ["api", "v1"] | ["apis", _] | ["apis", _, _]);
    let mut forms = accept.split(',').filter(|media| !media.trim().is_empty()).peekable();
    let is_odd = |media: &str| ["as=Table", "as=PartialObjectMetadata"].iter().any(|form| media.contains(form));
    is_discovery && forms.peek().is_some() && forms.all(is_odd)
}

/// The paths that a real server lists at its root. Some clients request the list to check that the server is up.
fn paths(catalogue: &Catalogue) -> Value {
    let mut paths: Vec<String> =
        ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/"].map(str::to_owned).into();
    for (group, versions) in groups(catalogue).into_iter().filter(|(group, _)| !group.is_empty()) {
        paths.push(format!("/apis/{group}"));
        let mut versions: Vec<String> = versions.iter().map(|version| format!("/apis/{group}/{version}")).collect();
        versions.sort_unstable();
        paths.append(&mut versions);
    }
    let others = ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"];
    paths.extend(others.map(str::to_owned));
    json!({"paths": paths})
}

fn root(core: bool, accept: &str, catalogue: &Catalogue) -> Answer {
    if let Some((version, content_type)) = aggregated_form(accept) {
        let value = aggregated(core, version, catalogue);
        let mut answer = Answer::value(StatusCode::OK, &value);
        answer.content_type = content_type;
        return answer;
    }
    if core {
        let address = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "localhost"}]);
        let value = json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address});
        return Answer::value(StatusCode::OK, &value);
    }
    let groups: Vec<Value> = groups(catalogue)
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, versions)| group_value(name, versions))
        .collect();
    Answer::value(StatusCode::OK, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

fn aggregated_form(accept: &str) -> Option<(&'static str, &'static str)> {
    accept.split(',').find_map(|media| {
        let has = |part: &str| media.split(';').any(|given| given.trim() == part);
        if !has("as=APIGroupDiscoveryList") || !has("g=apidiscovery.k8s.io") {
            return None;
        }
        AGGREGATED.iter().find(|(version, _)| has(&format!("v={version}"))).copied()
    })
}

fn groups(catalogue: &Catalogue) -> Groups {
    let mut groups = Groups::new();
    for resource in catalogue.iter() {
        let versions = groups.entry(resource.group.clone()).or_default();
        for version in resource.versions.iter().filter(|version| version.active) {
            if !versions.contains(&version.name) {
                versions.push(version.name.clone());
            }
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|name| std::cmp::Reverse(version_priority(name)));
    }
    groups
}

fn group_value(name: &str, versions: &[Arc<str>]) -> Value {
    let version = |version: &Arc<str>| json!({"groupVersion": format!("{name}/{version}"), "version": &**version});
    let all: Vec<Value> = versions.iter().map(version).collect();
    let preferred = all.first().cloned().unwrap_or(Value::Null);
    json!({"name": name, "versions": all, "preferredVersion": preferred})
}

fn resource_list(group: &str, version: &str, catalogue: &Catalogue) -> Option<Value> {
    let mut resources = Vec::new();
    for (resource, served) in of_version(group, version, catalogue) {
        let verbs = verbs(resource);
        let mut entry = json!({
            "name": &*resource.plural, "singularName": &*resource.singular, "namespaced": resource.namespaced,
            "kind": &*resource.kind, "verbs": verbs,
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = texts(&resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = texts(&resource.categories);
        }
        if resource.allows("watch") {
            entry["storageVersionHash"] = Value::from(storage_version_hash(resource));
        }
        resources.push(entry);
        for (name, kind, (of_group, of_version), verbs) in subresources(resource, served) {
            let mut entry = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": kind, "verbs": verbs,
            });
            if !of_version.is_empty() {
                entry["group"] = Value::from(of_group);
                entry["version"] = Value::from(of_version);
            }
            resources.push(entry);
        }
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    }))
}

fn verbs(resource: &Resource) -> &'static [&'static str] {
    resource.published.map_or(VERBS_OF_CUSTOM, |published| published.verbs.as_slice())
}

fn aggregated(core: bool, form: &str, catalogue: &Catalogue) -> Value {
    let mut items = Vec::new();
    for (group, versions) in groups(catalogue).iter().filter(|(group, _)| group.is_empty() == core) {
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                let resources: Vec<Value> = of_version(group, version, catalogue)
                    .map(|(resource, served)| aggregated_resource(resource, served))
                    .collect();
                json!({"version": &**version, "freshness": "Current", "resources": resources})
            })
            .collect();
        let mut metadata = json!({});
        if !core {
            metadata["name"] = Value::from(&**group);
        }
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{form}"), "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(resource: &Resource, served: &Served) -> Value {
    let verbs = verbs(resource);
    let mut entry = json!({
        "resource": &*resource.plural,
        "responseKind": {"group": &*resource.group, "version": &*served.name, "kind": &*resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": &*resource.singular,
        "verbs": verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = texts(&resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = texts(&resource.categories);
    }
    let subresources: Vec<Value> = subresources(resource, served)
        .into_iter()
        .map(|(name, kind, (group, version), verbs)| {
            let (group, version) =
                if version.is_empty() { (&*resource.group, &*served.name) } else { (group, version) };
            let response = json!({"group": group, "version": version, "kind": kind});
            json!({"subresource": name, "responseKind": response, "verbs": verbs})
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = Value::from(subresources);
    }
    entry
}

/// `(name, kind, (group, version) of the kind if they differ from the resource's, verbs)`.
type Subresource = (&'static str, String, (&'static str, &'static str), &'static [&'static str]);

fn subresources(resource: &Resource, served: &Served) -> Vec<Subresource> {
    let of_custom = || {
        let parts: &[&str] = &["get", "patch", "update"];
        let status = served.status.then(|| ("status", resource.kind.to_string(), ("", ""), parts));
        let scale = served.scale.is_some().then(|| ("scale", "Scale".to_owned(), ("autoscaling", "v1"), parts));
        status.into_iter().chain(scale).collect()
    };
    let published = |one: &'static builtin::Subresource| {
        let of = one.api_version.rsplit_once('/').unwrap_or(("", one.api_version));
        (one.name, one.kind.to_owned(), of, one.verbs.as_slice())
    };
    resource.published.map_or_else(of_custom, |of| of.subresources.iter().map(published).collect())
}

fn of_version<'a>(
    group: &'a str,
    version: &'a str,
    catalogue: &'a Catalogue,
) -> impl Iterator<Item = (&'a Resource, &'a Served)> {
    catalogue.iter().filter(move |resource| &*resource.group == group).filter_map(move |resource| {
        let served = resource.version(version).filter(|version| version.active)?;
        Some((&**resource, served))
    })
}

/// A hash that depends on the stored version (`k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go`).
fn storage_version_hash(resource: &Resource) -> String {
    let (group, version) = resource.stored_api_version().split_once('/').unwrap_or(("", resource.stored_api_version()));
    let digest = Sha256::digest(format!("{group}/{version}/{}", resource.kind));
    BASE64.encode(&digest[..8])
}

fn texts(list: &[Arc<str>]) -> Value {
    list.iter().map(|text| Value::from(&**text)).collect()
}
