//! The target and the options of a request, parsed from its path and query.
//!
//! Owns the URL grammar of the Kubernetes API ("Kubernetes API concepts", resource URIs). This module must not know
//! which resources exist, and never panics on outside data.

mod duration;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use mock_objects::status::Failure;

/// A parsed path below `/api/v1` or `/apis/GROUP/VERSION`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Target {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub plural: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
}

/// The options in a query string, decoded; an absent option is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the API's own independent switches")]
pub(crate) struct Query {
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub resource_version: Option<String>,
    pub resource_version_match: Option<String>,
    pub timeout_s: Option<u64>,
    pub limit: Option<u64>,
    pub continue_token: Option<String>,
    pub label_selector: Option<String>,
    pub field_selector: Option<String>,
    pub dry_run: bool,
    /// The value of `dryRun` if it is not `All`.
    pub dry_run_unknown: Option<String>,
    pub field_manager: Option<String>,
    pub field_validation: Option<String>,
    pub force: bool,
    pub propagation_policy: Option<String>,
    pub grace_period_s: Option<u64>,
    /// The uid that an object must have to be deleted.
    pub uid: Option<String>,
    pub include_object: Option<String>,
}

impl Target {
    /// Parses a path; `None` if the path is not that of a resource.
    pub fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').map(decode);
        let root = parts.next()?;
        let group = match &*root {
            "api" => String::new(),
            "apis" => parts.next()?.into_owned(),
            _ => return None,
        };
        let version = parts.next()?.into_owned();
        let rest: Vec<Cow<'_, str>> = parts.collect();
        let mut target = Self { group, version, ..Self::default() };
        let words: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
        match words.as_slice() {
            // `namespaces` is a resource itself and the prefix of namespaced ones.
            ["namespaces", name] => target.object("namespaces", name),
            ["namespaces", name, sub @ ("status" | "finalize")] => {
                target.object("namespaces", name);
                target.subresource = Some((*sub).to_owned());
            }
            ["namespaces", namespace, plural, more @ ..] => {
                target.namespace = Some((*namespace).to_owned());
                target.take(plural, more);
            }
            [plural, more @ ..] => target.take(plural, more),
            [] => return None,
        }
        Some(target)
    }

    fn object(&mut self, plural: &str, name: &str) {
        plural.clone_into(&mut self.plural);
        self.name = Some(name.to_owned());
    }

    fn take(&mut self, plural: &str, more: &[&str]) {
        plural.clone_into(&mut self.plural);
        match more {
            [] => {}
            [name] => self.name = Some((*name).to_owned()),
            // Nothing exists below a subresource; the handler says so.
            [name, subresource @ ..] => {
                self.name = Some((*name).to_owned());
                self.subresource = Some(subresource.join("/"));
            }
        }
    }
}

impl Query {
    /// Parses a query string. Unknown keys are ignored, as in a real server; invalid values are refused.
    pub fn parse(raw: &str) -> Result<Self, Failure> {
        let mut query = Self::default();
        check_deadline(raw)?;
        for (key, value) in pairs(raw) {
            query.set(&key, value)?;
        }
        Ok(query)
    }

    fn set(&mut self, key: &str, value: String) -> Result<(), Failure> {
        match key {
            "watch" => self.watch = switch(&value),
            "allowWatchBookmarks" => self.allow_watch_bookmarks = switch(&value),
            "sendInitialEvents" => self.send_initial_events = Some(switch(&value)),
            "resourceVersion" => self.resource_version = filled(value),
            "resourceVersionMatch" => self.resource_version_match = filled(value),
            "timeoutSeconds" => self.timeout_s = number(key, &value)?.filter(|&s| s > 0),
            "limit" => self.limit = number(key, &value)?.filter(|&limit| limit > 0),
            "continue" => self.continue_token = filled(value),
            "labelSelector" => self.label_selector = filled(value),
            "fieldSelector" => self.field_selector = filled(value),
            "dryRun" if value == "All" => self.dry_run = true,
            "dryRun" => self.dry_run_unknown = filled(value),
            "fieldManager" => self.field_manager = filled(value),
            "fieldValidation" => self.field_validation = filled(value),
            "force" => self.force = switch(&value),
            "propagationPolicy" => self.propagation_policy = filled(value),
            "gracePeriodSeconds" => self.grace_period_s = number(key, &value)?,
            "uid" => self.uid = filled(value),
            "includeObject" => self.include_object = filled(value),
            _ => {}
        }
        Ok(())
    }
}

/// Refuses a request whose parameter `timeout` is not a duration. For a watch, which ignores the parameter, the value
/// is not checked.
pub(crate) fn check_deadline(raw: &str) -> Result<(), Failure> {
    if !raw.contains("timeout=") {
        return Ok(());
    }
    let pairs = pairs(raw);
    let is_watch = pairs.iter().rev().find(|(key, _)| key == "watch").is_some_and(|(_, value)| switch(value));
    let timeout = pairs.iter().find(|(key, value)| key == "timeout" && !value.is_empty());
    match timeout.filter(|_| !is_watch).and_then(|(_, timeout)| duration::wrong(timeout)) {
        Some(wrong) => Err(Failure::bad_request(format!("invalid timeout specified in the request URL - {wrong}"))),
        None => Ok(()),
    }
}

/// The verb of a request as authorization names it; `None` for a method that the API does not have.
pub(crate) fn verb_of(method: &str, watch: bool, named: bool) -> Option<&'static str> {
    Some(match (method, named) {
        ("GET", false) if watch => "watch",
        ("GET", false) => "list",
        ("GET", true) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", false) => "deletecollection",
        ("DELETE", true) => "delete",
        _ => return None,
    })
}

/// The keys and values of a query string, decoded.
pub(crate) fn pairs(raw: &str) -> Vec<(String, String)> {
    let pairs = raw.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key).into_owned(), decode(&value.replace('+', " ")).into_owned())
        })
        .collect()
}

fn switch(value: &str) -> bool {
    // Go's conversion: any value but a spelled-out false is true, also the empty one.
    !matches!(value, "false" | "0" | "False" | "FALSE" | "f" | "F")
}

fn filled(value: String) -> Option<String> {
    Some(value).filter(|value| !value.is_empty())
}

fn number(key: &str, value: &str) -> Result<Option<u64>, Failure> {
    if value.is_empty() {
        return Ok(None);
    }
    let wrong = || Failure::bad_request(format!("strconv.ParseInt: parsing \"{value}\" of {key}: invalid syntax"));
    // Negative numbers count as 0.
    value.parse::<i64>().map(|number| Some(u64::try_from(number).unwrap_or(0))).map_err(|_| wrong())
}

fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(path: &str) -> [String; 6] {
        let t = Target::parse(path).unwrap();
        let or = |value: Option<String>| value.unwrap_or_default();
        [t.group, t.version, or(t.namespace), t.plural, or(t.name), or(t.subresource)]
    }

    #[test]
    fn the_url_grammar_of_the_api() {
        let cases = [
            ("/api/v1/pods", ["", "v1", "", "pods", "", ""]),
            ("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]),
            ("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]),
            ("/api/v1/namespaces/a/finalize", ["", "v1", "", "namespaces", "a", "finalize"]),
            ("/api/v1/namespaces/a/pods", ["", "v1", "a", "pods", "", ""]),
            ("/api/v1/namespaces/a/pods/b/status", ["", "v1", "a", "pods", "b", "status"]),
            ("/api/v1/namespaces/a/pods/b/c/d", ["", "v1", "a", "pods", "b", "c/d"]),
            ("/apis/apps/v1/deployments", ["apps", "v1", "", "deployments", "", ""]),
            ("/apis/x.dev/v1/namespaces/a/packages/b%2Fc", ["x.dev", "v1", "a", "packages", "b/c", ""]),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x",
                ["rbac.authorization.k8s.io", "v1", "", "clusterroles", "system:x", ""],
            ),
        ];
        for (path, [group, version, namespace, plural, name, sub]) in cases {
            assert_eq!(target(path), [group, version, namespace, plural, name, sub], "{path}");
        }
        for not in ["/", "/api", "/api/v1", "/apis/apps", "/healthz"] {
            assert_eq!(Target::parse(not), None, "{not}");
        }
    }

    #[test]
    fn a_query_is_decoded_and_checked() {
        let query =
            Query::parse("watch&labelSelector=a%3Db%2Cc&limit=5&continue=&timeoutSeconds=0&dryRun=All").unwrap();
        assert!(query.watch && query.dry_run);
        assert_eq!(query.label_selector.as_deref(), Some("a=b,c"));
        assert_eq!((query.limit, query.continue_token, query.timeout_s), (Some(5), None, None));
        let wrong = Query::parse("timeout=nonsense").unwrap_err();
        let why = "invalid timeout specified in the request URL - time: invalid duration \"nonsense\"";
        assert_eq!((wrong.code.as_u16(), wrong.message.as_str()), (400, why));
        assert!(Query::parse("timeout=32s").is_ok() && Query::parse("timeout=x&watch=1").is_ok());
        assert!(Query::parse("limit=many").is_err());
        assert_eq!(Query::parse("dryRun=Some").unwrap().dry_run_unknown.as_deref(), Some("Some"));
        assert_eq!(Query::parse("limit=-1").unwrap().limit, None);
    }

    proptest! {
        /// Parsing any path and query ends with a value or an error.
        #[test]
        fn parsing_never_panics(path in "\\PC{0,80}", query in "\\PC{0,80}") {
            let _ = Target::parse(&path);
            let _ = Query::parse(&query);
        }
    }
}
