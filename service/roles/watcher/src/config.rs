//! The section `watcher`: the watched resources, and the actions on their changes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use regex::RegexBuilder;
use serde::Deserialize;
use service_core::config::quantity::Span;
use service_core::config::{Checker, Error, Section, YamlError, yaml};
use service_core::wire::keeps_secrets;
use service_watch::QueueKey;

use crate::filter::{Filter, On, Pattern};
use crate::meta::Wanted;

/// Maximum number of actions, because each action has metrics, a queue and tasks.
const ACTIONS_MAX: usize = 64;
/// Default time limit of a call to a hook, as in Pepr; after a timeout, the hook is called again.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest delay before a failed hook is called again.
const RETRY_LEAST: Duration = Duration::from_millis(100);
/// Default delays between attempts to call a hook: the delays between the five attempts of the UDS operator, as in the
/// section `packages`.
const RETRIES: [Duration; 4] =
    [Duration::from_secs(3), Duration::from_secs(9), Duration::from_secs(27), Duration::from_secs(81)];
/// Default number of objects that an action processes at one time, if their queue keys allow it.
const WORKERS: u64 = 4;
/// Maximum number of bytes of a compiled pattern; patterns for names need less.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The finalizer of actions whose configuration names no finalizer.
const FINALIZER: &str = "longhaul.dev/watcher";

#[derive(Debug, Clone, PartialEq)]
pub struct Watcher {
    /// Whether lists are streamed if the server supports streamed lists.
    pub streaming_lists: bool,
    /// The actions, in the order of the file.
    pub actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The action's name in messages, metrics and calls.
    pub id: String,
    pub resource: Resource,
    /// Selectors that the API server applies; equal for all actions on one resource.
    pub selectors: Selectors,
    /// The filter for events; a changed configuration applies at once.
    pub filter: Filter,
    pub act: Act,
}

/// A resource of the API server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The resource's name, such as `configmaps` or `packages.longhaul.dev`.
    pub name: String,
    /// The API path of the objects in all namespaces.
    pub path: String,
}

/// Selectors that the API server applies.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selectors {
    pub labels: Option<String>,
    pub fields: Option<String>,
}

/// How an action handles an event that matches its filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// The event is sent to a receiver. Without a receiver, the event is sent to the witness of this process, or else
    /// written to the log.
    Watch(Option<Receiver>),
    /// The latest state of the object is sent to a hook.
    Reconcile(Work),
    /// The deletion of the object waits until a hook agrees.
    Finalize(Work, String),
}

/// A receiver of events or a hook, called over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Receiver {
    pub url: String,
    /// PEM file with the authorities that are trusted for the server instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// A file with a token for `Authorization: Bearer`; the file is read for each call.
    pub token_file: Option<PathBuf>,
    pub timeout: Duration,
}

/// How objects are sent to a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub hook: Receiver,
    /// How objects are grouped in the queue; objects of one group are sent one after the other.
    pub queue: QueueKey,
    pub workers: usize,
    pub retries: Vec<Duration>,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    watcher: Option<RawWatcher>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawWatcher {
    streaming_lists: Option<bool>,
    actions: Vec<RawAction>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAction {
    id: Option<String>,
    resource: String,
    label_selector: Option<String>,
    field_selector: Option<String>,
    on: Option<Vec<RawOn>>,
    #[serde(default)]
    namespaces: Vec<String>,
    namespace_regex: Option<String>,
    name: Option<String>,
    name_regex: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    deleting: bool,
    action: RawAct,
    url: Option<String>,
    ca_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    timeout: Option<Span>,
    queue: Option<QueueKey>,
    workers: Option<u64>,
    retries: Option<Vec<Span>>,
    finalizer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawOn {
    Created,
    Updated,
    Deleted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawAct {
    Watch,
    Reconcile,
    Finalize,
}

impl Section for Watcher {
    const KEYS: &'static [&'static str] = &["watcher"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        let Some(raw) = raw.watcher else { return Ok(None) };
        check.within("watcher.actions", raw.actions.len() as u64, 1, ACTIONS_MAX as u64)?;
        let each = raw.actions.into_iter().enumerate();
        let actions = each.map(|(at, one)| action(check, at, one)).collect::<Result<Vec<_>, _>>()?;
        for (at, one) in actions.iter().enumerate() {
            let before = &actions[..at];
            if before.iter().any(|other| other.id == one.id) {
                let what = format!("two actions are called `{}`: give each its own `id`", one.id);
                return Err(check.value("watcher.actions", what));
            }
            if before.iter().any(|other| other.resource == one.resource && other.selectors != one.selectors) {
                let what =
                    "differs from that of another action of the same resource: write the same, or filter by `labels`";
                return Err(check.value(format!("watcher.actions[{at}].labelSelector"), what));
            }
        }
        for (at, one) in actions.iter().enumerate() {
            let Act::Finalize(_, finalizer) = &one.act else { continue };
            if one.selectors != Selectors::default() {
                let what = "and `fieldSelector` have no place beside `action: finalize`: what leaves them would keep its finalizer for ever; \
                            filter by `labels`";
                return Err(check.value(format!("watcher.actions[{at}].labelSelector"), what));
            }
            let is_same = |other: &Action| {
                matches!(&other.act, Act::Finalize(_, theirs) if theirs == finalizer)
                    && other.resource.name == one.resource.name
            };
            if actions[..at].iter().any(is_same) {
                let what =
                    "is that of another action of the same resource, whose hook would take it off: give each its own";
                return Err(check.value(format!("watcher.actions[{at}].finalizer"), what));
            }
        }
        Ok(Some(Self { streaming_lists: raw.streaming_lists.unwrap_or(true), actions }))
    }

    /// Takes the new filters of `fresh` if no other setting of the actions has changed.
    fn take(&mut self, fresh: &Self) -> Vec<&'static str> {
        if !self.differs_by_filters_only(fresh) {
            return Vec::new();
        }
        self.actions.clone_from(&fresh.actions);
        vec!["watcher"]
    }
}

impl Watcher {
    /// The metadata fields that actions on this resource with these selectors need.
    pub fn wanted(&self, resource: &Resource, selectors: &Selectors) -> Wanted {
        let mut wanted = Wanted::default();
        let is_on = |action: &&Action| action.resource == *resource && action.selectors == *selectors;
        for action in self.actions.iter().filter(is_on) {
            action.filter.add_to(&mut wanted);
            match &action.act {
                Act::Finalize(_, finalizer) => drop(wanted.finalizers.insert(finalizer.as_str().into())),
                Act::Reconcile(_) => wanted.last = true,
                Act::Watch(_) => {}
            }
        }
        wanted
    }

    /// Whether only filters differ in `fresh`, and the new filters need only fields that are kept in memory.
    pub fn differs_by_filters_only(&self, fresh: &Self) -> bool {
        let same = |(one, other): (&Action, &Action)| Action { filter: other.filter.clone(), ..one.clone() } == *other;
        self != fresh
            && self.streaming_lists == fresh.streaming_lists
            && self.actions.len() == fresh.actions.len()
            && self.actions.iter().zip(&fresh.actions).all(same)
            && fresh.actions.iter().all(|one| one.filter.is_covered(&self.wanted(&one.resource, &one.selectors)))
    }
}

fn action(check: &Checker<'_>, at: usize, raw: RawAction) -> Result<Action, Error> {
    let of = |key: &str| format!("watcher.actions[{at}].{key}");
    let filter = filter(check, &of, &raw)?;
    let resource = resource(&raw.resource).ok_or_else(|| {
        check.value(of("resource"), "is no resource: write it as `configmaps/v1` or `packages.longhaul.dev/v1alpha1`")
    })?;
    let act = act(check, &of, &raw)?;
    Ok(Action {
        id: raw.id.unwrap_or_else(|| format!("{}-{at}", resource.name)),
        resource,
        selectors: Selectors { labels: raw.label_selector, fields: raw.field_selector },
        filter,
        act,
    })
}

fn act(check: &Checker<'_>, of: &dyn Fn(&str) -> String, raw: &RawAction) -> Result<Act, Error> {
    let watches = raw.action == RawAct::Watch;
    let hooked =
        [("queue", raw.queue.is_some()), ("workers", raw.workers.is_some()), ("retries", raw.retries.is_some())];
    if let Some((key, _)) = hooked.into_iter().find(|(_, there)| watches && *there) {
        return Err(check.value(of(key), "is of hooks: events of `watch` are told in their order until they are taken"));
    }
    if raw.finalizer.is_some() && raw.action != RawAct::Finalize {
        return Err(check.value(of("finalizer"), "is of `action: finalize`"));
    }
    let receiver = raw.url.as_ref().map(|url| receiver(check, of, raw, url)).transpose()?;
    if watches {
        return Ok(Act::Watch(receiver));
    }
    let hook = receiver.ok_or_else(|| check.value(of("url"), "is missing: the address of the hook"))?;
    let retries = match &raw.retries {
        Some(retries) => retries.iter().map(|span| span.0).collect(),
        None => RETRIES.to_vec(),
    };
    check.within(&of("retries"), retries.len() as u64, 0, 100)?;
    if retries.iter().any(|wait| *wait < RETRY_LEAST) {
        return Err(check.value(
            of("retries"),
            "has a wait below 100ms, which would keep a hook busy with failures: write longer ones",
        ));
    }
    let workers = check.within(&of("workers"), raw.workers.unwrap_or(WORKERS), 1, 256)?;
    let work = Work { hook, queue: raw.queue.unwrap_or_default(), workers, retries };
    if raw.action == RawAct::Reconcile {
        return Ok(Act::Reconcile(work));
    }
    if raw.on.is_some() {
        return Err(
            check.value(of("on"), "has no meaning beside `action: finalize`: the hook is called when an object goes")
        );
    }
    let finalizer = raw.finalizer.clone().unwrap_or_else(|| FINALIZER.to_owned());
    let is_qualified = finalizer.split_once('/').is_some_and(|(domain, name)| {
        let text = |part: &str| {
            !part.is_empty()
                && part.len() <= 253
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        text(domain) && text(name)
    });
    if !is_qualified {
        return Err(check.value(of("finalizer"), "is no finalizer: write it as `example.com/name`"));
    }
    Ok(Act::Finalize(work, finalizer))
}

fn receiver(check: &Checker<'_>, of: &dyn Fn(&str) -> String, raw: &RawAction, url: &str) -> Result<Receiver, Error> {
    let is_address = url.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
    });
    if !is_address {
        return Err(check.value(of("url"), "is no address: write it as https://host:port/path"));
    }
    if raw.token_file.is_some() && !is_private(url) {
        let what =
            "would show the token of `tokenFile` to everybody on the way: write https://, or leave `tokenFile` out";
        return Err(check.value(of("url"), what));
    }
    let joined = |path: &PathBuf| check.folder.join(path);
    Ok(Receiver {
        url: url.to_owned(),
        ca_file: raw.ca_file.as_ref().map(joined),
        token_file: raw.token_file.as_ref().map(joined),
        timeout: check.positive(&of("timeout"), raw.timeout, TIMEOUT)?,
    })
}

/// Whether a token that is sent to this URL stays secret.
fn is_private(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|uri| keeps_secrets(uri.scheme_str() == Some("https"), uri.host().unwrap_or_default()))
}

fn filter(check: &Checker<'_>, of: &dyn Fn(&str) -> String, raw: &RawAction) -> Result<Filter, Error> {
    let pattern = |key: &str, text: &Option<String>| {
        let compiled = text.as_ref().map(|text| {
            let built = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
            built.map(Pattern).map_err(|error| check.value(of(key), error.to_string().replace('\n', " ")))
        });
        compiled.transpose()
    };
    if raw.on.as_ref().is_some_and(Vec::is_empty) {
        return Err(check.value(of("on"), "is empty: write some of created, updated, deleted, or leave it out for all"));
    }
    let on = |kind| raw.on.as_ref().is_none_or(|kinds| kinds.contains(&kind));
    Ok(Filter {
        on: On { created: on(RawOn::Created), updated: on(RawOn::Updated), deleted: on(RawOn::Deleted) },
        namespaces: raw.namespaces.clone(),
        namespace_regex: pattern("namespaceRegex", &raw.namespace_regex)?,
        name: raw.name.clone(),
        name_regex: pattern("nameRegex", &raw.name_regex)?,
        labels: raw.labels.clone(),
        annotations: raw.annotations.clone(),
        deleting: raw.deleting,
    })
}

/// Parses `plural/version` (core group) or `plural.group/version`.
fn resource(text: &str) -> Option<Resource> {
    let (name, version) = text.split_once('/')?;
    let part = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    if !part(version) || !name.split('.').all(part) {
        return None;
    }
    let path = match name.split_once('.') {
        Some((plural, group)) => format!("/apis/{group}/{version}/{plural}"),
        None => format!("/api/{version}/{name}"),
    };
    Some(Resource { name: name.to_owned(), path })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use service_core::config::{Config, Kind, kind};

    use super::*;

    const KINDS: &[Kind] = &[kind::<Watcher>()];

    fn read(text: &str) -> Result<Watcher, String> {
        let config = Config::parse(text, Path::new("/etc/w.yaml"), KINDS).map_err(|error| error.to_string())?;
        Ok(config.find::<Watcher>().ok_or("no section")?.clone())
    }

    fn refused(action: &str) -> String {
        read(&format!("watcher: {{actions: [{action}]}}")).unwrap_err()
    }

    #[test]
    fn resources_become_paths() {
        let path = |text| resource(text).map(|resource| resource.path);
        assert_eq!(path("configmaps/v1").as_deref(), Some("/api/v1/configmaps"));
        assert_eq!(path("packages.longhaul.dev/v1alpha1").as_deref(), Some("/apis/longhaul.dev/v1alpha1/packages"));
        for wrong in ["configmaps", "ConfigMap/v1", "a//v1", "configmaps/v1/x", "../v1", "a.b/v1?x", ".b/v1"] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place_and_remedy() {
        let hook = "resource: configmaps/v1, url: \"http://h/x\"";
        for (action, expected) in [
            ("{resource: configmaps, action: watch}", "watcher.actions[0].resource: is no resource: write it as"),
            ("{resource: configmaps/v1, action: tell}", "unknown value `tell`"),
            ("{resource: configmaps/v1, action: watch, nameRegex: \"(\"}", "watcher.actions[0].nameRegex: "),
            ("{resource: configmaps/v1, action: watch, on: []}", "watcher.actions[0].on: is empty"),
            ("{resource: configmaps/v1, action: reconcile}", "watcher.actions[0].url: is missing"),
            ("{resource: configmaps/v1, action: watch, url: \"ftp://x\"}", "watcher.actions[0].url: is no address"),
            (
                "{resource: configmaps/v1, action: watch, url: \"http://h/x\", tokenFile: t}",
                "watcher.actions[0].url: would show the token",
            ),
            ("{resource: configmaps/v1, action: watch, workers: 2}", "watcher.actions[0].workers: is of hooks"),
            (&format!("{{{hook}, action: finalize, on: [deleted]}}"), "watcher.actions[0].on: has no meaning"),
            (&format!("{{{hook}, action: finalize, finalizer: mine}}"), "is no finalizer: write it as"),
            (&format!("{{{hook}, action: reconcile, finalizer: a.b/c}}"), "is of `action: finalize`"),
            (&format!("{{{hook}, action: finalize, labelSelector: a=b}}"), "what leaves them would keep its finalizer"),
            (
                &format!("{{{hook}, id: a, action: finalize}}, {{{hook}, id: b, action: finalize}}"),
                "watcher.actions[1].finalizer: is that of another action",
            ),
            (&format!("{{{hook}, action: reconcile, retries: [0s]}}"), "watcher.actions[0].retries: has a wait below"),
            (
                "{resource: pods/v1, action: watch}, {resource: pods/v1, labelSelector: a=b, action: watch}",
                "watcher.actions[1].labelSelector: differs",
            ),
            (
                "{id: a, resource: pods/v1, action: watch}, {id: a, resource: nodes/v1, action: watch}",
                "two actions are called `a`",
            ),
        ] {
            let error = refused(action);
            assert!(error.contains(expected), "{action}: {error}");
        }
    }

    #[test]
    fn a_token_goes_over_tls_or_stays_on_the_machine() {
        for url in ["https://h/x", "http://127.0.0.1:1/x", "http://[::1]:1/x", "http://localhost/x"] {
            let action = format!("{{resource: pods/v1, action: watch, url: \"{url}\", tokenFile: t}}");
            assert!(read(&format!("watcher: {{actions: [{action}]}}")).is_ok(), "{url}");
        }
    }

    #[test]
    fn filters_are_taken_while_running_and_nothing_else() {
        let text = |filter: &str, url: &str| {
            read(&format!("watcher: {{actions: [{{resource: pods/v1, action: watch, url: \"{url}\"{filter}}}]}}"))
                .unwrap()
        };
        let mut running = text("", "http://h/");
        let fresh = text(", nameRegex: \"^a\"", "http://h/");
        assert_eq!(running.take(&fresh), ["watcher"]);
        assert_eq!(running, fresh);
        assert_eq!(running.take(&text(", nameRegex: \"^a\"", "http://h/")), [""; 0]);
        assert_eq!(running.take(&text("", "http://other/")), [""; 0]);
        assert_eq!(running.take(&text(", labels: {a: b}", "http://h/")), [""; 0], "no label is kept");
        let mut labelled = text(", labels: {a: b, c: d}", "http://h/");
        assert_eq!(labelled.take(&text(", labels: {a: other}", "http://h/")), ["watcher"]);
        assert_eq!(running, fresh);
    }
}
