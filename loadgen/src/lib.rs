//! Open-loop load: admission reviews at a webhook, and object churn at a Kubernetes API.
//!
//! This crate owns *when* something is sent and *how long* it took: planned arrivals, the pacing thread, the clients and
//! the histograms. Arrivals never wait for answers, so a slow subject cannot slow its own test down; latency counts from
//! the planned time. It knows nothing of scenarios, run records or verdicts, and never judges its numbers: it counts.
//!
//! All workloads share one engine (`open_loop`: when, how late, and how it ends):
//!
//! - [`admission`] sends `AdmissionReview`s made before the clock starts, as kube-apiserver sends them, and knows the
//!   right answer to each;
//! - [`churn`] keeps a constant population of objects under ever-new names, uids and namespaces;
//! - [`script`] writes exactly what a scenario says, when it says so;
//! - [`calls`] reads and sets the counts of Deployments through a subject that offers that, and knows what is right from the control plane.
//!
//! Beside them, [`audit`] watches what a real control plane commits, where nobody can look inside.

pub mod admission;
mod arrivals;
pub mod audit;
pub mod calls;
pub mod churn;
mod examples;
mod failure;
mod histogram;
mod one_or_more;
mod open_loop;
pub mod script;
mod seed;
mod size;
mod socket;
mod wire;

pub use arrivals::{Arrivals, LineError, Ramp, RecordingError, Schedule, Shape, Sine, Stairs, Step};
pub use histogram::{HIGHEST_US, LOWEST_US, SIGNIFICANT_DIGITS};
pub use size::Size;
