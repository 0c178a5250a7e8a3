//! What a program did in half a minute against an empty API server, as findings for the scenario. Pure.
//!
//! Owns the facts that an observation keeps ([`Ask`], [`Wrote`], [`Open`]) and what follows from them. Nothing here runs or asks anything;
//! `crate::observe` does.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::scenario::{FREE_PORTS, METRICS_PORT_NAME, Mount, WEBHOOK_PORT};

mod ending;
mod reaction;
mod requests;

pub(crate) use ending::{Mend, mend, next_step, telling};
#[cfg(test)]
pub(crate) use reaction::Child;
pub(crate) use reaction::{By, Change, Reaction, Step, made};
pub(crate) use requests::{Followed, Refused, follows, lease, refusals, refused_fields};

/// How a variable of the certificate of a run begins.
const CERTIFICATE: &str = "${LONGHAUL_TLS_";

/// One request of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) at_us: u64,
    /// `list`, `watch`, `get`, `create`, …; empty where it was for no resource.
    pub(crate) verb: &'static str,
    /// `baskets.shop.example.com`; the plural alone in the core group.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) refusal: Option<String>,
}

/// A version that was written, by anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrote {
    pub(crate) at_us: u64,
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) is_new: bool,
}

/// A port that the program listens at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) port: u16,
    /// Where the harness chose it: the variable.
    pub(crate) variable: Option<&'static str>,
    /// Whether it speaks TLS there.
    pub(crate) is_tls: bool,
    /// Pages that answered, with their status.
    pub(crate) pages: Vec<(String, u16)>,
    /// Whether `go_goroutines` is on its page of metrics.
    pub(crate) counts_goroutines: bool,
}

/// How far it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    /// It was not run, and why.
    NotRun(String),
    /// It was not built: the command, and its last words.
    NotBuilt(String, String),
    /// It ended by itself: its last words.
    Ended(String),
    /// It runs, and asks the API server for nothing.
    Silent(String),
    /// It runs and asks.
    Ran,
}

/// All findings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) came: Came,
    /// The command that built it.
    pub(crate) built: Option<String>,
    /// What starts it, as it is written in the scenario.
    pub(crate) run: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
    /// What had to be changed until it ran, and why.
    pub(crate) mended: Vec<String>,
    pub(crate) followed: Vec<Followed>,
    pub(crate) refused: Vec<Refused>,
    /// Kinds that it asks for and that nothing serves.
    pub(crate) absent: Vec<String>,
    pub(crate) ports: Vec<Open>,
    /// Namespace and name of its Lease.
    pub(crate) lease: Option<(String, String)>,
    /// Namespaces that it wants and that nobody had made.
    pub(crate) namespaces: Vec<String>,
    /// Objects that it reads where it runs.
    pub(crate) objects: Vec<Value>,
    /// Folders that it finds where a kubelet mounts them.
    pub(crate) mounts: BTreeMap<PathBuf, Mount>,
    /// Paths of the project's webhooks that it does not serve.
    pub(crate) unserved: Vec<String>,
    /// What it did with each kind, the one that it reacts to most first.
    pub(crate) reactions: Vec<Reaction>,
}

impl Seen {
    /// Nothing, and why.
    pub(crate) fn nothing(came: Came) -> Self {
        Self {
            came,
            built: None,
            run: Vec::new(),
            variables: Vec::new(),
            mended: Vec::new(),
            followed: Vec::new(),
            refused: Vec::new(),
            absent: Vec::new(),
            ports: Vec::new(),
            lease: None,
            namespaces: Vec::new(),
            objects: Vec::new(),
            mounts: BTreeMap::new(),
            unserved: Vec::new(),
            reactions: Vec::new(),
        }
    }

    pub(crate) fn ran(&self) -> bool {
        self.came == Came::Ran
    }

    /// Whether it lists or watches a resource.
    pub(crate) fn follows(&self, resource: &str) -> bool {
        self.followed.iter().any(|followed| followed.resource == resource)
    }

    /// The kind to be churned: the one that it reacted to most.
    pub(crate) fn best(&self) -> Option<&Reaction> {
        self.reactions.first().filter(|reaction| reaction.requests > 0)
    }

    /// Whether it speaks TLS where a webhook may be.
    pub(crate) fn serves_reviews(&self) -> bool {
        self.ports.iter().any(|open| open.is_tls && open.variable.is_none_or(|variable| variable == WEBHOOK_PORT))
    }

    /// What has to lie around the program: namespaces that it wants, and objects that it reads there.
    pub(crate) fn around(&self) -> Vec<Value> {
        let namespace =
            |name: &String| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}}});
        let place = self.namespaces.first().cloned();
        let object = |object: &Value| {
            let mut object = object.clone();
            if let (Some(place), Some(metadata)) = (&place, object["metadata"].as_object_mut()) {
                metadata.entry("namespace").or_insert_with(|| place.clone().into());
            }
            object
        };
        self.namespaces.iter().map(namespace).chain(self.objects.iter().map(object)).collect()
    }

    /// Gives the page of metrics the variable by which a run reads it, and takes that from a port that has no such page: the scenario says
    /// where the page is.
    pub(crate) fn settle(&mut self, has_hooks: bool) {
        let page = self.metrics().and_then(|open| open.variable);
        let mut names: Vec<(&str, &str)> = Vec::new();
        match page {
            Some(METRICS_PORT_NAME) => {}
            Some(other) => names.extend([(METRICS_PORT_NAME, FREE_PORTS[8]), (other, METRICS_PORT_NAME)]),
            None => names.push((METRICS_PORT_NAME, FREE_PORTS[8])),
        }
        if !self.serves_reviews() {
            // Certificates of a run go with a webhook.
            let is_certificate = |text: &str| text.contains(CERTIFICATE);
            self.run.retain(|word| !is_certificate(word));
            self.variables.retain(|(_, value)| !is_certificate(value));
        }
        // A program that was given the certificate of a run is asked at the port of a run.
        if !self.serves_reviews() || !has_hooks && !self.is_given_certificate() {
            names.push((WEBHOOK_PORT, FREE_PORTS[7]));
        }
        self.rename(&names);
    }

    /// Whether its words or variables name the certificate of a run.
    pub(crate) fn is_given_certificate(&self) -> bool {
        self.run.iter().chain(self.variables.iter().map(|(_, value)| value)).any(|text| text.contains(CERTIFICATE))
    }

    /// Where it did not run, and its source names no page of metrics, the port of that page is any free one.
    pub(crate) fn settle_unseen(&mut self) {
        self.rename(&[(METRICS_PORT_NAME, FREE_PORTS[8])]);
    }

    /// Puts other variables in the places of some.
    fn rename(&mut self, names: &[(&str, &str)]) {
        for &(from, to) in names {
            let put = |text: &mut String| *text = text.replace(&format!("${{{from}}}"), &format!("${{{to}}}"));
            self.run.iter_mut().for_each(put);
            self.variables.iter_mut().for_each(|(_, value)| put(value));
            let of = self.ports.iter_mut().filter(|open| open.variable == Some(from));
            of.for_each(|open| {
                open.variable = [METRICS_PORT_NAME].into_iter().chain(FREE_PORTS).find(|name| *name == to);
            });
        }
    }

    /// Whether it makes what a kubelet or a controller would have to make ready.
    pub(crate) fn makes_workloads(&self) -> bool {
        const WORKLOADS: [&str; 8] = [
            "deployments.apps",
            "statefulsets.apps",
            "daemonsets.apps",
            "replicasets.apps",
            "jobs.batch",
            "pods",
            "persistentvolumeclaims",
            "services",
        ];
        let children = self.reactions.iter().flat_map(|reaction| &reaction.children);
        children.into_iter().any(|child| WORKLOADS.contains(&child.resource.as_str()))
    }

    /// The page of metrics that a run can read, with the variable of its port.
    pub(crate) fn metrics(&self) -> Option<&Open> {
        let is_it =
            |open: &&Open| !open.is_tls && open.pages.iter().any(|(page, status)| page == "/metrics" && *status == 200);
        self.ports.iter().find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_metrics_goes_to_the_page_of_metrics() {
        let open = |port, variable, page: &str| Open {
            port,
            variable: Some(variable),
            is_tls: false,
            pages: vec![(page.to_owned(), 200)],
            counts_goroutines: false,
        };
        let mut seen = Seen {
            run: vec!["a".to_owned(), "--x=${LONGHAUL_METRICS_PORT}".to_owned(), "--y=${LONGHAUL_PORT_1}".to_owned()],
            ports: vec![open(1, METRICS_PORT_NAME, "/healthz"), open(2, FREE_PORTS[0], "/metrics")],
            ..Seen::nothing(Came::Ran)
        };
        seen.settle(true);
        assert_eq!(seen.run[1..], ["--x=${LONGHAUL_PORT_9}", "--y=${LONGHAUL_METRICS_PORT}"]);
        assert_eq!(seen.metrics().and_then(|open| open.variable), Some(METRICS_PORT_NAME));
        let mut none = Seen { ports: Vec::new(), run: vec!["--w=${LONGHAUL_WEBHOOK_PORT}".to_owned()], ..seen };
        none.settle(false);
        assert_eq!(none.run, ["--w=${LONGHAUL_PORT_8}"]);
        let tls = Open { is_tls: true, ..open(9, WEBHOOK_PORT, "/") };
        none.run = vec!["--w=${LONGHAUL_WEBHOOK_PORT}".to_owned(), "--c=${LONGHAUL_TLS_DIR}".to_owned()];
        none.ports = vec![tls];
        none.settle(false);
        assert_eq!(none.run, ["--w=${LONGHAUL_WEBHOOK_PORT}", "--c=${LONGHAUL_TLS_DIR}"]);
        none.run = vec!["--x=${LONGHAUL_METRICS_PORT}".to_owned()];
        none.settle_unseen();
        assert_eq!(none.run, ["--x=${LONGHAUL_PORT_9}"]);
    }
}
