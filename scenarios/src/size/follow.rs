//! The kinds that a program lists and watches, from its requests at the mock.
//!
//! Owns the form of the requests for each kind (number of lists, selectors), and the counts of complete lists. A list
//! is complete when its watch opens or its initial events end; the mock reports both as closed gaps.

use std::collections::BTreeMap;

use mock_kube::{Gap, RequestFact};
use reports::size::Form;

/// Maximum number of kinds that are followed.
const KINDS_MAX: usize = 256;
/// Kinds that get no objects: leases coordinate programs, programs write events but rarely read them, and the number of
/// definitions does not depend on the size of the cluster.
const ASIDE: [&str; 4] =
    ["leases.coordination.k8s.io", "events", "events.events.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"];

/// The requests that the program has sent since one start.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    kinds: BTreeMap<String, KindRequests>,
    /// Number of successful list and watch requests.
    pub(super) asks: u64,
}

#[derive(Debug, Clone, Default)]
struct KindRequests {
    form: Form,
    /// Number of complete lists: a watch continued at their revision, or their closing bookmark was sent.
    complete: u64,
    lists: u64,
    named: u64,
    labels: Once,
    fields: Once,
    whole_cluster: bool,
    whole_objects: bool,
}

/// A selector of the requests for a kind, if every request has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Once {
    #[default]
    New,
    Same(Option<String>),
    Differs,
}

impl Once {
    fn note(&mut self, text: Option<String>) {
        *self = match std::mem::take(self) {
            Self::New => Self::Same(text),
            Self::Same(known) if known == text => Self::Same(known),
            Self::Same(Some(_)) if text.is_some() => Self::Same(Some("several".to_owned())),
            _ => Self::Differs,
        };
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Same(text) => text.clone(),
            Self::New | Self::Differs => None,
        }
    }
}

impl Followed {
    /// Records requests of the program.
    pub(super) fn take(&mut self, facts: &[RequestFact]) {
        for fact in facts {
            let asked = fact.parameters();
            // A watch was counted when it began.
            let is_end = asked.verb == "watch" && fact.ended.is_some() && fact.about.watch.is_some();
            if is_end || asked.resource.is_empty() || fact.record.status >= 300 || ASIDE.contains(&&*asked.resource) {
                continue;
            }
            if !self.kinds.contains_key(&asked.resource) && self.kinds.len() >= KINDS_MAX {
                continue;
            }
            let seen = self.kinds.entry(asked.resource.clone()).or_default();
            // A list or watch of one named object fills no cache.
            let is_one = asked.fields.as_deref().is_some_and(|fields| fields.contains("metadata.name="));
            if !matches!(asked.verb, "list" | "watch") || is_one {
                seen.named += u64::from(asked.name.is_some() || is_one);
                continue;
            }
            self.asks += 1;
            seen.lists += u64::from(asked.verb == "list" && asked.continues.is_none());
            seen.form.is_watched |= asked.verb == "watch";
            seen.form.is_streamed |= asked.send_initial_events == Some(true);
            seen.form.is_paged |= asked.continues.is_some();
            seen.labels.note(asked.labels);
            seen.fields.note(asked.fields);
            seen.whole_cluster |= asked.namespace.is_none();
            seen.whole_objects |= !fact.about.metadata_only;
        }
    }

    /// Records the lists that have become complete.
    pub(super) fn complete(&mut self, gaps: &[Gap]) {
        for gap in gaps {
            // The next call of `take` may bring the list request itself.
            if !ASIDE.contains(&&*gap.resource) && self.kinds.len() < KINDS_MAX {
                self.kinds.entry(gap.resource.to_string()).or_default().complete += 1;
            }
        }
    }

    /// Kinds that the program lists or watches: `(resource, form, number of requests that name one object)`.
    pub(crate) fn forms(&self) -> Vec<(String, Form, u64)> {
        let asked = self.kinds.iter().filter(|(_, seen)| seen.lists > 0 || seen.form.is_watched);
        let forms = asked.map(|(resource, seen)| {
            let form = Form {
                lists: seen.complete.max(seen.lists),
                labels: seen.labels.text(),
                fields: seen.fields.text(),
                in_namespaces: !seen.whole_cluster,
                is_metadata_only: !seen.whole_objects,
                ..seen.form.clone()
            };
            (resource.clone(), form, seen.named)
        });
        forms.collect()
    }

    /// Whether any list is streamed on its watch.
    pub(super) fn is_streamed(&self) -> bool {
        self.kinds.values().any(|seen| seen.form.is_streamed)
    }

    /// Number of complete lists of each watched kind.
    pub(crate) fn lists(&self) -> BTreeMap<String, u64> {
        let watched = self.kinds.iter().filter(|(_, seen)| seen.form.is_watched && seen.complete > 0);
        watched.map(|(resource, seen)| (resource.clone(), seen.complete)).collect()
    }

    /// Whether each kind in `wanted` has its wanted number of complete lists in addition to those in `before`.
    pub(super) fn has(&self, wanted: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> bool {
        let of = |lists: &BTreeMap<String, u64>, resource: &String| lists.get(resource).copied().unwrap_or(0);
        let now = self.lists();
        wanted.iter().all(|(resource, count)| of(&now, resource) >= of(before, resource) + count)
    }
}
