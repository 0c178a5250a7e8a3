//! Budgets: the limits of a scenario that decide its verdict.
//!
//! Owns what a scenario may write; what is judged of it, and the defaults, are rows of the judges. An absent section or field is not judged, with two exceptions:
//! what breaks the API's contract has the budget zero as soon as [`Events`] or [`Admission`] is present, and [`Writes`],
//! [`Finalizers`], [`ObjectLimits`] and [`ChildrenLimits`] have defaults that need no section. A scenario with a witness and written objects has [`Events`].

mod admission;
mod alerts;
mod api;
mod events;
mod objects;
mod process;
mod requests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use admission::{Admission, Registry};
pub use alerts::Alerts;
pub use api::Api;
pub use events::{Delivery, Events};
pub use objects::{ChildrenLimits, Finalizers, ObjectLimits, Writes};
pub use process::{Crashes, Descriptors, Memory, OpenWatches, OwnSeries, Threads};
pub use requests::{AtLeast, Connections, Requests};

/// The limits of a run. An absent section is not judged.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budgets {
    /// What the subject may do wrong with watch events. Judged without it as well, wherever objects are written and a witness tells of them.
    pub events: Option<Events>,
    /// What the subject may go on writing when nobody else writes. Judged without it as well.
    pub writes: Option<Writes>,
    /// What the subject's finalizers may hold up. Judged without it as well.
    pub finalizers: Option<Finalizers>,
    /// What the subject may do to objects that it did not make. Judged without it as well, where the control plane tells who asked for what.
    pub objects: Option<ObjectLimits>,
    /// What the subject may do with its children at any time. Judged without it as well, wherever `subject.children` names some.
    pub children: Option<ChildrenLimits>,
    /// What the subject may ask of the control plane. Only the mock control plane tells who asked what.
    pub requests: Option<Requests>,
    /// What admission reviews may cost and how often they may be wrong.
    pub admission: Option<Admission>,
    /// What receivers of alerts may be told too often or not at all. Needs the section `alerts`.
    pub alerts: Option<Alerts>,
    /// What the subject's API over Deployments may tell, whom it may let in, and how long it may take. Needs the section `api`.
    pub api: Option<Api>,
    /// What the subject may ask of the registry, and what it may make of a sick one.
    pub registry: Option<Registry>,
    /// How often the subject may end by itself. Needs `subject: {restart: always}`: without it any end of a process fails the run.
    pub crashes: Option<Crashes>,
    /// How much memory the subject may use and gain.
    pub memory: Option<Memory>,
    /// How many file descriptors the subject may hold and gain.
    pub descriptors: Option<Descriptors>,
    /// How many threads the subject may have and gain.
    pub threads: Option<Threads>,
    /// How many more watches the subject may hold open. The mock tells, and the audit log of `local` and `node`.
    pub open_watches: Option<OpenWatches>,
    /// Limits on series of the subject's own metrics, each by its name, perhaps with labels: `workqueue_depth{name="pods"}`. The sum of
    /// all series that have the name and these labels is judged. Needs `subject: {metrics: URL}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, OwnSeries>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_budget_is_refused() {
        let error = serde_json::from_str::<Budgets>(r#"{"events": {"mised": 0}}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `mised`"), "{error}");
    }

    #[test]
    fn absent_budgets_stay_absent() {
        let budgets: Budgets = serde_json::from_str(r#"{"memory": {"ceiling": "64MiB"}}"#).unwrap();
        assert_eq!(budgets.events, None);
        assert_eq!(serde_json::to_string(&budgets).unwrap(), r#"{"memory":{"ceiling":"64MiB"}}"#);
    }
}
