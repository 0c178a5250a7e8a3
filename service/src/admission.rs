//! Admission: a review in, an answer out, with every tag pinned to its digest and every signature verified that the policy asks for.
//!
//! Owns the webhook's meaning: parse, exempt, walk, policy, resolve, validate, decide, patch. Listening, TLS and shutdown belong to `edge`;
//! this room does not know of `watch`.

#[doc(hidden)]
pub mod bench;
mod current;
mod deadline;
mod decide;
#[cfg(feature = "fuzz")]
pub(crate) mod door;
mod endpoint;
mod exempt;
mod json;
mod load;
mod memo;
mod owners;
mod patch;
mod pipeline;
mod policy;
mod resolver;
mod review;
mod tenants;
mod text;
mod unchanged;
mod walk;

pub use current::{Current, Unanswered};
pub use decide::Hook;
pub use endpoint::Endpoint;
pub use load::Load;
pub use owners::{OwnerSource, Owners};
pub use pipeline::{Metrics, Pipeline, Validation};
pub use policy::{Explanation, OnClass, Policy, RuleName, Target, Treatment};
pub use resolver::{Resolver, Source};
