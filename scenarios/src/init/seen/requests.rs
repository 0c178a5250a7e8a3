//! The kinds that a program watches, its refused requests, and its Lease. Does no I/O.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Ask, Wrote};
use crate::scenario::Mount;

/// A field of `spec` at the beginning of an error, as k8s.io/apimachinery writes it: `spec.sources[0]: Invalid value:
/// …`.
static CAUSE: LazyLock<Regex> = LazyLock::new(|| {
    crate::init::pattern(
        r"(?:^|[ \[])(spec(?:\.\w+|\[\d+\])*): (?:Invalid value|Required value|Forbidden|Unsupported value|Duplicate value|Too few)",
    )
});
const FIELDS_MAX: usize = 4;

const REFUSALS: usize = 20;
/// Resources that a program uses for itself (leader election, events) and not for its work.
const ASIDE: [&str; 3] = ["leases.coordination.k8s.io", "events", "events.events.k8s.io"];

/// A kind that the program lists or watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Followed {
    pub(crate) resource: String,
    pub(crate) is_watched: bool,
}

/// The program's requests that were refused for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) verb: &'static str,
    pub(crate) resource: String,
    pub(crate) status: u16,
    pub(crate) why: String,
    pub(crate) times: u32,
}

/// The Secrets (path and name) that the program's manifests mount and that the program itself writes, each in the
/// namespace of the write. Programs that rotate their own certificates wait until these Secrets are mounted. `given`
/// are Secrets that other clients created.
pub(crate) fn filled(
    secrets: &[(String, String)],
    asks: &[Ask],
    wrote: &[Wrote],
    given: &[Value],
) -> BTreeMap<PathBuf, Mount> {
    let changed = |name: &str| {
        let own = asks.iter().filter(|ask| ask.resource == "secrets" && ask.status < 300);
        own.filter(|ask| matches!(ask.verb, "update" | "patch") && ask.name.as_deref() == Some(name))
            .find_map(|ask| ask.namespace.clone())
    };
    let made = |name: &str| {
        let is_given = given.iter().any(|object| object["kind"] == "Secret" && object["metadata"]["name"] == name);
        let creates = |namespace: &Option<String>| {
            asks.iter().any(|ask| {
                ask.verb == "create" && ask.resource == "secrets" && ask.status < 300 && ask.namespace == *namespace
            })
        };
        let is_it =
            |one: &&Wrote| one.is_new && one.resource == "secrets" && one.name == name && creates(&one.namespace);
        wrote.iter().filter(|_| !is_given).find(is_it).and_then(|one| one.namespace.clone())
    };
    let written = secrets.iter().filter_map(|(path, name)| {
        let namespace = changed(name).or_else(|| made(name))?;
        Some((PathBuf::from(path), Mount::Secret(format!("{namespace}/{name}"))))
    });
    written.collect()
}

/// The fields of `spec` in the message of a refusal, each with the part of the message about it.
pub(crate) fn causes(why: &str) -> Vec<(String, String)> {
    let found: Vec<_> =
        CAUSE.captures_iter(why).filter_map(|found| Some((found.get(0)?.start(), found.get(1)?))).collect();
    let ends = found.iter().skip(1).map(|(start, _)| *start).chain([why.len()]);
    let mut causes: Vec<(String, String)> = Vec::new();
    for ((_, field), end) in found.iter().zip(ends) {
        let about = why[field.end()..end].trim_start_matches(": ").trim_end_matches([',', ' ', ']']);
        if causes.last().is_none_or(|(last, _)| last != field.as_str()) {
            causes.push((field.as_str().to_owned(), about.to_owned()));
        }
    }
    causes.truncate(FIELDS_MAX);
    causes
}

/// The message of a refusal without the texts in quotes, which are other ones for another value of the same field.
pub(crate) fn kind_of_refusal(why: &str) -> String {
    let parts = why.split(['"', '`', '\'']).step_by(2);
    parts.collect::<Vec<_>>().concat()
}

/// Whether a request serves leader election or events and not the program's work.
pub(crate) fn is_aside(ask: &Ask) -> bool {
    ask.verb.is_empty() || ASIDE.contains(&ask.resource.as_str())
}

/// The kinds that the program lists or watches, in the order of its first requests, and the kinds that the server does
/// not serve.
pub(crate) fn follows(asks: &[Ask]) -> (Vec<Followed>, Vec<String>) {
    let (mut followed, mut absent): (Vec<Followed>, Vec<String>) = (Vec::new(), Vec::new());
    for ask in asks.iter().filter(|ask| matches!(ask.verb, "list" | "watch") && !is_aside(ask)) {
        if ask.status == 404 {
            if !absent.contains(&ask.resource) {
                absent.push(ask.resource.clone());
            }
            continue;
        }
        if ask.status >= 300 {
            continue;
        }
        let is_watched = ask.verb == "watch";
        match followed.iter_mut().find(|one| one.resource == ask.resource) {
            Some(one) => one.is_watched |= is_watched,
            None => followed.push(Followed { resource: ask.resource.clone(), is_watched }),
        }
    }
    // Sorted, because the start order of its caches is random.
    followed.sort_by(|one, other| one.resource.cmp(&other.resource));
    // Discovery of a group that the server does not have: `/apis/cert-manager.io/v1`.
    for ask in asks.iter().filter(|ask| ask.status == 404 && ask.verb.is_empty()) {
        if let Some(group) = ask.path.strip_prefix("/apis/").filter(|rest| rest.matches('/').count() <= 1) {
            let group = group.trim_end_matches('/').to_owned();
            if !absent.contains(&group) {
                absent.push(group);
            }
        }
    }
    (followed, absent)
}

/// The refused requests, by verb and resource. "Not found", "already exists" and "conflict" are no refusals.
pub(crate) fn refusals(asks: &[Ask]) -> Vec<Refused> {
    let mut all: BTreeMap<(&str, &str, u16, String), u32> = BTreeMap::new();
    for ask in asks {
        let is_answer = matches!((ask.verb, ask.status), ("get" | "delete" | "update" | "patch" | "", 404) | (_, 409));
        if ask.status < 400 || ask.status == 410 || is_answer || ask.verb.is_empty() {
            continue;
        }
        let name = format!("\"{}\"", ask.name.as_deref().unwrap_or("\0"));
        let why = ask.refusal.clone().unwrap_or_default().replace(&name, "\"…\"");
        *all.entry((ask.verb, ask.resource.as_str(), ask.status, why)).or_default() += 1;
    }
    let told = all.into_iter().map(|((verb, resource, status, why), times)| Refused {
        verb: VERBS.iter().copied().find(|one| *one == verb).unwrap_or_default(),
        resource: resource.to_owned(),
        status,
        why,
        times,
    });
    told.take(REFUSALS).collect()
}

const VERBS: [&str; 8] = ["list", "watch", "get", "create", "update", "patch", "delete", "deletecollection"];

/// The namespace, if the program lists and watches the project's kinds in one namespace only.
pub(crate) fn only_namespace(asks: &[Ask], is_own: &dyn Fn(&str) -> bool) -> Option<String> {
    let looks = |ask: &&Ask| matches!(ask.verb, "list" | "watch") && ask.status < 300 && is_own(&ask.resource);
    let mut looked = asks.iter().filter(looks);
    let first = looked.next()?.namespace.clone()?;
    looked.all(|ask| ask.namespace.as_ref() == Some(&first)).then_some(first)
}

/// The Lease that the program holds or tries to get.
pub(crate) fn lease(asks: &[Ask]) -> Option<(String, String)> {
    let of_lease = |ask: &&Ask| ask.resource == ASIDE[0];
    let named = asks.iter().filter(of_lease).find_map(|ask| Some((ask.namespace.clone()?, ask.name.clone()?)));
    named.or_else(|| asks.iter().filter(of_lease).find_map(|ask| Some((ask.namespace.clone()?, String::new()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn ask(verb: &'static str, resource: &str, status: u16) -> Ask {
        Ask { verb, resource: resource.to_owned(), status, ..Ask::default() }
    }

    #[test]
    fn what_is_served_is_followed_and_the_rest_is_absent() {
        let asks = [
            ask("list", "baskets.shop.example.com", 200),
            ask("watch", "baskets.shop.example.com", 200),
            ask("list", "secrets", 200),
            ask("list", "certificates.cert-manager.io", 404),
            Ask { path: "/apis/cert-manager.io/v1".to_owned(), status: 404, ..Ask::default() },
            ask("watch", "leases.coordination.k8s.io", 200),
            ask("list", "nodes", 403),
        ];
        let (followed, absent) = follows(&asks);
        let of = |resource: &str, is_watched| Followed { resource: resource.to_owned(), is_watched };
        assert_eq!(followed, [of("baskets.shop.example.com", true), of("secrets", false)]);
        assert_eq!(absent, ["certificates.cert-manager.io", "cert-manager.io/v1"]);
    }

    #[test]
    fn an_ordinary_answer_is_no_refusal() {
        let named = |name: &str| Ask {
            name: Some(name.to_owned()),
            refusal: Some(format!("pods \"{name}\" is invalid")),
            ..ask("update", "pods", 422)
        };
        let asks = [
            ask("get", "pods", 404),
            ask("create", "pods", 409),
            ask("update", "pods", 409),
            ask("patch", "pods", 409),
            named("a"),
            named("b"),
            ask("watch", "pods", 410),
        ];
        let refused = refusals(&asks);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!((refused[0].times, refused[0].why.as_str()), (2, "pods \"…\" is invalid"));
    }

    #[test]
    fn a_secret_is_filled_by_who_writes_it() {
        let secrets = [("/certs".to_owned(), "hook-cert".to_owned())];
        let there = |namespace: &str| {
            BTreeMap::from([(PathBuf::from("/certs"), Mount::Secret(format!("{namespace}/hook-cert")))])
        };
        let of = |verb, name: Option<&str>| Ask {
            namespace: Some("shop-system".to_owned()),
            name: name.map(str::to_owned),
            ..ask(verb, "secrets", 200)
        };
        assert_eq!(filled(&secrets, &[of("update", Some("hook-cert"))], &[], &[]), there("shop-system"));
        assert!(filled(&secrets, &[of("update", Some("other"))], &[], &[]).is_empty());
        assert!(filled(&secrets, &[of("get", Some("hook-cert"))], &[], &[]).is_empty());
        let wrote = Wrote {
            at_us: 1,
            resource: "secrets".to_owned(),
            namespace: Some("shop-system".to_owned()),
            name: "hook-cert".to_owned(),
            uid: "u".to_owned(),
            is_new: true,
        };
        let create = [of("create", None)];
        assert_eq!(filled(&secrets, &create, std::slice::from_ref(&wrote), &[]), there("shop-system"));
        let given = [serde_json::json!({"kind": "Secret", "metadata": {"name": "hook-cert"}})];
        assert!(filled(&secrets, &create, &[wrote], &given).is_empty(), "others made it");
    }

    #[test]
    fn a_refusal_names_its_fields() {
        let one = "Bundle.trust.example.com \"a\" is invalid: spec.sources[0]: Invalid value: \"object\": exactly one of the fields";
        let cause = |field: &str, why: &str| (field.to_owned(), why.to_owned());
        assert_eq!(causes(one), [cause("spec.sources[0]", "Invalid value: \"object\": exactly one of the fields")]);
        let two = "admission webhook \"v.example.com\" denied the request: Shop \"a\" is invalid: [spec: Forbidden: one of spec.x must be set, \
                   spec.template.size: Required value]";
        assert_eq!(
            causes(two),
            [cause("spec", "Forbidden: one of spec.x must be set"), cause("spec.template.size", "Required value")]
        );
        assert_eq!(causes("namespaces \"a\" not found"), Vec::new());
        let of = |value: &str| format!("spec.version: Invalid value: \"{value}\": must be a valid semantic version");
        assert_eq!(kind_of_refusal(&of("a")), kind_of_refusal(&of("b")));
        assert_ne!(kind_of_refusal(&of("a")), kind_of_refusal("spec.version: Required value"));
    }

    #[test]
    fn a_program_of_one_namespace_is_known_by_its_requests() {
        let of = |resource: &str, namespace: Option<&str>| Ask {
            namespace: namespace.map(str::to_owned),
            ..ask("list", resource, 200)
        };
        let only = |asks: &[Ask]| only_namespace(asks, &|resource| resource == "shops");
        assert_eq!(only(&[of("pods", None), of("shops", Some("a")), of("shops", Some("a"))]).as_deref(), Some("a"));
        assert_eq!(only(&[of("shops", Some("a")), of("shops", Some("b"))]), None);
        assert_eq!(only(&[of("shops", None)]), None);
        assert_eq!(only(&[of("pods", Some("a"))]), None, "it says nothing of the project's kinds");
    }

    #[test]
    fn a_lease_has_a_place() {
        let get = Ask {
            namespace: Some("shop-system".to_owned()),
            name: Some("abc.example.com".to_owned()),
            ..ask("get", "leases.coordination.k8s.io", 404)
        };
        assert_eq!(
            lease(&[ask("list", "pods", 200), get]),
            Some(("shop-system".to_owned(), "abc.example.com".to_owned()))
        );
        assert_eq!(lease(&[]), None);
    }
}
