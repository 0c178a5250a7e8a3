//! Facts about a scenario that decide what its witness can observe.

use std::collections::BTreeSet;

use facts::Looks;
use record::Sees;

use super::{By, Children, Scenario};
use crate::witness::{About, Family, Parent};

impl Scenario {
    /// The kinds of facts that the witness can observe in this scenario.
    pub fn sees(&self) -> Sees {
        self.subject.witness.sees(&self.about())
    }

    /// The fields of each object in which the subject shows the version that it handled, if the witness reads such
    /// fields.
    pub fn looks(&self) -> Option<Looks> {
        let own = self.churn.iter().filter_map(|churn| Some(churn.finalizers.as_ref()?.name.clone())).collect();
        self.subject.witness.looks().map(|looks| Looks { own, ..looks })
    }

    /// The facts that the witness needs about the writes of the run.
    pub fn about(&self) -> About {
        let written = self.churn.first().map(|churn| &churn.resource);
        let written = written.or(self.script.as_ref().map(|script| &script.resource));
        let parents =
            written.and_then(|spelled| loadgen::churn::names(spelled)).map_or_else(String::new, |names| names.0);
        let family = self.subject.children.first().map(|children| Family {
            // The churn deletes whole namespaces, with everything that is left in them.
            are_deleted: !self.churn.is_empty() || self.deletes_children(),
            ..family(children, &parents)
        });
        let has_page = self.subject.metrics.as_ref().is_some_and(|metrics| metrics.url.is_some());
        About {
            family,
            has_metrics: has_page && self.subject.command().is_some(),
            reuses_names: self.reuses_names(),
            others: self.judged_resources().into_iter().map(|(name, _)| name).filter(|name| *name != parents).collect(),
        }
    }

    /// Whether a fault deletes children of the subject.
    fn deletes_children(&self) -> bool {
        let mut drifts = self.faults.named(mock_faults::Name::ChildrenDrift);
        drifts.any(|fault| fault.keys::<mock_faults::ChildrenDriftKeys>().edit.is_none())
    }

    /// Whether the script creates an object with the name of an earlier, deleted object.
    fn reuses_names(&self) -> bool {
        let steps = || self.script.iter().flat_map(|script| &script.steps);
        let mut made = BTreeSet::new();
        steps().any(|step| step.recreate.is_some())
            || steps().filter_map(|step| step.create.as_ref()).flat_map(|names| &names.0).any(|name| !made.insert(name))
    }
}

fn family(children: &Children, parents: &str) -> Family {
    let by = match &children.by {
        By::Owner => Parent::Owner,
        By::Label(key) => Parent::Label(key.clone()),
        By::Name(pattern) => {
            let (before, behind) = Children::name_parts(pattern);
            Parent::Name(before.to_owned(), behind.to_owned())
        }
    };
    Family {
        resource: children.resource.clone(),
        group: parents.split_once('.').map_or("", |(_, group)| group).to_owned(),
        by,
        generation: children.generation.clone(),
        revision: children.revision.clone(),
        may_be_none: children.per_entry.is_some(),
        are_deleted: false,
    }
}
