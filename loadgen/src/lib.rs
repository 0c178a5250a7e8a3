//! Open-loop load: admission reviews for a webhook, object churn in a Kubernetes API, scripted writes, and calls of an
//! API that scales Deployments.
//!
//! Owns the planned times of requests and their measured durations: the pacing thread, the clients and the histograms.
//! Arrivals never wait for answers, so a slow subject cannot slow its own test down. Latency counts from the planned
//! time of a request. The crate knows nothing of scenarios, run records or verdicts. This crate counts, and does not
//! judge its numbers.
//!
//! All kinds of load use one engine (`open_loop`), which starts operations at their planned times, measures their
//! lateness, and ends the plan:
//!
//! - [`admission`] sends `AdmissionReview`s as kube-apiserver does. These reviews are made before the load starts, and
//!   the right answer to each is known.
//! - [`churn`] keeps a constant number of objects under ever-new names, uids and namespaces.
//! - [`script`] writes certain objects at the times in the scenario.
//! - [`calls`] reads and sets the replica counts of Deployments through a subject that offers an API for them. The
//!   control plane shows the right counts.
//!
//! The module [`audit`] watches the commits of a real control plane, whose internal state cannot be read.

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
