//! The budgets of a scenario: limits that decide its verdict.
//!
//! Owns the keys and types of the budgets that a scenario may set. The judges in `reports::judge` own the rule and the
//! default of each budget.
//!
//! A budget whose section or field is absent is not judged, with two exceptions. If [`Events`] or [`Admission`] is
//! present, each violation of the API's contract has the budget zero. [`Writes`], [`Finalizers`], [`ObjectLimits`] and
//! [`ChildrenLimits`] have defaults that apply without their section. A scenario with a witness and written objects
//! always has [`Events`].

mod admission;
mod alerts;
mod api;
mod consistent;
mod ending;
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
pub use consistent::{Condition, Consistent};
pub use ending::{EndingLimits, Expected};
pub use events::{Delivery, Events};
pub use objects::{ChildrenLimits, Finalizers, ObjectLimits, Writes};
pub use process::{Crashes, Descriptors, Memory, OpenWatches, OwnSeries, Threads};
pub use requests::{AtLeast, Connections, Requests};

/// The limits of a run. Most absent sections are not judged.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budgets {
    /// Limits on wrong watch events. The defaults of these limits apply without this section if objects are written and
    /// a witness reports them.
    pub events: Option<Events>,
    /// Limits on the subject's writes while no other client writes. The default applies without this section.
    pub writes: Option<Writes>,
    /// Limits on deletions that the subject's finalizers hold up. The default applies without this section.
    pub finalizers: Option<Finalizers>,
    /// Limits on the subject's requests for objects that it did not make. The defaults apply without this section if
    /// the control plane reports the author of each request.
    pub objects: Option<ObjectLimits>,
    /// Limits on the subject's children at any time. The defaults apply without this section if `subject.children`
    /// names any.
    pub children: Option<ChildrenLimits>,
    /// Limits on the state at the end of the drain: objects, fields and numbers that must be as expected.
    pub ending: Option<EndingLimits>,
    /// Limits on the subject's requests to the control plane. Only the mock control plane records each request with its
    /// author.
    pub requests: Option<Requests>,
    /// Limits on the duration and the errors of admission reviews.
    pub admission: Option<Admission>,
    /// Limits on lost and superfluous alerts. Needs the section `alerts`.
    pub alerts: Option<Alerts>,
    /// Limits on the subject's API that scales Deployments: wrong answers, unauthorised calls, duration. Needs the
    /// section `api`.
    pub api: Option<Api>,
    /// Limits on the subject's requests to the registry, and on refused reviews while the registry is faulty.
    pub registry: Option<Registry>,
    /// How often a process of the subject may end by itself. Needs `subject: {restart: always}`: without that key, any
    /// end of a process fails the run.
    pub crashes: Option<Crashes>,
    /// How much memory the subject may use and gain.
    pub memory: Option<Memory>,
    /// How many file descriptors the subject may hold and gain.
    pub descriptors: Option<Descriptors>,
    /// How many threads the subject may have and gain.
    pub threads: Option<Threads>,
    /// How many more watches may be open at the end of the steady phase than at the end of the warm-up. The mock counts
    /// open watches; for `local` and `node` the audit log does.
    pub open_watches: Option<OpenWatches>,
    /// Limits on series of the subject's own metrics. Each key is a name, perhaps with labels:
    /// `workqueue_depth{name="pods"}`. The sum of all series with this name and these labels is judged. Needs `subject:
    /// {metrics: URL}`.
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
