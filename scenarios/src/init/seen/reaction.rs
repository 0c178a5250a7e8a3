//! The reaction of a program to one object: requests, children, finalizers, status, and fields of the object that may
//! change. Does no I/O.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::requests::is_aside;
use super::{Ask, Wrote};

/// The characters that Kubernetes uses in generated parts of names.
const DRAWN: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Minimum length of a generated part of a name.
const DRAWN_CHARS: usize = 5;

/// One object that the observation created, changed and deleted, with its children.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) kind: String,
    /// The resource, such as `baskets.shop.example.com`.
    pub(crate) resource: String,
    /// The resource with its version, such as `baskets.shop.example.com/v1`.
    pub(crate) churned: String,
    /// The file of the sample; `None` if the object was generated from the definition.
    pub(crate) from: Option<PathBuf>,
    /// The object with placeholders for changing values, as in a scenario.
    pub(crate) template: Value,
    /// The object as it was sent to the API server.
    pub(crate) original: Value,
    /// Sample objects to which the object refers.
    pub(crate) with: Vec<Value>,
    /// The message with which the API server refused the object.
    pub(crate) refused: Option<String>,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) began_us: u64,
    pub(crate) ended_us: u64,
    /// The object as it was when the program was idle again after the object's creation.
    pub(crate) after: Value,
    /// Objects that were created after this object until the program was idle again, by resource.
    pub(crate) made: Vec<(String, Value)>,
    pub(crate) changes: Vec<Change>,
    /// Whether the object was gone soon after its deletion; `None` if the object was not deleted.
    pub(crate) is_gone: Option<bool>,
    /// Kinds of deleted children, and whether the program created the child again.
    pub(crate) restored: BTreeMap<String, bool>,
    /// Names of other objects in the control plane.
    pub(crate) others: Vec<String>,
    /// Number of objects of each child kind after a change.
    pub(crate) counted_later: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) pointer: String,
    /// The message of the API server or a webhook that refused the change.
    pub(crate) refused: Option<String>,
    /// Whether the program made a request after the change.
    pub(crate) is_noticed: bool,
    /// Whether the status had the new generation after the change; `None` if the generation did not change.
    pub(crate) is_repeated: Option<bool>,
}

/// Objects of one kind that the program creates for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    /// The resource, such as `configmaps` or `deployments.apps`.
    pub(crate) resource: String,
    /// The resource with its version, such as `configmaps/v1`.
    pub(crate) churned: String,
    pub(crate) count: usize,
    /// How the parent is recognized: by an owner reference, or by a name with `{name}`.
    pub(crate) by: By,
    /// Whether the program created the object again after its deletion.
    pub(crate) is_restored: Option<bool>,
    /// Whether the number of children of this kind differed after a change of the parent.
    pub(crate) varies: bool,
}

/// How the parent of a child is recognized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum By {
    Owner,
    Name(String),
    /// The parent cannot be recognized reliably, because a part of the name may differ between objects.
    Nothing,
}

/// The conclusions from the observation of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reaction {
    pub(crate) kind: String,
    pub(crate) resource: String,
    pub(crate) churned: String,
    pub(crate) from: Option<PathBuf>,
    pub(crate) template: Value,
    pub(crate) with: Vec<Value>,
    pub(crate) refused: Option<String>,
    /// Number of requests about the object and its children.
    pub(crate) requests: usize,
    pub(crate) children: Vec<Child>,
    pub(crate) finalizers: Vec<String>,
    /// Top-level fields of the status that the program wrote.
    pub(crate) status: Vec<String>,
    /// Whether the status contains the observed generation.
    pub(crate) observes: bool,
    /// Types of conditions with the observed generation.
    pub(crate) conditions: Vec<String>,
    /// Whether the program updates the observed generation only after some changes.
    pub(crate) is_lazy: bool,
    pub(crate) changes: Vec<Change>,
    pub(crate) is_gone: Option<bool>,
    /// Objects that the program requested by name and that did not exist.
    pub(crate) missing: Vec<(String, String)>,
}

impl Reaction {
    /// Draws the conclusions from the observation of one object.
    pub(crate) fn of(step: &Step, asks: &[Ask]) -> Self {
        let children = children(step);
        let (requests, missing) = requests(step, asks);
        let status = step.after["status"].as_object();
        let generation = &step.after["metadata"]["generation"];
        let repeats = |value: &Value| !value.is_null() && value == generation;
        // A status that is written only if another part of it changes proves no version.
        let is_lazy = step.changes.iter().any(|change| change.is_repeated == Some(false));
        let conditions = step.after["status"]["conditions"].as_array().into_iter().flatten();
        let conditions = conditions.filter(|one| repeats(&one["observedGeneration"]));
        let finalizers = step.after["metadata"]["finalizers"].as_array().into_iter().flatten();
        let own = &step.template["metadata"]["finalizers"];
        let is_own = |name: &&Value| own.as_array().is_some_and(|names| names.contains(name));
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            kind: step.kind.clone(),
            resource: step.resource.clone(),
            churned: step.churned.clone(),
            from: step.from.clone(),
            template: step.template.clone(),
            with: step.with.clone(),
            refused: step.refused.clone(),
            requests,
            children,
            finalizers: finalizers.filter(|name| !is_own(name)).filter_map(text).collect(),
            status: status.into_iter().flat_map(|fields| fields.keys().cloned()).collect(),
            observes: repeats(&step.after["status"]["observedGeneration"]) && !is_lazy,
            conditions: conditions.filter_map(|one| text(&one["type"])).filter(|_| !is_lazy).collect(),
            is_lazy,
            changes: step.changes.clone(),
            is_gone: step.is_gone,
            missing,
        }
    }

    /// The reaction as one line of text.
    pub(crate) fn line(&self) -> String {
        if let Some(why) = &self.refused {
            return format!("could not be made: {why}");
        }
        if self.requests == 0 {
            return "nothing".to_owned();
        }
        let mut told = vec![format!("{} requests", self.requests)];
        told.extend(self.children.iter().map(|child| format!("makes {} {}", child.count, child.resource)));
        told.extend(self.finalizers.iter().map(|name| format!("holds it by the finalizer {name}")));
        if !self.status.is_empty() {
            told.push(format!("writes its status ({})", self.status.join(", ")));
        }
        if self.is_gone == Some(false) {
            told.push("was still there 3 s after its deletion".to_owned());
        }
        told.join(", ")
    }

    /// The field that each write of the churn changes, preferably one to which the program reacts.
    pub(crate) fn varies(&self) -> Option<&Change> {
        let taken = || self.changes.iter().filter(|change| change.refused.is_none());
        taken().find(|change| change.is_noticed).or_else(|| taken().next())
    }

    /// The strength of the reaction. Visible effects count more than requests.
    pub(crate) fn weight(&self) -> (bool, usize) {
        let has_trace = !self.children.is_empty() || !self.status.is_empty() || !self.finalizers.is_empty();
        (has_trace && self.requests > 0, self.requests)
    }
}

/// Number of requests for the object, its children and objects that it names. Also returns requested objects that did
/// not exist.
fn requests(step: &Step, asks: &[Ask]) -> (usize, Vec<(String, String)>) {
    let spec = step.after["spec"].to_string();
    let (mut count, mut missing) = (0, Vec::new());
    let within = |ask: &&Ask| (step.began_us..=step.ended_us).contains(&ask.at_us);
    for ask in asks.iter().filter(within).filter(|ask| !is_aside(ask) && !matches!(ask.verb, "list" | "watch")) {
        let name = ask.name.as_deref().unwrap_or_default();
        let is_it = ask.resource == step.resource && name == step.name;
        let is_child = step.made.iter().any(|(resource, object)| {
            *resource == ask.resource
                && (object["metadata"]["name"] == name || (name.is_empty() && ask.verb == "create"))
        });
        let is_named = !name.is_empty() && (name.contains(&step.name) || spec.contains(&format!("\"{name}\"")));
        let is_here = !step.namespace.is_empty() && ask.namespace.as_deref() == Some(&step.namespace);
        let is_other = step.others.iter().any(|other| other == name) && !is_named;
        if !(is_it || is_child || is_named || (is_here && !is_other)) {
            continue;
        }
        count += 1;
        let is_missing = ask.verb == "get" && ask.status == 404 && is_named && !name.contains(&step.name);
        let place = (ask.resource.clone(), name.to_owned());
        if is_missing && !missing.contains(&place) {
            missing.push(place);
        }
    }
    (count, missing)
}

fn children(step: &Step) -> Vec<Child> {
    let mut by_kind: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for (resource, object) in &step.made {
        by_kind.entry(resource).or_default().push(object);
    }
    by_kind.into_iter().filter_map(|(resource, objects)| child(step, resource, &objects)).collect()
}

fn child(step: &Step, resource: &str, objects: &[&Value]) -> Option<Child> {
    let is_owned = |object: &&&Value| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == step.uid.as_str()))
    };
    let owned = objects.iter().filter(is_owned).count();
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let named: Vec<String> = objects.iter().map(|object| name(object)).filter(|one| one.contains(&step.name)).collect();
    let (by, count) = match named.as_slice() {
        _ if owned > 0 => (By::Owner, owned),
        [one] if !is_drawn(one, &step.name) => (By::Name(one.replacen(&step.name, "{name}", 1)), 1),
        [] => return None,
        several => (By::Nothing, several.len()),
    };
    let version = objects.first().and_then(|object| object["apiVersion"].as_str()).unwrap_or("v1");
    let version = version.rsplit('/').next().unwrap_or(version);
    Some(Child {
        resource: resource.to_owned(),
        churned: format!("{resource}/{version}"),
        count,
        by,
        is_restored: step.restored.get(resource).copied(),
        varies: step.counted_later.get(resource).is_some_and(|later| *later != objects.len()),
    })
}

/// Whether a child's name contains, in addition to the parent's name, a part that looks generated. A generated part may
/// differ for the next object.
fn is_drawn(child: &str, parent: &str) -> bool {
    let rest = child.replacen(parent, "-", 1);
    let mut long = rest.split(['-', '.']).filter(|part| part.len() >= DRAWN_CHARS);
    long.any(|part| part.contains(|c: char| c.is_ascii_digit()) || part.chars().all(|c| DRAWN.contains(c)))
}

/// Objects that were written while this object was observed, without this object itself. The caller fetches the written
/// objects.
pub(crate) fn made<'w>(step: &Step, wrote: &'w [Wrote]) -> Vec<&'w Wrote> {
    let is_it = |one: &&Wrote| one.resource == step.resource && one.name == step.name;
    let is_aside = |one: &&Wrote| {
        matches!(one.resource.as_str(), "leases.coordination.k8s.io" | "events" | "events.events.k8s.io" | "namespaces")
    };
    let within = |one: &&Wrote| one.is_new && (step.began_us..=step.ended_us).contains(&one.at_us);
    wrote.iter().filter(within).filter(|one| !is_it(one) && !is_aside(one)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step() -> Step {
        let owner = json!([{"uid": "u1"}]);
        let config = json!({"apiVersion": "v1", "metadata": {"name": "basket-1-config", "ownerReferences": owner}});
        let loose = json!({"apiVersion": "apps/v1", "metadata": {"name": "web-basket-1"}});
        Step {
            kind: "Basket".to_owned(),
            resource: "baskets.shop.example.com".to_owned(),
            churned: "baskets.shop.example.com/v1".to_owned(),
            name: "basket-1".to_owned(),
            namespace: "observed".to_owned(),
            uid: "u1".to_owned(),
            began_us: 10,
            ended_us: 20,
            after: json!({"metadata": {"generation": 1, "finalizers": ["shop.example.com/hold"]}, "spec": {"login": "key"},
                "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "observedGeneration": 1}, {"type": "Old"}]}}),
            made: vec![("configmaps".to_owned(), config), ("deployments.apps".to_owned(), loose)],
            others: vec!["other".to_owned()],
            ..Step::default()
        }
    }

    fn ask(at_us: u64, verb: &'static str, resource: &str, name: &str, status: u16) -> Ask {
        let name = (!name.is_empty()).then(|| name.to_owned());
        Ask {
            at_us,
            verb,
            resource: resource.to_owned(),
            namespace: Some("observed".to_owned()),
            name,
            status,
            ..Ask::default()
        }
    }

    #[test]
    fn what_it_does_with_an_object_is_read_from_requests_and_objects() {
        let asks = [
            ask(5, "get", "baskets.shop.example.com", "basket-1", 200),
            ask(11, "update", "baskets.shop.example.com", "basket-1", 200),
            ask(12, "create", "configmaps", "", 201),
            ask(13, "get", "secrets", "key", 404),
            ask(14, "update", "baskets.shop.example.com", "other", 200),
            ask(15, "list", "pods", "", 200),
            ask(16, "update", "leases.coordination.k8s.io", "x", 200),
        ];
        let reaction = Reaction::of(&step(), &asks);
        assert_eq!(reaction.requests, 3);
        assert_eq!(reaction.missing, [("secrets".to_owned(), "key".to_owned())]);
        let [config, web] = reaction.children.as_slice() else { panic!("{reaction:?}") };
        assert_eq!((config.churned.as_str(), config.count, &config.by), ("configmaps/v1", 1, &By::Owner));
        assert_eq!((web.churned.as_str(), &web.by), ("deployments.apps/v1", &By::Name("web-{name}".to_owned())));
        assert!(reaction.observes && reaction.conditions == ["Ready"], "{reaction:?}");
        assert_eq!(reaction.finalizers, ["shop.example.com/hold"]);
        assert!(reaction.line().starts_with("3 requests, makes 1 configmaps, "), "{}", reaction.line());
        let silent = Reaction::of(&step(), &[]);
        assert_eq!((silent.line().as_str(), silent.weight()), ("nothing", (false, 0)));
    }

    /// A child's name with a generated part is not used as a pattern for the children of other objects.
    #[test]
    fn a_name_that_looks_drawn_is_no_pattern() {
        let by = |name: &str| {
            let service = json!({"apiVersion": "v1", "metadata": {"name": name}});
            let step = Step { made: vec![("services".to_owned(), service)], ..step() };
            Reaction::of(&step, &[]).children[0].by.clone()
        };
        let fixed = |name: &str| By::Name(name.to_owned());
        assert_eq!(by("basket-1-head-svc"), fixed("{name}-head-svc"));
        assert_eq!(by("worker.basket-1"), fixed("worker.{name}"));
        for name in ["basket-1-p2j6k-head-svc", "basket-1-7d4b9c8f6d", "x2x4z-basket-1", "basket-1-0a1e3"] {
            assert_eq!(by(name), By::Nothing, "{name}");
        }
    }

    #[test]
    fn a_field_that_is_noticed_varies_first() {
        let change = |pointer: &str, refused: Option<&str>, is_noticed| Change {
            pointer: pointer.to_owned(),
            refused: refused.map(str::to_owned),
            is_noticed,
            is_repeated: None,
        };
        let changes = vec![
            change("/spec/a", Some("immutable"), false),
            change("/spec/b", None, false),
            change("/spec/c", None, true),
        ];
        let reaction = Reaction::of(&Step { changes, ..step() }, &[]);
        assert_eq!(reaction.varies().map(|change| change.pointer.as_str()), Some("/spec/c"));
    }
}
