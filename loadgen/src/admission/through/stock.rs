//! The manifests that the load writes, a bounded number for each kind, with the right answer to each. Pure: no I/O.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::admission::corpus::{Expand, Pick, VARIANTS};
use crate::admission::expected::Expected;
use crate::admission::image::Image;
use crate::admission::mix::Mix;
use crate::admission::objects::Kind;
use crate::admission::objects::grow::Growth;
use crate::admission::oracle::{self, Digests};
use crate::seed;

/// All manifests, namespaces and images from which requests are made.
#[derive(Debug)]
pub(super) struct Stock {
    made: Vec<Made>,
    by_kind: BTreeMap<&'static str, Vec<u32>>,
    images: Vec<Image>,
    digests: Digests,
    pub namespaces: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Made {
    pub kind: Kind,
    body: Value,
    app: String,
    /// The right answer to the manifest's creation.
    pub expected: Expected,
}

/// Group, version and plural name of each resource that this mix writes through an API server.
pub fn written(mix: &Mix) -> Vec<(&'static str, &'static str, &'static str)> {
    let actions = mix.weights().into_iter().filter(|&(_, weight)| weight > 0);
    let kinds = actions.filter_map(|(action, _)| action.kind()).map(|(kind, _)| kind);
    let mut found = Vec::new();
    for kind in kinds {
        let names = (kind.group(), kind.version(), kind.plural());
        if !found.contains(&names) {
            found.push(names);
        }
    }
    found
}

impl Stock {
    pub(super) fn build(mix: &Mix, seed: u64, images: &[Image], namespaces: Vec<String>) -> Self {
        let digests = oracle::digests(images);
        let mut expand = Expand::new(seed, None, images, Some(&digests));
        let mut made: Vec<Made> = Vec::new();
        let mut by_kind: BTreeMap<&'static str, Vec<u32>> = BTreeMap::new();
        let kinds = mix.weights().into_iter().filter(|&(_, weight)| weight > 0);
        for (kind, _) in kinds.filter_map(|(action, _)| action.kind()) {
            // Several actions may need one kind.
            if by_kind.contains_key(kind.plural()) {
                continue;
            }
            let numbers = by_kind.entry(kind.plural()).or_default();
            for variant in 0..VARIANTS {
                let workload = expand.workload(kind, Pick::of(variant));
                let body = workload.draft().manifest(&Growth::NATURAL, &mut expand.rng);
                let expected = oracle::expected(kind, Some(&body), None, &digests);
                numbers.push(u32::try_from(made.len()).expect("a few hundred manifests at most"));
                made.push(Made { kind, body, app: workload.identity.app.clone(), expected });
            }
        }
        Self { made, by_kind, images: images.to_vec(), digests, namespaces }
    }

    pub(super) fn made(&self, number: u32) -> &Made {
        &self.made[number as usize]
    }

    /// All manifests, for fingerprints and descriptions.
    pub(super) fn all(&self) -> &[Made] {
        &self.made
    }

    /// The numbers of a kind's manifests.
    pub(super) fn of_kind(&self, kind: Kind) -> &[u32] {
        self.by_kind.get(kind.plural()).map_or(&[], Vec::as_slice)
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.by_kind.values().filter_map(|numbers| Some(self.made(*numbers.first()?).kind))
    }

    pub(super) fn images(&self) -> &[Image] {
        &self.images
    }

    pub(super) fn digests(&self) -> &Digests {
        &self.digests
    }
}

impl Made {
    /// The name of an object of this manifest. The number of each object is used only once.
    pub(super) fn name(&self, object: u64) -> String {
        format!("{}-{object}", self.app)
    }

    pub(super) fn body(&self, object: u64, namespace: &str) -> Value {
        let mut body = self.body.clone();
        body["metadata"]["name"] = json!(self.name(object));
        body["metadata"]["namespace"] = json!(namespace);
        body
    }

    /// The manifest without the name of an object, for fingerprints.
    pub(super) fn text(&self) -> String {
        self.body.to_string()
    }

    /// The service account of the manifest's Pods.
    pub(super) fn account(&self) -> Option<&str> {
        let spec = self.kind.pod_spec().and_then(|at| self.body.pointer(at))?;
        spec["serviceAccountName"].as_str()
    }

    pub(super) fn first_container(&self) -> &str {
        let spec = self.kind.pod_spec().and_then(|at| self.body.pointer(at));
        spec.and_then(|spec| spec["containers"][0]["name"].as_str()).unwrap_or_default()
    }
}

/// Names for the namespaces of this run.
pub(super) fn namespaces(seed: u64, count: usize) -> Vec<String> {
    let mut rng = seed::stream(seed, "namespaces");
    let run = seed::suffix(&mut rng, 5);
    (0..count).map(|number| format!("lh-admission-{run}-{number}")).collect()
}
