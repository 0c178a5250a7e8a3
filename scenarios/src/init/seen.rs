//! The result of observing a program for half a minute against an empty API server. Does no I/O.
//!
//! Owns the observed facts ([`Ask`], [`Wrote`], [`Open`]) and the conclusions from these facts. The module
//! `crate::observe` runs the program and makes requests.

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
pub(crate) use requests::{
    Followed, Refused, causes, filled, follows, kind_of_refusal, lease, only_namespace, refusals,
};

/// The start of the placeholders for the webhook's certificate in a run.
const CERTIFICATE: &str = "${LONGHAUL_TLS_";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) at_us: u64,
    /// `list`, `watch`, `get`, `create`, …; empty if the request names no resource.
    pub(crate) verb: &'static str,
    /// Resource and group, such as `baskets.shop.example.com`; only the plural for the core group.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) refusal: Option<String>,
}

/// A version of an object, written by any client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrote {
    pub(crate) at_us: u64,
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) is_new: bool,
}

/// A port on which the program listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) port: u16,
    /// The environment variable with the port, if the harness chose the port.
    pub(crate) variable: Option<&'static str>,
    pub(crate) is_tls: bool,
    /// URL paths that answered, with their status codes.
    pub(crate) pages: Vec<(String, u16)>,
    /// Whether the metrics page contains `go_goroutines`.
    pub(crate) counts_goroutines: bool,
}

/// How far the observation of the program came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    /// The program was not run, with the reason.
    NotRun(String),
    /// The program could not be built. Holds the build command, and its last lines of output.
    NotBuilt(String, String),
    /// The program exited. Holds the program's last lines of output.
    Ended(String),
    /// The program runs but makes no request to the API server.
    Silent(String),
    /// The program runs and makes requests to the API server.
    Ran,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) came: Came,
    pub(crate) built: Option<String>,
    /// The start command, as the scenario contains it.
    pub(crate) run: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
    /// Changes of arguments and objects that were needed until the program ran, with the reasons.
    pub(crate) mended: Vec<String>,
    pub(crate) followed: Vec<Followed>,
    pub(crate) refused: Vec<Refused>,
    /// Kinds that the program requests and the server does not serve.
    pub(crate) absent: Vec<String>,
    pub(crate) ports: Vec<Open>,
    /// Namespace and name of the program's Lease.
    pub(crate) lease: Option<(String, String)>,
    /// The only namespace in which the program looks at objects; `None` if it looks in several or in all.
    pub(crate) only: Option<String>,
    /// Namespaces that the program uses and that did not exist.
    pub(crate) namespaces: Vec<String>,
    /// Objects that the program reads in its cluster.
    pub(crate) objects: Vec<Value>,
    /// Folders that the program finds where a kubelet would mount them.
    pub(crate) mounts: BTreeMap<PathBuf, Mount>,
    /// URL paths of the project's webhooks that the program does not serve.
    pub(crate) unserved: Vec<String>,
    /// The program's reactions to each kind, the strongest first.
    pub(crate) reactions: Vec<Reaction>,
}

impl Seen {
    /// A result without observed facts, with the reason.
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
            only: None,
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

    /// Whether the program lists or watches a resource.
    pub(crate) fn follows(&self, resource: &str) -> bool {
        self.followed.iter().any(|followed| followed.resource == resource)
    }

    /// The kind that a scenario should churn, because the program reacted most to this kind.
    pub(crate) fn best(&self) -> Option<&Reaction> {
        self.reactions.first().filter(|reaction| reaction.requests > 0)
    }

    /// Whether the program answers TLS on a port that may be that of a webhook.
    pub(crate) fn serves_reviews(&self) -> bool {
        self.ports.iter().any(|open| open.is_tls && open.variable.is_none_or(|variable| variable == WEBHOOK_PORT))
    }

    /// The port with TLS at which the program may serve webhooks: the port of a run, or one that the program chose.
    pub(crate) fn webhook_port(&self) -> Option<u16> {
        let tls = || self.ports.iter().filter(|open| open.is_tls);
        let given = tls().find(|open| open.variable == Some(WEBHOOK_PORT));
        given.or_else(|| tls().find(|open| open.variable.is_none())).map(|open| open.port)
    }

    /// Objects that the program needs: namespaces, and objects that the program reads.
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

    /// Assigns the variable of the metrics port to the port that serves metrics, so that the scenario names the right
    /// port.
    pub(crate) fn settle(&mut self, has_hooks: bool) {
        let page = self.metrics().and_then(|open| open.variable);
        let mut names: Vec<(&str, &str)> = Vec::new();
        match page {
            Some(METRICS_PORT_NAME) => {}
            Some(other) => names.extend([(METRICS_PORT_NAME, FREE_PORTS[8]), (other, METRICS_PORT_NAME)]),
            None => names.push((METRICS_PORT_NAME, FREE_PORTS[8])),
        }
        if !self.serves_reviews() {
            // Only a webhook needs the run's certificate.
            let is_certificate = |text: &str| text.contains(CERTIFICATE);
            self.run.retain(|word| !is_certificate(word));
            self.variables.retain(|(_, value)| !is_certificate(value));
        }
        // A program with the certificate of a run is called at the port of a run.
        if !self.serves_reviews() || !has_hooks && !self.is_given_certificate() {
            names.push((WEBHOOK_PORT, FREE_PORTS[7]));
        }
        self.rename(&names);
    }

    /// Whether the program's arguments or variables refer to the certificate of a run.
    pub(crate) fn is_given_certificate(&self) -> bool {
        self.run.iter().chain(self.variables.iter().map(|(_, value)| value)).any(|text| text.contains(CERTIFICATE))
    }

    /// If the program did not run and its source has no metrics flag, uses any free port for the metrics.
    pub(crate) fn settle_unseen(&mut self) {
        self.rename(&[(METRICS_PORT_NAME, FREE_PORTS[8])]);
    }

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

    /// Whether the program creates objects that need a kubelet or a controller to become ready.
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

    /// The port with a metrics page that a run can read.
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
