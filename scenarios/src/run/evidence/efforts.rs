//! The subject's latest writes, including writes that the API server refused.
//!
//! Owns a bounded history of the subject's writes. [`Efforts::add_to`] selects writes for the history of an anomaly:
//! writes of its object, and of objects whose name begins with the object's name, as controllers name children.

use std::collections::VecDeque;
use std::sync::Arc;

use reports::record::{RequestRow, Step, Verb};

use super::About;

/// Maximum number of writes kept: 4 MiB, or an hour of a subject with five requests per second.
const WRITES_MAX: usize = 16_384;
/// Maximum number of entries for writes in the history of one anomaly. Each entry is a series of writes with the same
/// result; the newest entries are kept.
const STEPS_MAX: usize = 8;

/// The subject's latest writes.
#[derive(Debug, Default)]
pub(crate) struct Efforts {
    newest: VecDeque<Effort>,
    /// The last reason of a refusal, shared because the same reason often repeats.
    reason: Option<Arc<str>>,
}

#[derive(Debug)]
struct Effort {
    t_ms: u64,
    verb: Verb,
    resource: Arc<str>,
    namespace: String,
    name: String,
    status: u16,
    message: Option<Arc<str>>,
}

impl Efforts {
    /// Records a request that was answered, or that ended without an answer.
    pub(crate) fn note(&mut self, row: &RequestRow) {
        if !row.writes() || row.is_aside() || row.name.is_empty() {
            return;
        }
        if self.newest.len() == WRITES_MAX {
            self.newest.pop_front();
        }
        let known = self.newest.back().map(|last| &last.resource).filter(|last| ***last == *row.resource);
        let resource = known.cloned().unwrap_or_else(|| row.resource.as_str().into());
        let message = row.message.as_deref().map(|text| self.shared(text));
        let (namespace, name) = (row.namespace.clone(), row.name.clone());
        let (t_ms, verb, status) = (row.t_ms, row.verb, row.status);
        self.newest.push_back(Effort { t_ms, verb, resource, namespace, name, status, message });
    }

    fn shared(&mut self, text: &str) -> Arc<str> {
        let known = self.reason.as_ref().filter(|reason| ***reason == *text).cloned();
        self.reason.insert(known.unwrap_or_else(|| text.into())).clone()
    }

    /// Adds the subject's writes for an object to the history `steps`, from the object's first version in `steps` on.
    /// Of many writes, adds only the newest.
    pub(super) fn add_to(&self, steps: &mut Vec<Step>, about: &About<'_>) {
        let mut told: VecDeque<Step> = VecDeque::new();
        let first = steps.iter().filter(|step| matches!(step, Step::Committed { .. })).map(Step::t_ms).min();
        let from_ms = first.unwrap_or(about.from_ms).min(about.from_ms);
        let within = |effort: &&Effort| (from_ms..=about.until_ms).contains(&effort.t_ms);
        for effort in self.newest.iter().filter(within).filter(|effort| effort.concerns(about)) {
            if !told.back_mut().is_some_and(|last| effort.goes_on(last)) {
                told.push_back(effort.step());
            }
            if told.len() > STEPS_MAX {
                told.pop_front();
            }
        }
        steps.extend(told);
    }
}

impl Effort {
    /// Whether the write is of the object, or of an object whose name begins with the object's name. For an object
    /// without a namespace, other namespaces count too.
    fn concerns(&self, about: &About<'_>) -> bool {
        let near = self.namespace == about.namespace || about.namespace.is_empty() || self.namespace.is_empty();
        let after = self.name.strip_prefix(about.name).filter(|_| !about.name.is_empty());
        near && after.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
    }

    /// Adds the write to the previous entry, if both are equal except for their times.
    fn goes_on(&self, last: &mut Step) -> bool {
        let Step::Wrote { t_ms, verb, resource, object, status, times, message } = last else { return false };
        let same = *verb == self.verb && **resource == *self.resource && *object == self.object();
        if !same || *status != self.status || message.as_deref() != self.message.as_deref() {
            return false;
        }
        (*t_ms, *times) = (self.t_ms, *times + 1);
        true
    }

    fn object(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }

    fn step(&self) -> Step {
        Step::Wrote {
            t_ms: self.t_ms,
            verb: self.verb,
            resource: self.resource.to_string(),
            object: self.object(),
            status: self.status,
            times: 1,
            message: self.message.as_deref().map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(t_ms: u64, verb: Verb, resource: &str, name: &str, status: u16) -> RequestRow {
        let message = (status >= 400).then(|| "no".to_owned());
        let (resource, namespace, name) = (resource.to_owned(), "default".to_owned(), name.to_owned());
        RequestRow { t_ms, verb, resource, namespace, name, status, message, ..RequestRow::default() }
    }

    fn requests_of(efforts: &Efforts, name: &str, from_ms: u64) -> Vec<(u64, String, u16, u64)> {
        let about = About {
            resource: "caches",
            namespace: "default",
            name,
            uid: "u",
            revision: "7",
            from_ms,
            until_ms: 1_000_000,
        };
        let mut steps = Vec::new();
        efforts.add_to(&mut steps, &about);
        let wrote = |step: Step| match step {
            Step::Wrote { t_ms, resource, object, status, times, .. } => {
                (t_ms, format!("{resource} {object}"), status, times)
            }
            other => panic!("{other:?}"),
        };
        steps.into_iter().map(wrote).collect()
    }

    #[test]
    fn what_was_written_for_an_object_is_told_and_nothing_else() {
        let mut efforts = Efforts::default();
        for row in [
            row(1, Verb::Update, "caches", "a", 200),
            row(10, Verb::Create, "statefulsets.apps", "a-db", 422),
            row(20, Verb::Create, "statefulsets.apps", "a-db", 422),
            row(21, Verb::Create, "statefulsets.apps", "ab", 422),
            row(22, Verb::Get, "statefulsets.apps", "a-db", 404),
            row(23, Verb::Update, "leases.coordination.k8s.io", "a", 409),
            row(30, Verb::Create, "statefulsets.apps", "a-db", 201),
        ] {
            efforts.note(&row);
        }
        let db = || "statefulsets.apps default/a-db".to_owned();
        assert_eq!(requests_of(&efforts, "a", 5), [(20, db(), 422, 2), (30, db(), 201, 1)]);
        assert_eq!(requests_of(&efforts, "b", 0), []);
    }

    /// The memory and the number of entries are bounded for any number of writes.
    #[test]
    fn what_is_remembered_and_told_is_bounded() {
        let mut efforts = Efforts::default();
        (0..WRITES_MAX as u64 + 10).for_each(|t_ms| {
            efforts.note(&row(t_ms, Verb::Update, "caches", "a", if t_ms % 2 == 0 { 409 } else { 200 }));
        });
        assert_eq!(efforts.newest.len(), WRITES_MAX);
        let told = requests_of(&efforts, "a", 0);
        assert_eq!((told.len(), told[STEPS_MAX - 1].0), (STEPS_MAX, WRITES_MAX as u64 + 9));
    }
}
