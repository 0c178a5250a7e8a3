//! Admission: answers the reviews of an API server. Tags of images are pinned to their digests, and signatures are
//! verified if the policy demands it.
//!
//! This crate owns all steps of a review: parse, exempt, walk, policy, resolve, validate, decide, patch. The module
//! `edge` owns listeners, TLS and shutdown; admission does not use the crate `watch`.

#[doc(hidden)]
pub mod bench;
pub mod config;
mod current;
mod deadline;
mod decide;
mod endpoint;
pub mod events;
mod exempt;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod generations;
mod json;
mod load;
mod memo;
mod metrics;
pub mod once;
mod owners;
mod patch;
mod pipeline;
mod policy;
mod registration;
mod resolver;
mod review;
mod role;
mod site;
mod tenants;
mod text;
mod unchanged;
mod upkeep;
pub mod validator;
mod walk;

pub use current::{Current, Unanswered};
pub use decide::Hook;
pub use endpoint::Endpoint;
pub use load::Load;
pub use metrics::Metrics;
pub use owners::{OwnerSource, Owners};
pub use pipeline::{Pipeline, Validation};
pub use policy::{Explanation, OnClass, Policy, RuleName, Target, Treatment};
pub use resolver::{Resolver, Source};
pub use role::AdmissionRole;
